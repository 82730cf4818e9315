"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.String(255)
_WORD = sa.String(32)
_NAME = sa.String(128)


def upgrade() -> None:
    """Create every table and the indexes over what is open."""
    _create_registers()
    _create_runs()
    _create_operations()
    _create_cases()
    _create_numbers()


def _create_registers() -> None:
    op.create_table(
        "ledger_meta",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("ledger_id", sa.String(32), nullable=False),
        sa.Column("created_unix_s", sa.Double, nullable=False),
    )
    op.create_table(
        "ledger_registrations",
        sa.Column("workflow", _NAME, primary_key=True),
        sa.Column("operation", _NAME, primary_key=True),
        sa.Column("criticality", _WORD, nullable=False),
    )


def _create_runs() -> None:
    op.create_table(
        "ledger_runs",
        sa.Column("run_id", _ID, primary_key=True),
        sa.Column("workflow", _NAME, nullable=False),
        sa.Column("claimed", _WORD),
        sa.Column("claimed_operations", sa.Text),
        sa.Column("claimed_unix_s", sa.Double),
        sa.Column("open_claimed", _WORD),
        sa.Column("claim_effect", _WORD),
        sa.Column("settled_unix_s", sa.Double),
    )
    _index_open("ix_ledger_runs_open", "ledger_runs", ["workflow", "open_claimed"], "open_claimed IS NOT NULL")


def _create_operations() -> None:
    op.create_table(
        "ledger_operations",
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
    _index_open(
        "ix_ledger_operations_open",
        "ledger_operations",
        ["kind", "effect", "opened_unix_s", "deadline_unix_s"],
        "closed_unix_s IS NULL",
    )
    _index_open("ix_ledger_operations_due", "ledger_operations", ["next_poll_unix_s"], "next_poll_unix_s IS NOT NULL")


def _create_cases() -> None:
    op.create_table(
        "ledger_cases",
        sa.Column("case_id", sa.String(32), primary_key=True),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("subject", _ID, nullable=False),
        sa.Column("criticality", _WORD, nullable=False),
        sa.Column("run_id", _ID, nullable=False),
        sa.Column("facts", sa.Text, nullable=False),
        sa.Column("opened_unix_s", sa.Double, nullable=False),
        sa.Column("resolved_unix_s", sa.Double),
        sa.Column("note", sa.Text),
        sa.UniqueConstraint("kind", "subject", name="ledger_cases_identity"),
    )
    _index_open(
        "ix_ledger_cases_open", "ledger_cases", ["kind", "criticality", "opened_unix_s"], "resolved_unix_s IS NULL"
    )


def _create_numbers() -> None:
    op.create_table(
        "ledger_counters",
        sa.Column("metric", _NAME, primary_key=True),
        sa.Column("labels", sa.String(1024), primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "ledger_timestamps",
        sa.Column("metric", _NAME, primary_key=True),
        sa.Column("labels", sa.String(1024), primary_key=True),
        sa.Column("unix_s", sa.Double, nullable=False),
    )


def _index_open(name: str, table: str, columns: list[str], condition: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(condition), postgresql_where=sa.text(condition))
