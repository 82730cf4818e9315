"""What every part of the ledger stands on: the database, the clock, and what is registered."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from handoffwatch.clock import Clock
from handoffwatch.ledger.database import Database, FileId
from handoffwatch.ledger.registered import read_registered, write_registered
from handoffwatch.ledger.registry import DeclaredRoute, DeclaredWorkflow, Registry
from handoffwatch.ledger.settings import LedgerSettings
from handoffwatch.outcomes import OperationKind, SettlementPolicy


class Store:
    """A ledger without its steps: opened with the first transaction, and closed.

    Attributes:
        settings: Where the database is, and how long things are kept.
        clock: Gives the times that are stored.
    """

    def __init__(
        self, settings: LedgerSettings, *, policy: SettlementPolicy, clock: Clock, must_exist: bool = False
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._database = Database(settings, clock=clock, must_exist=must_exist)
        self._policy = policy
        self._registry = Registry()
        self._registering = threading.Lock()
        self._written_to: FileId | None = None

    def register(
        self,
        workflows: Iterable[DeclaredWorkflow],
        kinds: Iterable[OperationKind],
        routes: Iterable[DeclaredRoute] = (),
    ) -> None:
        """Register workflows, operations and routes, so that every exporter shows their series at 0.

        Args:
            workflows: Workflows with the names of their operations, if they have some.
            kinds: The operations; may be registered again, with the same or with more.
            routes: Routes with their schema versions; may be registered again.

        Raises:
            RegistrationError: A workflow names an operation that is not among `kinds`.
            LedgerUnavailable: The rows could not be written; the next write tries again.
        """
        with self._registering:
            self._registry.add(workflows, kinds, self._policy)
            self._registry.add_routes(routes)
            self._written_to = None
        self._write_registrations()

    def close(self) -> None:
        """Close the connections; the ledger may be used again."""
        self._database.close()

    def _write_registrations(self) -> None:
        """Write the registration rows that the database's file does not hold yet."""
        if self._written_to is not None and self._written_to == self._database.file and self._database.is_in_place():
            return
        with self._registering:
            wanted = self._registry.rows()
        with self._database.read() as connection:
            file = self._database.file
            missing = wanted.without(read_registered(connection))
        if not missing.is_empty:
            with self._database.write() as connection:
                write_registered(connection, missing)
        with self._registering:
            if wanted == self._registry.rows():
                self._written_to = file
