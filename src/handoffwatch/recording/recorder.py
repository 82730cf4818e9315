"""The recorder: opens a scope for each crossing, and turns each event into samples, span attributes and a log line."""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Collection, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode
from prometheus_client import CollectorRegistry

from handoffwatch import catalogue as c
from handoffwatch import events as e
from handoffwatch.clock import Clock
from handoffwatch.recording import births
from handoffwatch.recording.book import Book
from handoffwatch.recording.logs import log, log_unknown
from handoffwatch.recording.samples import FED, FEEDERS
from handoffwatch.recording.spans import ATTRIBUTES, CHECKS, SEMCONV, Attributes, clean, error_type, is_worth_a_span
from handoffwatch.recording.traceparent import context_of
from handoffwatch.vocabulary import (
    BypassCause,
    Check,
    Component,
    Criticality,
    DropCause,
    FailureClass,
    Mode,
    Reaction,
    Signal,
    ToolCode,
    ToolsNeed,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import TracerProvider

    from handoffwatch.recording.settings import RecordingSettings


class Scope:
    """One crossing in progress: its span is open until the event that ends it arrives.

    Attributes:
        span: The open span.
        context: The context in which the span is the current one.
        may_be_kept: Whether the trace of the span may be there: it is sampled, or nobody has decided.
    """

    __slots__ = ("_recorder", "context", "may_be_kept", "span")

    def __init__(self, recorder: Recorder, span: Span) -> None:
        self._recorder = recorder
        self.span = span
        self.context = trace.set_span_in_context(span)
        address = span.get_span_context()
        self.may_be_kept = address.trace_flags.sampled or not address.is_valid

    def close(self, event: e.Event) -> None:
        """End the crossing: attributes, samples and log line come from `event`. Never raises."""
        self._recorder.close(self.span, event)


class Recorder:
    """Records events; it never breaks its host: a fault in here is counted and the host goes on.

    Args:
        registry: Where the samples are exposed.
        tracer_provider: The host's provider; None takes the global one, or one of our own when an OTLP endpoint
            is set.
        clock: Times the spans that are written after the fact.
        settings: What leaves, where to, and its bounds.
    """

    def __init__(
        self,
        *,
        registry: CollectorRegistry,
        tracer_provider: TracerProvider | None,
        clock: Clock,
        settings: RecordingSettings,
    ) -> None:
        self._book = Book(registry, FED, monotonic_s=clock.monotonic_s)
        self._clock = clock
        self._exemplars = settings.exemplars
        self._own_provider: Any = None
        release = version("handoffwatch")
        births.bear_process(self._book, release=release, semconv=SEMCONV)
        if tracer_provider is None and settings.otlp_endpoint is not None:
            from handoffwatch.recording.tracing import build_provider

            self._own_provider = build_provider(settings, endpoint=settings.otlp_endpoint, dropped=self._spans_dropped)
            tracer_provider = self._own_provider
            atexit.register(self.close_spans)
        self._tracer = trace.get_tracer("handoffwatch", release, tracer_provider)

    def open(self, name: str, attributes: Attributes, *, within: Scope | None = None) -> Scope:
        """Start the span of a crossing and return its scope.

        Within a scope whose trace is not sampled there is none to start, unless the host has a sampled span current:
        the crossing has that of the scope, which records nothing.

        Args:
            name: The span's name.
            attributes: What samplers see.
            within: The scope that is its parent when no span is current, as in threads and callbacks.
        """
        try:
            if within is not None and not within.may_be_kept and not trace.get_current_span().is_recording():
                return Scope(self, within.span)
            span = self._tracer.start_span(
                clean(name), _parent(within), attributes=attributes, start_time=self._now_ns()
            )
        except Exception as error:  # noqa: BLE001 - a host's sampler or processor may raise; the host must go on
            self._failed(error)
            span = trace.INVALID_SPAN
        return Scope(self, span)

    def close(self, span: Span, event: e.Event) -> None:
        """End `span` with the attributes of `event` and record the event."""
        sampled: SpanContext | None = None
        try:
            if span.is_recording():
                sampled = self._finish(span, event)
                span.end(self._now_ns())
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)
        self._count(event, sampled)

    def emit(self, event: e.Event, *, within: Scope | None = None) -> None:
        """Record an event that ends no scope; a check gets its span now, after the fact. Never raises.

        Args:
            event: The fact.
            within: The scope it belongs to: parent of a check's span when none is current, and else its exemplar.
                When its span is not sampled, a check that found nothing gets no span: its trace would not be there.
        """
        sampled: SpanContext | None = None
        try:
            of_event = CHECKS.get(type(event))
            is_wanted = within is None or within.may_be_kept or is_worth_a_span(event)
            check = of_event(event) if of_event is not None and is_wanted else None
            if check is not None:
                name, attributes, duration_s, links, elsewhere = check
                end_ns = self._now_ns()
                start_ns = end_ns - int(duration_s * 1e9)
                parent = _parent(within)
                if elsewhere:
                    parent, links = context_of(elsewhere), _links_to(within)
                span = self._tracer.start_span(name, parent, attributes=attributes, links=links, start_time=start_ns)
                if span.is_recording():
                    sampled = self._sampled(span)
                    span.end(end_ns)
            elif within is not None:
                sampled = self._sampled(within.span)
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)
        self._count(event, sampled)

    def unknown(self, metric: c.Metric, label: str, name: str) -> None:
        """Count a name that nobody registered, and write it to the log; the series get `other`."""
        try:
            self._book.overflow(metric, label)
            log_unknown(label, str(name))
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)

    def register_route(
        self,
        name: str,
        source: str,
        target: str,
        *,
        versions: list[str],
        mode: Mode,
        criticality: Criticality,
        codes: Collection[tuple[str, Reaction]],
        bypasses: Collection[tuple[Check, BypassCause]],
    ) -> None:
        """Bear the series of a route at 0.

        `codes` are those that its handoffs can yield, with their reactions; `bypasses` the checks that they can pass
        without.
        """
        births.bear_route(
            self._book, name, source, target,
            versions=versions, mode=mode, criticality=criticality, codes=codes, bypasses=bypasses,
        )  # fmt: skip

    def register_boundary(self, route: str, patterns: Collection[str]) -> None:
        """Bear the series of a route's boundary at 0, for each pattern that a divergence can break."""
        births.bear_boundary(self._book, route, patterns)

    def register_workflow(self, name: str, *, tools: ToolsNeed) -> None:
        """Bear the series of a workflow at 0."""
        births.bear_workflow(self._book, name, tools=tools)

    def register_tool(self, name: str, *, codes: Collection[tuple[ToolCode, FailureClass]]) -> None:
        """Bear the series of a tool at 0, for the codes and classes that its calls can fail with."""
        births.bear_tool(self._book, name, codes=codes)

    def register_operation(self, name: str) -> None:
        """Bear the series of an operation at 0."""
        births.bear_operation(self._book, name)

    def selftest_passed(self, unix_s: float) -> None:
        """Show when every contract last judged its own examples right."""
        self._book.set(c.SELFTEST_TIME, (), unix_s)

    def close_spans(self) -> None:
        """Send the spans that wait, within the configured exit time. Only a provider of our own is shut down."""
        provider, self._own_provider = self._own_provider, None
        if provider is not None:
            atexit.unregister(self.close_spans)
            provider.shutdown()

    def _finish(self, span: Span, event: e.Event) -> SpanContext | None:
        attributes = ATTRIBUTES.get(type(event))
        if attributes is not None:
            span.set_attributes(attributes(event))
        failed = error_type(event)
        if failed is not None:
            span.set_status(Status(StatusCode.ERROR, failed))
        return self._sampled(span)

    def _sampled(self, span: Span) -> SpanContext | None:
        """Return what exemplars are made of, or None when they are off or the span is not sampled."""
        context = span.get_span_context()
        return context if self._exemplars and context.trace_flags.sampled else None

    def _count(self, event: e.Event, sampled: SpanContext | None) -> None:
        try:
            FEEDERS[type(event)](self._book, event, sampled)
            log(event)
        except Exception as error:  # noqa: BLE001 - recording never breaks the host
            self._failed(error)

    def _now_ns(self) -> int:
        return int(self._clock.wall_s() * 1e9)

    def _failed(self, error: Exception) -> None:
        caught = e.InternalErrorCaught(Component.RECORDING, type(error).__name__)
        FEEDERS[e.InternalErrorCaught](self._book, caught, None)
        with contextlib.suppress(Exception):  # a host's log filter or handler may be what raises
            log(caught)

    def events_dropped(self, events: int) -> None:
        """Count events that were kept for the ledger and had to make room for others."""
        self._book.add(c.TELEMETRY_DROPPED, (Signal.EVENTS, DropCause.QUEUE_FULL), events)

    def _spans_dropped(self, cause: DropCause, spans: int) -> None:
        self._book.add(c.TELEMETRY_DROPPED, (Signal.SPANS, cause), spans)


def _links_to(within: Scope | None) -> Sequence[Link] | None:
    """Return the link to the run in which a check was made whose parent is in another process."""
    address = None if within is None else within.span.get_span_context()
    return (Link(address),) if address is not None and address.is_valid else None


def _parent(within: Scope | None) -> Context | None:
    """Return the context of a scope when no span is current, else None: the current context."""
    if within is None or trace.get_current_span() is not trace.INVALID_SPAN:
        return None
    return within.context
