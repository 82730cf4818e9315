"""Northwind's own record: small cases counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handoffwatch.demo.books import GET_ORDER, GET_REFUNDS, HELD, POST_REFUND, Deed, Refund
from handoffwatch.demo.faults import AgentFault, HandoffFault, PaymentFault, RunPlan, Story
from handoffwatch.demo.truth import FalseSuccess, Series, Truth, claim_of, series, tell_truth

AMOUNT = 3800


def _plan(story: Story, *, bad_attempts: int = 0) -> RunPlan:
    return RunPlan(1, "40001", AMOUNT, policy_is_empty=True, story=story, bad_attempts=bad_attempts)


def _refund(status: str = "succeeded", amount_cents: int = AMOUNT) -> Refund:
    return Refund("re_1", "40001", amount_cents, status)


def _tell(story: Story, *refunds: Refund, bad_attempts: int = 0, deeds: tuple[Deed, ...] = ()) -> Truth:
    return tell_truth([_plan(story, bad_attempts=bad_attempts)], refunds, deeds)


def _named(tally: dict[Series, int], name: str) -> dict[tuple[str, ...], int]:
    """Return the counts of one metric by the values of their labels, in the order of the labels' names."""
    found = {key: value for key, value in tally.items() if key[0] == f"handoffwatch_{name}"}
    return {tuple(value for _, value in labels): count for (_, labels), count in found.items()}


def test_record_counts_one_of_everything_when_a_run_has_no_fault() -> None:
    """An ordinary run: three handoffs delivered, three calls, one answer, one claim that holds."""
    truth = _tell(Story(), _refund())
    delivered = _named(truth.workload, "handoffs_total")
    assert [key[0] for key in delivered] == ["delivered"] * 3
    assert sum(_named(truth.workload, "tool_calls_total").values()) == 3
    assert _named(truth.workload, "runs_total") == {("completed", "required", "refunds"): 1}
    assert _named(truth.workload, "guard_checks_total") == {("enforce", "refunds"): 1}
    assert _named(truth.ledger, "ledger_claims_settled_total") == {("done", "landed", "refunds"): 1}
    assert _named(truth.workload, "handoff_blocks_total") == {}
    assert truth.false_successes == []


@pytest.mark.parametrize(
    ("bad_attempts", "attempts", "blocked", "repairs", "outcome"),
    [
        (1, 2, 1, {"repaired": 1}, "completed"),
        (2, 3, 2, {"still_bad": 1, "repaired": 1}, "completed"),
        (3, 3, 3, {"still_bad": 1, "exhausted": 1}, "stopped"),
        (99, 3, 3, {"still_bad": 1, "exhausted": 1}, "stopped"),
    ],
)
def test_record_counts_attempts_when_a_handoff_is_repaired_or_not(
    bad_attempts: int, attempts: int, blocked: int, repairs: dict[str, int], outcome: str
) -> None:
    """A first attempt and at most two repairs; the third bad one stops the run."""
    truth = _tell(Story(handoff=HandoffFault.NUMBER_AS_TEXT), _refund(), bad_attempts=bad_attempts)
    facts = {"route": "executor->reviewer"}
    assert truth.workload[series("handoff_attempts_sum", **facts)] == attempts
    assert sum(_named(truth.workload, "handoff_blocks_total").values()) == blocked
    assert {key[0]: count for key, count in _named(truth.workload, "handoff_repairs_total").items()} == repairs
    assert _named(truth.workload, "runs_total") == {(outcome, "required", "refunds"): 1}


@pytest.mark.parametrize("fault", [HandoffFault.FOREIGN_TASK, HandoffFault.WRONG_TARGET])
def test_record_has_no_repair_when_the_finding_is_final(fault: HandoffFault) -> None:
    """A critical finding stops at the first attempt."""
    truth = _tell(Story(handoff=fault), _refund(), bad_attempts=99)
    assert sum(_named(truth.workload, "handoff_blocks_total").values()) == 1
    assert _named(truth.workload, "handoff_repairs_total") == {}


@pytest.mark.parametrize(
    ("story", "claimed"),
    [
        (Story(), "done"),
        (Story(handoff=HandoffFault.WRONG_TARGET), "none"),
        (Story(payment=PaymentFault.SILENT_SUCCESS), "done"),
        (Story(payment=PaymentFault.CREDENTIALS_LOST), "not_done"),
        (Story(payment=PaymentFault.TIMEOUT_AFTER_COMMIT), "not_done"),
        (Story(payment=PaymentFault.CREDENTIALS_LOST, agent=AgentFault.HIDING_WRAPPER), "done"),
        (Story(payment=PaymentFault.LOCKED_OUT, agent=AgentFault.RECKLESS_ANSWER), "not_done"),
        (Story(agent=AgentFault.CLAIMED_INTENTION), "done"),
    ],
)
def test_claim_follows_from_the_story_when_the_run_ends(story: Story, claimed: str) -> None:
    """What each story's agent says in the end."""
    assert claim_of(_plan(story, bad_attempts=99 if story.handoff else 0)) == claimed


@pytest.mark.parametrize(
    ("story", "refunds", "cause", "origin"),
    [
        (Story(payment=PaymentFault.SILENT_SUCCESS), [], "missing", "tool"),
        (Story(payment=PaymentFault.PENDING_THEN_FAILED), [_refund("failed")], "failed", "tool"),
        (Story(payment=PaymentFault.CREDENTIALS_LOST, agent=AgentFault.HIDING_WRAPPER), [], "missing", "wrapper"),
        (Story(agent=AgentFault.CLAIMED_INTENTION), [], "missing", "model"),
        (Story(), [_refund(amount_cents=1)], "mismatch", "tool"),
    ],
)
def test_record_has_a_false_success_when_a_claimed_refund_is_not_there(
    story: Story, refunds: list[Refund], cause: str, origin: str
) -> None:
    """Claim and stored refunds disagree; the story says where the truth was lost."""
    truth = _tell(story, *refunds)
    assert truth.false_successes == [FalseSuccess("run-40001", "40001", cause, origin)]
    assert _named(truth.ledger, "ledger_claims_settled_total") == {("done", "not_landed", "refunds"): 1}


def test_record_counts_an_unclaimed_effect_when_the_refund_is_there_all_the_same() -> None:
    """The answer was lost after the commit: the agent says no, the books say yes."""
    truth = _tell(Story(payment=PaymentFault.TIMEOUT_AFTER_COMMIT), _refund())
    assert _named(truth.ledger, "ledger_unclaimed_effects_total") == {("refund", "refunds"): 1}
    assert truth.false_successes == []


def test_record_counts_a_refused_answer_when_every_look_up_failed() -> None:
    """Three calls failed, the guard refused, and nothing was claimed."""
    truth = _tell(Story(payment=PaymentFault.LOCKED_OUT, agent=AgentFault.RECKLESS_ANSWER))
    assert sum(_named(truth.workload, "tool_failures_total").values()) == 3
    assert _named(truth.workload, "guard_blocks_total") == {("enforce", "no_tool_success", "refunds"): 1}
    assert _named(truth.workload, "runs_without_tool_success_total") == {("all_failed", "required", "refunds"): 1}


def test_record_counts_wire_attempts_as_the_service_saw_them() -> None:
    """Only what the agents sent counts, by the code of the answer; an answer held back is a time-out."""
    deeds = (
        Deed("agents", GET_ORDER, "40001", "200", ""),
        Deed("agents", POST_REFUND, "40001", "429", ""),
        Deed("agents", POST_REFUND, "40001", HELD, "succeeded"),
        Deed("verifier", GET_REFUNDS, "40001", "200", "succeeded"),
    )
    truth = _tell(Story(), _refund(), deeds=deeds)
    assert _named(truth.workload, "tool_attempts_total") == {
        ("ok", "find_order"): 1,
        ("429", "issue_refund"): 1,
        ("timeout", "issue_refund"): 1,
    }


def test_record_is_written_as_json_when_asked(tmp_path: Path) -> None:
    """The file holds faults, false successes and every series with its value."""
    path = tmp_path / "truth.json"
    _tell(Story(agent=AgentFault.CLAIMED_INTENTION)).write(path)
    record = json.loads(path.read_text())
    assert record["faults"] == {"claimed_intention": 1}
    assert record["false_successes"] == [
        {"run_id": "run-40001", "order_id": "40001", "cause": "missing", "origin": "model"}
    ]
    assert {"series": "handoffwatch_runs_started_total", "labels": {"workflow": "refunds"}, "value": 1} in record[
        "workload"
    ]
