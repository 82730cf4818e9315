"""Pruning: what is over for long goes, batch by batch; what is open or still needed stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handoffwatch.ledger import Ledger, pruning
from handoffwatch.outcomes import Claim
from handoffwatch.vocabulary import Cause, ReviewVerdict, VerificationResult, ViolationKind
from support.evidence import blocked, drawn, held
from support.outcomes import StillClock, open_ledger, refund_intent

ROUTE = "planner->executor"


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


def prune(ledger: Ledger, before_unix_s: float) -> int:
    """Remove a batch of what was over before a time."""
    return ledger.prune(cases_before_unix_s=before_unix_s, handoffs_before_unix_s=before_unix_s)


def subjects(ledger: Ledger) -> list[str]:
    """Return what the cases are about, sorted."""
    return sorted(case.subject for case in ledger.cases(open_only=False))


def reserve(ledger: Ledger, handoff_id: str, *, lease_s: float = 60.0) -> None:
    """Open a handoff."""
    ledger.open_handoff("t-1", ROUTE, handoff_id, holder="p-1", digest="d", base=None, lease_s=lease_s)


def test_cases_go_when_they_were_resolved_before_the_time(ledger: Ledger, time: StillClock) -> None:
    """Open ones stay however old they are, and so does one that was resolved at the time itself."""
    ledger.store_case(blocked("born resolved"))
    resolved = ledger.store_case(held("resolved later"))
    ledger.store_case(held("open"))
    time.advance(100)
    ledger.resolve_case(resolved, note="")
    ledger.store_case(blocked("young"))
    assert prune(ledger, 1_000_000.0) == 0
    assert prune(ledger, 1_000_100.0) == 1
    assert subjects(ledger) == ["open", "resolved later", "young"]
    assert prune(ledger, 1_000_101.0) == 2
    assert prune(ledger, 1e12) == 0
    assert subjects(ledger) == ["open"]


def test_case_stays_when_its_review_is_open_and_was_drawn_after_the_time(ledger: Ledger, time: StillClock) -> None:
    """It goes with its review once that is done, or is itself older than the time."""
    for subject in ("open", "done"):
        ledger.store_case(blocked(subject))
    time.advance(100)
    ledger.store_case(drawn("open"))
    done = ledger.store_case(drawn("done"))
    assert prune(ledger, 1_000_050.0) == 0
    ledger.label_review(done, ReviewVerdict.RIGHT_BLOCK, "")
    assert prune(ledger, 1_000_050.0) == 1
    assert subjects(ledger) == ["open"]
    assert prune(ledger, 1_000_101.0) == 1
    assert ledger.reviews(open_only=False) == []


def test_case_stays_when_it_is_open_and_its_review_is_done(ledger: Ledger) -> None:
    """Somebody must still act on it."""
    case_id = ledger.store_case(drawn(is_open=True))
    ledger.label_review(case_id, ReviewVerdict.RIGHT_BLOCK, "")
    assert prune(ledger, 1e12) == 0
    assert ledger.review(case_id) is not None


def test_handoffs_go_when_they_were_accepted_before_the_time(ledger: Ledger, time: StillClock) -> None:
    """By the time of their acceptance, not of their beginning; those in progress stay."""
    for handoff_id in ("early", "late", "open"):
        reserve(ledger, handoff_id, lease_s=1000.0)
    ledger.close_handoff("t-1", ROUTE, "early", holder="p-1", accepted=True)
    time.advance(100)
    ledger.close_handoff("t-1", ROUTE, "late", holder="p-1", accepted=True)
    assert prune(ledger, 1_000_100.0) == 1
    assert prune(ledger, 1_000_101.0) == 1
    with ledger._database.read() as connection:
        assert connection.exec_driver_sql("SELECT handoff_id FROM ledger_handoffs").scalars().all() == ["open"]


def test_handoff_of_a_dead_holder_goes_when_its_lease_ran_out_before_the_time(ledger: Ledger) -> None:
    """Nobody will ever close it."""
    reserve(ledger, "h-1", lease_s=60.0)
    assert prune(ledger, 1_000_060.0) == 0
    assert prune(ledger, 1_000_061.0) == 1


def test_latches_go_when_they_were_set_before_the_time(ledger: Ledger, time: StillClock) -> None:
    """A task that was stopped so long ago is over."""
    for task in ("t-1", "t-2"):
        ledger.close_handoff(task, ROUTE, "h-1", holder="p-1", accepted=False, stop_reason="loop_limit")
        time.advance(100)
    assert prune(ledger, 1_000_100.0) == 1
    assert ledger.reopen_route("t-1") == 0
    assert ledger.reopen_route("t-2") == 1


def test_violations_go_when_their_run_was_evaluated_before_the_time(ledger: Ledger, time: StillClock) -> None:
    """They were counted then; those of a run whose eval may still come stay, and no eval is counted twice."""
    for run_id in ("evaluated", "waiting", "young"):
        ledger.record_violations(run_id, "refunds", {ViolationKind.TOOL: 2, ViolationKind.GUARD: 1})
    ledger.record_eval("evaluated", passed=True)
    time.advance(100)
    ledger.record_eval("young", passed=True)
    assert prune(ledger, 1_000_100.0) == 2
    with ledger._database.read() as connection:
        left = connection.exec_driver_sql("SELECT DISTINCT run_id FROM ledger_violations ORDER BY run_id")
        assert left.scalars().all() == ["waiting", "young"]
    assert not ledger.record_eval("evaluated", workflow="refunds", passed=True)


def test_times_are_each_for_their_own_when_they_differ(ledger: Ledger) -> None:
    """Cases and handoffs have a setting each."""
    ledger.store_case(blocked())
    reserve(ledger, "h-1")
    assert ledger.prune(cases_before_unix_s=1e12, handoffs_before_unix_s=0.0) == 1
    assert subjects(ledger) == []
    ledger.store_case(blocked())
    assert ledger.prune(cases_before_unix_s=0.0, handoffs_before_unix_s=1e12) == 1
    assert subjects(ledger) == ["h-1"]


def test_pruning_takes_a_batch_at_a_time_when_there_is_more(ledger: Ledger) -> None:
    """No other writer waits for all of it, and all of it goes in the end."""
    more = 2 * pruning.BATCH + 1
    with ledger._database.write() as connection:
        columns = "case_id, kind, subject, criticality, run_id, facts, opened_unix_s, resolved_unix_s, note"
        connection.exec_driver_sql(
            f"INSERT INTO ledger_cases ({columns}) VALUES (?, 'blocked', ?, 'routine', 'r-1', '{{}}', 0, 0, '')",
            [(f"c-{number}", f"h-{number}") for number in range(more)],
        )
    assert [prune(ledger, 1.0) for _ in range(4)] == [pruning.BATCH, pruning.BATCH, 1, 0]


def test_pruning_leaves_the_numbers_when_everything_goes(ledger: Ledger, time: StillClock) -> None:
    """What was counted stays counted."""
    ledger.open_operation(refund_intent("4417"))
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
    ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING)
    ledger.resolve_case(ledger.cases()[0].case_id, note="refunded by hand")
    ledger.label_review(ledger.store_case(drawn()), ReviewVerdict.FALSE_BLOCK, "")
    ledger.record_eval("r-1", passed=True)
    before = ledger.snapshot()
    assert prune(ledger, 1e12) == 4
    assert ledger.snapshot() == before
