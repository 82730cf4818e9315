"""Waits: how long each thing waited for a person, until one process has observed it."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from handoffwatch.ledger.facts import Wait
from handoffwatch.ledger.schema import WAITS
from handoffwatch.ledger.statement import Statement, insert_new
from handoffwatch.vocabulary import ReviewKind

_ADD = Statement(insert_new(WAITS))
_ANY = Statement(sa.select(WAITS.c.wait_id).limit(1))
_TAKE = sa.select(WAITS).limit(sa.bindparam("limit")).with_for_update(skip_locked=True)
_DELETE = sa.delete(WAITS).where(WAITS.c.wait_id.in_(sa.bindparam("ids", expanding=True)))


def add_wait(connection: sa.Connection, kind: ReviewKind, *, since_unix_s: float, now_unix_s: float) -> None:
    """Write that a person did now what could be done since then."""
    row = {"wait_id": uuid.uuid4().hex, "kind": kind, "seconds": max(0.0, now_unix_s - since_unix_s)}
    _ADD.change(connection, row)


def has_waits(connection: sa.Connection) -> bool:
    """Return whether there is something to take."""
    return bool(_ANY.rows(connection, {}))


def take_waits(connection: sa.Connection, limit: int) -> list[Wait]:
    """Delete up to `limit` waits and return them; those that another process takes now are left to it."""
    rows = connection.execute(_TAKE, {"limit": limit}).all()
    connection.execute(_DELETE, {"ids": [row.wait_id for row in rows]})
    return [Wait(ReviewKind(row.kind), row.seconds) for row in rows]
