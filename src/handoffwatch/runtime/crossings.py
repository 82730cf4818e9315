"""The handoffs of one run: attempts that share a key, and what is delivered, waiting or stopped."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from handoffwatch.decision import Decision, Finding
from handoffwatch.events import HandoffLabels
from handoffwatch.handoffs.settings import HandoffSettings
from handoffwatch.values.json_text import decode
from handoffwatch.vocabulary import Action, HandoffOutcome, Reaction, RepairResult, Verdict

FINDINGS_SHOWN_MAX: Final = 10

Key = tuple[str, str, str]
"""Source, target, and what tells one handoff from another on that route."""


@dataclass(slots=True, eq=False)
class Crossing:
    """One handoff in progress.

    Attributes:
        key: What its attempts share.
        labels: The labels of its last attempt.
        handoff_id: The id of its last attempt.
        attempts: Attempts so far.
    """

    key: Key
    labels: HandoffLabels = ("", "", "", "")
    handoff_id: str = ""
    attempts: int = 0


class Crossings:
    """The open handoffs of a run, in memory only. Thread-safe; once drained, nothing is let through any more."""

    def __init__(self, settings: HandoffSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._to_repair: dict[Key, list[Crossing]] = {}
        self._open: set[Crossing] = set()
        self._repairs = 0
        self._drained = False

    def begin(self, key: Key) -> Crossing:
        """Return the crossing of a new attempt: a repair when the last attempt under this key was blocked."""
        with self._lock:
            waiting = self._to_repair.get(key)
            crossing = waiting.pop() if waiting else Crossing(key)
            crossing.attempts += 1
            return crossing

    def judge(self, crossing: Crossing, decision: Decision) -> tuple[Action, RepairResult | None]:
        """Return what follows a decision, and what a repair led to; keeps the crossing where its next step finds it."""
        crossing.handoff_id = decision.handoff_id
        repaired = crossing.attempts > 1
        with self._lock:
            if self._drained:
                return Action.STOP, None
            if decision.allowed:
                self._open.add(crossing)
                return Action.DELIVER, RepairResult.REPAIRED if repaired else None
            if self._may_repair(crossing, decision):
                self._repairs += 1
                self._to_repair.setdefault(crossing.key, []).append(crossing)
                return Action.REPAIR, RepairResult.STILL_BAD if repaired else None
        held = decision.verdict is Verdict.HELD
        return Action.HOLD if held else Action.STOP, RepairResult.EXHAUSTED if repaired else None

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
        with self._lock:
            was_open = crossing in self._open
            self._open.discard(crossing)
            return was_open

    def abandon(self, crossing: Crossing) -> bool:
        """Take a blocked crossing out that waits for its repair; False when it waits no more."""
        with self._lock:
            waiting = self._to_repair.get(crossing.key, [])
            if crossing not in waiting:
                return False
            waiting.remove(crossing)
            return True

    def drain(self) -> list[tuple[Crossing, HandoffOutcome]]:
        """Take out everything that is open, with the outcome it has when nothing more will happen."""
        with self._lock:
            self._drained = True
            left = [(crossing, HandoffOutcome.NOT_DELIVERED) for crossing in self._open]
            left += [(crossing, HandoffOutcome.STOPPED) for waiting in self._to_repair.values() for crossing in waiting]
            self._open.clear()
            self._to_repair.clear()
            return left

    def _may_repair(self, crossing: Crossing, decision: Decision) -> bool:
        return (
            decision.retryable
            and crossing.attempts <= self._settings.repairs_max
            and self._repairs < self._settings.repairs_per_run_max
        )


def identity_of(raw: object, path: tuple[str, ...]) -> str:
    """Return the text at the identity path of a handoff, or an empty text when it cannot be read there."""
    value: Any = raw
    if isinstance(raw, str | bytes):
        try:
            value = decode(raw)
        except ValueError:
            return ""
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part)
        elif part in getattr(type(value), "__pydantic_fields__", ()):
            value = getattr(value, part)
        else:
            return ""
    return value if isinstance(value, str) else ""


def repair_text(decision: Decision, *, repairs_max: int, is_last: bool) -> str:
    """Return the request to the sender: each field, its rule and what would be right, and how many tries are left.

    Built anew for each attempt and bounded; it never quotes a value.
    """
    blocking = [finding for finding in decision.findings if finding.reaction is Reaction.BLOCK]
    lines = [f"The handoff {decision.route} was not accepted (attempt {decision.attempt} of {repairs_max + 1})."]
    lines += [_line(finding) for finding in blocking[:FINDINGS_SHOWN_MAX]]
    if len(blocking) > FINDINGS_SHOWN_MAX:
        lines.append(f"- and {len(blocking) - FINDINGS_SHOWN_MAX} more of the kind")
    lines.append("Send the whole handoff again with these fields mended. Do not repeat any tool call.")
    if is_last:
        lines.append("This is the last try.")
    return "\n".join(lines)


def _line(finding: Finding) -> str:
    return f"- {finding.code}: {finding.sentence}"
