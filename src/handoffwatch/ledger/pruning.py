"""Pruning: what is over for long goes, a bounded batch at a time; what is open stays."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from handoffwatch.ledger.schema import CASES, EVALS, HANDOFFS, LATCHES, REVIEWS, VIOLATIONS

BATCH: Final = 500
"""The most rows of a kind that one transaction takes, so that no writer waits long for it."""

_BEFORE = sa.bindparam("before", type_=sa.Double)
_CASES = (
    sa.select(CASES.c.case_id)
    .outerjoin(REVIEWS, REVIEWS.c.case_id == CASES.c.case_id)
    .where(
        CASES.c.resolved_unix_s < _BEFORE,
        sa.or_(REVIEWS.c.case_id.is_(None), REVIEWS.c.verdict.is_not(None), REVIEWS.c.drawn_unix_s < _BEFORE),
    )
    .order_by(CASES.c.resolved_unix_s)
    .limit(BATCH)
)
_DELETE_REVIEWS = sa.delete(REVIEWS).where(REVIEWS.c.case_id.in_(sa.bindparam("ids", expanding=True)))
_DELETE_CASES = sa.delete(CASES).where(CASES.c.case_id.in_(sa.bindparam("ids", expanding=True)))


def _delete_batch(table: sa.Table, old: sa.Select[*tuple[object, ...]]) -> sa.Delete:
    """Return what deletes the rows that `old` names by the table's key."""
    key = [table.c[column.name] for column in old.selected_columns]
    return sa.delete(table).where(sa.tuple_(*key).in_(old.limit(BATCH)))


_DELETE_VIOLATIONS = _delete_batch(
    VIOLATIONS,
    sa.select(VIOLATIONS.c.run_id, VIOLATIONS.c.kind)
    .join(EVALS, EVALS.c.run_id == VIOLATIONS.c.run_id)
    .where(EVALS.c.unix_s < _BEFORE),
)
_DELETE_HANDOFFS = _delete_batch(
    HANDOFFS,
    sa.select(HANDOFFS.c.task, HANDOFFS.c.route, HANDOFFS.c.handoff_id)
    .where(HANDOFFS.c.expires_unix_s < _BEFORE)
    .order_by(HANDOFFS.c.expires_unix_s),
)
_DELETE_LATCHES = _delete_batch(
    LATCHES, sa.select(LATCHES.c.task, LATCHES.c.route).where(LATCHES.c.stopped_unix_s < _BEFORE)
)


def prune(connection: sa.Connection, *, cases_before_unix_s: float, handoffs_before_unix_s: float) -> int:
    """Remove up to `BATCH` rows of each kind, and return how many were removed; 0 when nothing is left to remove."""
    cases = {"before": cases_before_unix_s}
    handoffs = {"before": handoffs_before_unix_s}
    ids = {"ids": list(connection.execute(_CASES, cases).scalars())}
    connection.execute(_DELETE_REVIEWS, ids)
    removed = connection.execute(_DELETE_CASES, ids).rowcount
    removed += connection.execute(_DELETE_VIOLATIONS, cases).rowcount
    removed += connection.execute(_DELETE_HANDOFFS, handoffs).rowcount
    removed += connection.execute(_DELETE_LATCHES, handoffs).rowcount
    return removed
