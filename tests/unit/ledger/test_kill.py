"""A process killed anywhere in the protocol: nothing is lost and nothing is counted twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.killed_refunds import RUNS, refund_all
from support.outcomes import StillClock, open_ledger

TESTS = Path(__file__).parents[2]
HALF = RUNS // 2
EXPECTED = {
    ("ledger_claims_total", ("refunds", "done")): RUNS,
    ("ledger_claims_settled_total", ("refunds", "done", "landed")): HALF,
    ("ledger_claims_settled_total", ("refunds", "done", "not_landed")): HALF,
    ("ledger_effects_settled_total", ("refunds", "refund", "critical", "landed", "")): HALF,
    ("ledger_effects_settled_total", ("refunds", "refund", "critical", "not_landed", "missing")): HALF,
    ("ledger_false_successes_total", ("refunds", "refund", "critical", "missing", "tool")): HALF,
}


def run_until(path: Path, kill_at: int) -> subprocess.CompletedProcess[str]:
    """Run the process that is killed before its k-th statement."""
    return subprocess.run(
        [sys.executable, str(TESTS / "support" / "killed_refunds.py"), str(path), str(kill_at)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def statements(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many statements and commits the whole protocol takes on a new file."""
    return int(run_until(tmp_path_factory.mktemp("whole") / "ledger.db", 0).stdout)


@pytest.mark.parametrize("seed", range(6))
def test_ledger_counts_each_fact_once_when_a_process_is_killed_anywhere(
    tmp_path: Path, statements: int, seed: int
) -> None:
    """The host resumes its runs, a new settler goes on, and the numbers are those of a run without a kill."""
    path = tmp_path / "ledger.db"
    kill_at = random.Random(seed).randint(1 + statements * seed // 6, statements * (seed + 1) // 6)
    assert run_until(path, kill_at).returncode == -signal.SIGKILL
    time = StillClock()
    ledger = open_ledger(path, time)
    refund_all(ledger, time)
    snapshot = ledger.snapshot()
    assert snapshot.counters == EXPECTED
    assert (snapshot.claims, snapshot.effects) == ({}, {})
    assert snapshot.cases[("false_success", "critical")].count == HALF
    last = ("ledger_false_success_last_timestamp_seconds", ("refunds", "refund", "critical"))
    assert snapshot.timestamps[last] == time.now_s
    with ledger._database.read() as connection:
        violations = connection.exec_driver_sql("SELECT run_id, kind, count FROM ledger_violations ORDER BY run_id")
        assert violations.all() == [(f"r-{n}", "false_success", 1) for n in range(0, RUNS, 2)]
    assert ledger.identity_violations() == []
    ledger.close()
