"""A process that refunds, claims and settles, and is killed before its k-th SQL statement.

Usage: `python killed_refunds.py LEDGER K`; K = 0 lets it finish. Every run is repeated from its beginning by whoever
starts this again, as a host does that resumes its runs.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from handoffwatch.ledger import Ledger
from handoffwatch.outcomes import Claim
from handoffwatch.vocabulary import ToolOutcome
from support.outcomes import StillClock, Store, new_settler, open_ledger, refund_intent, refund_kind, refund_receipt

RUNS = 4
"""Of these runs every other one ends in a false success."""


def refund_all(ledger: Ledger, time: StillClock) -> None:
    """Refund, claim and settle each run."""
    store = Store()
    for n in range(1, RUNS, 2):
        store.put(str(n))
    kind = refund_kind(store.verifier(), read_back_window_s=0.0)
    settler = new_settler(ledger, time, kind, emit=lambda event: None)
    for n in range(RUNS):
        run_id = f"r-{n}"
        operation_id = ledger.open_operation(refund_intent(str(n), run_id=run_id))
        ledger.record_receipt(operation_id, ToolOutcome.OK, refund_receipt(str(n)))
        ledger.record_claim(run_id, "refunds", Claim.of("done"))
        ledger.end_run(run_id, "refunds")
        settler.run_once()


def main(path: str, kill_at: int) -> None:
    """Refund everything on the ledger in a file."""
    seen = 0

    def count(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.Engine, "connect", lambda connection, _: connection.set_trace_callback(count))
    time = StillClock()
    refund_all(open_ledger(Path(path), time), time)
    print(seen)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
