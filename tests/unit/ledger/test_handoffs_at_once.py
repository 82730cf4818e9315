"""Handoffs that threads and processes open at once, and those of a process that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from handoffwatch.ledger import Ledger
from support.outcomes import StillClock, open_ledger

ROUTE = "planner->executor"
PAIRS = 50

_OPENS_ALL = f"""
import json, os, signal, sys
from pathlib import Path
from support.outcomes import StillClock, open_ledger
path, holder, killed = sys.argv[1:]
ledger = open_ledger(Path(path), StillClock())
print("ready", flush=True)
sys.stdin.readline()
taken = [
    ledger.open_handoff("t-1", "{ROUTE}", f"h-{{n}}", holder=holder, digest="d", base=None, lease_s=60.0).is_taken
    for n in range({PAIRS})
]
print(json.dumps(taken), flush=True)
if killed == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def start(path: Path, holder: str, end: str = "") -> subprocess.Popen[str]:
    """Start a process that opens all handoffs when it is told to."""
    return subprocess.Popen(
        [sys.executable, "-c", _OPENS_ALL, str(path), holder, end],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def is_taken(ledger: Ledger, handoff_id: str, holder: str) -> bool:
    """Open a handoff for a holder."""
    return ledger.open_handoff("t-1", ROUTE, handoff_id, holder=holder, digest="d", base=None, lease_s=60.0).is_taken


def test_handoff_goes_to_one_of_two_threads_when_both_open_it_at_once(tmp_path: Path) -> None:
    """Of 50 pairs exactly one of each proceeds, through one ledger and through two."""
    ledgers = [open_ledger(tmp_path / "ledger.db", StillClock()) for _ in range(2)]
    together = threading.Barrier(2)

    def open_one(thread: int, number: int) -> bool:
        together.wait(60)
        return is_taken(ledgers[thread * (number % 2)], f"h-{number}", f"thread-{thread}")

    with ThreadPoolExecutor(2) as pool:
        for number in range(PAIRS):
            pair = [pool.submit(open_one, thread, number) for thread in range(2)]
            assert sorted(each.result() for each in pair) == [False, True]
    for ledger in ledgers:
        ledger.close()


def test_handoff_goes_to_one_of_two_processes_when_both_open_it_at_once(tmp_path: Path) -> None:
    """Of 50 pairs exactly one of each proceeds."""
    path = tmp_path / "ledger.db"
    open_ledger(path, StillClock()).close()
    processes = [start(path, f"p-{n}") for n in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert answers[0].replace("true", "x").replace("false", "true").replace("x", "false") == answers[1]
    ledger = open_ledger(path, StillClock())
    admission = ledger.open_handoff("t-1", ROUTE, "new", holder="p-3", digest="d", base=None, lease_s=60.0)
    assert (admission.hops, admission.repeats) == (PAIRS, 1)
    ledger.close()


def test_handoff_of_a_killed_process_is_taken_over_when_its_lease_has_run_out(tmp_path: Path) -> None:
    """Not before: it may only be slow. What it had reserved outlives it."""
    path = tmp_path / "ledger.db"
    time = StillClock()
    ledger = open_ledger(path, time)
    ledger.snapshot()
    process = start(path, "dead", "killed")
    process.communicate("go\n", timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert all(is_taken(ledger, f"h-{n}", "new") for n in range(PAIRS))
    time.advance(60)
    assert not any(is_taken(ledger, f"h-{n}", "new") for n in range(PAIRS))
    ledger.close()
