"""What the durable steps of an operation cost beside four rows that are committed one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from handoffwatch.ledger import Ledger
from handoffwatch.outcomes import Claim
from handoffwatch.vocabulary import ToolOutcome, VerificationResult
from support.outcomes import StillClock, open_ledger, refund_intent, refund_receipt
from support.ratios import load_baselines, ratio, report

LIMIT = 3.0


@pytest.mark.bench
def test_settled_operation_costs_little_more_than_its_commits(shared_folder: Path, tmp_path: Path) -> None:
    """Intent, receipt, claim and settlement take at most three times as long as four plain inserts with full sync."""
    insert = load_baselines(shared_folder).four_committed_inserts(str(tmp_path / "plain.db"))
    time = StillClock()
    ledger = open_ledger(tmp_path / "ledger.db", time)
    ours = _numbered(lambda n: _settle(ledger, time, f"r-{n}"))
    ours()
    measured = ratio(ours, _numbered(insert), calls=50)
    report("intent, receipt, claim, settlement", measured, LIMIT)
    ledger.close()
    assert measured <= LIMIT


def _settle(ledger: Ledger, time: StillClock, run_id: str) -> None:
    """Take one refund of a run of its own through the ledger."""
    operation_id = ledger.open_operation(refund_intent("4417", run_id=run_id))
    ledger.record_receipt(operation_id, ToolOutcome.OK, refund_receipt("4417"))
    ledger.record_claim(run_id, "refunds", Claim.of("done"))
    (operation,) = ledger.due(time.now_s, limit=100, kinds=("refund",))
    ledger.record_verification(operation, VerificationResult.LANDED)


def _numbered(function: Callable[[int], object]) -> Callable[[], object]:
    numbers = iter(range(1_000_000))
    return lambda: function(next(numbers))
