"""Cases: opened with the evidence, listed oldest first, resolved once by a person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handoffwatch.clock import Clock
from handoffwatch.errors import LedgerUnavailable
from handoffwatch.ledger import Case, Ledger, LedgerSettings
from handoffwatch.outcomes import Claim, SettlementPolicy
from handoffwatch.vocabulary import CaseKind, Cause, Criticality, VerificationResult
from support.outcomes import StillClock, open_ledger, refund_intent

OPEN = ("false_success", "critical")


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


def false_success(ledger: Ledger, time: StillClock, run_id: str) -> str:
    """Settle a refund of this run as false and return the operation's id."""
    operation_id = ledger.open_operation(refund_intent("4417", run_id=run_id))
    ledger.record_claim(run_id, "refunds", Claim.of("done"))
    (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
    ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING)
    return operation_id


def test_case_holds_the_evidence_when_a_false_success_is_settled(ledger: Ledger, time: StillClock) -> None:
    """Everything that a person needs to find the run and the record."""
    operation_id = false_success(ledger, time, "r-1")
    (case,) = ledger.cases()
    assert case == Case(
        case_id=case.case_id,
        kind=CaseKind.FALSE_SUCCESS,
        subject=operation_id,
        criticality=Criticality.CRITICAL,
        run_id="r-1",
        facts={
            "workflow": "refunds",
            "operation": "refund",
            "business_key": "4417",
            "claimed": "done",
            "cause": "missing",
            "origin": "unknown",
        },
        opened_unix_s=time.now_s,
        resolved_unix_s=None,
        note=None,
        workflow="refunds",
    )
    assert ledger.case(case.case_id) == case


def test_cases_are_the_oldest_first_when_there_are_several(ledger: Ledger, time: StillClock) -> None:
    """Who waits longest stands first."""
    for run_id in ("r-2", "r-1", "r-3"):
        false_success(ledger, time, run_id)
        time.advance(1)
    assert [case.run_id for case in ledger.cases()] == ["r-2", "r-1", "r-3"]


def test_cases_are_those_of_the_kind_when_it_is_named(ledger: Ledger, time: StillClock) -> None:
    """Other kinds stay out."""
    false_success(ledger, time, "r-1")
    assert len(ledger.cases(kind=CaseKind.FALSE_SUCCESS)) == 1
    assert ledger.cases(kind=CaseKind.BLOCKED) == []


def test_case_leaves_the_open_ones_when_it_is_resolved(ledger: Ledger, time: StillClock) -> None:
    """Its time and note are stored, and the series that the alert reads falls back to 0."""
    false_success(ledger, time, "r-1")
    (case,) = ledger.cases()
    assert ledger.snapshot().cases[OPEN].count == 1
    time.advance(60)
    assert ledger.resolve_case(case.case_id, note="refunded by hand")
    assert ledger.cases() == []
    (resolved,) = ledger.cases(open_only=False)
    assert (resolved.resolved_unix_s, resolved.note) == (time.now_s, "refunded by hand")
    assert ledger.case(case.case_id) == resolved
    assert ledger.snapshot().cases == {}


def test_case_keeps_its_time_and_note_when_it_is_resolved_again(ledger: Ledger, time: StillClock) -> None:
    """The first word counts; the second changes nothing and says so."""
    false_success(ledger, time, "r-1")
    (case,) = ledger.cases()
    ledger.resolve_case(case.case_id, note="refunded by hand")
    resolved = ledger.case(case.case_id)
    time.advance(60)
    assert not ledger.resolve_case(case.case_id, note="something else")
    assert ledger.case(case.case_id) == resolved


def test_case_is_none_when_nobody_opened_it(ledger: Ledger) -> None:
    """There is nothing to show and nothing to resolve."""
    assert ledger.case("none") is None
    assert not ledger.resolve_case("none", note="refunded by hand")


def test_false_success_stays_counted_when_its_case_is_resolved(ledger: Ledger, time: StillClock) -> None:
    """Putting it right does not undo that it happened."""
    false_success(ledger, time, "r-1")
    before = ledger.snapshot()
    ledger.resolve_case(ledger.cases()[0].case_id, note="refunded by hand")
    after = ledger.snapshot()
    assert (after.counters, after.timestamps) == (before.counters, before.timestamps)


def test_ledger_is_refused_and_not_made_when_it_must_exist(tmp_path: Path) -> None:
    """A wrong folder must not look like a ledger without cases."""
    settings = LedgerSettings(url=f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger = Ledger(settings, policy=SettlementPolicy(), clock=Clock(), must_exist=True)
    with pytest.raises(LedgerUnavailable) as caught:
        ledger.cases()
    assert str(caught.value) == (
        "ledger: database: must exist, got no file\n"
        "hint: name the settings of the process that writes the ledger, and start in its folder"
    )
    assert list(tmp_path.iterdir()) == []
