"""The connection to the ledger's database, and its two kinds of transaction."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from handoffwatch.clock import Clock
from handoffwatch.errors import LedgerUnavailable
from handoffwatch.ledger.forks import GATE
from handoffwatch.ledger.migrate import is_at_head, migrate
from handoffwatch.ledger.settings import LedgerSettings

FileId = tuple[int, int]
"""Device and inode of a file."""

_READ: Final = "BEGIN"
_WRITE: Final = "BEGIN IMMEDIATE"
_LOG: Final = "-wal"
_FILE_MODE: Final = 0o600
_WAL_WAIT_S: Final = 0.01


class Database:
    """Transactions on the ledger; thread-safe, and safe to use after a fork, which waits for transactions to end.

    The file and its tables are made when the first transaction begins. A failure then is not remembered: the next
    transaction tries again. From then on the file is watched: another file in its place, such as a restored backup, is
    used from the next transaction on, and one that was taken away is missed, never made again.

    Args:
        settings: Where the database is.
        clock: Times the waits.
        must_exist: Refuse a file that is not there instead of making it.
    """

    def __init__(self, settings: LedgerSettings, *, clock: Clock, must_exist: bool = False) -> None:
        url = sa.make_url(settings.url)
        self._path = os.path.abspath(str(url.database))
        self._busy_timeout_s = settings.busy_timeout_s
        self._clock = clock
        self._must_exist = must_exist
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._file: FileId | None = None
        self._log: FileId | None = None
        self._was_made = False
        self._engine = sa.create_engine(url, hide_parameters=True, creator=self._connect)
        sa.event.listen(self._engine, "connect", self._prepare_connection)

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Open a transaction that writes; it commits at the end and rolls back on any exception.

        Raises:
            LedgerUnavailable: The database cannot be opened, locked or written.
        """
        with _translated("written"), GATE.transaction():
            self._get_ready()
            with self._begun(_WRITE) as connection:
                yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open a transaction that reads one snapshot.

        Raises:
            LedgerUnavailable: The database cannot be opened or read.
        """
        with _translated("read"), GATE.transaction():
            self._get_ready()
            with self._begun(_READ) as connection:
                yield connection

    def close(self) -> None:
        """Close all idle connections; those of a parent process are only forgotten."""
        with GATE.transaction(), self._lock:
            self._file = self._log = None
            self._engine.dispose(close=self._pid == os.getpid())

    @property
    def file(self) -> FileId | None:
        """The file that transactions use; None before the first one and after `close`."""
        return self._file

    def is_in_place(self) -> bool:
        """Return whether the file that transactions use still stands where it was."""
        try:
            return self._file is not None and self._file == self._find()
        except OSError:
            return False

    def _get_ready(self) -> None:
        if self._pid == os.getpid() and self.is_in_place():
            return
        with self._lock:
            if self._pid != os.getpid():
                self._engine.dispose(close=False)
                self._pid = os.getpid()
            if not self._was_made:
                self._create_file()
            found = self._find()
            if found is None:
                raise LedgerUnavailable(
                    "ledger: database: must stay where it is, got no file",
                    hint="put the file back, or start the process again to begin a new ledger",
                )
            if found != self._file:
                self._refuse_foreign_log()
                self._engine.dispose()
                self._file = self._log = None  # closed, so that their inodes may come back as those of other files
                self._get_newest()
                self._file, self._log, self._was_made = found, self._find(_LOG), True

    def _refuse_foreign_log(self) -> None:
        """Refuse a replaced file beside which the write-ahead log of its predecessor still lies: SQLite would mix them.

        Source: sqlite.org, "How To Corrupt An SQLite Database File", "Mispairing database files and hot journals".
        """
        if self._file is not None and self._log is not None and self._log == self._find(_LOG):
            raise LedgerUnavailable(
                "ledger: database: must not lie beside the write-ahead log of another file",
                hint="move the files ending in -wal and -shm away, which belong to the file before it",
            )

    def _get_newest(self) -> None:
        """Bring the tables to the newest revision."""
        with self._begun(_READ) as connection:
            is_newest = is_at_head(connection)
        if not is_newest:
            with self._begun(_WRITE) as connection:
                migrate(connection, created_unix_s=self._clock.wall_s())

    def _find(self, suffix: str = "") -> FileId | None:
        """Return which file is there now; a copy that is moved into its place is another one."""
        try:
            found = os.stat(self._path + suffix)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    @contextmanager
    def _begun(self, begin: str) -> Iterator[sa.Connection]:
        """Begin as SQLite must be told: a writer takes its lock at once, so that it never fails halfway."""
        with self._engine.begin() as connection:
            connection.connection.cursor().execute(begin)
            yield connection

    def _create_file(self) -> None:
        """Create the file for its owner alone; SQLite gives its side files the same mode."""
        if self._must_exist and not os.path.exists(self._path):
            raise LedgerUnavailable(
                "ledger: database: must exist, got no file",
                hint="name the settings of the process that writes the ledger, and start in its folder",
            )
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE_MODE))

    def _connect(self) -> sqlite3.Connection:
        """Open the file that is there; SQLite alone would make an empty one in the place of one that is not."""
        return sqlite3.connect(
            f"file://{quote(self._path)}?mode=rw", uri=True, timeout=self._busy_timeout_s, check_same_thread=False
        )

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
