"""What Northwind breaks: a seeded plan that says for every run, by its index, which fault it gets.

A handoff fault also has a stubbornness: how often the sender repeats it before it gets the handoff right.

The agents and the payments service both read this plan, each for its own part, so no fault travels on a hidden channel.
Every 40 runs in a row hold each fault exactly as often as `STORIES` says, in a seeded order:

| fault | part | runs in 40 | what must follow |
|---|---|---|---|
| none | | 19 | the refund lands and is claimed |
| empty_payload | handoff | 1 | `missing_field` |
| empty_results | handoff | 2 | `empty_results` |
| number_as_text | handoff | 2 | `type_mismatch` |
| foreign_task | handoff | 1 | `foreign_task`, final |
| stale_context | handoff | 1 | `stale_context` |
| completed_without_result | handoff | 1 | `missing_result` |
| wrong_target | handoff | 1 | `route_mismatch`, final |
| lost_constraints | handoff | 1 | `missing_field`; an exporter repeats its fault, so no repair helps |
| silent_success | payment | 2 | answers 200 and writes nothing: a false success, lost in the tool |
| credentials_lost | payment | 1 | 401 at the refund: the agent says so |
| throttled | payment | 2 | 429 once, then it works |
| timeout_after_commit | payment | 1 | the refund exists and nobody was told: a person must look |
| pending_then_failed | payment | 1 | a false success that shows later |
| pending_then_landed | payment | 1 | lands late |
| hiding_wrapper | agent | 1 | 401 at the refund, told as "Refund submitted.": a false success, lost in the wrapper |
| claimed_intention | agent | 1 | no call was made: a false success, lost in the model |
| reckless_answer | agent | 1 | 401 everywhere, and still an answer: the guard refuses |
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

FIRST_ORDER: Final = 40_000
"""The order of run 0; run n refunds order `FIRST_ORDER + n`."""

CONTEXT_VERSION: Final = 2
"""The context version of every run; a stale handoff rests on the one before."""


class HandoffFault(StrEnum):
    """How the state is damaged on its way from one agent to the next."""

    EMPTY_PAYLOAD = "empty_payload"
    EMPTY_RESULTS = "empty_results"
    NUMBER_AS_TEXT = "number_as_text"
    FOREIGN_TASK = "foreign_task"
    STALE_CONTEXT = "stale_context"
    COMPLETED_WITHOUT_RESULT = "completed_without_result"
    WRONG_TARGET = "wrong_target"
    LOST_CONSTRAINTS = "lost_constraints"


class PaymentFault(StrEnum):
    """How the payments service misbehaves for one order."""

    SILENT_SUCCESS = "silent_success"
    CREDENTIALS_LOST = "credentials_lost"
    LOCKED_OUT = "locked_out"
    THROTTLED = "throttled"
    TIMEOUT_AFTER_COMMIT = "timeout_after_commit"
    PENDING_THEN_FAILED = "pending_then_failed"
    PENDING_THEN_LANDED = "pending_then_landed"


class AgentFault(StrEnum):
    """How an agent is less than honest."""

    HIDING_WRAPPER = "hiding_wrapper"
    CLAIMED_INTENTION = "claimed_intention"
    RECKLESS_ANSWER = "reckless_answer"


@dataclass(frozen=True, slots=True)
class Story:
    """The faults that come together in one run; a story without faults is an ordinary refund."""

    handoff: HandoffFault | None = None
    payment: PaymentFault | None = None
    agent: AgentFault | None = None

    @property
    def name(self) -> str:
        """The fault that gives the story its name; `none` for an ordinary refund."""
        return str(self.agent or self.payment or self.handoff or "none")


STORIES: Final[tuple[tuple[Story, int], ...]] = (
    (Story(), 19),
    (Story(handoff=HandoffFault.EMPTY_PAYLOAD), 1),
    (Story(handoff=HandoffFault.EMPTY_RESULTS), 2),
    (Story(handoff=HandoffFault.NUMBER_AS_TEXT), 2),
    (Story(handoff=HandoffFault.FOREIGN_TASK), 1),
    (Story(handoff=HandoffFault.STALE_CONTEXT), 1),
    (Story(handoff=HandoffFault.COMPLETED_WITHOUT_RESULT), 1),
    (Story(handoff=HandoffFault.WRONG_TARGET), 1),
    (Story(handoff=HandoffFault.LOST_CONSTRAINTS), 1),
    (Story(payment=PaymentFault.SILENT_SUCCESS), 2),
    (Story(payment=PaymentFault.CREDENTIALS_LOST), 1),
    (Story(payment=PaymentFault.THROTTLED), 2),
    (Story(payment=PaymentFault.TIMEOUT_AFTER_COMMIT), 1),
    (Story(payment=PaymentFault.PENDING_THEN_FAILED), 1),
    (Story(payment=PaymentFault.PENDING_THEN_LANDED), 1),
    (Story(payment=PaymentFault.CREDENTIALS_LOST, agent=AgentFault.HIDING_WRAPPER), 1),
    (Story(agent=AgentFault.CLAIMED_INTENTION), 1),
    (Story(payment=PaymentFault.LOCKED_OUT, agent=AgentFault.RECKLESS_ANSWER), 1),
)
"""Every story, and how many of 40 runs tell it."""

_DECK: Final = tuple(story for story, share in STORIES for _ in range(share))
_NEVER: Final = 99
_ORDER_ID: Final = re.compile(r"[1-9][0-9]{4,11}")
_HOPELESS: Final = frozenset({HandoffFault.LOST_CONSTRAINTS, HandoffFault.FOREIGN_TASK, HandoffFault.WRONG_TARGET})


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Everything that is decided about one run before it starts.

    Attributes:
        index: Which run, from 0.
        order_id: The order to refund, unique to the run.
        amount_cents: The amount to refund.
        policy_is_empty: Whether the policy look-up finds no exception for the order: an empty list, and a success.
        story: The faults.
        bad_attempts: How many attempts of the damaged handoff are bad before the sender gets it right.
    """

    index: int
    order_id: str
    amount_cents: int
    policy_is_empty: bool
    story: Story
    bad_attempts: int

    @property
    def task_id(self) -> str:
        """The task of this run."""
        return f"task-{self.order_id}"

    @property
    def run_id(self) -> str:
        """The id of this run."""
        return f"run-{self.order_id}"


class FaultPlan:
    """The plan of one seed. Equal seeds give equal plans, in every process.

    Args:
        seed: Any integer.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._deal = lru_cache(maxsize=64)(self._deal_block)

    def run(self, index: int) -> RunPlan:
        """Return the plan of a run.

        Args:
            index: 0-based number of the run.

        Raises:
            ValueError: The index is negative.
        """
        if index < 0:
            raise ValueError(f"run index: must be at least 0, got {index}")
        block, place = divmod(index, len(_DECK))
        story = self._deal(block)[place]
        chance = random.Random(f"northwind run {self.seed} {index}")
        return RunPlan(
            index=index,
            order_id=str(FIRST_ORDER + index),
            amount_cents=chance.randrange(500, 20_000, 50),
            policy_is_empty=chance.random() < 0.3,
            story=story,
            bad_attempts=_bad_attempts(story.handoff, chance),
        )

    def for_order(self, order_id: str) -> RunPlan | None:
        """Return the plan of the run that refunds this order; None for an order that Northwind never sold."""
        if not _ORDER_ID.fullmatch(order_id) or int(order_id) < FIRST_ORDER:
            return None
        return self.run(int(order_id) - FIRST_ORDER)

    def _deal_block(self, block: int) -> tuple[Story, ...]:
        deck = list(_DECK)
        random.Random(f"northwind block {self.seed} {block}").shuffle(deck)
        return tuple(deck)


def _bad_attempts(fault: HandoffFault | None, chance: random.Random) -> int:
    if fault is None:
        return 0
    if fault in _HOPELESS:
        return _NEVER
    return chance.choice((1, 1, 2, _NEVER))
