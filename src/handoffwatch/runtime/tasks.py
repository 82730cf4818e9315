"""The tasks of one process: what their handoffs come to, so that limits hold over runs and threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from handoffwatch.handoffs.context import TaskFacts
from handoffwatch.runtime.crossings import Crossing

TASKS_MAX: Final = 10_000
"""Tasks that are remembered; the one that was quiet for longest is forgotten first, unless it is in the middle."""

SEEN_MAX: Final = 10_000
"""Accepted ids and contents that are remembered of one task, the oldest forgotten first: in shadow nothing ends it."""

_LOOKED_AT_MAX: Final = 50


@dataclass(slots=True)
class _Task:
    """What is known of one task.

    Attributes:
        hops: Handoffs that were let through and are counted here alone.
        durable_hops: Those that the ledger counts, as far as this process has seen.
        contents: How often each content came to a route anew, by route and fingerprint.
        last_route: Where the last handoff was let through.
        open: The crossing that holds an id, by route and id.
        consumed: Accepted ids by route.
        stopped: Routes that are latched.
        replaced_version: The newest version that an accepted handoff has replaced.
    """

    hops: int = 0
    durable_hops: int = 0
    contents: dict[tuple[str, int], int] = field(default_factory=dict)
    last_route: str = ""
    open: dict[tuple[str, str], Crossing] = field(default_factory=dict)
    consumed: dict[str, dict[str, None]] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    replaced_version: int | None = None


class Tasks:
    """The tasks of a Watch, in memory only. Thread-safe; asking and reserving are one step."""

    def __init__(self, *, tasks_max: int = TASKS_MAX) -> None:
        self._max = tasks_max
        self._lock = threading.Lock()
        self._tasks: OrderedDict[str, _Task] = OrderedDict()

    def enter(self, crossing: Crossing, *, is_new: bool) -> TaskFacts:
        """Return what is known before an attempt of this crossing, and hold its id on its route.

        A latch stops what `is_new` to its task; a repair that was asked for before it goes on. The repeats are not
        among the facts: the content of a handoff is read only once it was found fit; see `repeats`.
        """
        place = (crossing.route, crossing.sent_id)
        with self._lock:
            task = crossing.memory = self._task(crossing.task)
            held = task.open.get(place) if crossing.sent_id else None
            is_consumed = crossing.sent_id in task.consumed.get(crossing.route, ())
            if crossing.sent_id and held is None and not is_consumed:
                self._release(task, crossing)
                task.open[place] = crossing
                crossing.held_id = crossing.sent_id
            hops = task.hops + task.durable_hops
            is_open = held is not None and held is not crossing
            is_stopped = is_new and crossing.route in task.stopped
            replaced = None if crossing.replaces is None else _replaced(task)
        return TaskFacts(hops, 0, is_open, is_consumed, is_stopped, replaced)

    def repeats(self, crossing: Crossing) -> int:
        """Return how often what this crossing says came to its route, with the task on another one in between.

        Many handoffs of one content side by side are no loop: what comes back is.
        """
        with self._lock:
            return self._task(crossing.task).contents.get((crossing.route, crossing.fingerprint), 0)

    def learn(self, crossing: Crossing, hops: int) -> int:
        """Take note of the hops that the ledger counts for the task, and return all that are known."""
        with self._lock:
            task = self._task(crossing.task)
            task.durable_hops = max(task.durable_hops, hops)
            return task.hops + task.durable_hops

    def let_through(self, crossing: Crossing) -> None:
        """Count a handoff that goes to its receiver."""
        with self._lock:
            task = crossing.memory or self._task(crossing.task)
            crossing.is_through = True
            if crossing.reserved is None:
                task.hops += 1
            else:
                task.durable_hops += 1
            if crossing.fingerprint and crossing.route != task.last_route:
                said = (crossing.route, crossing.fingerprint)
                task.contents[said] = task.contents.get(said, 0) + 1
                _bound(task.contents)
            task.last_route = crossing.route

    def take_back(self, crossing: Crossing) -> None:
        """Give back the hop of a handoff that goes on in another process, where it is counted."""
        with self._lock:
            task = crossing.memory or self._task(crossing.task)
            if crossing.reserved is None:
                task.hops -= crossing.is_through
            else:
                task.durable_hops -= crossing.is_through

    def leave(self, crossing: Crossing, *, consumed: bool, stops: bool) -> None:
        """Let go of a crossing that has ended; `stops` latches its route for its task."""
        with self._lock:
            task = crossing.memory or self._task(crossing.task)
            self._release(task, crossing)
            if consumed and crossing.sent_id:
                consumed_ids = task.consumed.setdefault(crossing.route, {})
                consumed_ids[crossing.sent_id] = None
                _bound(consumed_ids)
            if consumed and crossing.replaces is not None:
                task.replaced_version = max(crossing.replaces, task.replaced_version or crossing.replaces)
            if stops:
                task.stopped.add(crossing.route)

    def reopen(self, task_id: str, route: str | None) -> int:
        """Lift the latch of one route of a task, or of all, and return how many were latched."""
        with self._lock:
            task = self._tasks.get(task_id)
            lifted = set() if task is None else {name for name in task.stopped if route in (None, name)}
            if task is not None:
                task.stopped -= lifted
            return len(lifted)

    def _task(self, name: str) -> _Task:
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = _Task()
            if len(self._tasks) > self._max:
                self._forget()
        else:
            self._tasks.move_to_end(name)
        return task

    def _forget(self) -> None:
        """Forget the task that was quiet for longest; of a few that are in the middle of a handoff, the next."""
        for _ in range(_LOOKED_AT_MAX):
            name, task = self._tasks.popitem(last=False)
            if not task.open:
                return
            self._tasks[name] = task
        self._tasks.popitem(last=False)

    @staticmethod
    def _release(task: _Task, crossing: Crossing) -> None:
        if crossing.held_id:
            task.open.pop((crossing.route, crossing.held_id), None)
            crossing.held_id = ""


def _replaced(task: _Task) -> int | None:
    """Return the newest version that a handoff of the task has replaced, or is about to."""
    versions = [other.replaces for other in task.open.values() if other.is_through]
    return max((version for version in (task.replaced_version, *versions) if version is not None), default=None)


def _bound(seen: dict[Any, Any]) -> None:
    if len(seen) > SEEN_MAX:
        del seen[next(iter(seen))]
