"""Handoffs of a refund desk, the contracts of its routes, and a watchdog whose time and ids stand still."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, create_model

from handoffwatch import Clock, Contract, Decision, Finding, Watchdog
from handoffwatch.decision import summary_of
from handoffwatch.handoffs.routes import Routes
from handoffwatch.handoffs.structure import finding
from handoffwatch.vocabulary import Criticality, Mode, Verdict

HANDOFF_ID: Final = "h-1842"
NEW_ID: Final = "made-for-it"
CHECK_S: Final = 0.25
"""Seconds that every check takes on the watchdog's clock."""

WITHOUT_CONTEXT: Final = (
    "foreign_task",
    "foreign_run",
    "stale_context",
    "consumed_handoff",
    "duplicate_handoff",
    "loop_limit",
)
"""The rules that are skipped when there is no context."""


class Hit(BaseModel):
    """A candidate order."""

    id: str
    score: float = 0.0


class Card(BaseModel):
    """One way to pay."""

    kind: Literal["card"]
    digits: str


class Transfer(BaseModel):
    """The other way to pay."""

    kind: Literal["transfer"]
    iban: str


class Findings(Contract, accepts=("ready", "completed", "failed")):
    """What the reviewer needs of the executor."""

    order_id: Annotated[str, Field(min_length=1)]
    amount_cents: int
    approved: bool = False
    result: str | None = None
    error: str | None = None
    hits: list[Hit] = Field(default_factory=list)
    paid_by: Card | Transfer | None = None
    limits: dict[str, int] = Field(default_factory=dict)
    note: Any = None


class FindingsInCurrency(Contract, version=2):
    """The second version: the amount has a currency."""

    order_id: str
    amount_cents: int
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]


class Candidates(Contract, needs_results=True, accepts=("ready", "completed", "failed")):
    """What the planner needs of a search: at least one candidate."""

    results: list[str] | None = None
    error: str | None = None


def ticking_clock() -> Clock:
    """Return a clock on which a quarter of a second passes between two looks."""
    now_s = 0.0

    def monotonic_s() -> float:
        nonlocal now_s
        now_s += CHECK_S
        return now_s

    return Clock(monotonic_s=monotonic_s)


def refund_watchdog(*, new_id: Callable[[], str] = lambda: NEW_ID) -> Watchdog:
    """Return the watchdog of the desk: one route of each kind."""
    routes = Routes()
    for name, contracts, mode in (
        ("executor->reviewer", [Findings], Mode.ENFORCE),
        ("executor->auditor", [Findings], Mode.SHADOW),
        ("reviewer->synthesizer", [Findings, FindingsInCurrency], Mode.ENFORCE),
        ("searcher->planner", [Candidates], Mode.ENFORCE),
    ):
        routes.add(name, contracts=contracts, criticality=Criticality.CRITICAL, mode=mode)
    return Watchdog(routes, clock=ticking_clock(), new_id=new_id)


def payload(**changes: Any) -> dict[str, Any]:
    """Return a payload that fits `Findings`, with fields replaced or added."""
    return {"order_id": "4417", "amount_cents": 3800} | changes


def handoff(**changes: Any) -> dict[str, Any]:
    """Return a handoff that is fit for the reviewer, with fields of the envelope replaced or added."""
    return {
        "handoff_id": HANDOFF_ID,
        "task_id": "t-1",
        "source_agent": "executor",
        "target_agent": "reviewer",
        "task_type": "refund",
        "status": "ready",
        "schema_version": "1",
        "payload": payload(),
        "metadata": {},
    } | changes


def without(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields that are not named."""
    return {name: value for name, value in fields.items() if name not in names}


def as_model(fields: Mapping[str, Any]) -> BaseModel:
    """Return a Pydantic model, payload included, that holds these fields and judges none of them."""
    values = {name: as_model(value) if name == "payload" and isinstance(value, dict) else value
              for name, value in fields.items()}  # fmt: skip
    return create_model("Sent", **{name: (Any, ...) for name in values})(**values)


FORMS: Final[dict[str, Callable[[Mapping[str, Any]], object]]] = {
    "dict": dict,
    "model": as_model,
    "json text": json.dumps,
    "json bytes": lambda fields: json.dumps(fields).encode(),
    "json bytearray": lambda fields: bytearray(json.dumps(fields).encode()),
    "read-only mapping": MappingProxyType,
}
"""The forms in which one handoff may arrive."""


def blocked(
    *findings: tuple[str, str, str],
    handoff_id: str = HANDOFF_ID,
    route: str = "executor->reviewer",
    schema_version: str = "1",
    attempt: int = 1,
    skipped: tuple[str, ...] = WITHOUT_CONTEXT,
) -> Decision:
    """Return the whole decision of a route that enforces, when these findings (code, path, sentence) block."""
    found: list[Finding] = [finding(*item) for item in findings]
    return Decision(
        allowed=False,
        reasons=list(dict.fromkeys(item.code for item in found)),
        severity=summary_of(found).severity,
        retryable=summary_of(found).retryable,
        handoff_id=handoff_id,
        normalized_payload=None,
        verdict=summary_of(found).verdict,
        findings=tuple(found),
        route=route,
        schema_version=schema_version,
        attempt=attempt,
        mode=Mode.ENFORCE,
        skipped=skipped,
        coerced=(),
        elapsed_s=CHECK_S,
    )


def allowed(normalized: dict[str, Any], **changes: Any) -> Decision:
    """Return the whole decision of a route that enforces, when nothing was found."""
    decision = blocked()._replace(allowed=True, verdict=Verdict.ALLOWED, normalized_payload=normalized)
    return decision._replace(**changes)


def normalized(raw: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a valid handoff of `Findings` with every optional field spelled out."""
    optional = {"run_id": None, "context_version": None, "attempt": 1, "produced_at": None, "finish_reason": None}
    spelled = {
        "approved": False,
        "result": None,
        "error": None,
        "hits": [],
        "paid_by": None,
        "limits": {},
        "note": None,
    }
    return {**optional, **raw, "payload": {**spelled, **raw["payload"]}} | changes
