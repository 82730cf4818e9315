"""Evidence: one case for each kind and subject, the large part apart from the lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handoffwatch.ledger import Case, Ledger
from handoffwatch.vocabulary import CaseKind, Criticality, Mode, ReviewSelection, Ruling
from support.evidence import blocked, drawn, held, refused_answer
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


def violations(ledger: Ledger) -> list[tuple[object, ...]]:
    """Return what is stored of the violations."""
    with ledger._database.read() as connection:
        rows = connection.exec_driver_sql("SELECT run_id, kind, workflow, count FROM ledger_violations ORDER BY kind")
        return [tuple(row) for row in rows]


def test_case_is_the_evidence_when_it_is_stored(ledger: Ledger, time: StillClock) -> None:
    """Nothing is lost, and what nobody must act on is resolved from its birth."""
    evidence = blocked()
    case_id = ledger.store_case(evidence)
    assert ledger.case(case_id) == Case(
        case_id=case_id,
        kind=CaseKind.BLOCKED,
        subject="h-1",
        criticality=Criticality.CRITICAL,
        run_id="r-1",
        facts=evidence.facts,
        opened_unix_s=time.now_s,
        resolved_unix_s=time.now_s,
        note="",
        workflow="refunds",
        route="planner->executor",
        schema_version="1",
        mode=Mode.ENFORCE,
        record=evidence.record,
    )
    assert ledger.cases() == []


def test_case_waits_for_a_person_when_its_evidence_is_open(ledger: Ledger, time: StillClock) -> None:
    """It stands in the list and in the series; when an approval runs out is stored with it."""
    ledger.store_case(held(approval=True, expires_unix_s=time.now_s + 3600))
    (case,) = ledger.cases(kind=CaseKind.HELD)
    assert (case.resolved_unix_s, case.note) == (None, None)
    assert case.expires_unix_s == time.now_s + 3600
    assert ledger.snapshot().cases[("held", "critical")].count == 1


def test_case_has_no_route_when_the_guard_refused(ledger: Ledger) -> None:
    """An answer goes to the user, not along a route."""
    case = ledger.case(ledger.store_case(refused_answer()))
    assert case is not None
    assert (case.route, case.schema_version, case.workflow) == (None, None, "refunds")
    assert violations(ledger) == [("r-1", "guard", "refunds", 1)]


def test_record_is_left_out_when_cases_are_listed(ledger: Ledger) -> None:
    """It can be a megabyte: only the page of one case and of one review has it."""
    evidence = drawn(is_open=True)
    case_id = ledger.store_case(evidence)
    listed = [
        *ledger.cases(),
        *ledger.cases(kind=CaseKind.BLOCKED, open_only=False),
        ledger.case_of(CaseKind.BLOCKED, "h-1"),
        ledger.reviews()[0].case,
    ]
    assert [case.record for case in listed if case is not None] == [None] * 4
    case, review = ledger.case(case_id), ledger.review(case_id)
    assert case is not None
    assert review is not None
    assert case.record == review.case.record == evidence.record


def test_case_is_updated_when_the_same_subject_is_stored_again(ledger: Ledger, time: StillClock) -> None:
    """Facts and record are the new ones; its time, its run's violation and whether it is open stay."""
    first = ledger.store_case(blocked(is_open=True))
    time.advance(60)
    again = blocked(facts={"attempts": 4}, record={"original": 1}, run_id="r-2", is_open=False)
    assert ledger.store_case(again) == first
    case = ledger.case(first)
    assert case is not None
    assert (case.facts, case.record) == ({"attempts": 4}, {"original": 1})
    assert (case.opened_unix_s, case.resolved_unix_s, case.run_id) == (1_000_000.0, None, "r-1")
    assert violations(ledger) == [("r-1", "blocked", "refunds", 1)]


def test_case_stays_resolved_with_its_ruling_when_it_is_stored_again(ledger: Ledger, time: StillClock) -> None:
    """What a person decided is never asked again."""
    case_id = ledger.store_case(held())
    ledger.rule_case(case_id, Ruling.REJECTED, "wrong order")
    before = ledger.case_of(CaseKind.HELD, "h-1")
    time.advance(60)
    assert ledger.store_case(held(approval=False)) == case_id
    assert ledger.case_of(CaseKind.HELD, "h-1") == before
    assert ledger.cases() == []


def test_cases_are_two_when_kinds_or_subjects_differ(ledger: Ledger) -> None:
    """A handoff can be held first and blocked later."""
    ids = {ledger.store_case(each) for each in (blocked(), held(), blocked("h-2"))}
    assert len(ids) == 3
    assert violations(ledger) == [("r-1", "blocked", "refunds", 2)]


def test_run_has_no_violation_when_the_evidence_names_none(ledger: Ledger) -> None:
    """A handoff that waits for an approval breaks no rule."""
    ledger.store_case(held())
    assert violations(ledger) == []


def test_case_of_is_none_when_nobody_stored_one(ledger: Ledger) -> None:
    """Neither another subject's nor another kind's is returned."""
    ledger.store_case(blocked("h-1"))
    assert ledger.case_of(CaseKind.BLOCKED, "h-2") is None
    assert ledger.case_of(CaseKind.HELD, "h-1") is None


def test_review_is_drawn_once_when_the_evidence_is_stored_again(ledger: Ledger, time: StillClock) -> None:
    """How and when it was drawn first is what counts; one that was not drawn can be drawn later."""
    drawn_id = ledger.store_case(drawn("h-1", ReviewSelection.RANDOM))
    later_id = ledger.store_case(blocked("h-2"))
    time.advance(60)
    ledger.store_case(drawn("h-1", ReviewSelection.FORCED))
    ledger.store_case(drawn("h-2", ReviewSelection.FORCED))
    found = [(review.case.case_id, review.selection, review.drawn_unix_s) for review in ledger.reviews()]
    assert found == [
        (drawn_id, ReviewSelection.RANDOM, 1_000_000.0),
        (later_id, ReviewSelection.FORCED, 1_000_060.0),
    ]
