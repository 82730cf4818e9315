"""Claims: written once, counted once, settled once."""

from __future__ import annotations

import sqlalchemy as sa

from handoffwatch import catalogue
from handoffwatch.errors import ClaimRefused
from handoffwatch.ledger.operations import name_in_claim
from handoffwatch.ledger.registry import Registry
from handoffwatch.ledger.runs import RunRow, write_operations
from handoffwatch.ledger.schema import OPERATIONS, RUNS
from handoffwatch.ledger.statement import Statement
from handoffwatch.ledger.tally import Tally
from handoffwatch.outcomes import Claim, settle_claim
from handoffwatch.vocabulary import Claimed, ClaimEffect, VerificationResult

_O = OPERATIONS.c
_WRITE = Statement(
    sa.update(RUNS)
    .where(RUNS.c.run_id == sa.bindparam("run"), RUNS.c.claimed.is_(None))
    .values(
        claimed=sa.bindparam("word"),
        claimed_operations=sa.bindparam("operations"),
        claimed_unix_s=sa.bindparam("now"),
        open_claimed=sa.bindparam("open"),
    )
)
_START_POLLS = Statement(
    sa.update(OPERATIONS)
    .where(_O.run_id == sa.bindparam("run"), _O.kind == sa.bindparam("of_kind"), _O.polled_since_unix_s.is_(None))
    .values(polled_since_unix_s=sa.bindparam("now"), next_poll_unix_s=sa.bindparam("poll"))
)
_STATES = Statement(
    sa.select(_O.kind, _O.business_key, _O.effect, _O.closed_unix_s).where(_O.run_id == sa.bindparam("run"))
)
_SETTLE = Statement(
    sa.update(RUNS)
    .where(RUNS.c.run_id == sa.bindparam("run"), RUNS.c.open_claimed.is_not(None))
    .values(open_claimed=None, claim_effect=sa.bindparam("effect"), settled_unix_s=sa.bindparam("now"))
)


def record_claim(
    connection: sa.Connection,
    tally: Tally,
    registry: Registry,
    run: RunRow,
    claim: Claim,
    *,
    now_unix_s: float,
    traceparent: str = "",
) -> bool:
    """Write a run's final claim and start the polls of its operations.

    Returns:
        True when it was written, False when the run had made the same claim before.

    Raises:
        ClaimRefused: The run made another claim, or ended without one.
        RegistrationError: The claim names an operation that the workflow did not declare.
    """
    if run.claim is not None:
        if run.claim == claim:
            return False
        raise ClaimRefused(
            f"run {run.run_id}: claim: must be made once, got {claim.claimed} after {run.claim.claimed}",
            hint="claim once, when the run's work is over",
        )
    named = [(registry.kind(run.workflow, name), key) for name, key in claim.operations]
    is_open = claim.claimed in (Claimed.DONE, Claimed.PARTIAL)
    row = {
        "run": run.run_id,
        "word": claim.claimed,
        "operations": write_operations(claim),
        "now": now_unix_s,
        "open": claim.claimed if is_open else None,
    }
    _WRITE.change(connection, row)
    for kind, key in named:
        name_in_claim(connection, run, kind, key, claim, now_unix_s=now_unix_s, traceparent=traceparent)
    polled = 0
    for kind in registry.workflows.get(run.workflow, {}).values():
        start = {"run": run.run_id, "of_kind": kind.name, "now": now_unix_s}
        polled += _START_POLLS.change(connection, {**start, "poll": now_unix_s + kind.policy.polls_s[0]})
    tally.count(catalogue.LEDGER_CLAIMS, run.workflow, claim.claimed)
    if is_open and not polled:  # an operation whose polls have just begun keeps the claim open
        settle_run(connection, tally, run.run_id, run.workflow, claim, now_unix_s=now_unix_s)
    return True


def settle_run(
    connection: sa.Connection, tally: Tally, run_id: str, workflow: str, claim: Claim, *, now_unix_s: float
) -> ClaimEffect | None:
    """Settle an open claim when its operations decide it, and return how; None when it stays open or was settled."""
    covered = (row for row in _STATES.rows(connection, {"run": run_id}) if claim.covers(row.kind, row.business_key))
    effect = settle_claim([_result(row.effect, is_closed=row.closed_unix_s is not None) for row in covered])
    if effect is None:
        return None
    if _SETTLE.change(connection, {"run": run_id, "effect": effect, "now": now_unix_s}) == 0:
        return None
    tally.count(catalogue.LEDGER_CLAIMS_SETTLED, workflow, claim.claimed, effect)
    return effect


def _result(effect: str, *, is_closed: bool) -> VerificationResult:
    """Return the last result of an operation; one that was closed without a final effect was skipped."""
    result = VerificationResult(effect)
    is_final = result in (VerificationResult.LANDED, VerificationResult.NOT_LANDED)
    return VerificationResult.SKIPPED if is_closed and not is_final else result
