"""Final evals: what one said about a run, held against the violations that were known before it."""

from __future__ import annotations

import sqlalchemy as sa

from handoffwatch import catalogue
from handoffwatch.errors import RegistrationError
from handoffwatch.ledger.schema import EVALS, RUNS, VIOLATIONS
from handoffwatch.ledger.statement import Statement, insert_new
from handoffwatch.ledger.tally import Tally
from handoffwatch.vocabulary import Crossings, EvalResult

_FIND = sa.select(EVALS.c.run_id).where(EVALS.c.run_id == sa.bindparam("run"))
_RUN = sa.select(RUNS.c.workflow).where(RUNS.c.run_id == sa.bindparam("run"))
_VIOLATIONS = sa.select(VIOLATIONS.c.workflow, VIOLATIONS.c["count"].label("times")).where(
    VIOLATIONS.c.run_id == sa.bindparam("run")
)
_WRITE = Statement(insert_new(EVALS))


def record_eval(
    connection: sa.Connection, tally: Tally, run_id: str, *, workflow: str | None, passed: bool, now_unix_s: float
) -> bool:
    """Write a run's final eval with the violations known by now, once.

    Returns:
        True when it was written, False when the run had one before.

    Raises:
        RegistrationError: Nobody says of which workflow the run is.
    """
    run = {"run": run_id}
    if connection.execute(_FIND, run).first() is not None:
        return False
    violations = connection.execute(_VIOLATIONS, run).all()
    known = workflow or connection.execute(_RUN, run).scalar() or next((row.workflow for row in violations), None)
    if known is None:
        raise RegistrationError(
            f"run {run_id}: workflow: must be known to the ledger, got a run that it never met",
            hint='pass it: record_eval(run_id, workflow="...", passed=...)',
        )
    count = sum(row.times for row in violations)
    result = EvalResult.PASSED if passed else EvalResult.FAILED
    crossings = Crossings.VIOLATED if count else Crossings.KEPT
    row = {"run_id": run_id, "workflow": known, "result": result, "crossings": crossings, "violations": count}
    if _WRITE.change(connection, {**row, "unix_s": now_unix_s}) == 0:
        return False
    tally.count(catalogue.LEDGER_FINAL_EVALS, known, result, crossings)
    if count:
        tally.count(catalogue.LEDGER_VIOLATIONS_BEFORE_EVAL, known, amount=count)
    return True
