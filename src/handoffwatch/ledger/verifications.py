"""Which operations are to be read now, and what follows from what was read: each settled and counted exactly once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from handoffwatch import catalogue
from handoffwatch.ledger.claims import settle_run
from handoffwatch.ledger.evidence import store_case
from handoffwatch.ledger.facts import Evidence, OpenOperation, Settled
from handoffwatch.ledger.runs import read_claim
from handoffwatch.ledger.schema import OPERATIONS, RUNS
from handoffwatch.ledger.statement import Statement
from handoffwatch.ledger.tally import Tally
from handoffwatch.outcomes import Claim, Intent, Receipt, origin_of
from handoffwatch.vocabulary import (
    CaseKind,
    Cause,
    Claimed,
    Criticality,
    Effect,
    Origin,
    ToolOutcome,
    VerificationResult,
    ViolationKind,
)

_ANSWERS = (VerificationResult.LANDED, VerificationResult.PENDING, VerificationResult.NOT_LANDED)
_FINAL = (VerificationResult.LANDED, VerificationResult.NOT_LANDED)

_O = OPERATIONS.c
_LOCK = Statement(
    sa.select(
        _O.calls,
        _O.call_outcome,
        _O.receipt,
        RUNS.c.claimed,
        RUNS.c.claimed_operations,
        RUNS.c.open_claimed,
    )
    .join_from(OPERATIONS, RUNS, _O.run_id == RUNS.c.run_id)
    .where(
        _O.operation_id == sa.bindparam("id"),
        _O.closed_unix_s.is_(None),
        _O.reads == sa.bindparam("seen"),
        RUNS.c.claimed.is_not(None),
    )
    .with_for_update(of=RUNS)
)
_READ_BACK = (
    sa.update(OPERATIONS)
    .where(_O.operation_id == sa.bindparam("id"), _O.closed_unix_s.is_(None), _O.reads == sa.bindparam("seen"))
    .values(reads=_O.reads + 1, read_unix_s=sa.bindparam("now"), next_poll_unix_s=sa.bindparam("poll"))
)
_WRITE = Statement(_READ_BACK)
_WRITE_EFFECT = Statement(
    _READ_BACK.values(
        effect=sa.bindparam("found"),
        cause=sa.bindparam("why"),
        origin=sa.bindparam("where"),
        closed_unix_s=sa.bindparam("closed"),
    )
)
_SKIP = Statement(
    sa.update(OPERATIONS)
    .where(_O.operation_id == sa.bindparam("id"), _O.closed_unix_s.is_(None), _O.reads == sa.bindparam("seen"))
    .values(closed_unix_s=sa.bindparam("now"), next_poll_unix_s=None)
)
_POSTPONE = Statement(
    sa.update(OPERATIONS)
    .where(_O.operation_id == sa.bindparam("id"), _O.closed_unix_s.is_(None), _O.reads == sa.bindparam("seen"))
    .values(next_poll_unix_s=sa.bindparam("poll"))
)


def due(connection: sa.Connection, *, now_unix_s: float, kinds: Sequence[str], limit: int) -> list[OpenOperation]:
    """Return operations of these kinds that are to be read now, the longest due first."""
    if not kinds:
        return []
    named = {f"kind_{place}": kind for place, kind in enumerate(kinds)}
    rows = _due(len(kinds)).rows(connection, {"now": now_unix_s, "limit": limit, **named})
    return [_operation(row) for row in rows]


@cache
def _due(kinds: int) -> Statement:
    """Return the statement for so many kinds."""
    return Statement(
        sa.select(OPERATIONS)
        .where(
            _O.next_poll_unix_s.is_not(None),
            _O.next_poll_unix_s <= sa.bindparam("now"),
            _O.kind.in_([sa.bindparam(f"kind_{place}") for place in range(kinds)]),
        )
        .order_by(_O.next_poll_unix_s)
        .limit(sa.bindparam("limit"))
    )


def record_verification(
    connection: sa.Connection,
    tally: Tally,
    operation: OpenOperation,
    result: VerificationResult,
    cause: Cause | None,
    *,
    now_unix_s: float,
    next_poll_unix_s: float | None,
) -> Settled | None:
    """Write one read-back, and settle the operation and its run's claim when it is final.

    Nothing is written when another settler has recorded a read-back since this one was due.
    """
    keys = {"id": operation.operation_id, "seen": operation.reads}
    row = _LOCK.row(connection, keys)
    claim = None if row is None else read_claim(row.claimed, row.claimed_operations)
    if row is None or claim is None:
        return None
    is_false = result is VerificationResult.NOT_LANDED and claim.covers(operation.intent.kind, operation.intent.key)
    origin = _origin(row) if is_false else None
    if not _write(connection, keys, result, cause, origin, now_unix_s=now_unix_s, next_poll_unix_s=next_poll_unix_s):
        return None
    name = operation.intent.kind
    if result in _ANSWERS:
        tally.stamp(catalogue.LEDGER_VERIFICATION_LAST, name, unix_s=now_unix_s)
    claim_effect = None
    if row.open_claimed is not None and (result in _FINAL or result is VerificationResult.SKIPPED):
        run_id, workflow = operation.intent.run_id, operation.intent.workflow
        claim_effect = settle_run(connection, tally, run_id, workflow, claim, now_unix_s=now_unix_s)
    if result not in _FINAL:
        return None
    settled = Settled(
        operation,
        claimed=claim.claimed,
        effect=Effect(result),
        cause=cause,
        origin=origin,
        false_success=is_false,
        claim_effect=claim_effect,
        seconds=max(0.0, now_unix_s - operation.polled_since_unix_s),
    )
    if is_false:
        _open_case(connection, settled, now_unix_s=now_unix_s)
    _count(tally, settled, claim, now_unix_s=now_unix_s)
    return settled


def postpone(connection: sa.Connection, operation: OpenOperation, *, next_poll_unix_s: float | None) -> None:
    """Move the next read of an operation without recording one, unless another settler has recorded one."""
    keys = {"id": operation.operation_id, "seen": operation.reads}
    _POSTPONE.change(connection, {**keys, "poll": next_poll_unix_s})


def _write(
    connection: sa.Connection,
    keys: dict[str, Any],
    result: VerificationResult,
    cause: Cause | None,
    origin: Origin | None,
    *,
    now_unix_s: float,
    next_poll_unix_s: float | None,
) -> bool:
    """Write the read-back and return whether it was still this one's turn."""
    row = {**keys, "now": now_unix_s}
    if result is VerificationResult.SKIPPED:
        return _SKIP.change(connection, row) == 1
    if result is VerificationResult.ERROR:
        return _WRITE.change(connection, {**row, "poll": next_poll_unix_s}) == 1
    is_final = result in _FINAL
    row |= {"found": result, "why": cause, "where": origin}
    row |= {"closed": now_unix_s if is_final else None, "poll": None if is_final else next_poll_unix_s}
    return _WRITE_EFFECT.change(connection, row) == 1


def _count(tally: Tally, settled: Settled, claim: Claim, *, now_unix_s: float) -> None:
    operation = settled.operation
    names = (operation.intent.workflow, operation.intent.kind)
    labels = (*names, operation.criticality)
    tally.count(catalogue.LEDGER_EFFECTS_SETTLED, *labels, settled.effect, settled.cause or "")
    if settled.false_success:
        tally.count(catalogue.LEDGER_FALSE_SUCCESSES, *labels, settled.cause or "", settled.origin or Origin.UNKNOWN)
        tally.stamp(catalogue.LEDGER_FALSE_SUCCESS_LAST, *labels, unix_s=now_unix_s)
    if claim.claimed is Claimed.NOT_DONE and settled.effect is Effect.LANDED:
        tally.count(catalogue.LEDGER_UNCLAIMED, *names)


def _open_case(connection: sa.Connection, settled: Settled, *, now_unix_s: float) -> None:
    operation = settled.operation
    facts = {
        "workflow": operation.intent.workflow,
        "operation": operation.intent.kind,
        "business_key": operation.intent.key,
        "claimed": settled.claimed,
        "cause": settled.cause,
        "origin": settled.origin,
    }
    evidence = Evidence(
        kind=CaseKind.FALSE_SUCCESS,
        subject=operation.operation_id,
        run_id=operation.intent.run_id,
        workflow=operation.intent.workflow,
        criticality=operation.criticality,
        route="",
        schema_version="",
        mode=None,
        facts=facts,
        record={},
        is_open=True,
        selection=None,
        violation=ViolationKind.FALSE_SUCCESS,
    )
    store_case(connection, evidence, now_unix_s=now_unix_s)


def _origin(row: Any) -> Origin:
    outcome = None if row.call_outcome is None else ToolOutcome(row.call_outcome)
    return origin_of(calls=row.calls, outcome=outcome, has_receipt=row.receipt is not None)


def _operation(row: Any) -> OpenOperation:
    receipt = None if row.receipt is None else Receipt(json.loads(row.receipt), row.receipt_id)
    values = json.loads(row.intent_values)
    intent = Intent(row.run_id, row.workflow, row.kind, row.business_key, values, row.traceparent)
    return OpenOperation(
        operation_id=row.operation_id,
        intent=intent,
        criticality=Criticality(row.criticality),
        receipt=receipt,
        reads=row.reads,
        written_unix_s=row.written_unix_s,
        polled_since_unix_s=row.polled_since_unix_s,
        deadline_unix_s=row.deadline_unix_s,
    )
