"""How a route conducts its handoffs: what follows a block, who approves, what is kept, and who looks twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handoffwatch.errors import RegistrationError
from handoffwatch.values.names import is_name
from handoffwatch.vocabulary import Action, HoldThen, Keep

if TYPE_CHECKING:
    from handoffwatch.handoffs.critique import Critic, CriticPolicy

HOLD_S_MAX: Final = 30 * 86_400
_WHEN_BLOCKED: Final = (Action.STOP, Action.HOLD, Action.DIVERT)


@dataclass(frozen=True, slots=True)
class Conduct:
    """What a route does beside judging.

    Attributes:
        durable: Whether limits and duplicates are kept in the ledger, for all processes and over restarts.
        keep: Which handoffs leave evidence.
        when_blocked: What follows a block that is not repaired: stop, hold or divert.
        fallback: The agent that takes over when a block is diverted.
        failure: The agent that takes valid handoffs of status failed.
        approval: Whether a person must approve what the contract allows.
        hold_s: How long a held handoff waits for a person.
        hold_then: What follows when nobody has decided in time.
        critic: Looks a second time when there is a risk; None is nobody.
        critique: When the critic is asked, and what it may cost.
    """

    durable: bool = False
    keep: Keep = Keep.BLOCKED
    when_blocked: Action = Action.STOP
    fallback: str | None = None
    failure: str | None = None
    approval: bool = False
    hold_s: float = 900.0
    hold_then: HoldThen = HoldThen.STOP
    critic: Critic | None = None
    critique: CriticPolicy | None = None

    def check(self, route: str) -> None:
        """Refuse what does not fit together.

        Raises:
            RegistrationError: A value is outside its range, or something is diverted to nobody.
        """
        for name, agent in (("fallback", self.fallback), ("failure", self.failure)):
            if agent is not None and not is_name(agent):
                raise RegistrationError(
                    f"route {route}: {name}: must be an agent's name of 1 to 100 printable characters",
                    hint=f'{name}="human_desk"',
                )
        if self.when_blocked not in _WHEN_BLOCKED:
            raise RegistrationError(
                f"route {route}: when_blocked: must be one of stop, hold, divert", hint='when_blocked="stop"'
            )
        diverts = Action.DIVERT in (self.when_blocked, Action(self.hold_then))
        if diverts and self.fallback is None:
            raise RegistrationError(
                f"route {route}: fallback: must name the agent to which handoffs are diverted",
                hint='fallback="human_desk"',
            )
        if not 0 <= self.hold_s <= HOLD_S_MAX:
            raise RegistrationError(
                f"route {route}: hold_s: must be 0 to {HOLD_S_MAX} seconds, got {self.hold_s}",
                hint="0 raises HandoffHeld at once; the same handoff is delivered once it is approved",
            )


PLAIN: Final = Conduct()
"""A route that asks for nothing of this."""
