"""What has ended in memory and is not written to the ledger yet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from handoffwatch.ledger.facts import Evidence

UNSTORED_MAX: Final = 1_000
"""What one run keeps for the ledger while nobody writes; the oldest is dropped first, and counted."""


class Closing(NamedTuple):
    """The end of a handoff, or the refusal of an answer.

    Attributes:
        task: What limits are counted by.
        route: The route.
        handoff_id: The id under which the ledger holds it.
        holder: Who holds it there; what another one holds is left alone.
        accepted: Whether its receiver was started.
        stop_reason: Why its route is latched for its task; None when it is not.
        is_durable: Whether the ledger counts it.
        evidence: What is kept of it.
    """

    task: str
    route: str
    handoff_id: str
    holder: str
    accepted: bool
    stop_reason: str | None
    is_durable: bool
    evidence: Evidence | None


class Unstored:
    """The endings that wait for the ledger, the oldest first. Thread-safe.

    Args:
        dropped: Is told how many were dropped.
    """

    def __init__(self, dropped: Callable[[int], None]) -> None:
        self._dropped = dropped
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: deque[Closing] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def routes(self) -> list[str]:
        """The routes of what waits, each once."""
        with self._lock:
            return list(dict.fromkeys(closing.route for closing in self._waiting))

    def add(self, closing: Closing) -> None:
        """Let an ending wait."""
        with self._lock:
            self._waiting.append(closing)
            is_over = len(self._waiting) > UNSTORED_MAX
            if is_over:
                self._waiting.popleft()
        if is_over:
            self._dropped(1)

    def write(self, write: Callable[[Closing], None]) -> None:
        """Write what waits, one after another; each waits until it is written, whoever is interrupted meanwhile.

        Raises:
            Exception: Whatever `write` raises; what was not written goes on waiting.
        """
        with self._writing:
            while self._waiting:
                with self._lock:
                    closing = self._waiting[0]
                write(closing)
                with self._lock:
                    if self._waiting and self._waiting[0] is closing:
                        self._waiting.popleft()
