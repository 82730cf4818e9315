"""Handoffs on durable routes: reserved before an attempt, consumed once, and stopped by a latch for task and route."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from handoffwatch.ledger.facts import Admission
from handoffwatch.ledger.schema import HANDOFFS, LATCHES
from handoffwatch.ledger.statement import Statement, insert_new

_H = HANDOFFS.c
_IS_THIS = sa.and_(_H.route == sa.bindparam("route"), _H.handoff_id == sa.bindparam("handoff_id"))
_RESERVE = Statement(
    sa.text(
        "INSERT INTO ledger_handoffs"
        " (task, route, handoff_id, holder, digest, base, state, opened_unix_s, expires_unix_s, place)"
        " VALUES (:task, :route, :handoff_id, :holder, :digest, :base, 'open', :now, :expires,"
        " (SELECT coalesce(max(place), 0) + 1 FROM ledger_handoffs WHERE task = :task))"
        " ON CONFLICT (task, route, handoff_id) DO UPDATE SET holder = excluded.holder, digest = excluded.digest,"
        " base = excluded.base, expires_unix_s = excluded.expires_unix_s"
        " WHERE ledger_handoffs.state = 'open' AND"
        " (ledger_handoffs.holder = excluded.holder OR ledger_handoffs.expires_unix_s <= excluded.opened_unix_s)"
    )
)
_KNOWN = Statement(
    sa.select(
        sa.func.sum(sa.case((_IS_THIS, 0), else_=1)).label("hops"),
        sa.func.sum(sa.case((sa.and_(_IS_THIS, _H.state == "consumed"), 1), else_=0)).label("consumed"),
        sa.func.max(sa.case((_IS_THIS, None), else_=_H.base)).label("newest_base"),
        sa.exists()
        .where(LATCHES.c.task == sa.bindparam("task"), LATCHES.c.route == sa.bindparam("route"))
        .label("is_stopped"),
    ).where(_H.task == sa.bindparam("task"))
)
_ORDER = Statement(
    sa.select(_H.route, _H.digest).where(_H.task == sa.bindparam("task"), sa.not_(_IS_THIS)).order_by(_H.place)
)
_OWN = " WHERE task = :task AND route = :route AND handoff_id = :handoff_id AND holder = :holder AND state = 'open'"
_CONSUME = Statement(sa.text(f"UPDATE ledger_handoffs SET state = 'consumed', expires_unix_s = :now{_OWN}"))
_FREE = Statement(sa.text(f"DELETE FROM ledger_handoffs{_OWN}"))
_LATCH = Statement(insert_new(LATCHES))
_LIFT = sa.delete(LATCHES).where(LATCHES.c.task == sa.bindparam("task"))


class HandoffKey(NamedTuple):
    """What names a handoff: an id is one only within its task and route."""

    task: str
    route: str
    handoff_id: str


def open_handoff(
    connection: sa.Connection,
    key: HandoffKey,
    *,
    holder: str,
    digest: str,
    base: int | None,
    lease_s: float,
    now_unix_s: float,
) -> Admission:
    """Reserve a handoff unless it is consumed or taken, and return what is known of its task.

    One statement reads and reserves, so that of two who do it at once the second sees what the first has written.
    """
    row = {"holder": holder, "base": base, "now": now_unix_s, "expires": now_unix_s + lease_s}
    keys = {**key._asdict(), "digest": digest}
    is_reserved = _RESERVE.change(connection, {**keys, **row}) == 1
    (known,) = _KNOWN.rows(connection, keys)
    return Admission(
        hops=int(known.hops),
        repeats=_repeats(connection, key, digest) if known.hops else 0,
        is_stopped=bool(known.is_stopped),
        is_consumed=bool(known.consumed),
        is_taken=not is_reserved and not known.consumed,
        newest_base=known.newest_base,
    )


def _repeats(connection: sa.Connection, key: HandoffKey, digest: str) -> int:
    """Return how often this content came to the route, with the task on another one in between.

    Many handoffs of one content side by side are no loop: what comes back is. A task has as many rows as its limit of
    hops lets through.
    """
    found, last = 0, ""
    for row in _ORDER.rows(connection, key._asdict()):
        found += row.route == key.route and row.digest == digest and last != row.route
        last = row.route
    return found


def close_handoff(
    connection: sa.Connection, key: HandoffKey, *, holder: str, accepted: bool, now_unix_s: float
) -> None:
    """Consume the holder's handoff when it was accepted, else give it free; another holder's is left alone."""
    own = {**key._asdict(), "holder": holder}
    if accepted:
        _CONSUME.change(connection, {**own, "now": now_unix_s})
    else:
        _FREE.change(connection, own)


def stop_route(connection: sa.Connection, task: str, route: str, *, reason: str, now_unix_s: float) -> None:
    """Latch a route for a task; a latch that is there keeps its time and reason."""
    _LATCH.change(connection, {"task": task, "route": route, "stopped_unix_s": now_unix_s, "reason": reason})


def reopen_route(connection: sa.Connection, task: str, route: str | None) -> int:
    """Lift the latch of a route for a task, or all of the task's, and return how many there were."""
    statement = _LIFT if route is None else _LIFT.where(LATCHES.c.route == route)
    return connection.execute(statement, {"task": task}).rowcount
