"""Each handoff fault is the fault that it says, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from handoffwatch import Clock, Contract, HandoffContext, Watchdog
from handoffwatch.demo.contracts import PLAN_ROUTE, REVIEW_ROUTE, WORK_ROUTE, Plan, Review, Work
from handoffwatch.demo.damage import ROUTE_OF, damage
from handoffwatch.demo.faults import CONTEXT_VERSION, HandoffFault
from handoffwatch.handoffs.routes import Routes
from handoffwatch.vocabulary import Criticality, Mode

CONTRACTS: dict[str, type[Contract]] = {PLAN_ROUTE: Plan, WORK_ROUTE: Work, REVIEW_ROUTE: Review}
TASK = {"goal": "refund order 40001", "constraints": ["only once"]}
ORDER = {"order_id": "40001", "amount_cents": 3800}
PAYLOADS: dict[str, dict[str, Any]] = {
    PLAN_ROUTE: {"task": TASK, "results": [ORDER], "policies": []},
    WORK_ROUTE: {"task": TASK, "result": "Refund submitted.", **ORDER, "refund_id": "re_1"},
    REVIEW_ROUTE: {"task": TASK, "result": "Refund submitted.", **ORDER, "checked": ["only once"]},
}


def _handoff(route: str) -> dict[str, Any]:
    source, target = route.split("->")
    return {
        "handoff_id": "h-1",
        "task_id": "task-40001",
        "source_agent": source,
        "target_agent": target,
        "task_type": "refund",
        "status": "ready" if route == PLAN_ROUTE else "completed",
        "schema_version": "1",
        "payload": copy.deepcopy(PAYLOADS[route]),
        "context_version": CONTEXT_VERSION,
    }


def _inspect(route: str, handoff: dict[str, Any]) -> tuple[list[str], list[str], bool]:
    routes = Routes()
    for name, contract in CONTRACTS.items():
        routes.add(name, contracts=[contract], criticality=Criticality.CRITICAL, mode=Mode.ENFORCE)
    source, target = route.split("->")
    context = HandoffContext(run_id="run-40001", task_id="task-40001", context_version=CONTEXT_VERSION)
    decision = Watchdog(routes, clock=Clock()).inspect(
        handoff, expected_source=source, expected_target=target, context=context
    )
    return decision.reasons, decision.paths, decision.retryable


@pytest.mark.parametrize("route", sorted(CONTRACTS))
def test_handoff_passes_when_it_is_not_damaged(route: str) -> None:
    """What the agents send without a fault is fit."""
    assert _inspect(route, _handoff(route)) == ([], [], False)


@pytest.mark.parametrize(
    ("fault", "reasons", "paths", "retryable"),
    [
        (
            HandoffFault.EMPTY_PAYLOAD,
            ["missing_field"],
            ["payload.task", "payload.results"],
            True,
        ),
        (HandoffFault.EMPTY_RESULTS, ["empty_results"], ["payload.results"], True),
        (HandoffFault.NUMBER_AS_TEXT, ["type_mismatch"], ["payload.amount_cents"], True),
        (HandoffFault.FOREIGN_TASK, ["foreign_task"], ["task_id"], False),
        (HandoffFault.STALE_CONTEXT, ["stale_context"], ["context_version"], True),
        (HandoffFault.COMPLETED_WITHOUT_RESULT, ["missing_result"], ["payload.result"], True),
        (HandoffFault.WRONG_TARGET, ["route_mismatch"], ["target_agent"], False),
        (HandoffFault.LOST_CONSTRAINTS, ["missing_field"], ["payload.task.constraints"], True),
    ],
)
def test_handoff_is_blocked_by_its_one_reason_when_it_is_damaged(
    fault: HandoffFault, reasons: list[str], paths: list[str], retryable: bool
) -> None:
    """Each fault gives one reason code, at the path it touches."""
    route = ROUTE_OF[fault]
    assert _inspect(route, damage(_handoff(route), fault)) == (reasons, paths, retryable)


@pytest.mark.parametrize("fault", list(HandoffFault))
def test_damage_leaves_the_original_whole_when_it_makes_a_bad_copy(fault: HandoffFault) -> None:
    """The sender still has the good handoff when it is asked to repair."""
    handoff = _handoff(ROUTE_OF[fault])
    before = copy.deepcopy(handoff)
    assert damage(handoff, fault) != before
    assert handoff == before
