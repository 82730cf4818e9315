"""A watchdog with the one route executor->reviewer, and what it says of a payload in every form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from handoffwatch import Clock, Contract, Decision, Finding, HandoffContext, Watchdog
from handoffwatch.handoffs.contract import AnyContract
from handoffwatch.handoffs.routes import Routes
from handoffwatch.vocabulary import Criticality, Mode, Reaction
from support.refund_handoffs import FORMS, NEW_ID, handoff

NOW: Final = datetime(2027, 1, 30, 12, 0, 0, tzinfo=UTC)
"""The time on the watchdog's clock, unless a test says otherwise."""


def watchdog_of(
    *contracts: AnyContract,
    mode: Mode = Mode.ENFORCE,
    reactions: Mapping[str, Reaction] | None = None,
    now: datetime = NOW,
    new_id: Callable[[], str] = lambda: NEW_ID,
) -> Watchdog:
    """Return a watchdog with one route, whose time stands still."""
    routes = Routes()
    routes.add(
        "executor->reviewer", contracts=contracts, criticality=Criticality.ROUTINE, mode=mode, reactions=reactions
    )
    return Watchdog(routes, clock=Clock(wall_s=now.timestamp, monotonic_s=lambda: 0.0), new_id=new_id)


def judged(
    contract: AnyContract,
    payload: object,
    *,
    context: HandoffContext | None = None,
    reactions: Mapping[str, Reaction] | None = None,
    mode: Mode = Mode.ENFORCE,
    now: datetime = NOW,
    **envelope: Any,
) -> Decision:
    """Return the one decision about a payload; it is the same as dict, model, text and bytes."""
    watchdog = watchdog_of(contract, mode=mode, reactions=reactions, now=now)
    raw = handoff(payload=payload, **envelope)
    first, *others = [watchdog.inspect(form(raw), context=context) for form in FORMS.values()]
    assert [other._replace(normalized_payload=None) for other in others] == (
        [first._replace(normalized_payload=None)] * len(others)
    )
    assert all(_same(other.normalized_payload, first.normalized_payload) for other in others)
    json.loads(first.to_json().encode())
    return first


def found(decision: Decision) -> list[tuple[str, str]]:
    """Return the code and the path of every finding."""
    return [(item.code, item.path) for item in decision.findings]


def only(decision: Decision) -> Finding:
    """Return the one finding."""
    (item,) = decision.findings
    return item


def contract_class(fields: Mapping[str, Any] | None = None, **keywords: Any) -> type[Contract]:
    """Return a contract named `Work` with these annotated fields and class keywords."""
    body = {"__module__": __name__, "__annotations__": dict(fields or {})}
    return type(Contract)("Work", (Contract,), body, **keywords)


def _same(one: object, other: object) -> bool:
    """Return whether two handoffs are the same to the receiver, types of numbers included."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
