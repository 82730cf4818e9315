"""The tools of one run: what succeeded and failed, what is refused without being sent, and what nobody knows."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from handoffwatch.events import ToolBreakerMoved
from handoffwatch.tools.failure import Failure
from handoffwatch.vocabulary import FailureClass, ToolOutcome

if TYPE_CHECKING:
    from handoffwatch.recording.recorder import Recorder
    from handoffwatch.runtime.call import Call
    from handoffwatch.runtime.call_arguments import CallArguments

REMEMBERED_MAX: Final = 1_000
"""Rejected arguments that one run remembers, and calls that wait for their inner layer; the oldest go first."""

_Refused = tuple[str, str]
"""A tool, and the digest of the arguments that it has rejected."""


class RunTools:
    """What one run knows of its tool calls. Thread-safe, in memory only.

    Args:
        recorder: Is told of breakers that open and close.
        run_id: The run.
        breaker_after: Fatal answers in a row after which a tool is not called any more; 0 never.

    Attributes:
        succeeded: Calls that worked.
        failed: Calls that failed for good.
        has_ambiguous: Whether there was a call of which nobody knows whether it happened.
    """

    def __init__(self, recorder: Recorder, run_id: str, *, breaker_after: int) -> None:
        self._recorder = recorder
        self._run_id = run_id
        self._breaker_after = breaker_after
        self._lock = threading.Lock()
        self.succeeded = 0
        self.failed = 0
        self._failing: set[str] = set()
        self._fatal_in_row: dict[str, int] = {}
        self._open_breakers: dict[str, Failure] = {}
        self._rejected: dict[_Refused, Failure] = {}
        self.has_ambiguous = False
        self._undiscovered: set[str] = set()
        self._outer: dict[str, deque[Call]] = {}
        self._call_ids: set[str] = set()
        self._receivers: dict[int, tuple[int, object]] = {}
        self._numbers = itertools.count()
        self._has_ended = False

    def refusal(self, tool: str, digest: Callable[[], str]) -> Failure | None:
        """Return how a call fails without being sent: its tool's breaker is open, or these arguments were rejected.

        Args:
            tool: The tool.
            digest: Gives the digest of the arguments, empty when they have none; called only when it is needed.
        """
        broken = self._open_breakers.get(tool)
        if broken is not None or not self._rejected:
            return broken
        return self._rejected.get((tool, digest()))

    def ended(self, tool: str, outcome: ToolOutcome, failure: Failure | None, digest: Callable[[], str]) -> None:
        """Take note of an ended call: a later success of the same tool recovers its failure."""
        opened, said = False, ""
        if failure is not None and failure.failure_class is FailureClass.REJECTED:
            said = digest()  # arguments may be large: not within the lock
        with self._lock:
            if outcome is ToolOutcome.OK:
                self.succeeded += 1
                self._failing.discard(tool)
                self._undiscovered.discard(tool)
                self._fatal_in_row.pop(tool, None)
            elif outcome is ToolOutcome.FAILED and failure is not None:
                self.failed += 1
                self._failing.add(tool)
                opened = self._counts_as_broken(tool, failure)
                if said:
                    self._rejected[tool, said] = failure
                    if len(self._rejected) > REMEMBERED_MAX:
                        del self._rejected[next(iter(self._rejected))]
        if opened:
            self._recorder.emit(ToolBreakerMoved(self._run_id, tool, is_open=True))

    def _counts_as_broken(self, tool: str, failure: Failure) -> bool:
        """Return whether this failure opens the breaker of its tool."""
        if failure.failure_class is not FailureClass.FATAL:
            self._fatal_in_row.pop(tool, None)
            return False
        if tool in self._undiscovered or self._has_ended:
            return False  # listing the tools may be tried again, and after the end nobody is kept from anything
        row = self._fatal_in_row[tool] = self._fatal_in_row.get(tool, 0) + 1
        if row != self._breaker_after or tool in self._open_breakers:
            return False
        self._open_breakers[tool] = failure
        return True

    def close_breakers(self) -> None:
        """Close what is open, because the run has ended."""
        with self._lock:
            self._has_ended = True
            tools, self._open_breakers = list(self._open_breakers), {}
        for tool in tools:
            self._recorder.emit(ToolBreakerMoved(self._run_id, tool, is_open=False))

    def note_id(self, call_id: str) -> bool:
        """Take note of the id that a framework gave a call, and return whether it gave it to another one of the run."""
        with self._lock:
            known = call_id in self._call_ids
            if len(self._call_ids) < REMEMBERED_MAX:
                self._call_ids.add(call_id)
        return known

    def announce(self, call: Call) -> None:
        """Take note of a call that an outer layer has begun: a decorated function in it may go on with it."""
        with self._lock:
            waiting = self._outer.setdefault(call.tool.name, deque(maxlen=REMEMBERED_MAX))
            while waiting and not waiting[0].is_untold:
                waiting.popleft()
            waiting.append(call)

    def join(self, tool: str, arguments: CallArguments) -> Call | None:
        """Return the call that an outer layer has begun for these arguments, whose attempts nobody tells; else None.

        Where none was told these arguments, it is the oldest of the tool: a framework may tell them before it has
        filled them up.
        """
        if not self._outer:
            return None
        with self._lock:
            waiting = [call for call in self._outer.get(tool, ()) if call.is_untold]
        if not waiting:
            return None
        told = [call for call in waiting if call.arguments is not None and call.arguments.said == arguments.said]
        untold = [call for call in waiting if call.arguments is None]
        for call in (*told, *untold, *waiting):
            with self._lock:
                try:
                    self._outer[tool].remove(call)
                except ValueError:  # another thread was faster
                    continue
            return call
        return None

    def number_of(self, receiver: object) -> int:
        """Return a number of an object whose methods are tools, which it alone has in this run.

        So many objects are remembered; one more has another number each time.
        """
        with self._lock:
            number, _ = self._receivers.get(id(receiver), (next(self._numbers), receiver))
            if len(self._receivers) < REMEMBERED_MAX:
                self._receivers[id(receiver)] = (number, receiver)  # it is held, so that no other one gets its id
        return number

    def note_undiscovered(self, tool: str) -> None:
        """Take note that the tools could not be listed."""
        with self._lock:
            self._undiscovered.add(tool)

    @property
    def has_undiscovered(self) -> bool:
        """Whether the tools could not be listed, and have not been since."""
        return bool(self._undiscovered)

    @property
    def has_unrecovered_failure(self) -> bool:
        """Whether a tool failed and no later call of it succeeded, or nobody knows whether a call happened."""
        return bool(self._failing) or self.has_ambiguous
