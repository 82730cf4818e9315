"""What follows a decision: reserved handoffs, latches, redacted evidence, reviews, violations and final evals."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ID = sa.String(255)
_WORD = sa.String(32)
_NAME = sa.String(128)
_LONG_NAME = sa.String(255)


def upgrade() -> None:
    """Create the tables, and give cases the columns of a handoff; every row of the first tables stays."""
    _create_registers()
    _extend_cases()
    _create_reviews()
    _create_handoffs()
    _create_evals()


def _create_registers() -> None:
    op.create_table("ledger_workflows", sa.Column("workflow", _NAME, primary_key=True))
    op.execute("INSERT INTO ledger_workflows (workflow) SELECT DISTINCT workflow FROM ledger_registrations")
    op.create_table(
        "ledger_routes",
        sa.Column("route", _LONG_NAME, primary_key=True),
        sa.Column("schema_version", _LONG_NAME, primary_key=True),
        sa.Column("mode", _WORD, primary_key=True),
        sa.Column("criticality", _WORD, nullable=False),
    )


def _extend_cases() -> None:
    for column in (
        sa.Column("workflow", _NAME),
        sa.Column("route", _LONG_NAME),
        sa.Column("schema_version", _LONG_NAME),
        sa.Column("mode", _WORD),
        sa.Column("ruling", _WORD),
        sa.Column("ruled_unix_s", sa.Double),
        sa.Column("expires_unix_s", sa.Double),
        sa.Column("record", sa.Text),
    ):
        op.add_column("ledger_cases", column)
    _index_part("ix_ledger_cases_resolved", "ledger_cases", "resolved_unix_s", "resolved_unix_s IS NOT NULL")


def _create_reviews() -> None:
    op.create_table(
        "ledger_reviews",
        sa.Column("case_id", sa.String(32), primary_key=True),
        sa.Column("selection", _WORD, nullable=False),
        sa.Column("drawn_unix_s", sa.Double, nullable=False),
        sa.Column("verdict", _WORD),
        sa.Column("reviewed_unix_s", sa.Double),
        sa.Column("note", sa.Text),
    )
    _index_part("ix_ledger_reviews_open", "ledger_reviews", "drawn_unix_s", "verdict IS NULL")
    op.create_table(
        "ledger_waits",
        sa.Column("wait_id", sa.String(32), primary_key=True),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
    )


def _create_handoffs() -> None:
    op.create_table(
        "ledger_handoffs",
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
    op.create_index("ix_ledger_handoffs_expires", "ledger_handoffs", ["expires_unix_s"])
    op.create_table(
        "ledger_latches",
        sa.Column("task", _ID, primary_key=True),
        sa.Column("route", _LONG_NAME, primary_key=True),
        sa.Column("stopped_unix_s", sa.Double, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )


def _create_evals() -> None:
    op.create_table(
        "ledger_violations",
        sa.Column("run_id", _ID, primary_key=True),
        sa.Column("kind", _WORD, primary_key=True),
        sa.Column("workflow", _NAME, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("unix_s", sa.Double, nullable=False),
    )
    op.create_table(
        "ledger_evals",
        sa.Column("run_id", _ID, primary_key=True),
        sa.Column("workflow", _NAME, nullable=False),
        sa.Column("result", _WORD, nullable=False),
        sa.Column("crossings", _WORD, nullable=False),
        sa.Column("violations", sa.Integer, nullable=False),
        sa.Column("unix_s", sa.Double, nullable=False),
    )


def _index_part(name: str, table: str, column: str, condition: str) -> None:
    op.create_index(name, table, [column], sqlite_where=sa.text(condition), postgresql_where=sa.text(condition))
