"""Held handoffs that nobody waits for: sent again in the same run, and timed as what they waited for."""

from __future__ import annotations

from typing import Any

import pytest

from handoffwatch import HandoffHeld
from handoffwatch.vocabulary import ReviewKind, Ruling
from support.flows import FlowDesk, plan
from support.telemetry import counted


@pytest.mark.parametrize("durable", [False, True], ids=["in memory", "durable"])
def test_held_handoff_is_delivered_in_the_same_run_when_it_is_sent_again_after_its_approval(durable: bool) -> None:
    """The run that was told to send it again does not take it for one in progress."""
    desk = FlowDesk().route(approval="required", hold_s=0, durable=durable)

    with desk.watch.run("refunds", task_id="t-1") as run:
        for _ in range(2):
            with pytest.raises(HandoffHeld) as held:
                run.transfer("planner", "executor", plan(), receiver=desk.receive)
        assert desk.watch.ledger.rule_case(held.value.case_id, Ruling.APPROVED, "seen")
        assert run.transfer("planner", "executor", plan(), receiver=desk.receive) == "received"

    labels = 'route="planner->executor",schema_version="1",source_agent="planner",target_agent="executor"'
    assert counted(desk.watch.registry, "handoffs_total") == {
        f'handoffs_total{{outcome="stopped",{labels}}}': 2,
        f'handoffs_total{{outcome="delivered",{labels}}}': 1,
    }


@pytest.mark.parametrize(
    ("options", "kind"),
    [({"approval": "required"}, ReviewKind.APPROVAL), ({"reactions": {"type_mismatch": "hold"}}, ReviewKind.HELD)],
    ids=["approval", "held"],
)
def test_wait_is_of_its_kind_when_a_person_decides_after_the_run(options: dict[str, object], kind: ReviewKind) -> None:
    """What the case says of why it waits outlives the run that gave the handoff up."""
    desk = FlowDesk().route(hold_s=0, **options)
    raw = plan() if kind is ReviewKind.APPROVAL else plan(payload={"order_id": "4417", "amount_cents": "3800"})

    with pytest.raises(HandoffHeld) as held, desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", raw, receiver=desk.receive)
    desk.time.now_s += 90
    assert desk.watch.ledger.rule_case(held.value.case_id, Ruling.APPROVED, "seen")

    assert [(wait.kind, wait.seconds) for wait in desk.watch.ledger.take_waits(9)] == [(kind, 90.0)]


def _wrong(amount: object, **changes: Any) -> dict[str, Any]:
    return plan(payload={"order_id": "4417", "amount_cents": amount}, **changes)


@pytest.mark.parametrize(
    "options",
    [{"when_blocked": "hold"}, {"reactions": {"type_mismatch": "hold", "unparsable_text": "hold"}}],
    ids=["a block is held", "a finding is held"],
)
@pytest.mark.parametrize(
    ("approved", "other"),
    [
        (_wrong("3800"), _wrong("990000")),
        (_wrong("3800", handoff_id=""), _wrong("990000", handoff_id="")),
        ("refund 38 euros", "refund 9900 euros"),
        (["refund 38 euros"], ["refund 9900 euros"]),
    ],
    ids=["another value", "without an id", "no JSON", "no object"],
)
def test_approval_is_for_the_content_that_was_seen_when_a_handoff_is_held_for_its_faults(
    options: dict[str, Any], approved: object, other: object
) -> None:
    """What a person has approved does not carry another content through, although neither fits the contract."""
    desk = FlowDesk(repairs_max=0).route(hold_s=0, **options)
    codes = ("type_mismatch", "unparsable_text", "missing_handoff_id")

    def send(raw: object) -> Any:
        with desk.watch.run("refunds", task_id="t-1") as run:
            return run.transfer("planner", "executor", raw, receiver=desk.receive)

    with pytest.raises(HandoffHeld) as held:
        send(approved)
    assert held.value.decision is not None
    assert set(held.value.decision.reasons) <= set(codes)
    assert desk.watch.ledger.rule_case(held.value.case_id, Ruling.APPROVED, "seen")

    with pytest.raises(HandoffHeld) as again:
        send(other)
    assert again.value.case_id != held.value.case_id
    assert desk.received == []
    assert send(approved) == "received"
    assert desk.received == [approved]
