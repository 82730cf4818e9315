"""The connection to the ledger's database, and its two kinds of transaction."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from handoffwatch.clock import Clock
from handoffwatch.errors import LedgerUnavailable
from handoffwatch.ledger.migrate import is_at_head, migrate
from handoffwatch.ledger.settings import LedgerSettings

_READ: Final = "BEGIN"
_WRITE: Final = "BEGIN IMMEDIATE"
_FILE_MODE: Final = 0o600
_WAL_WAIT_S: Final = 0.01


class Database:
    """Transactions on the ledger; thread-safe, and safe to use after a fork.

    The file and its tables are made when the first transaction begins. A failure then is not remembered: the next
    transaction tries again.

    Args:
        settings: Where the database is.
        clock: Times the waits.
        must_exist: Refuse a file that is not there instead of making it.
    """

    def __init__(self, settings: LedgerSettings, *, clock: Clock, must_exist: bool = False) -> None:
        self._url = sa.make_url(settings.url)
        self._busy_timeout_s = settings.busy_timeout_s
        self._clock = clock
        self._must_exist = must_exist
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._is_ready = False
        self._engine = sa.create_engine(
            self._url,
            hide_parameters=True,
            connect_args={"timeout": settings.busy_timeout_s},
        )
        sa.event.listen(self._engine, "connect", self._prepare_connection)

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Open a transaction that writes; it commits at the end and rolls back on any exception.

        Raises:
            LedgerUnavailable: The database cannot be opened, locked or written.
        """
        with _translated("written"):
            self._get_ready()
            with self._begun(_WRITE) as connection:
                yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open a transaction that reads one snapshot.

        Raises:
            LedgerUnavailable: The database cannot be opened or read.
        """
        with _translated("read"):
            self._get_ready()
            with self._begun(_READ) as connection:
                yield connection

    def close(self) -> None:
        """Close all idle connections."""
        self._engine.dispose()

    def _get_ready(self) -> None:
        if self._is_ready and self._pid == os.getpid():
            return
        with self._lock:
            if self._pid != os.getpid():
                self._engine.dispose(close=False)
                self._pid = os.getpid()
            if not self._is_ready:
                self._create_file()
                with self._begun(_READ) as connection:
                    is_newest = is_at_head(connection)
                if not is_newest:
                    with self._begun(_WRITE) as connection:
                        migrate(connection, created_unix_s=self._clock.wall_s())
                self._is_ready = True

    @contextmanager
    def _begun(self, begin: str) -> Iterator[sa.Connection]:
        """Begin as SQLite must be told: a writer takes its lock at once, so that it never fails halfway."""
        with self._engine.begin() as connection:
            connection.connection.cursor().execute(begin)
            yield connection

    def _create_file(self) -> None:
        """Create the file for its owner alone; SQLite gives its side files the same mode."""
        path = Path(str(self._url.database))
        if self._must_exist and not path.exists():
            raise LedgerUnavailable(
                "ledger: database: must exist, got no file",
                hint="name the settings of the process that writes the ledger, and start in its folder",
            )
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE_MODE))

    def _prepare_connection(self, connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        self._turn_on_wal(connection)
        connection.execute("PRAGMA synchronous=FULL")

    def _turn_on_wal(self, connection: sqlite3.Connection) -> None:
        """Turn the write-ahead log on; SQLite does not wait for a lock here, so two first users take turns."""
        give_up_s = self._clock.monotonic_s() + self._busy_timeout_s
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError:
                if self._clock.monotonic_s() >= give_up_s:
                    raise
                self._clock.sleep(_WAL_WAIT_S)
            else:
                return


@contextmanager
def _translated(done: str) -> Iterator[Any]:
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise LedgerUnavailable(
            f"ledger: database: must be {done}, got {type(error).__name__}",
            hint="check ledger.url, the rights of its directory, and the free space",
        ) from error
