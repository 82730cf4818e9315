"""The cases that every watchdog must tell apart, one test for each."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field

from handoffwatch import Contract, HandoffContext, rule
from handoffwatch.vocabulary import Reaction, Severity, Verdict
from support.one_route import found, judged, only, watchdog_of
from support.refund_handoffs import FORMS, HANDOFF_ID, handoff

CONTEXT = HandoffContext(run_id="r-1", task_id="t-1", context_version=5)
ALL = ("ready", "completed", "failed")


class Search(Contract, needs_results=True, accepts=ALL):
    """A receiver that needs something to go on."""

    results: list[str]
    result: str | None = None
    error: str | None = None


class Lookup(Contract, accepts=ALL):
    """A receiver for which nothing found is an answer."""

    results: list[str]
    result: Any = None
    error: str | None = None
    count: int = 0
    confidence: float = 1.0
    note: str | None = None

    @rule("missing_note", "the reviewer reads the note first", path="payload.note", reaction="warn")
    def has_note(self) -> bool:
        return bool(self.note)


class Sure(Contract, confidence_min=0.7):
    """A receiver with a threshold."""

    confidence: float = 1.0


class Draft(Contract):
    """What the next step fills in: ready work may come without a result."""

    order_id: str
    result: str | None = None


class Planned(Contract, ready_needs=("plan",)):
    """What the next step cannot start without."""

    plan: str | None = None


NOTED: dict[str, Any] = {"results": [], "note": "x"}


@pytest.mark.parametrize("form", FORMS)
def test_empty_object_names_every_gap_when_the_handoff_is_empty(form: str) -> None:
    """`{}` is no handoff: each required field of the envelope is named at once, and an id is made."""
    decision = watchdog_of(Search).inspect(
        FORMS[form]({}), expected_source="executor", expected_target="reviewer", context=CONTEXT
    )

    assert (decision.verdict, decision.allowed, decision.retryable) == (Verdict.BLOCKED, False, True)
    assert found(decision) == [
        ("missing_handoff_id", "handoff_id"),
        ("missing_field", "task_id"),
        ("missing_field", "source_agent"),
        ("missing_field", "target_agent"),
        ("missing_field", "task_type"),
        ("missing_field", "status"),
        ("missing_field", "schema_version"),
        ("missing_field", "payload"),
    ]
    assert decision.handoff_id


def test_empty_object_names_every_gap_when_the_payload_is_empty() -> None:
    """`{}` as payload lacks what the contract requires."""
    assert found(judged(Lookup, {})) == [("missing_field", "payload.results")]


@pytest.mark.parametrize("status", ["ready", "completed"])
def test_empty_results_block_when_the_contract_forbids_them(status: str) -> None:
    """`results: []` where the receiver needs something to go on."""
    decision = judged(Search, {"results": [], "result": "done"}, status=status)

    assert found(decision) == [("empty_results", "payload.results")]
    assert (decision.verdict, decision.retryable) == (Verdict.BLOCKED, True)


@pytest.mark.parametrize("status", ["ready", "completed"])
def test_empty_results_pass_when_the_contract_allows_them(status: str) -> None:
    """`results: []` is an answer of its own: nothing was found."""
    decision = judged(Lookup, NOTED | {"result": "nothing found"}, status=status)

    assert (decision.verdict, decision.reasons) == (Verdict.ALLOWED, [])
    assert decision.normalized_payload is not None
    assert decision.normalized_payload["payload"]["results"] == []


def test_count_as_text_blocks_when_the_contract_wants_a_number() -> None:
    """`count: "3"` is no 3."""
    item = only(judged(Lookup, NOTED | {"count": "3"}))

    assert item[:3] == ("type_mismatch", "payload.count", "payload.count must be an integer, and is text")
    assert (item.severity, item.retryable) == (Severity.ERROR, True)


@pytest.mark.parametrize("version", [4, 0, -1])
def test_stale_context_version_blocks_when_the_state_has_moved_on(version: int) -> None:
    """What rests on an older version of the state is not fit for the next step."""
    decision = judged(Lookup, NOTED, context=CONTEXT, context_version=version)

    assert found(decision) == [("stale_context", "context_version")]
    assert (decision.verdict, decision.retryable) == (Verdict.BLOCKED, True)


@pytest.mark.parametrize("version", [5, 6])
def test_context_version_passes_when_it_is_current_or_newer(version: int) -> None:
    """A newer version than the orchestrator's is not stale."""
    assert judged(Lookup, NOTED, context=CONTEXT, context_version=version).reasons == []


def test_task_id_of_another_run_blocks_for_good_when_it_is_not_the_active_task() -> None:
    """Another run's task id is critical, and nothing that the sender may repair."""
    decision = judged(Lookup, NOTED, context=CONTEXT, task_id="t-2")

    assert found(decision) == [("foreign_task", "task_id")]
    assert (decision.severity, decision.retryable, decision.allowed) == (Severity.CRITICAL, False, False)


@pytest.mark.parametrize("result", [None, "", " \n"], ids=repr)
def test_completed_without_result_blocks_when_the_status_promises_one(result: str | None) -> None:
    """Completed work brings its result; white space is none."""
    decision = judged(Lookup, NOTED | {"result": result}, status="completed")

    assert found(decision) == [("missing_result", "payload.result")]
    assert decision.retryable is True


def test_completed_without_result_blocks_when_the_field_is_left_out() -> None:
    """Left out is as empty as null."""
    assert found(judged(Lookup, NOTED, status="completed")) == [("missing_result", "payload.result")]


def test_failed_without_cause_blocks_when_the_field_is_left_out() -> None:
    """Failed work says why."""
    assert found(judged(Lookup, NOTED, status="failed")) == [("missing_error", "payload.error")]


@pytest.mark.parametrize("cause", ["", " ", "\t\n", "\u3000"], ids=repr)
def test_failed_with_a_blank_cause_blocks_when_it_says_nothing(cause: str) -> None:
    """A blank cause is no cause."""
    assert found(judged(Lookup, NOTED | {"error": cause}, status="failed")) == [("missing_error", "payload.error")]


def test_failed_with_a_cause_passes_when_the_receiver_takes_failures() -> None:
    """A failure that says why is a good handoff to whoever handles failures."""
    assert judged(Lookup, NOTED | {"error": "the order service is down"}, status="failed").reasons == []


@pytest.mark.parametrize("target", ["Reviewer", "reviewer ", "executor", "nobody", "auditor"])
def test_wrong_target_blocks_for_good_when_the_envelope_names_another_receiver(target: str) -> None:
    """The orchestrator is about to start the reviewer; the envelope is not for it, however alike the name."""
    watchdog = watchdog_of(Lookup)
    raw = handoff(payload=NOTED, target_agent=target)

    decisions = [watchdog.inspect(form(raw), expected_target="reviewer") for form in FORMS.values()]

    for decision in decisions:
        assert found(decision) == [("route_mismatch", "target_agent")]
        assert (decision.severity, decision.retryable, decision.allowed) == (Severity.CRITICAL, False, False)


@pytest.mark.parametrize("note", [None, ""], ids=repr)
def test_missing_optional_note_warns_when_a_rule_asks_for_it(note: str | None) -> None:
    """A warning never becomes a block: the handoff goes on, and the gap is told."""
    decision = judged(Lookup, {"results": [], "note": note})

    assert (decision.verdict, decision.allowed, decision.severity) == (Verdict.WARNED, True, Severity.WARNING)
    assert (only(decision).code, only(decision).path, only(decision).reaction) == (
        "missing_note",
        "payload.note",
        Reaction.WARN,
    )
    assert decision.normalized_payload is not None


def test_low_confidence_flags_when_it_is_below_the_threshold() -> None:
    """The handoff goes on, and a person looks at it later."""
    decision = judged(Sure, {"confidence": 0.69})

    assert (decision.verdict, decision.allowed) == (Verdict.WARNED, True)
    assert (only(decision).code, only(decision).reaction) == ("low_confidence", Reaction.FLAG)


def test_ready_without_result_passes_when_the_next_step_makes_it() -> None:
    """Ready work is for the next step to do."""
    assert judged(Draft, {"order_id": "4417"}, status="ready").reasons == []
    assert found(judged(Draft, {"order_id": "4417"}, status="completed")) == [("missing_result", "payload.result")]


def test_ready_without_what_the_next_step_needs_blocks_when_the_contract_names_it() -> None:
    """Ready, but not fit to start."""
    assert found(judged(Planned, {}, status="ready")) == [("not_ready", "payload.plan")]


@pytest.mark.parametrize(
    "result",
    [{"error": "401 Unauthorized"}, {"isError": True, "content": []}, {"ok": False}, {"success": False},
     {"status": "error"}, {"data": None, "errors": [{"message": "no"}]}],
    ids=str,
)  # fmt: skip
def test_error_passed_on_as_a_plain_result_blocks_when_the_work_is_called_completed(result: dict[str, Any]) -> None:
    """A failure in the place of a result contradicts the status."""
    decision = judged(Lookup, NOTED | {"result": result}, status="completed")

    assert found(decision) == [("status_contradicts_result", "payload.result")]
    assert decision.allowed is False


def test_error_passed_on_beside_a_result_blocks_when_the_work_is_called_completed() -> None:
    """Both cannot be true."""
    decision = judged(Lookup, NOTED | {"result": "refunded", "error": "401 Unauthorized"}, status="completed")

    assert found(decision) == [("status_contradicts_result", "payload.error")]


@pytest.mark.parametrize("handoff_id", ["", None], ids=repr)
def test_missing_id_warns_and_is_made_when_nobody_gave_one(handoff_id: str | None) -> None:
    """The id is never empty; that it was made is told, in every form that the handoff may have."""
    decision = judged(Planned, {"plan": "x"}, handoff_id=handoff_id)

    assert (decision.verdict, found(decision)) == (Verdict.WARNED, [("missing_handoff_id", "handoff_id")])
    assert decision.handoff_id
    assert decision.handoff_id != HANDOFF_ID


class Bounded(Contract):
    """A receiver that names its formats."""

    order_id: str = Field(pattern="^[0-9]{4}$")


@pytest.mark.parametrize("order_id", ["44170", "441", "44a7", " 4417", "4417\n"], ids=repr)
def test_id_in_another_format_blocks_when_the_contract_names_one(order_id: str) -> None:
    """An id that only looks like one is told by its format."""
    assert found(judged(Bounded, {"order_id": order_id})) == [("bad_format", "payload.order_id")]
