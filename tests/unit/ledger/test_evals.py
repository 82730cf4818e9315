"""Final evals against violations: the blind spot as a number, counted once a run, from any process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handoffwatch.errors import RegistrationError
from handoffwatch.ledger import Ledger, LedgerSettings
from handoffwatch.outcomes import Claim, SettlementPolicy
from handoffwatch.vocabulary import Cause, VerificationResult, ViolationKind
from support.evidence import blocked
from support.outcomes import StillClock, open_ledger, refund_intent

BEFORE = ("ledger_violations_before_eval_total", ("refunds",))


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


def evals(ledger: Ledger) -> dict[tuple[str, ...], int]:
    """Return the counted evals by their labels."""
    counters = ledger.snapshot().counters
    return {labels: value for (name, labels), value in counters.items() if name == "ledger_final_evals_total"}


@pytest.mark.parametrize(("passed", "result"), [(True, "passed"), (False, "failed")])
@pytest.mark.parametrize(("counts", "crossings"), [({}, "kept"), ({ViolationKind.TOOL: 2}, "violated")])
def test_eval_is_counted_against_the_crossings_when_it_is_recorded(
    ledger: Ledger, passed: bool, result: str, counts: dict[ViolationKind, int], crossings: str
) -> None:
    """The four corners of the table; a run that kept its rules adds nothing to the violations."""
    ledger.record_violations("r-1", "refunds", counts)
    assert ledger.record_eval("r-1", workflow="refunds", passed=passed)
    assert evals(ledger) == {("refunds", result, crossings): 1}
    assert ledger.snapshot().counters.get(BEFORE) == (2 if counts else None)


def test_eval_adds_every_violation_known_by_now_when_it_is_recorded(ledger: Ledger) -> None:
    """Cases, what the runtime reports and what the settler found; those of another run stay out."""
    ledger.store_case(blocked(run_id="r-1"))
    ledger.record_violations("r-1", "refunds", {ViolationKind.BLOCKED: 2, ViolationKind.GUARD: 1})
    ledger.record_violations("r-1", "refunds", {ViolationKind.GUARD: 1, ViolationKind.DIVERGENCE: 0})
    ledger.record_violations("r-2", "refunds", {ViolationKind.TOOL: 9})
    ledger.record_eval("r-1", passed=True)
    ledger.record_violations("r-1", "refunds", {ViolationKind.TOOL: 1})
    assert ledger.snapshot().counters[BEFORE] == 5
    with ledger._database.read() as connection:
        found = connection.exec_driver_sql("SELECT kind, count FROM ledger_violations WHERE run_id = 'r-1'").all()
    assert dict(found) == {"blocked": 3, "guard": 2, "tool": 1}


def test_violation_is_stored_with_its_last_time_when_it_is_repeated(ledger: Ledger, time: StillClock) -> None:
    """The row says when it was last so."""
    for _ in range(2):
        time.advance(60)
        ledger.record_violations("r-1", "refunds", {ViolationKind.TOOL: 1})
    with ledger._database.read() as connection:
        assert connection.exec_driver_sql("SELECT unix_s FROM ledger_violations").scalars().all() == [1_000_120.0]


def test_false_success_is_a_violation_when_it_is_settled(ledger: Ledger, time: StillClock) -> None:
    """The run passed its eval with a refund that was never made."""
    ledger.open_operation(refund_intent("4417"))
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
    ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING)
    ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING)
    assert ledger.record_eval("r-1", passed=True)
    assert evals(ledger) == {("refunds", "passed", "violated"): 1}
    assert ledger.snapshot().counters[BEFORE] == 1


def test_eval_is_counted_once_when_it_is_recorded_again(ledger: Ledger) -> None:
    """The first word counts, whatever the second says and whether or not it names the workflow."""
    assert ledger.record_eval("r-1", workflow="refunds", passed=True)
    ledger.record_violations("r-1", "refunds", {ViolationKind.TOOL: 1})
    assert not ledger.record_eval("r-1", workflow="refunds", passed=False)
    assert not ledger.record_eval("r-1", passed=False)
    assert evals(ledger) == {("refunds", "passed", "kept"): 1}


def test_eval_finds_the_workflow_when_the_run_is_known(ledger: Ledger) -> None:
    """By its operations or by its violations."""
    ledger.open_operation(refund_intent("4417", run_id="r-1"))
    ledger.record_violations("r-2", "refunds", {ViolationKind.TOOL: 1})
    assert ledger.record_eval("r-1", passed=True)
    assert ledger.record_eval("r-2", passed=True)
    assert evals(ledger) == {("refunds", "passed", "kept"): 1, ("refunds", "passed", "violated"): 1}


def test_eval_is_refused_when_nobody_says_of_which_workflow_the_run_is(ledger: Ledger) -> None:
    """Nothing is counted under a guessed name, and the hint says what to type."""
    with pytest.raises(RegistrationError) as caught:
        ledger.record_eval("r-1", passed=True)
    assert str(caught.value) == (
        "run r-1: workflow: must be known to the ledger, got a run that it never met\n"
        'hint: pass it: record_eval(run_id, workflow="...", passed=...)'
    )
    assert evals(ledger) == {}


def test_eval_is_counted_when_another_process_records_it_later(
    tmp_path: Path, ledger: Ledger, time: StillClock
) -> None:
    """A ledger without registrations, opened when the run is long over."""
    ledger.record_violations("r-1", "refunds", {ViolationKind.BLOCKED: 1})
    time.advance(1e6)
    settings = LedgerSettings(url=f"sqlite:///{tmp_path / 'ledger.db'}")
    other = Ledger(settings, policy=SettlementPolicy(), clock=time.clock(), must_exist=True)
    assert other.record_eval("r-1", passed=True)
    other.close()
    assert evals(ledger) == {("refunds", "passed", "violated"): 1}
