"""Keeping forks and transactions apart: a child must not inherit a transaction that it can never end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

FORK_WAIT_S_MAX: Final = 10.0
"""The longest that a fork waits for transactions: twice the time that a write waits for another process by default."""


class ForkGate:
    """Lets any number of transactions in, or one fork; thread-safe.

    SQLite keeps in the memory of a process which of its threads hold which lock. A child that is forked meanwhile
    inherits the note without the thread, and waits for that lock for ever.

    Args:
        wait_s_max: Seconds after which a fork goes ahead, whatever is going on.
    """

    def __init__(self, *, wait_s_max: float) -> None:
        self._wait_s_max = wait_s_max
        self._open()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Be inside; a transaction that begins while a fork waits comes after it."""
        with self._changed:
            while self._forks:
                self._changed.wait()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until nobody is inside, and let nobody in."""
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: self._inside == 0, self._wait_s_max)

    def after_fork_in_parent(self) -> None:
        """Let transactions in again."""
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Begin anew: the other threads are not in the child."""
        self._open()

    def _open(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._forks = 0


GATE: Final = ForkGate(wait_s_max=FORK_WAIT_S_MAX)
"""The gate of this process, since a fork copies all its ledgers at once."""

os.register_at_fork(
    before=GATE.before_fork, after_in_parent=GATE.after_fork_in_parent, after_in_child=GATE.after_fork_in_child
)
