"""Read-backs: each settles its operation, its claim, its case and its counters once and together."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handoffwatch.ledger import Ledger, OpenOperation, Settled
from handoffwatch.outcomes import Claim, Receipt
from handoffwatch.vocabulary import Cause, Claimed, ClaimEffect, Effect, Origin, ToolOutcome, VerificationResult
from support.outcomes import StillClock, open_ledger, refund_intent, refund_receipt

FALSE_SUCCESS = "ledger_false_successes_total"
LAST = ("ledger_false_success_last_timestamp_seconds", ("refunds", "refund", "critical"))


@pytest.fixture
def time() -> StillClock:
    """Time that stands still."""
    return StillClock()


@pytest.fixture
def ledger(tmp_path: Path, time: StillClock) -> Iterator[Ledger]:
    """A ledger with the workflow `refunds`."""
    opened = open_ledger(tmp_path / "ledger.db", time)
    yield opened
    opened.close()


def claimed(ledger: Ledger, time: StillClock, key: str = "4417", run_id: str = "r-1") -> OpenOperation:
    """Open an operation, claim its run done, and return it as it is due."""
    ledger.open_operation(refund_intent(key, run_id=run_id))
    ledger.record_claim(run_id, "refunds", Claim.of("done"))
    due = ledger.due(time.now_s, limit=1000, kinds=("refund",))
    return next(operation for operation in due if operation.intent.run_id == run_id)


def test_false_success_is_counted_timed_and_a_case_when_it_is_settled(ledger: Ledger, time: StillClock) -> None:
    """One transaction writes the settlement, the claim, the case, the counters and the time that pages."""
    operation_id = ledger.open_operation(refund_intent("4417"))
    ledger.record_receipt(operation_id, ToolOutcome.OK, refund_receipt("4417"))
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
    time.advance(30)
    settled = ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING)
    assert settled == Settled(
        operation,
        claimed=Claimed.DONE,
        effect=Effect.NOT_LANDED,
        cause=Cause.MISSING,
        origin=Origin.TOOL,
        false_success=True,
        claim_effect=ClaimEffect.NOT_LANDED,
        seconds=30.0,
    )
    snapshot = ledger.snapshot()
    assert snapshot.counters == {
        ("ledger_claims_total", ("refunds", "done")): 1,
        ("ledger_claims_settled_total", ("refunds", "done", "not_landed")): 1,
        ("ledger_effects_settled_total", ("refunds", "refund", "critical", "not_landed", "missing")): 1,
        (FALSE_SUCCESS, ("refunds", "refund", "critical", "missing", "tool")): 1,
    }
    assert snapshot.timestamps == {
        LAST: time.now_s,
        ("ledger_verification_last_success_timestamp_seconds", ("refund",)): time.now_s,
    }
    assert (snapshot.claims, snapshot.effects) == ({}, {})
    assert snapshot.cases[("false_success", "critical")].count == 1
    with ledger._database.read() as connection:
        (facts,) = connection.exec_driver_sql("SELECT facts FROM ledger_cases").scalars()
    assert json.loads(facts) == {
        "workflow": "refunds",
        "operation": "refund",
        "business_key": "4417",
        "claimed": "done",
        "cause": "missing",
        "origin": "tool",
    }


@pytest.mark.parametrize(
    ("outcome", "receipt", "origin"),
    [
        (ToolOutcome.OK, refund_receipt("4417"), Origin.TOOL),
        (ToolOutcome.FAILED, None, Origin.WRAPPER),
        (ToolOutcome.OK, None, Origin.UNKNOWN),
    ],
)
def test_false_success_names_its_origin_when_the_call_shows_it(
    ledger: Ledger, time: StillClock, outcome: ToolOutcome, receipt: Receipt | None, origin: Origin
) -> None:
    """The call's end and its receipt say where the truth was lost."""
    ledger.record_receipt(ledger.open_operation(refund_intent("4417")), outcome, receipt)
    settled = ledger.record_verification(claimed_again(ledger, time), VerificationResult.NOT_LANDED, cause=Cause.FAILED)
    assert settled is not None
    assert settled.origin is origin


def claimed_again(ledger: Ledger, time: StillClock) -> OpenOperation:
    """Claim the run done and return its operation."""
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
    return operation


def test_false_success_comes_from_the_model_when_it_was_expected_and_never_called(
    ledger: Ledger, time: StillClock
) -> None:
    """The task called for it, the agent said it was done, and nobody made a call."""
    ledger.expect(refund_intent("4417"))
    settled = ledger.record_verification(
        claimed_again(ledger, time), VerificationResult.NOT_LANDED, cause=Cause.MISSING
    )
    assert settled is not None
    assert settled.origin is Origin.MODEL


def test_last_false_success_stays_when_the_clock_steps_back(ledger: Ledger, time: StillClock) -> None:
    """The time that pages is never lowered."""
    operations = [claimed(ledger, time, run_id=run_id) for run_id in ("r-1", "r-2")]
    ledger.record_verification(operations[0], VerificationResult.NOT_LANDED, cause=Cause.MISSING)
    first = time.now_s
    time.advance(-300)
    settled = ledger.record_verification(operations[1], VerificationResult.NOT_LANDED, cause=Cause.MISSING)
    assert ledger.snapshot().timestamps[LAST] == first
    assert settled is not None
    assert settled.seconds == 0.0


@pytest.mark.parametrize("result", [VerificationResult.PENDING, VerificationResult.UNKNOWN, VerificationResult.ERROR])
def test_operation_stays_open_when_the_answer_is_not_final(
    ledger: Ledger, time: StillClock, result: VerificationResult
) -> None:
    """It is due again when it was said to be, and nothing is counted."""
    operation = claimed(ledger, time)
    assert ledger.record_verification(operation, result, next_poll_unix_s=time.now_s + 3) is None
    assert ledger.due(time.now_s + 2, limit=10, kinds=("refund",)) == []
    (again,) = ledger.due(time.now_s + 3, limit=10, kinds=("refund",))
    assert again.reads == 1
    assert set(ledger.snapshot().counters) == {("ledger_claims_total", ("refunds", "done"))}


def test_effect_stays_what_it_was_when_the_verifier_erred(ledger: Ledger, time: StillClock) -> None:
    """An error is no news, while unknown is an answer."""
    operation = claimed(ledger, time)
    effects = []
    for result in (VerificationResult.PENDING, VerificationResult.ERROR, VerificationResult.UNKNOWN):
        ledger.record_verification(operation, result, next_poll_unix_s=time.now_s)
        (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
        effects += [effect for _, effect in ledger.snapshot().effects]
    assert effects == ["pending", "pending", "unknown"]


def test_operation_is_open_and_overdue_when_its_deadline_has_passed(ledger: Ledger, time: StillClock) -> None:
    """Nobody polls it, and the claim stays open."""
    operation = claimed(ledger, time)
    ledger.record_verification(operation, VerificationResult.PENDING, next_poll_unix_s=None)
    time.advance(604_801)
    assert ledger.due(time.now_s, limit=10, kinds=("refund",)) == []
    snapshot = ledger.snapshot()
    assert snapshot.effects[("refund", "pending")].overdue == 1
    assert snapshot.claims == {("refunds", "done"): 1}


def test_operation_is_settled_once_when_a_read_back_is_recorded_twice(ledger: Ledger, time: StillClock) -> None:
    """A second settler that read the same state counts nothing, whatever it read."""
    operation = claimed(ledger, time)
    assert ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING) is not None
    before = ledger.snapshot()
    for result, cause in ((VerificationResult.NOT_LANDED, Cause.MISSING), (VerificationResult.LANDED, None)):
        assert ledger.record_verification(operation, result, cause=cause) is None
    assert ledger.snapshot() == before


def test_read_back_is_dropped_when_another_was_recorded_after_it_was_due(ledger: Ledger, time: StillClock) -> None:
    """An answer that is older than the last recorded one changes nothing."""
    operation = claimed(ledger, time)
    ledger.record_verification(operation, VerificationResult.PENDING, next_poll_unix_s=time.now_s + 10)
    assert ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING) is None
    assert ledger.snapshot().effects[("refund", "pending")].count == 1


def test_operation_is_settled_once_when_two_settlers_record_it_at_the_same_time(
    tmp_path: Path, time: StillClock
) -> None:
    """Of two processes' ledgers on one file exactly one settles each operation."""
    ledgers = [open_ledger(tmp_path / "ledger.db", time) for _ in range(2)]
    operations = [claimed(ledgers[0], time, run_id=f"r-{n}") for n in range(12)]
    together = threading.Barrier(2)

    def settle(ledger: Ledger) -> list[Settled | None]:
        settled = []
        for operation in operations:
            together.wait(timeout=30)
            settled.append(ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING))
        return settled

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(settle, ledgers))
    assert [sum(each is not None for each in pair) for pair in zip(*found, strict=True)] == [1] * 12
    counters = ledgers[0].snapshot().counters
    assert counters[(FALSE_SUCCESS, ("refunds", "refund", "critical", "missing", "unknown"))] == 12
    assert counters[("ledger_claims_settled_total", ("refunds", "done", "not_landed"))] == 12
    assert ledgers[0].snapshot().cases[("false_success", "critical")].count == 12
    assert ledgers[1].identity_violations() == []
    for each in ledgers:
        each.close()
