"""The payments service's own database: the refunds that exist, and a record of what the service did (its deeds)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS refunds (
    refund_id TEXT PRIMARY KEY,
    order_id TEXT NOT NULL,
    amount_cents INTEGER NOT NULL,
    status TEXT NOT NULL,
    idempotency_key TEXT UNIQUE,
    turns_into TEXT,
    turns_unix_s REAL
);
CREATE INDEX IF NOT EXISTS refunds_by_order ON refunds (order_id);
CREATE TABLE IF NOT EXISTS deeds (
    deed_id INTEGER PRIMARY KEY,
    caller TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    order_id TEXT NOT NULL,
    code TEXT NOT NULL,
    answer TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS deeds_by_order ON deeds (order_id, endpoint);
"""

GET_ORDER: Final = "GET /orders/{order_id}"
GET_POLICIES: Final = "GET /policies"
POST_REFUND: Final = "POST /refunds"
GET_REFUND: Final = "GET /refunds/{refund_id}"
GET_REFUNDS: Final = "GET /refunds"

HELD: Final = "held"
"""The code of a deed whose answer was held back until the caller had hung up."""


@dataclass(frozen=True, slots=True)
class Refund:
    """One refund as it is stored. `turns_into` is what becomes of a pending one at `turns_unix_s`."""

    refund_id: str
    order_id: str
    amount_cents: int
    status: str
    idempotency_key: str | None = None
    turns_into: str | None = None
    turns_unix_s: float | None = None

    def public(self) -> dict[str, object]:
        """Return what the service tells about it."""
        return {
            "status": self.status,
            "refund_id": self.refund_id,
            "order_id": self.order_id,
            "amount_cents": self.amount_cents,
        }


@dataclass(frozen=True, slots=True)
class Deed:
    """One request as the service answered it.

    Attributes:
        caller: agents or verifier, by their credentials; `nobody` without.
        endpoint: Method and path template.
        order_id: The order it was about; empty when the request did not tell.
        code: The HTTP status, or `held`.
        answer: What the body said: a refund's status, `nothing` when no refund was there, or empty.
    """

    caller: str
    endpoint: str
    order_id: str
    code: str
    answer: str


class Books:
    """Reads and writes the database. One instance per process; not for several threads.

    Args:
        path: The SQLite file; created when absent.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what happens inside as one, or nothing of it."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def mature(self, now_unix_s: float) -> None:
        """Turn every pending refund that is due into what it was going to become."""
        self._connection.execute(
            "UPDATE refunds SET status = turns_into, turns_into = NULL, turns_unix_s = NULL WHERE turns_unix_s <= ?",
            (now_unix_s,),
        )

    def add(self, refund: Refund) -> None:
        """Store a new refund."""
        self._connection.execute(
            "INSERT INTO refunds VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                refund.refund_id,
                refund.order_id,
                refund.amount_cents,
                refund.status,
                refund.idempotency_key,
                refund.turns_into,
                refund.turns_unix_s,
            ),
        )

    def by_id(self, refund_id: str) -> Refund | None:
        """Return a refund by its id."""
        return self._one("refund_id = ?", refund_id)

    def by_key(self, idempotency_key: str) -> Refund | None:
        """Return the refund that was made under an idempotency key."""
        return self._one("idempotency_key = ?", idempotency_key)

    def by_order(self, order_id: str) -> list[Refund]:
        """Return all refunds of an order, in the order of their ids."""
        return self._refunds("order_id = ?", order_id)

    def note(self, deed: Deed) -> None:
        """Record a deed."""
        self._connection.execute(
            "INSERT INTO deeds (caller, endpoint, order_id, code, answer) VALUES (?, ?, ?, ?, ?)",
            (deed.caller, deed.endpoint, deed.order_id, deed.code, deed.answer),
        )

    def count(self, order_id: str, endpoint: str, code: str) -> int:
        """Return how often an endpoint answered a code for an order."""
        query = "SELECT count(*) FROM deeds WHERE order_id = ? AND endpoint = ? AND code = ?"
        return int(self._connection.execute(query, (order_id, endpoint, code)).fetchone()[0])

    def _one(self, condition: str, value: str) -> Refund | None:
        found = self._refunds(condition, value)
        return found[0] if found else None

    def _refunds(self, condition: str, value: str) -> list[Refund]:
        rows = self._connection.execute(f"SELECT * FROM refunds WHERE {condition} ORDER BY refund_id", (value,))
        return [Refund(*row) for row in rows]


def read_books(path: Path) -> tuple[list[Refund], list[Deed]]:
    """Return every refund and every deed of a service that may still be running, in the order of their making."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        refunds = [Refund(*row) for row in connection.execute("SELECT * FROM refunds ORDER BY rowid")]
        query = "SELECT caller, endpoint, order_id, code, answer FROM deeds ORDER BY deed_id"
        return refunds, [Deed(*row) for row in connection.execute(query)]
