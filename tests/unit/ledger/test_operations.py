"""Expectations, intents and receipts: one operation for each run, kind and key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handoffwatch.errors import RegistrationError
from handoffwatch.ledger import Ledger, OpenOperation
from handoffwatch.outcomes import Claim, Intent, Receipt
from handoffwatch.vocabulary import ToolOutcome
from support.outcomes import StillClock, open_ledger, refund_intent, refund_receipt


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


def claim_and_read(ledger: Ledger, time: StillClock, run_id: str = "r-1") -> list[OpenOperation]:
    """Claim the run done, and return its operations."""
    ledger.record_claim(run_id, "refunds", Claim.of("done"))
    return ledger.due(time.now_s, limit=10, kinds=("refund",))


def test_expectation_becomes_the_intent_when_its_call_is_made(ledger: Ledger, time: StillClock) -> None:
    """One operation, known from the host and called once."""
    expected = ledger.expect(refund_intent("4417"))
    assert ledger.open_operation(refund_intent("4417")) == expected
    assert [operation.operation_id for operation in claim_and_read(ledger, time)] == [expected]


def test_expectation_outweighs_the_call_when_their_values_differ(ledger: Ledger, time: StillClock) -> None:
    """What was to happen comes from the host, never from the model."""
    ledger.expect(refund_intent("4417", amount_cents=3800))
    ledger.open_operation(refund_intent("4417", amount_cents=9900))
    (operation,) = claim_and_read(ledger, time)
    assert operation.intent == refund_intent("4417", amount_cents=3800)


def test_expectation_outweighs_the_call_when_it_comes_after_it(ledger: Ledger, time: StillClock) -> None:
    """The order in which the two become known does not matter."""
    ledger.open_operation(refund_intent("4417", amount_cents=9900))
    ledger.expect(refund_intent("4417", amount_cents=3800))
    (operation,) = claim_and_read(ledger, time)
    assert operation.intent.values["amount_cents"] == 3800


def test_expectation_is_completed_by_the_call_when_it_states_less(ledger: Ledger, time: StillClock) -> None:
    """A field that the host left open is the call's."""
    ledger.expect(Intent("r-1", "refunds", "refund", "4417", {"order_id": "4417"}))
    ledger.open_operation(refund_intent("4417", amount_cents=3800))
    (operation,) = claim_and_read(ledger, time)
    assert operation.intent.values == {"order_id": "4417", "amount_cents": 3800}


def test_operation_stays_one_when_the_same_key_is_called_again(ledger: Ledger, time: StillClock) -> None:
    """A repeated call is counted on its operation."""
    first = ledger.open_operation(refund_intent("4417"))
    assert ledger.open_operation(refund_intent("4417")) == first
    with ledger._database.read() as connection:
        assert connection.exec_driver_sql("SELECT calls FROM ledger_operations").scalars().all() == [2]


def test_operation_is_another_when_key_or_run_differ(ledger: Ledger) -> None:
    """Run, kind and key are the identity."""
    intents = [refund_intent("1"), refund_intent("2"), refund_intent("1", run_id="r-2")]
    assert len({ledger.open_operation(intent) for intent in intents}) == 3


def test_intent_is_the_last_calls_when_the_ones_before_were_refused(ledger: Ledger, time: StillClock) -> None:
    """A model may correct an amount that the service rejected."""
    operation_id = ledger.open_operation(refund_intent("4417", amount_cents=9900))
    ledger.record_receipt(operation_id, ToolOutcome.FAILED, None)
    ledger.open_operation(refund_intent("4417", amount_cents=3800))
    (operation,) = claim_and_read(ledger, time)
    assert operation.intent.values["amount_cents"] == 3800


def test_intent_is_that_of_the_call_that_worked_when_another_follows(ledger: Ledger, time: StillClock) -> None:
    """What has happened is not rewritten by a later attempt."""
    operation_id = ledger.open_operation(refund_intent("4417", amount_cents=3800))
    ledger.record_receipt(operation_id, ToolOutcome.OK, refund_receipt("4417"))
    ledger.open_operation(refund_intent("4417", amount_cents=9900))
    ledger.record_receipt(operation_id, ToolOutcome.FAILED, None)
    (operation,) = claim_and_read(ledger, time)
    assert operation.intent.values["amount_cents"] == 3800
    assert operation.receipt == refund_receipt("4417")


def test_receipt_is_kept_when_the_first_answer_was_none(ledger: Ledger, time: StillClock) -> None:
    """A call that worked without a receipt may be followed by one that has it."""
    operation_id = ledger.open_operation(refund_intent("4417"))
    ledger.record_receipt(operation_id, ToolOutcome.OK, None)
    ledger.record_receipt(operation_id, ToolOutcome.OK, Receipt({"refund_id": "re_1"}, "re_1"))
    (operation,) = claim_and_read(ledger, time)
    assert operation.receipt == Receipt({"refund_id": "re_1"}, "re_1")


def test_write_time_is_the_end_of_the_call_when_a_receipt_came(ledger: Ledger, time: StillClock) -> None:
    """The read-back window begins with the last write."""
    operation_id = ledger.open_operation(refund_intent("4417"))
    time.advance(40)
    ledger.record_receipt(operation_id, ToolOutcome.OK, refund_receipt("4417"))
    written = time.now_s
    time.advance(5)
    (operation,) = claim_and_read(ledger, time)
    assert operation.written_unix_s == written
    assert operation.polled_since_unix_s == time.now_s


def test_operation_is_refused_when_its_workflow_did_not_declare_it(ledger: Ledger) -> None:
    """An undeclared pair has no series, so that its first false success would not page."""
    with pytest.raises(RegistrationError) as caught:
        ledger.open_operation(Intent("r-1", "billing", "refund", "4417"))
    assert str(caught.value) == (
        "workflow billing: operation refund: must be declared by the workflow\n"
        'hint: write watch.workflow("billing", operations=["refund"])'
    )


def test_operation_is_not_due_when_nothing_was_claimed(ledger: Ledger, time: StillClock) -> None:
    """Nobody is asked about work that is going on."""
    ledger.open_operation(refund_intent("4417"))
    assert ledger.due(time.now_s + 1e6, limit=10, kinds=("refund",)) == []


def test_operation_is_due_at_once_when_it_is_opened_after_the_claim(ledger: Ledger, time: StillClock) -> None:
    """A call after the last word is verified too."""
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    ledger.open_operation(refund_intent("4417"))
    assert len(ledger.due(time.now_s, limit=10, kinds=("refund",))) == 1


def test_operation_is_left_to_others_when_its_kind_is_not_asked_for(ledger: Ledger, time: StillClock) -> None:
    """A settler takes only what it can verify."""
    ledger.open_operation(refund_intent("4417"))
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    assert ledger.due(time.now_s, limit=10, kinds=("credit",)) == []
    assert ledger.due(time.now_s, limit=10, kinds=()) == []
    assert len(ledger.due(time.now_s, limit=10, kinds=("credit", "refund"))) == 1
