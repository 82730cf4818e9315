"""Contracts that ask for everything that a contract can ask for, and rules that misbehave in every way."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import BaseModel, Field

from handoffwatch import (
    Clock,
    Contract,
    HandoffContext,
    Watchdog,
    contract_from_function,
    contract_from_json_schema,
    rule,
)
from handoffwatch.handoffs.contract import AnyContract
from handoffwatch.handoffs.routes import Routes
from handoffwatch.vocabulary import Criticality, Mode, Reaction
from support.refund_handoffs import CHECK_S, NEW_ID, handoff

ALL: Final = ("ready", "completed", "failed")
DAY: Final = datetime(2027, 1, 31, tzinfo=UTC)
"""The day from which the contract with every keyword blocks."""

OWN_CODES: Final = frozenset({"raises", "answers_nonsense", "names_paths", "too_high", "writes", "raises_late"})
"""The codes of the rules below."""

CONTEXT: Final = HandoffContext(
    run_id="r-1",
    task_id="t-1",
    context_version=5,
    finished_operations=frozenset({"op-1"}),
    consumed=frozenset({"h-0"}),
)


class Candidate(BaseModel):
    """One of several."""

    id: str
    score: float = 0.5


class Everything(
    Contract,
    version="1",
    identity="payload.order_id",
    accepts=ALL,
    needs_results=True,
    ready_needs=("plan",),
    requires_context=True,
    irreversible=True,
    deprecated_from="2027-01-31",
    age_s_max=3600,
    confidence_min=0.5,
    choices={"selected": "candidates.*.id"},
    same_task=("plan.task_id", "cited.*.task_id"),
    merged="parts",
    messages="messages",
    good_example={"order_id": "4417"},
):
    """A contract with every keyword."""

    order_id: str
    operation_id: str | None = None
    plan: dict[str, Any] | None = None
    selected: str | None = None
    candidates: list[Candidate] = Field(default_factory=list)
    cited: list[dict[str, Any]] = Field(default_factory=list)
    parts: list[dict[str, Any]] = Field(default_factory=list)
    messages: list[dict[str, Any]] = Field(default_factory=list)
    results: list[Any] | None = None
    result: Any = None
    error: Any = None
    confidence: float | None = None
    item_count: int = 0


class LaxEverything(Everything, version="2", lax=True, deprecated_from=None, requires_context=False):
    """The same for values that may be converted."""


class Misjudged(Contract, accepts=ALL):
    """A contract whose rules raise, answer nonsense, name wild paths, and write into what they are given."""

    order_id: str
    item_count: int = 0
    error: Any = None
    note: Any = None

    @rule("raises", "the reviewer needs it")
    def raise_sometimes(self) -> bool:
        return 7 // self.item_count >= 0

    @rule("answers_nonsense", "the reviewer needs it", reaction="hold")
    def answer(self, context: HandoffContext) -> Any:
        answers: list[Any] = [True, None, 0, "x", b"x", [None], object(), {}, False, self, self.note]
        return answers[self.item_count % len(answers)]

    @rule("names_paths", "the reviewer needs it", reaction="flag")
    def name(self) -> Any:
        wild = itertools.chain(["payload.note", "", "x" * 1_000, "\ud83c", "a\nb"], itertools.repeat("payload", 1_000))
        return itertools.islice(wild, abs(self.item_count) % 1_000)

    @rule("raises_late", "the reviewer needs it", reaction="warn", severity="info", retryable=False)
    def raise_late(self) -> Any:
        return (str(1 // (3 - place)) for place in range(self.item_count % 6))

    @rule("writes", "the reviewer needs it", reaction="warn")
    def write(self, handoff: dict[str, Any]) -> bool:
        return str(handoff["payload"]["note"]) == str(self.note)


def _judge(payload: dict[str, Any], handoff: Mapping[str, Any], context: HandoffContext) -> Any:
    return payload["item_count"] <= 3 or [f"payload.{name}" for name in payload]


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["order_id", "results"],
    "properties": {
        "order_id": {"type": "string", "minLength": 1},
        "results": {"type": "array", "minItems": 1},
        "candidates": {"items": {"required": ["id"], "additionalProperties": False,
                                 "properties": {"id": {}, "score": {}}}},
        "note": {"$ref": "#/nowhere"},
        "item_count": {"type": "integer", "minimum": 0},
    },
}  # fmt: skip

REACTIONS: Final = {
    "missing_handoff_id": Reaction.BLOCK,
    "low_confidence": Reaction.HOLD,
    "orphaned_tool_call": Reaction.FLAG,
    "stale_context": Reaction.WARN,
    "missing_field": Reaction.HOLD,
}

TARGETS: Final[dict[str, tuple[AnyContract, ...]]] = {
    "reviewer": (Everything, LaxEverything),
    "auditor": (Everything, LaxEverything),
    "reacting": (Everything, LaxEverything),
    "misjudged": (Misjudged,),
    "function": (
        contract_from_function(_judge, code="too_high", reason="the reviewer needs it", accepts=ALL, merged="parts"),
    ),
    "schema": (
        contract_from_json_schema(SCHEMA, accepts=ALL, irreversible=True, choices={"selected": "candidates.*"}),
    ),
    "unchecked": (),
}
"""The receivers, with the contracts of each; nothing is checked where there is none."""


def rich_watchdog(*, now: datetime = DAY) -> Watchdog:
    """Return a watchdog with a route of each kind; the auditor's is in shadow, and one has reactions of its own."""
    routes = Routes()
    for target, contracts in TARGETS.items():
        routes.add(
            f"executor->{target}",
            contracts=contracts,
            criticality=Criticality.CRITICAL,
            mode=Mode.SHADOW if target == "auditor" else Mode.ENFORCE,
            reactions=REACTIONS if target == "reacting" else None,
            unchecked=not contracts,
        )
    looks = itertools.count()
    clock = Clock(wall_s=now.timestamp, monotonic_s=lambda: next(looks) * CHECK_S)
    return Watchdog(routes, clock=clock, new_id=lambda: NEW_ID)


def rich_handoff(target: str, **changes: Any) -> dict[str, Any]:
    """Return a handoff that fits most of the contracts above."""
    payload = {
        "order_id": "4417",
        "operation_id": "op-1",
        "plan": {"task_id": "t-1", "steps": [1, {"a": None}]},
        "selected": "a",
        "candidates": [{"id": "a"}, {"id": "b", "score": 0.25}],
        "cited": [{"task_id": "t-1"}],
        "parts": [{"price": 1}, {"price": 1, "city": "Bern"}],
        "messages": [{"role": "assistant", "tool_calls": [{"id": "c1"}]}, {"role": "tool", "tool_call_id": "c1"}],
        "results": [{"id": 1}],
        "result": "done",
        "confidence": 0.9,
        "item_count": 1,
    }
    if target == "misjudged":
        payload = {"order_id": "4417", "item_count": 1, "note": ["x"]}
    fields = handoff(target_agent=target, payload=payload, context_version=5, produced_at="2027-01-30T23:30:00Z")
    return fields | changes
