"""Spans that leave by OTLP: a provider of our own with bounded queue, time-out and exit, and every drop counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from handoffwatch.recording.settings import RecordingSettings
from handoffwatch.vocabulary import DropCause

if TYPE_CHECKING:
    from opentelemetry.context import Context

Dropped = Callable[[DropCause, int], None]


class BoundedSpans(SpanProcessor):
    """Hands spans to a batch processor while its queue has room, and counts what it does not hand on.

    Args:
        exporter: Where the spans go.
        queue_max: The most spans that wait.
        exit_s: The longest that `shutdown` may take, in seconds.
        dropped: Called with the cause and the number of spans that are lost.
    """

    def __init__(self, exporter: SpanExporter, *, queue_max: int, exit_s: float, dropped: Dropped) -> None:
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False
        self._queue_max = queue_max
        self._exit_s = exit_s
        self._dropped = dropped
        batch_max = max(1, min(512, queue_max))
        self._batch = BatchSpanProcessor(
            _Counted(exporter, self._left), max_queue_size=queue_max, max_export_batch_size=batch_max
        )

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing: a span waits only when it has ended."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a sampled span, or count it as dropped when the queue is full."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        with self._lock:
            cause = self._refusal()
            if cause is None:
                self._waiting += 1
        if cause is None:
            self._batch.on_end(span)
        else:
            self._dropped(cause, 1)

    def shutdown(self) -> None:
        """Send what waits, for at most `exit_s`; the rest is counted as dropped."""
        sender = threading.Thread(target=self._batch.shutdown, name="handoffwatch-spans-exit", daemon=True)
        sender.start()
        sender.join(self._exit_s)
        with self._lock:
            self._closed = True
            left, self._waiting = self._waiting, 0
        if left:
            self._dropped(DropCause.SHUTDOWN, left)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits now."""
        return self._batch.force_flush(timeout_millis)

    def _left(self, spans: int, *, exported: bool) -> None:
        with self._lock:
            counted = self._closed
            if not counted:
                self._waiting -= spans
        if not (exported or counted):
            self._dropped(DropCause.EXPORT_FAILED, spans)

    def _refusal(self) -> DropCause | None:
        if self._closed:
            return DropCause.SHUTDOWN
        return DropCause.QUEUE_FULL if self._waiting >= self._queue_max else None


class _Counted(SpanExporter):
    def __init__(self, exporter: SpanExporter, left: Callable[..., None]) -> None:
        self._exporter = exporter
        self._left = left

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        exported = False
        try:
            result = self._exporter.export(spans)
            exported = result is SpanExportResult.SUCCESS
            return result
        finally:
            self._left(len(spans), exported=exported)

    def shutdown(self) -> None:
        self._exporter.shutdown()


def build_provider(settings: RecordingSettings, *, endpoint: str, dropped: Dropped) -> TracerProvider:
    """Return a tracer provider that sends to a Collector's base URL; the global provider is left alone.

    The service's name comes from OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES, as everywhere in OpenTelemetry.
    """
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=settings.otlp_timeout_s)
    provider = TracerProvider(resource=Resource.create(), shutdown_on_exit=False)
    provider.add_span_processor(
        BoundedSpans(exporter, queue_max=settings.queue_max, exit_s=settings.exit_s, dropped=dropped)
    )
    return provider
