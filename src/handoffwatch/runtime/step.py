"""What a primitive tells the program to do next."""

from __future__ import annotations

from typing import Final, NamedTuple

from handoffwatch.decision import Decision, Finding
from handoffwatch.errors import HELD_TEXT, STOPPED_TEXT
from handoffwatch.runtime.crossings import Crossing
from handoffwatch.vocabulary import Action, FailureClass


class Step(NamedTuple):
    """The next action, and what it needs.

    Attributes:
        action: What to do; each primitive documents the few that it returns.
        text: Fixed text: for the model (a repair request, a failed tool) or for the user (an answer, a refusal).
        wait_s: Seconds to wait before a retry; of a call that is given up, those that its service asked for.
        decision: The watchdog's decision, for handoffs.
        handoff_id: The id of the handoff.
        crossing: Which handoff `arrived` and `ended` are about, also when two share an id.
        failure_class: How a tool call failed for good.
        target: The agent to start instead, when a handoff is diverted.
        sent: The handoff as it came.
        case_id: The case that waits for a person, when a handoff is held.
        diverged: The findings about a state that did not survive its way over a boundary.
    """

    action: Action
    text: str = ""
    wait_s: float = 0.0
    decision: Decision | None = None
    handoff_id: str = ""
    crossing: Crossing | None = None
    failure_class: FailureClass | None = None
    target: str = ""
    sent: object = None
    case_id: str = ""
    diverged: tuple[Finding, ...] = ()

    @property
    def for_user(self) -> str:
        """What the user may be told: an answer, a refusal, or that something stopped or waits; else empty.

        The guard lets it through.
        """
        if self.action in (Action.ANSWER, Action.REFUSE):
            return self.text
        if self.action in (Action.STOP, Action.NEEDS_HUMAN):
            return STOPPED_TEXT
        return HELD_TEXT if self.action is Action.HOLD else ""


GO_ON: Final = Step(Action.OK)
"""Nothing is to be done: the tool may be called, or has worked."""
