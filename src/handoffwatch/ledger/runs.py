"""The run's row. Every write of an operation, claim or settlement locks it first, so that one run has one writer."""

from __future__ import annotations

import json
from dataclasses import dataclass

import sqlalchemy as sa

from handoffwatch.errors import RegistrationError
from handoffwatch.ledger.schema import RUNS
from handoffwatch.ledger.statement import Statement
from handoffwatch.outcomes import Claim
from handoffwatch.vocabulary import Claimed

_INSERT = Statement(
    sa.text("INSERT INTO ledger_runs (run_id, workflow) VALUES (:run_id, :workflow) ON CONFLICT (run_id) DO NOTHING")
)
_LOCK = Statement(
    sa.select(RUNS.c.workflow, RUNS.c.claimed, RUNS.c.claimed_operations)
    .where(RUNS.c.run_id == sa.bindparam("run_id"))
    .with_for_update()
)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A locked run.

    Attributes:
        run_id: The run.
        workflow: Its workflow.
        claim: Its final claim, none included; None while it goes on.
        is_new: Whether this transaction made the row, so that nothing else refers to it yet.
    """

    run_id: str
    workflow: str
    claim: Claim | None
    is_new: bool


def lock_run(connection: sa.Connection, run_id: str, workflow: str) -> RunRow:
    """Return the run's row, made when it is not there, and locked until the transaction ends.

    Raises:
        RegistrationError: The run became known under another workflow, whose operations are others.
    """
    if _INSERT.change(connection, {"run_id": run_id, "workflow": workflow}) == 1:
        return RunRow(run_id, workflow, None, is_new=True)
    (row,) = _LOCK.rows(connection, {"run_id": run_id})
    if row.workflow != workflow:
        raise RegistrationError(
            f"run {run_id}: workflow: belongs to {row.workflow}, got {workflow}",
            hint="give each run an id of its own, or leave run_id out",
        )
    return RunRow(run_id, workflow, read_claim(row.claimed, row.claimed_operations), is_new=False)


def read_claim(claimed: str | None, operations: str | None) -> Claim | None:
    """Return a stored claim, or None when there is none."""
    if claimed is None:
        return None
    return Claim(Claimed(claimed), tuple((kind, key) for kind, key in json.loads(operations or "[]")))


def write_operations(claim: Claim) -> str:
    """Return the operations that a claim names as they are stored."""
    return json.dumps(claim.operations)
