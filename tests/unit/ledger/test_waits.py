"""Rulings and resolutions: what a person did, timed once and observed once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handoffwatch.ledger import Evidence, Ledger, Wait
from handoffwatch.vocabulary import CaseKind, ReviewKind, Ruling
from support.evidence import blocked, held
from support.outcomes import StillClock, open_ledger


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


@pytest.mark.parametrize("ruling", Ruling)
@pytest.mark.parametrize(("approval", "kind"), [(True, ReviewKind.APPROVAL), (False, ReviewKind.HELD)])
def test_held_case_is_resolved_and_timed_when_a_person_rules(
    ledger: Ledger, time: StillClock, ruling: Ruling, approval: bool, kind: ReviewKind
) -> None:
    """The flow that waits reads the ruling by the handoff; an approval is another wait than a hold."""
    case_id = ledger.store_case(held(approval=approval))
    time.advance(300)
    assert ledger.rule_case(case_id, ruling, "asked the customer")
    case = ledger.case_of(CaseKind.HELD, "h-1")
    assert case is not None
    assert (case.ruling, case.ruled_unix_s) == (ruling, 1_000_300.0)
    assert (case.resolved_unix_s, case.note) == (1_000_300.0, "asked the customer")
    assert ledger.cases() == []
    assert ledger.take_waits(10) == [Wait(kind, 300.0)]


def test_ruling_stays_when_another_person_rules_later(ledger: Ledger, time: StillClock) -> None:
    """The flow may have gone on: the second word changes nothing, and says so."""
    case_id = ledger.store_case(held())
    ledger.rule_case(case_id, Ruling.APPROVED, "first")
    before = ledger.case(case_id)
    time.advance(60)
    assert not ledger.rule_case(case_id, Ruling.REJECTED, "second")
    assert not ledger.resolve_case(case_id, note="third")
    assert ledger.case(case_id) == before
    assert len(ledger.take_waits(10)) == 1


@pytest.mark.parametrize("evidence", [blocked(is_open=True), held(is_open=False)], ids=["blocked", "not open"])
def test_case_is_not_ruled_on_when_it_is_no_open_held_one(ledger: Ledger, evidence: Evidence) -> None:
    """There is nothing that could go on."""
    case_id = ledger.store_case(evidence)
    before = ledger.case(case_id)
    assert not ledger.rule_case(case_id, Ruling.APPROVED, "go on")
    assert not ledger.rule_case("none", Ruling.APPROVED, "go on")
    assert ledger.case(case_id) == before
    assert ledger.take_waits(10) == []


@pytest.mark.parametrize(
    ("kind", "waits"),
    [
        (CaseKind.AMBIGUOUS, [Wait(ReviewKind.AMBIGUOUS, 60.0)]),
        (CaseKind.HELD, [Wait(ReviewKind.HELD, 60.0)]),
        (CaseKind.BLOCKED, []),
        (CaseKind.QUARANTINED, []),
        (CaseKind.FALSE_SUCCESS, []),
    ],
)
def test_resolution_is_timed_when_something_waited_for_it(
    ledger: Ledger, time: StillClock, kind: CaseKind, waits: list[Wait]
) -> None:
    """A held handoff or an ambiguous call stands still meanwhile; the others do not."""
    case_id = ledger.store_case(blocked(kind=kind, is_open=True))
    time.advance(60)
    assert ledger.resolve_case(case_id, note="looked at it")
    assert not ledger.resolve_case(case_id, note="looked again")
    assert ledger.take_waits(10) == waits


def test_wait_is_zero_when_the_clock_was_set_back(ledger: Ledger, time: StillClock) -> None:
    """A histogram takes no negative time."""
    case_id = ledger.store_case(held())
    time.advance(-60)
    ledger.rule_case(case_id, Ruling.APPROVED, "")
    assert ledger.take_waits(10) == [Wait(ReviewKind.HELD, 0.0)]


def test_waits_are_taken_up_to_the_limit_when_there_are_more(ledger: Ledger) -> None:
    """The rest is there for the next one."""
    for number in range(5):
        ledger.rule_case(ledger.store_case(held(f"h-{number}")), Ruling.APPROVED, "")
    assert [len(ledger.take_waits(2)) for _ in range(4)] == [2, 2, 1, 0]


def test_waits_are_taken_without_the_write_lock_when_there_are_none(tmp_path: Path, time: StillClock) -> None:
    """Every settler looks every second, and holds up nobody."""
    ledger = open_ledger(tmp_path / "ledger.db", time)
    ledger.snapshot()
    other = open_ledger(tmp_path / "ledger.db", time)
    with other._database.write():
        assert ledger.take_waits(10) == []
    for each in (ledger, other):
        each.close()


def test_waits_are_each_taken_once_when_two_take_them_at_once(tmp_path: Path, time: StillClock) -> None:
    """What two settlers observe together is what people did, no less and no more."""
    ledgers = [open_ledger(tmp_path / "ledger.db", time) for _ in range(2)]
    for number in range(60):
        case_id = ledgers[0].store_case(held(f"h-{number}"))
        time.advance(1)
        ledgers[0].rule_case(case_id, Ruling.APPROVED, "")
        time.advance(number)
    together = threading.Barrier(2)

    def take(ledger: Ledger) -> list[Wait]:
        together.wait(60)
        taken: list[Wait] = []
        while waits := ledger.take_waits(3):
            taken += waits
        return taken

    with ThreadPoolExecutor(2) as pool:
        taken = [wait for waits in pool.map(take, ledgers) for wait in waits]
    assert Counter(taken) == Counter({Wait(ReviewKind.HELD, 1.0): 60})
    for ledger in ledgers:
        ledger.close()
