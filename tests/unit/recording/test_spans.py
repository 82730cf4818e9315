"""Spans: exact names, attributes and statuses for each crossing, as a real SDK finished them."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from handoffwatch.events import EffectVerified
from handoffwatch.vocabulary import Criticality, VerificationResult
from support.telemetry import Spans, attributes, ids
from support.watched import bad_handoff, handoff, new_watched


def test_handoff_span_is_exact_when_the_handoff_is_allowed() -> None:
    """One span of kind INTERNAL for each attempt; the source agent is the standard agent name."""
    watched = new_watched()

    with watched.watch.run("refunds", run_id="r-1", task_id="t-1") as run:
        run.handoff("planner", "executor", handoff())

    span = watched.spans.one("handoff executor")
    assert attributes(span) == {
        "gen_ai.operation.name": "handoff",
        "gen_ai.agent.name": "planner",
        "gen_ai.workflow.name": "refunds",
        "handoffwatch.run.id": "r-1",
        "handoffwatch.handoff.id": "h-1",
        "handoffwatch.handoff.route": "planner->executor",
        "handoffwatch.handoff.source": "planner",
        "handoffwatch.handoff.target": "executor",
        "handoffwatch.handoff.target_type": "agent",
        "handoffwatch.handoff.task_id": "t-1",
        "handoffwatch.handoff.schema_version": "1",
        "handoffwatch.handoff.attempt": 1,
        "handoffwatch.handoff.allowed": True,
        "handoffwatch.handoff.verdict": "allowed",
        "handoffwatch.handoff.severity": "info",
        "handoffwatch.handoff.retryable": False,
        "handoffwatch.handoff.mode": "enforce",
        "handoffwatch.handoff.action": "deliver",
        "handoffwatch.handoff.overhead": 0.0,
    }
    assert span.status.status_code is StatusCode.UNSET
    assert span.kind is SpanKind.INTERNAL
    assert span.events == ()
    assert span.start_time == span.end_time == 1_000_000_000_000_000


def test_handoff_span_is_exact_and_its_status_unset_when_the_handoff_is_blocked() -> None:
    """A block is not an error; a tail sampler must keep the trace."""
    watched = new_watched()

    with watched.watch.run("refunds", run_id="r-1", task_id="t-1") as run:
        run.handoff("planner", "executor", bad_handoff(task_id="t-2"))

    span = watched.spans.one("handoff executor")
    assert attributes(span) == {
        "gen_ai.operation.name": "handoff",
        "gen_ai.agent.name": "planner",
        "gen_ai.workflow.name": "refunds",
        "handoffwatch.keep": True,
        "handoffwatch.run.id": "r-1",
        "handoffwatch.handoff.id": "h-1",
        "handoffwatch.handoff.route": "planner->executor",
        "handoffwatch.handoff.source": "planner",
        "handoffwatch.handoff.target": "executor",
        "handoffwatch.handoff.target_type": "agent",
        "handoffwatch.handoff.task_id": "t-1",
        "handoffwatch.handoff.schema_version": "1",
        "handoffwatch.handoff.attempt": 1,
        "handoffwatch.handoff.allowed": False,
        "handoffwatch.handoff.verdict": "blocked",
        "handoffwatch.handoff.severity": "critical",
        "handoffwatch.handoff.retryable": False,
        "handoffwatch.handoff.mode": "enforce",
        "handoffwatch.handoff.action": "stop",
        "handoffwatch.handoff.overhead": 0.0,
        "handoffwatch.handoff.reasons": ("foreign_task", "type_mismatch"),
        "handoffwatch.handoff.paths": ("task_id", "payload.amount_cents"),
        "handoffwatch.handoff.stage": "validate",
    }
    assert span.status.status_code is StatusCode.UNSET


def test_handoff_spans_are_one_for_each_attempt_when_a_handoff_is_repaired() -> None:
    """The attempts are siblings under the run."""
    watched = new_watched()

    with watched.watch.run("refunds", task_id="t-1") as run:
        run.handoff("planner", "executor", bad_handoff())
        run.handoff("planner", "executor", handoff())

    spans = watched.spans.named("handoff executor")
    assert [attributes(span)["handoffwatch.handoff.attempt"] for span in spans] == [1, 2]
    assert [attributes(span)["handoffwatch.handoff.action"] for span in spans] == ["repair", "deliver"]
    assert [watched.spans.parent(span) for span in spans] == ["invoke_workflow refunds"] * 2


def test_tool_span_is_exact_when_the_call_succeeds() -> None:
    """The standard name and attributes; the status stays unset."""
    watched = new_watched()
    watched.watch.tool("find_order", safety="safe")

    with watched.watch.run("refunds", run_id="r-1") as run:
        call = run.call("find_order", call_id="call_1", args={"order_id": "4417"})
        call.attempt()
        call.returned([])

    span = watched.spans.one("execute_tool find_order")
    assert attributes(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "find_order",
        "gen_ai.tool.call.id": "call_1",
        "handoffwatch.run.id": "r-1",
        "handoffwatch.tool.safety": "safe",
        "handoffwatch.tool.status": "ok",
        "handoffwatch.tool.attempts": 1,
        "handoffwatch.tool.wait": 0.0,
    }
    assert span.status.status_code is StatusCode.UNSET
    assert span.kind is SpanKind.INTERNAL
    assert watched.spans.parent(span) == "invoke_workflow refunds"


def test_tool_span_is_an_error_with_its_type_when_the_call_fails() -> None:
    """The type is a small closed code; no exception event with its text is written."""
    watched = new_watched()
    watched.watch.tool("find_order", safety="safe", attempts_max=1)

    with watched.watch.run("refunds", run_id="r-1") as run:
        call = run.call("find_order")
        call.attempt()
        call.raised(TimeoutError("no answer from 10.0.0.7"))

    span = watched.spans.one("execute_tool find_order")
    assert attributes(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "find_order",
        "error.type": "timeout",
        "handoffwatch.run.id": "r-1",
        "handoffwatch.tool.safety": "safe",
        "handoffwatch.tool.failure_class": "retryable",
        "handoffwatch.tool.status": "timeout",
        "handoffwatch.tool.attempts": 1,
        "handoffwatch.tool.wait": 0.0,
    }
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "timeout")
    assert span.events == ()


@pytest.mark.parametrize("end", ["cancelled", "suspended"])
def test_tool_span_is_no_error_when_the_call_was_put_off(end: str) -> None:
    """Control flow is not a failure."""
    watched = new_watched()
    watched.watch.tool("find_order", safety="safe")

    with watched.watch.run("refunds") as run:
        call = run.call("find_order")
        call.attempt()
        getattr(call, end)()

    span = watched.spans.one("execute_tool find_order")
    assert attributes(span)["handoffwatch.tool.status"] == end
    assert "error.type" not in attributes(span)
    assert span.status.status_code is StatusCode.UNSET


def test_run_span_is_exact_when_the_run_ends_well() -> None:
    """It is the root, and says what its tools and its guard did."""
    watched = new_watched()
    watched.watch.tool("find_order", safety="safe")

    with watched.watch.run("refunds", run_id="r-1") as run:
        run.call("find_order").returned([])
        run.answer("Nothing was ordered.")

    span = watched.spans.one("invoke_workflow refunds")
    assert attributes(span) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "refunds",
        "handoffwatch.run.id": "r-1",
        "handoffwatch.run.tools_succeeded": 1,
        "handoffwatch.run.tools_failed": 0,
        "handoffwatch.run.guard": "passed",
    }
    assert span.parent is None
    assert span.status.status_code is StatusCode.UNSET


def test_run_span_is_kept_when_the_guard_refused_after_a_failed_tool() -> None:
    """A tail sampler must keep a run without a base."""
    watched = new_watched()
    watched.watch.tool("find_order", safety="safe", attempts_max=1)

    with watched.watch.run("refunds", run_id="r-1") as run:
        run.call("find_order").raised(TimeoutError())
        run.answer("It is on its way.")

    assert attributes(watched.spans.one("invoke_workflow refunds")) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "refunds",
        "handoffwatch.keep": True,
        "handoffwatch.run.id": "r-1",
        "handoffwatch.run.tools_succeeded": 0,
        "handoffwatch.run.tools_failed": 1,
        "handoffwatch.run.guard": "refused",
    }


def test_verification_span_is_exact_when_an_effect_was_read_back() -> None:
    """A read-back that found nothing marks its trace to be kept; the read itself worked, so it is no error."""
    watched = new_watched()
    watched.watch.operation("refund", key="order_id")

    watched.watch.recorder.emit(
        EffectVerified("r-1", "refunds", "refund", "op-1", Criticality.CRITICAL, VerificationResult.NOT_LANDED, 0.25)
    )

    span = watched.spans.one("verify_effect refund")
    assert attributes(span) == {
        "gen_ai.workflow.name": "refunds",
        "handoffwatch.keep": True,
        "handoffwatch.run.id": "r-1",
        "handoffwatch.operation.kind": "refund",
        "handoffwatch.operation.id": "op-1",
        "handoffwatch.operation.criticality": "critical",
        "handoffwatch.operation.effect": "not_landed",
        "handoffwatch.operation.trigger": "poll",
    }
    assert span.status.status_code is StatusCode.UNSET
    assert span.end_time is not None
    assert span.start_time is not None
    assert span.end_time - span.start_time == 250_000_000


@pytest.mark.parametrize("kept", [VerificationResult.LANDED, VerificationResult.PENDING, VerificationResult.ERROR])
def test_verification_span_is_not_kept_when_nothing_is_wrong(kept: VerificationResult) -> None:
    """Only what a person should see is kept."""
    watched = new_watched()

    watched.watch.recorder.emit(EffectVerified("r-1", "refunds", "refund", "op-1", Criticality.ROUTINE, kept, 0.0))

    assert not attributes(watched.spans.one("verify_effect refund")).get("handoffwatch.keep")


def test_spans_share_a_trace_with_the_hosts_when_the_host_has_one_open() -> None:
    """The run is a child of whatever the host is doing."""
    watched = new_watched()
    tracer = watched.spans.provider.get_tracer("host")

    with tracer.start_as_current_span("request"), watched.watch.run("refunds", task_id="t-1") as run:
        run.handoff("planner", "executor", handoff())

    assert watched.spans.names == ["handoff executor", "invoke_workflow refunds", "request"]
    assert len(watched.spans.traces) == 1
    assert watched.spans.parent(watched.spans.one("invoke_workflow refunds")) == "request"


def test_nothing_is_exported_when_the_sampler_says_no() -> None:
    """An unsampled run costs samples only."""
    watched = new_watched(spans=Spans(sampler=ALWAYS_OFF))
    watched.watch.tool("find_order", safety="safe")

    with watched.watch.run("refunds", task_id="t-1") as run:
        run.handoff("planner", "executor", bad_handoff())
        run.call("find_order").returned([])

    assert watched.spans.ended == ()


def test_global_provider_is_left_alone_when_a_watch_has_its_own() -> None:
    """Two watches with two providers do not mix their spans."""
    first, second = new_watched(), new_watched()

    with first.watch.run("refunds"):
        pass

    assert first.spans.names == ["invoke_workflow refunds"]
    assert second.spans.ended == ()
    assert all(ids(span)[0] for span in first.spans.ended)
