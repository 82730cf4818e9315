"""Violations: how often each run broke the rules of its crossings, and of what kind."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from handoffwatch.ledger.statement import Statement
from handoffwatch.vocabulary import ViolationKind

_ADD = Statement(
    sa.text(
        "INSERT INTO ledger_violations (run_id, kind, workflow, count, unix_s)"
        " VALUES (:run_id, :kind, :workflow, :count, :now)"
        " ON CONFLICT (run_id, kind) DO UPDATE"
        " SET count = ledger_violations.count + excluded.count, unix_s = excluded.unix_s"
    )
)


def add_violations(
    connection: sa.Connection, run_id: str, workflow: str, counts: Mapping[ViolationKind, int], *, now_unix_s: float
) -> None:
    """Add to a run's violations, in the order of every other writer; a count of 0 adds nothing."""
    for kind, count in sorted(counts.items()):
        if count > 0:
            row = {"run_id": run_id, "kind": kind, "workflow": workflow, "count": count, "now": now_unix_s}
            _ADD.change(connection, row)
