"""The ledger's tables. Times are Unix seconds; JSON is text, so that every database stores it alike.

What is open is a row whose closing column is NULL, and a partial index over these rows alone: asking for open things
costs the same however many are settled.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

REVISION: Final = "0002"
"""The newest revision under `migrations/versions`."""

VERSION_TABLE: Final = "ledger_revision"
"""Where the database says which revision it has."""

METADATA: Final = sa.MetaData()

_ID = sa.String(255)
_WORD = sa.String(32)
_NAME = sa.String(128)
_LONG_NAME = sa.String(255)

META: Final = sa.Table(
    "ledger_meta",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("ledger_id", sa.String(32), nullable=False),
    sa.Column("created_unix_s", sa.Double, nullable=False),
)

REGISTRATIONS: Final = sa.Table(
    "ledger_registrations",
    METADATA,
    sa.Column("workflow", _NAME, primary_key=True),
    sa.Column("operation", _NAME, primary_key=True),
    sa.Column("criticality", _WORD, nullable=False),
)

WORKFLOWS: Final = sa.Table("ledger_workflows", METADATA, sa.Column("workflow", _NAME, primary_key=True))

ROUTES: Final = sa.Table(
    "ledger_routes",
    METADATA,
    sa.Column("route", _LONG_NAME, primary_key=True),
    sa.Column("schema_version", _LONG_NAME, primary_key=True),
    sa.Column("mode", _WORD, primary_key=True),
    sa.Column("criticality", _WORD, nullable=False),
)

RUNS: Final = sa.Table(
    "ledger_runs",
    METADATA,
    sa.Column("run_id", _ID, primary_key=True),
    sa.Column("workflow", _NAME, nullable=False),
    sa.Column("claimed", _WORD),
    sa.Column("claimed_operations", sa.Text),
    sa.Column("claimed_unix_s", sa.Double),
    sa.Column("open_claimed", _WORD),
    sa.Column("claim_effect", _WORD),
    sa.Column("settled_unix_s", sa.Double),
)
"""`open_claimed` repeats a claim of done or partial until that is settled; `claimed` NULL is a run in progress."""

OPERATIONS: Final = sa.Table(
    "ledger_operations",
    METADATA,
    sa.Column("operation_id", sa.String(32), primary_key=True),
    sa.Column("run_id", _ID, nullable=False),
    sa.Column("workflow", _NAME, nullable=False),
    sa.Column("kind", _NAME, nullable=False),
    sa.Column("business_key", _ID, nullable=False),
    sa.Column("criticality", _WORD, nullable=False),
    sa.Column("intent_values", sa.Text, nullable=False),
    sa.Column("traceparent", sa.String(64), nullable=False),
    sa.Column("is_expected", sa.Boolean, nullable=False),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("call_outcome", _WORD),
    sa.Column("receipt", sa.Text),
    sa.Column("receipt_id", _ID),
    sa.Column("effect", _WORD, nullable=False),
    sa.Column("cause", _WORD),
    sa.Column("origin", _WORD),
    sa.Column("reads", sa.Integer, nullable=False),
    sa.Column("opened_unix_s", sa.Double, nullable=False),
    sa.Column("written_unix_s", sa.Double, nullable=False),
    sa.Column("polled_since_unix_s", sa.Double),
    sa.Column("next_poll_unix_s", sa.Double),
    sa.Column("deadline_unix_s", sa.Double, nullable=False),
    sa.Column("read_unix_s", sa.Double),
    sa.Column("closed_unix_s", sa.Double),
    sa.UniqueConstraint("run_id", "kind", "business_key", name="ledger_operations_identity"),
)
"""Closed with effect landed or not_landed is settled; closed with another effect was never read (not sampled)."""

CASES: Final = sa.Table(
    "ledger_cases",
    METADATA,
    sa.Column("case_id", sa.String(32), primary_key=True),
    sa.Column("kind", _WORD, nullable=False),
    sa.Column("subject", _ID, nullable=False),
    sa.Column("criticality", _WORD, nullable=False),
    sa.Column("run_id", _ID, nullable=False),
    sa.Column("facts", sa.Text, nullable=False),
    sa.Column("opened_unix_s", sa.Double, nullable=False),
    sa.Column("resolved_unix_s", sa.Double),
    sa.Column("note", sa.Text),
    sa.Column("workflow", _NAME),
    sa.Column("route", _LONG_NAME),
    sa.Column("schema_version", _LONG_NAME),
    sa.Column("mode", _WORD),
    sa.Column("ruling", _WORD),
    sa.Column("ruled_unix_s", sa.Double),
    sa.Column("expires_unix_s", sa.Double),
    sa.Column("record", sa.Text),
    sa.UniqueConstraint("kind", "subject", name="ledger_cases_identity"),
)
"""`record` is large and stands last: SQLite reads what stands before it without reading it."""

REVIEWS: Final = sa.Table(
    "ledger_reviews",
    METADATA,
    sa.Column("case_id", sa.String(32), primary_key=True),
    sa.Column("selection", _WORD, nullable=False),
    sa.Column("drawn_unix_s", sa.Double, nullable=False),
    sa.Column("verdict", _WORD),
    sa.Column("reviewed_unix_s", sa.Double),
    sa.Column("note", sa.Text),
)

WAITS: Final = sa.Table(
    "ledger_waits",
    METADATA,
    sa.Column("wait_id", sa.String(32), primary_key=True),
    sa.Column("kind", _WORD, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
)
"""What a person did and nobody has observed yet; whoever observes a row deletes it."""

HANDOFFS: Final = sa.Table(
    "ledger_handoffs",
    METADATA,
    sa.Column("task", _ID, primary_key=True),
    sa.Column("route", _LONG_NAME, primary_key=True),
    sa.Column("handoff_id", _ID, primary_key=True),
    sa.Column("holder", _ID, nullable=False),
    sa.Column("digest", _ID, nullable=False),
    sa.Column("base", sa.BigInteger),
    sa.Column("state", _WORD, nullable=False),
    sa.Column("opened_unix_s", sa.Double, nullable=False),
    sa.Column("expires_unix_s", sa.Double, nullable=False),
    sa.Column("place", sa.Integer, nullable=False),
)
"""`state` is open or consumed; `expires_unix_s` is when the lease runs out, or when it ended with the consumption.
`place` counts the handoffs of a task in the order in which they came."""

LATCHES: Final = sa.Table(
    "ledger_latches",
    METADATA,
    sa.Column("task", _ID, primary_key=True),
    sa.Column("route", _LONG_NAME, primary_key=True),
    sa.Column("stopped_unix_s", sa.Double, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)

VIOLATIONS: Final = sa.Table(
    "ledger_violations",
    METADATA,
    sa.Column("run_id", _ID, primary_key=True),
    sa.Column("kind", _WORD, primary_key=True),
    sa.Column("workflow", _NAME, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("unix_s", sa.Double, nullable=False),
)
"""`unix_s` is the time of the last one."""

EVALS: Final = sa.Table(
    "ledger_evals",
    METADATA,
    sa.Column("run_id", _ID, primary_key=True),
    sa.Column("workflow", _NAME, nullable=False),
    sa.Column("result", _WORD, nullable=False),
    sa.Column("crossings", _WORD, nullable=False),
    sa.Column("violations", sa.Integer, nullable=False),
    sa.Column("unix_s", sa.Double, nullable=False),
)

COUNTERS: Final = sa.Table(
    "ledger_counters",
    METADATA,
    sa.Column("metric", _NAME, primary_key=True),
    sa.Column("labels", sa.String(1024), primary_key=True),
    sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("value", sa.BigInteger, nullable=False),
)

TIMESTAMPS: Final = sa.Table(
    "ledger_timestamps",
    METADATA,
    sa.Column("metric", _NAME, primary_key=True),
    sa.Column("labels", sa.String(1024), primary_key=True),
    sa.Column("unix_s", sa.Double, nullable=False),
)


def _index_part(name: str, *columns: sa.Column[object], condition: sa.ColumnElement[bool]) -> None:
    sa.Index(name, *columns, sqlite_where=condition, postgresql_where=condition)


_index_part("ix_ledger_runs_open", RUNS.c.workflow, RUNS.c.open_claimed, condition=RUNS.c.open_claimed.is_not(None))
_index_part(
    "ix_ledger_operations_open",
    OPERATIONS.c.kind,
    OPERATIONS.c.effect,
    OPERATIONS.c.opened_unix_s,
    OPERATIONS.c.deadline_unix_s,
    condition=OPERATIONS.c.closed_unix_s.is_(None),
)
_index_part(
    "ix_ledger_operations_due", OPERATIONS.c.next_poll_unix_s, condition=OPERATIONS.c.next_poll_unix_s.is_not(None)
)
_index_part(
    "ix_ledger_cases_open",
    CASES.c.kind,
    CASES.c.criticality,
    CASES.c.opened_unix_s,
    condition=CASES.c.resolved_unix_s.is_(None),
)
_index_part("ix_ledger_cases_resolved", CASES.c.resolved_unix_s, condition=CASES.c.resolved_unix_s.is_not(None))
_index_part("ix_ledger_reviews_open", REVIEWS.c.drawn_unix_s, condition=REVIEWS.c.verdict.is_(None))
sa.Index("ix_ledger_handoffs_expires", HANDOFFS.c.expires_unix_s)
