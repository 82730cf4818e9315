"""The handoffs of one run: attempts that share a key, and what is delivered, waiting or stopped."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from handoffwatch.decision import Decision, Finding
from handoffwatch.events import HandoffLabels
from handoffwatch.handoffs.routes import Route
from handoffwatch.handoffs.settings import HandoffSettings
from handoffwatch.vocabulary import Action, HandoffOutcome, RepairResult, Verdict

Key = tuple[str, str, str]
"""Source, target, and what tells one handoff from another on that route."""


class Crossing:
    """One handoff in progress. What is seldom set stands on the class until it is: one is made for each handoff.

    Attributes:
        key: What its attempts share.
        task: The task that its last attempt belongs to; the run where no task is known.
        route: Its route, as the host names the agents.
        attempts: Attempts so far.
        registered: Its route as registered; None for an unknown one.
        memory: What is known of its task; None until it has entered it.
        labels: The labels of its last attempt.
        handoff_id: The id of its last attempt.
        sent_id: The id that the last attempt came with; empty when it had none.
        held_id: The id under which its task holds it; empty when it does not.
        fingerprint: What its last attempt says, as a number; 0 when that was not read.
        subject: What a person was asked about; empty when nobody was.
        replaces: The version of the state that it replaces once accepted; None when it replaces nothing.
        is_through: Whether it was let through.
        has_arrived: Whether it stood before the first action of its receiver, or of who takes it over.
        holder: What the ledger knows its hold on an id by; empty when it never asked for one.
        reserved: The task and the id under which the ledger holds it; None when it does not.
        diverted_to: `fallback` or `failure` when another agent takes it over; else empty.
        left: Its state as it left and the attempt that it was, until it has arrived; None when it crosses no boundary.
        sealed_id: The id under which it came from another process; empty when it came from none.
        diverged: What was found on its way that a policy blocks.
        is_quarantined: Whether a case waits because of that.
        is_drawn: Whether it leaves evidence even when all is well; None until that was drawn.
        tried: What is kept of its attempts, already redacted.
        kept_since_s: When the first of these was judged, on the monotonic clock.
        answers: Digests of the answers that were blocked.
    """

    registered: Route | None = None
    memory: Any = None
    labels: HandoffLabels = ("", "", "", "")
    handoff_id: str = ""
    sent_id: str = ""
    held_id: str = ""
    fingerprint: int = 0
    subject: str = ""
    replaces: int | None = None
    is_through: bool = False
    has_arrived: bool = False
    holder: str = ""
    reserved: tuple[str, str] | None = None
    diverted_to: str = ""
    left: Any = None
    sealed_id: str = ""
    diverged: tuple[Finding, ...] = ()
    is_quarantined: bool = False
    is_drawn: bool | None = None
    tried: tuple[Mapping[str, Any], ...] = ()
    kept_since_s: float = 0.0
    answers: frozenset[str] = frozenset()

    def __init__(self, key: Key, task: str) -> None:
        self.key = key
        self.task = task
        self.route = f"{key[0]}->{key[1]}"
        self.attempts = 0


class Crossings:
    """The open handoffs of a run, in memory only. Thread-safe; once drained, nothing is let through any more."""

    def __init__(self, settings: HandoffSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._to_repair: dict[Key, list[Crossing]] = {}
        self._open: set[Crossing] = set()
        self._held: set[Crossing] = set()
        self._repairs = 0
        self._drained = False

    def begin(self, key: Key, *, task: str) -> Crossing:
        """Return the crossing of a new attempt: a repair when the last attempt under this key was blocked."""
        with self._lock:
            waiting = self._to_repair.get(key)
            if waiting:
                crossing = waiting.pop()
                crossing.left, crossing.diverged, crossing.is_quarantined = None, (), False
            else:
                crossing = Crossing(key, task)
            crossing.attempts += 1
            return crossing

    def upcoming(self, key: Key) -> int:
        """Return the number of the attempt that would begin now under a key."""
        with self._lock:
            waiting = self._to_repair.get(key)
            return waiting[-1].attempts + 1 if waiting else 1

    def may_repair(self, crossing: Crossing, decision: Decision) -> bool:
        """Return whether the sender may answer once more: it can, and neither its own nor the run's budget is spent."""
        return (
            decision.retryable
            and crossing.attempts <= self._settings.repairs_max
            and self._repairs < self._settings.repairs_per_run_max
        )

    def judge(self, crossing: Crossing, decision: Decision, *, otherwise: Action) -> tuple[Action, RepairResult | None]:
        """Return what follows a decision, and what a repair led to; keeps the crossing where its next step finds it.

        One that is to be repaired is kept by `wait_for_repair` alone: from then on another attempt may go on with it.

        Args:
            crossing: The handoff.
            decision: About its last attempt.
            otherwise: What follows a block that is not repaired: stop, hold or divert.
        """
        repaired = crossing.attempts > 1
        with self._lock:
            if self._drained:
                return Action.STOP, None
            if decision.allowed:
                self._open.add(crossing)
                return Action.DELIVER, RepairResult.REPAIRED if repaired else None
            if decision.verdict is Verdict.HELD:
                self._held.add(crossing)
                return Action.HOLD, RepairResult.REPAIRED if repaired else None
            if self.may_repair(crossing, decision):
                self._repairs += 1
                return Action.REPAIR, RepairResult.STILL_BAD if repaired else None
            if otherwise is Action.HOLD:
                self._held.add(crossing)
        return otherwise, RepairResult.EXHAUSTED if repaired else None

    def wait_for_repair(self, crossing: Crossing) -> bool:
        """Let a blocked crossing wait for its repair; False when the run has ended, so that none will come."""
        with self._lock:
            if not self._drained:
                self._to_repair.setdefault(crossing.key, []).append(crossing)
            return not self._drained

    def is_last_try(self, crossing: Crossing) -> bool:
        """Return whether a further block would end the handoff: its own repairs or those of the run are used up."""
        return crossing.attempts >= self._settings.repairs_max or self._repairs >= self._settings.repairs_per_run_max

    def find(self, handoff: str) -> Crossing | None:
        """Return the one open crossing with this handoff id, else the one to a target of this name, else None."""
        with self._lock:
            opened = list(self._open)
        for matches in (
            [crossing for crossing in opened if crossing.handoff_id == handoff],
            [crossing for crossing in opened if crossing.key[1] == handoff],
        ):
            if matches:
                return matches[0] if len(matches) == 1 else None
        return None

    def is_open(self, crossing: Crossing) -> bool:
        """Return whether a crossing was let through and has not ended."""
        return crossing in self._open

    def take(self, crossing: Crossing) -> bool:
        """Take an open crossing out; False when it had ended before."""
        return self._take(self._open, crossing)

    def take_leaving(self, crossing: Crossing) -> bool:
        """Take out an open crossing that goes on in another process; False when it has ended or arrived here, or was
        diverted."""
        with self._lock:
            leaves = crossing in self._open and not crossing.has_arrived and not crossing.diverted_to
            if leaves:
                self._open.discard(crossing)
            return leaves

    def take_held(self, crossing: Crossing) -> bool:
        """Take a held crossing out, because a person or the time has decided; False when it is held no more."""
        return self._take(self._held, crossing)

    def open(self, crossing: Crossing) -> None:
        """Let a crossing through, to its receiver or to the agent it is diverted to."""
        with self._lock:
            if not self._drained:
                self._open.add(crossing)

    def hold(self, crossing: Crossing) -> None:
        """Let a crossing wait for a person."""
        with self._lock:
            if not self._drained:
                self._held.add(crossing)

    def abandon(self, crossing: Crossing) -> bool:
        """Take a blocked crossing out that waits for its repair; False when it waits no more."""
        with self._lock:
            waiting = self._to_repair.get(crossing.key, [])
            if crossing not in waiting:
                return False
            waiting.remove(crossing)
            return True

    def drain(self) -> list[tuple[Crossing, HandoffOutcome]]:
        """Take out everything that is open, with the outcome it has when nothing more is told of it."""
        with self._lock:
            self._drained = True
            left = [(crossing, _outcome_unended(crossing)) for crossing in self._open]
            left += [(crossing, HandoffOutcome.STOPPED) for waiting in self._to_repair.values() for crossing in waiting]
            left += [(crossing, HandoffOutcome.STOPPED) for crossing in self._held]
            for pile in (self._open, self._held, self._to_repair):
                pile.clear()
            return left

    def _take(self, pile: set[Crossing], crossing: Crossing) -> bool:
        with self._lock:
            was_there = crossing in pile
            pile.discard(crossing)
            return was_there


def _outcome_unended(crossing: Crossing) -> HandoffOutcome:
    """Return how an open handoff ends when nobody says that its receiver has: one that was started may have acted."""
    if not crossing.has_arrived:
        return HandoffOutcome.NOT_DELIVERED
    return HandoffOutcome.DIVERTED if crossing.diverted_to else HandoffOutcome.DELIVERED
