"""Bringing a database to the newest revision; Alembic is imported only when there is something to do."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from handoffwatch.errors import LedgerUnavailable
from handoffwatch.ledger.schema import META, REVISION, VERSION_TABLE

_SCRIPTS = "handoffwatch.ledger:migrations"
_READ_REVISION = sa.text(f"SELECT version_num FROM {VERSION_TABLE}")


def is_at_head(connection: sa.Connection) -> bool:
    """Return whether the database has the newest revision."""
    return _revision(connection) == REVISION


def migrate(connection: sa.Connection, *, created_unix_s: float) -> None:
    """Bring the database to the newest revision, and give a new ledger its random id.

    Safe when several processes do it at once: the transaction holds the write lock, and looks again once it has it.

    Args:
        connection: A transaction that holds the write lock from its start.
        created_unix_s: The time that a new ledger notes as its beginning.

    Raises:
        LedgerUnavailable: A newer version of the product has written the database.
    """
    if is_at_head(connection):
        return
    _upgrade(connection)
    if connection.execute(sa.select(META.c.id)).first() is None:
        row = {"id": 1, "ledger_id": uuid.uuid4().hex, "created_unix_s": created_unix_s}
        connection.execute(sa.insert(META), row)


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(_READ_REVISION).scalar_one_or_none()


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", _SCRIPTS)
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise LedgerUnavailable(
            f"ledger: schema: must be at revision {REVISION} or older, got an unknown revision",
            hint="upgrade handoffwatch, or point ledger.url to another database",
        ) from error
