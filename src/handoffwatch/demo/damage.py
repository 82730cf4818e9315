"""How a handoff fault damages a handoff on its way out of its sender."""

from __future__ import annotations

import copy
from typing import Any, Final

from handoffwatch.demo.contracts import PLAN_ROUTE, REVIEW_ROUTE, WORK_ROUTE
from handoffwatch.demo.faults import CONTEXT_VERSION, HandoffFault

ROUTE_OF: Final = {
    HandoffFault.EMPTY_PAYLOAD: PLAN_ROUTE,
    HandoffFault.EMPTY_RESULTS: PLAN_ROUTE,
    HandoffFault.FOREIGN_TASK: PLAN_ROUTE,
    HandoffFault.STALE_CONTEXT: PLAN_ROUTE,
    HandoffFault.NUMBER_AS_TEXT: WORK_ROUTE,
    HandoffFault.COMPLETED_WITHOUT_RESULT: WORK_ROUTE,
    HandoffFault.LOST_CONSTRAINTS: WORK_ROUTE,
    HandoffFault.WRONG_TARGET: REVIEW_ROUTE,
}
"""Where each fault happens."""


def damage(handoff: dict[str, Any], fault: HandoffFault) -> dict[str, Any]:
    """Return a damaged copy of `handoff`; the original stays whole."""
    bad = copy.deepcopy(handoff)
    payload = bad["payload"]
    match fault:
        case HandoffFault.EMPTY_PAYLOAD:
            bad["payload"] = {}
        case HandoffFault.EMPTY_RESULTS:
            payload["results"] = []
        case HandoffFault.NUMBER_AS_TEXT:
            payload["amount_cents"] = str(payload["amount_cents"])
        case HandoffFault.FOREIGN_TASK:
            bad["task_id"] = "task-of-another-customer"
        case HandoffFault.STALE_CONTEXT:
            bad["context_version"] = CONTEXT_VERSION - 1
        case HandoffFault.COMPLETED_WITHOUT_RESULT:
            payload["result"] = " "
        case HandoffFault.WRONG_TARGET:
            bad["target_agent"] = "planner"
        case HandoffFault.LOST_CONSTRAINTS:
            del payload["task"]["constraints"]
    return bad
