"""Recording never breaks its host: what the host's own telemetry raises is counted, and the host goes on."""

from __future__ import annotations

import logging

import pytest
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult

from support.telemetry import Spans, counted
from support.watched import bad_handoff, handoff, new_watched

SECRET = "sk-live-51H8xkFJ2eZvKYlo2C"


class _RaisingStart(SpanProcessor):
    def on_start(self, span: Span, parent_context: object = None) -> None:
        raise RuntimeError(SECRET)


class _RaisingEnd(SpanProcessor):
    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError(SECRET)


class _RaisingSampler(Sampler):
    def should_sample(self, *_args: object, **_kwargs: object) -> SamplingResult:
        raise RuntimeError(SECRET)

    def get_description(self) -> str:
        return "raises"


@pytest.mark.parametrize(
    "spans",
    [
        lambda: Spans(processors=[_RaisingStart()]),
        lambda: Spans(processors=[_RaisingEnd()]),
        lambda: Spans(sampler=_RaisingSampler()),
    ],
    ids=["processor at start", "processor at end", "sampler"],
)
def test_host_goes_on_and_faults_are_counted_when_its_telemetry_raises(
    spans: type[Spans], caplog: pytest.LogCaptureFixture
) -> None:
    """Checks, results and samples are those of a day on which telemetry works."""
    watch = new_watched(spans=spans()).watch

    @watch.tool("find_order", safety="safe")
    def find_order() -> list[str]:
        return ["4417"]

    caplog.set_level(logging.ERROR, "handoffwatch")
    with watch.run("refunds", task_id="t-1") as run:
        found = run.transfer("planner", "executor", handoff(), receiver=lambda _: find_order())
        step = run.handoff("executor", "reviewer", bad_handoff("executor", "reviewer", handoff_id="h-2"))

    assert found == ["4417"]
    assert step.action == "repair"
    assert counted(watch.registry, "runs_total", "tool_calls_ended_total", "handoff_blocks_total") == {
        'runs_total{outcome="stopped",tools="required",workflow="refunds"}': 1,
        'tool_calls_ended_total{outcome="ok",tool="find_order"}': 1,
        'handoff_blocks_total{attempt="first",mode="enforce",route="executor->reviewer",schema_version="1",'
        'source_agent="executor",target_agent="reviewer"}': 1,
    }
    assert counted(watch.registry, "internal_errors_total") == {'internal_errors_total{component="recording"}': 4}
    assert caplog.messages == ["internal error: component=recording error=RuntimeError"] * 4


def test_hosts_exception_passes_unchanged_when_its_telemetry_raises_too() -> None:
    """The host sees its own error, not ours and not that of its telemetry."""
    watch = new_watched(spans=Spans(processors=[_RaisingEnd()])).watch
    error = KeyError("order")

    def receiver(_: dict[str, object]) -> None:
        raise error

    with pytest.raises(KeyError) as caught, watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", handoff(), receiver=receiver)

    assert caught.value is error
