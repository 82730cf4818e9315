"""What a contract demands of every handoff: status, context, age, version, and what `ready` must bring."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from handoffwatch import Contract, HandoffContext
from handoffwatch.vocabulary import Reaction, Severity, Verdict
from support.one_route import NOW, contract_class, found, judged, only, watchdog_of
from support.refund_handoffs import FORMS, handoff

STATUSES = ("ready", "completed", "failed")


@pytest.mark.parametrize(
    "accepts", [("ready",), ("completed",), ("failed",), ("ready", "completed"), STATUSES], ids=str
)
@pytest.mark.parametrize("status", STATUSES)
def test_inspect_blocks_with_status_not_accepted_when_the_receiver_does_not_take_it(
    status: str, accepts: tuple[str, ...]
) -> None:
    """A handoff that is right in itself still does not go to a receiver that cannot use it."""
    contract = contract_class({"error": str | None}, accepts=accepts)

    decision = judged(contract, {"error": "no" if status == "failed" else None}, status=status)

    assert found(decision) == ([] if status in accepts else [("status_not_accepted", "status")])
    if status not in accepts:
        assert only(decision).sentence == f"status must be one of {', '.join(accepts)} for this receiver"


def test_inspect_blocks_failed_work_when_the_contract_names_no_statuses() -> None:
    """A valid failed handoff goes to the failure path of a route, never to a normal receiver."""
    decision = judged(contract_class(), {"error": "the order service is down"}, status="failed")

    assert found(decision) == [("status_not_accepted", "status")]


@pytest.mark.parametrize(
    ("context", "reasons"),
    [
        (None, ["missing_context"]),
        (HandoffContext(), ["missing_context"]),
        (HandoffContext(context_version=3, handoff_id="h-1"), ["missing_context"]),
        (HandoffContext(task_id="t-1"), []),
        (HandoffContext(run_id="r-1"), []),
    ],
    ids=str,
)
def test_inspect_blocks_with_missing_context_when_the_orchestrator_says_neither_run_nor_task(
    context: HandoffContext | None, reasons: list[str]
) -> None:
    """The sender cannot repair what the orchestrator left out."""
    decision = judged(contract_class(requires_context=True), {}, context=context)

    assert (decision.reasons, decision.retryable) == (reasons, False)


def _ago(seconds: float, zone: Any = UTC) -> str:
    return (NOW - timedelta(seconds=seconds)).astimezone(zone).isoformat()


@pytest.mark.parametrize(
    ("produced_at", "reasons"),
    [
        (_ago(60), []),
        (_ago(0), []),
        (_ago(-5), []),
        (_ago(60, timezone(timedelta(hours=9))), []),
        (_ago(60).replace("+00:00", "Z"), []),
        (_ago(60.001), ["stale_state"]),
        (_ago(61, timezone(timedelta(hours=-7))), ["stale_state"]),
        ("0001-01-01T00:00:00+14:00", ["stale_state"]),
        (_ago(60).removesuffix("+00:00"), ["bad_format"]),
        (NOW.date().isoformat(), ["bad_format"]),
        ("an hour ago", ["bad_format"]),
        ("", ["bad_format"]),
        ("9" * 10_000, ["bad_format"]),
    ],
    ids=lambda item: str(item)[:40],
)
def test_inspect_blocks_with_stale_state_when_the_handoff_is_older_than_the_limit(
    produced_at: str, reasons: list[str]
) -> None:
    """The limit itself is young enough; a time that cannot be told is named as such."""
    decision = judged(contract_class(age_s_max=60), {}, produced_at=produced_at)

    assert (decision.reasons, decision.retryable) == (reasons, bool(reasons))
    assert decision.paths == (["produced_at"] if reasons else [])


def test_inspect_lists_the_age_as_skipped_when_nobody_says_when_it_was_produced() -> None:
    """A rule without its fact is skipped and listed; where no age is demanded, nothing was skipped."""
    assert "stale_state" in judged(contract_class(age_s_max=60), {}).skipped
    assert "stale_state" not in judged(contract_class(age_s_max=60), {}, produced_at=_ago(1)).skipped
    assert "stale_state" not in judged(contract_class(), {}).skipped


class Ending(Contract, version="2", deprecated_from="2027-01-31"):
    """A version that ends on a day."""


@pytest.mark.parametrize(
    ("now", "reaction"),
    [
        (datetime(2020, 1, 1, tzinfo=UTC), Reaction.WARN),
        (datetime(2027, 1, 30, 23, 59, 59, 999_999, tzinfo=UTC), Reaction.WARN),
        (datetime(2027, 1, 31, 0, 0, 0, tzinfo=UTC), Reaction.BLOCK),
        (datetime(2027, 1, 31, 23, 59, tzinfo=UTC), Reaction.BLOCK),
        (datetime(2027, 1, 31, 1, 0, tzinfo=timezone(timedelta(hours=9))), Reaction.WARN),
        (datetime(2027, 1, 30, 17, 0, tzinfo=timezone(timedelta(hours=-7))), Reaction.BLOCK),
        (datetime(2030, 1, 1, tzinfo=UTC), Reaction.BLOCK),
    ],
    ids=lambda item: item.isoformat() if isinstance(item, datetime) else str(item),
)
def test_inspect_warns_before_the_day_and_blocks_from_it_on_when_a_version_is_deprecated(
    now: datetime, reaction: Reaction
) -> None:
    """The day begins at midnight UTC, wherever the process runs; what blocks is an error."""
    decision = judged(Ending, {}, schema_version="2", now=now)

    item = only(decision)
    assert (item.code, item.path, item.reaction) == ("deprecated_schema_version", "schema_version", reaction)
    assert item.sentence == "schema_version 2 ends on 2027-01-31: move to the newest"
    blocks = reaction is Reaction.BLOCK
    assert (decision.verdict, decision.allowed) == (Verdict.BLOCKED if blocks else Verdict.WARNED, not blocks)
    assert decision.severity is (Severity.ERROR if blocks else Severity.WARNING)


@pytest.mark.parametrize(
    ("version", "reasons"),
    [("1", []), (1, []), ("2", ["deprecated_schema_version"]), ("3", ["unknown_schema_version"]),
     ("1.0", ["unknown_schema_version"]), (" 1", ["unknown_schema_version"])],
)  # fmt: skip
def test_inspect_judges_each_version_by_its_own_contract_when_they_stand_side_by_side(
    version: object, reasons: list[str]
) -> None:
    """The deprecated version warns, the other does not, and an unknown one blocks and says what is known."""
    watchdog = watchdog_of(contract_class(version="1"), Ending)

    decisions = [watchdog.inspect(form(handoff(payload={}, schema_version=version))) for form in FORMS.values()]

    assert [decision.reasons for decision in decisions] == [reasons] * len(FORMS)
    if reasons == ["unknown_schema_version"]:
        assert only(decisions[0]).sentence == "schema_version must be one of 1, 2"


@pytest.mark.parametrize(
    ("fields", "needs", "payload", "paths"),
    [
        ({"plan": str | None}, ("plan",), {"plan": "x"}, []),
        ({"plan": str | None}, ("plan",), {"plan": None}, ["payload.plan"]),
        ({"plan": str | None}, ("plan",), {"plan": " "}, ["payload.plan"]),
        ({"plan": str}, ("plan",), {"plan": " "}, ["payload.plan"]),
        ({"plan": str}, ("plan",), {"plan": "x"}, []),
        ({"plan": list[str]}, ("plan",), {"plan": []}, []),
        ({"plan": dict[str, Any]}, ("plan.steps",), {"plan": {"steps": [1]}}, []),
        ({"plan": dict[str, Any]}, ("plan.steps",), {"plan": {}}, ["payload.plan.steps"]),
    ],
    ids=str,
)
def test_inspect_blocks_with_not_ready_when_ready_work_lacks_what_the_next_step_needs(
    fields: dict[str, Any], needs: tuple[str, ...], payload: dict[str, Any], paths: list[str]
) -> None:
    """White space is nothing, also in a required field; a path leads to what is nested."""
    decision = judged(contract_class(fields, ready_needs=needs), payload)

    assert found(decision) == [("not_ready", path) for path in paths]


@pytest.mark.parametrize(("payload", "code"), [({}, "missing_field"), ({"plan": None}, "null_field")])
def test_inspect_names_a_gap_once_when_a_required_field_is_also_what_ready_needs(
    payload: dict[str, Any], code: str
) -> None:
    """One gap is one finding."""
    (item,) = judged(contract_class({"plan": str}, ready_needs=("plan",)), payload).findings

    assert (item.path, item.reaction) == ("payload.plan", Reaction.BLOCK)
    assert item.code in {code, "not_ready"}


def test_inspect_asks_nothing_of_completed_work_when_only_ready_must_bring_it() -> None:
    """`ready_needs` is about work that is still to be done."""
    contract = contract_class({"plan": str | None}, ready_needs=("plan",))

    assert judged(contract, {"plan": None}, status="completed").reasons == []


class Lax(Contract, lax=True):
    """A contract that opts out of strictness."""

    amount: int
    share: float = 0.0
    tags: list[int] = Field(default_factory=list)


@pytest.mark.parametrize(
    ("payload", "coerced", "arrived"),
    [
        ({"amount": 3}, (), {"amount": 3, "share": 0.0, "tags": []}),
        ({"amount": "3"}, ("payload.amount",), {"amount": 3, "share": 0.0, "tags": []}),
        ({"amount": 3.0, "share": "0.5"}, ("payload.amount", "payload.share"),
         {"amount": 3, "share": 0.5, "tags": []}),
        ({"amount": 1, "tags": [1, "2", 3.0]}, ("payload.tags.1", "payload.tags.2"),
         {"amount": 1, "share": 0.0, "tags": [1, 2, 3]}),
    ],
    ids=str,
)  # fmt: skip
def test_inspect_lists_what_was_converted_when_a_contract_is_lax(
    payload: dict[str, Any], coerced: tuple[str, ...], arrived: dict[str, Any]
) -> None:
    """BR-018: where a route opts into lax, the decision records what was changed, and nothing else."""
    decision = judged(Lax, payload)

    assert (decision.verdict, decision.coerced) == (Verdict.ALLOWED, coerced)
    assert decision.normalized_payload is not None
    assert decision.normalized_payload["payload"] == arrived


@pytest.mark.parametrize(
    ("payload", "reasons"),
    [
        ({"amount": "three"}, ["bad_format"]),
        ({"amount": "3", "amout": 4}, ["unknown_field"]),
        ({"amount": None}, ["null_field"]),
        ({}, ["missing_field"]),
        ({"amount": "3.5"}, ["bad_format"]),
        ({"amount": [3]}, ["type_mismatch"]),
    ],
    ids=str,
)
def test_inspect_still_blocks_when_a_lax_contract_cannot_convert(payload: dict[str, Any], reasons: list[str]) -> None:
    """Lax is about types: an unknown field is never dropped, and a gap stays a gap."""
    decision = judged(Lax, payload)

    assert (decision.reasons, decision.coerced, decision.allowed) == (reasons, (), False)


def test_inspect_lists_every_converted_path_when_they_are_many() -> None:
    """What was changed is recorded whole."""
    assert len(judged(Lax, {"amount": 1, "tags": ["7"] * 120}).coerced) == 120


class Card(BaseModel):
    """One way to pay."""

    kind: Literal["card"]
    digits: int


class Transfer(BaseModel):
    """The other way to pay."""

    kind: Literal["transfer"]
    iban: str


def test_inspect_names_only_what_was_converted_when_a_lax_value_fits_one_of_several_shapes() -> None:
    """The shapes that were not taken changed nothing."""
    contract = contract_class({"paid_by": Card | Transfer}, lax=True)

    assert judged(contract, {"paid_by": {"kind": "card", "digits": "4"}}).coerced == ("payload.paid_by.digits",)


class Hit(BaseModel):
    """A part whose own class has no rule against NaN."""

    score: float


@pytest.mark.parametrize(
    ("value", "code"),
    [("NaN", "non_finite_number"), ("Infinity", "non_finite_number"), ("-inf", "non_finite_number")],
)
def test_inspect_blocks_when_a_lax_text_turns_into_a_number_that_json_does_not_have(value: str, code: str) -> None:
    """A model inside the contract has no rule of its own against NaN, and the decision is still JSON."""
    decision = judged(contract_class({"hit": Hit}, lax=True), {"hit": {"score": value}})

    assert found(decision) == [(code, "payload.hit.score")]


def test_inspect_blocks_when_a_lax_text_turns_into_an_integer_that_changes_on_its_way() -> None:
    """BR-017: what blocks as a number blocks as a text that becomes one."""
    assert found(judged(Lax, {"amount": str(2**53)})) == [("unsafe_integer", "payload.amount")]


@pytest.mark.parametrize(
    ("field", "value"), [("context_version", "3"), ("context_version", 3.0), ("attempt", "1")], ids=str
)
def test_inspect_keeps_the_envelope_strict_when_a_contract_is_lax(field: str, value: object) -> None:
    """The contract opts out for its payload; an old context version does not pass by being a text."""
    decision = judged(Lax, {"amount": 3}, context=HandoffContext(context_version=5), **{field: value})

    assert (decision.reasons, decision.allowed) == (["type_mismatch"], False)
