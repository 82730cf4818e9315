"""Spans that leave: a bounded queue, a bounded end, and every span that is lost counted once with its cause."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

from handoffwatch import Settings, Watch
from handoffwatch.recording.settings import RecordingSettings
from handoffwatch.recording.tracing import BoundedSpans
from handoffwatch.vocabulary import DropCause
from support.telemetry import counted

EXIT_S = 0.05


class _Exporter(SpanExporter):
    """An exporter whose answer a test decides, and which waits until the test lets it go on.

    Args:
        result: What each export gives; an exception is raised.
        waits: Whether an export waits for `go_on`.
    """

    def __init__(self, result: SpanExportResult | Exception = SpanExportResult.SUCCESS, *, waits: bool = False) -> None:
        self.names: list[str] = []
        self.go_on = threading.Event()
        self._result = result
        if not waits:
            self.go_on.set()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.go_on.wait(30)
        if isinstance(self._result, Exception):
            raise self._result
        if self._result is SpanExportResult.SUCCESS:
            self.names += [span.name for span in spans]
        return self._result

    def shutdown(self) -> None:
        """Nothing to close."""


class _Sender:
    """A provider over bounded spans, and what it dropped."""

    def __init__(self, exporter: SpanExporter, *, queue_max: int = 2048, sampler: Sampler = ALWAYS_ON) -> None:
        self.dropped: list[tuple[DropCause, int]] = []
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(
            BoundedSpans(
                exporter,
                queue_max=queue_max,
                exit_s=EXIT_S,
                dropped=lambda cause, spans: self.dropped.append((cause, spans)),
            )
        )

    def end(self, *numbers: int) -> None:
        """Start and end spans."""
        tracer = self.provider.get_tracer("test")
        for number in numbers:
            tracer.start_span(f"span {number}").end()

    @property
    def total(self) -> dict[DropCause, int]:
        """How many spans were dropped, by cause."""
        causes = {cause for cause, _ in self.dropped}
        return {cause: sum(spans for other, spans in self.dropped if other is cause) for cause in causes}


def _wait_for_exit_thread() -> None:
    for thread in threading.enumerate():
        if thread.name == "handoffwatch-spans-exit":
            thread.join(30)
            assert not thread.is_alive()


def test_spans_arrive_and_none_is_dropped_when_the_receiver_takes_them() -> None:
    """What waits is sent at the end."""
    exporter = _Exporter()
    sender = _Sender(exporter)

    sender.end(*range(10))
    sender.provider.shutdown()
    _wait_for_exit_thread()

    assert exporter.names == [f"span {number}" for number in range(10)]
    assert sender.dropped == []


def test_queue_stays_bounded_when_the_receiver_hangs() -> None:
    """What finds no room is dropped at once and counted; nothing grows and nothing waits."""
    exporter = _Exporter(waits=True)
    sender = _Sender(exporter, queue_max=4)

    sender.end(*range(10))
    assert sender.total == {DropCause.QUEUE_FULL: 6}
    exporter.go_on.set()
    sender.provider.force_flush()
    sender.end(10)
    sender.provider.shutdown()
    _wait_for_exit_thread()

    assert exporter.names == ["span 0", "span 1", "span 2", "span 3", "span 10"]
    assert sender.total == {DropCause.QUEUE_FULL: 6}


@pytest.mark.parametrize("result", [SpanExportResult.FAILURE, RuntimeError("sk-live")], ids=["failure", "exception"])
def test_spans_are_counted_as_failed_when_the_exporter_fails(result: SpanExportResult | Exception) -> None:
    """An exporter that raises loses its batch as one that says so."""
    sender = _Sender(_Exporter(result))

    sender.end(*range(5))
    sender.provider.force_flush()

    assert sender.total == {DropCause.EXPORT_FAILED: 5}
    sender.provider.shutdown()


@pytest.mark.parametrize(
    "late", [SpanExportResult.SUCCESS, SpanExportResult.FAILURE, RuntimeError()], ids=["arrives", "fails", "raises"]
)
def test_spans_are_counted_once_when_the_end_does_not_wait_for_them(late: SpanExportResult | Exception) -> None:
    """The end is bounded; what becomes of the spans after it is not counted a second time."""
    exporter = _Exporter(late, waits=True)
    sender = _Sender(exporter)

    sender.end(*range(5))
    sender.provider.shutdown()
    assert sender.total == {DropCause.SHUTDOWN: 5}
    exporter.go_on.set()
    _wait_for_exit_thread()

    assert sender.total == {DropCause.SHUTDOWN: 5}


def test_spans_are_counted_as_dropped_when_they_end_after_the_end() -> None:
    """A program that goes on after close loses spans, and sees how many."""
    sender = _Sender(_Exporter())

    sender.provider.shutdown()
    sender.end(*range(3))

    assert sender.total == {DropCause.SHUTDOWN: 3}


def test_unsampled_spans_take_no_room_when_they_end() -> None:
    """They are no loss either."""
    sender = _Sender(_Exporter(waits=True), queue_max=1, sampler=ALWAYS_OFF)

    sender.end(*range(5))
    sender.provider.shutdown()

    assert sender.dropped == []


def test_watch_has_no_exporter_when_the_host_brings_its_provider() -> None:
    """The host's provider is used, and is not shut down by `close`."""
    exporter = _Exporter()
    sender = _Sender(exporter)
    settings = Settings(recording=RecordingSettings(otlp_endpoint="http://127.0.0.1:9"))
    watch = Watch(settings=settings, tracer_provider=sender.provider)
    watch.workflow("refunds")

    with watch.run("refunds"):
        pass
    watch.close()
    with watch.run("refunds"):
        pass
    sender.provider.force_flush()

    assert exporter.names == ["invoke_workflow refunds"] * 2
    assert counted(watch.registry, "telemetry_dropped_total") == {}
    sender.provider.shutdown()
