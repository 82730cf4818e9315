"""Northwind's crew: planner -> executor -> reviewer -> synthesizer, scripted, and the host that runs them.

The agents read their own part of the fault plan: how they damage a handoff, and where they are less than honest.
Everything they touch is real.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from handoffwatch import HandoffBlocked, ToolFailed
from handoffwatch.demo.contracts import PLAN_ROUTE, REVIEW_ROUTE, WORK_ROUTE
from handoffwatch.demo.damage import ROUTE_OF, damage
from handoffwatch.demo.desk import OPERATION, WORKFLOW, Desk
from handoffwatch.demo.faults import CONTEXT_VERSION, AgentFault, RunPlan

SUBMITTED: Final = "Refund submitted."
COLLEAGUE: Final = "A colleague will look into your refund."

Agent = Callable[[dict[str, Any]], Any]


class Crew:
    """The four agents of one run.

    Args:
        desk: Their tools.
        plan: The run's faults.
    """

    def __init__(self, desk: Desk, plan: RunPlan) -> None:
        self._desk = desk
        self._plan = plan
        self._sent: Counter[str] = Counter()
        self._whole: dict[str, dict[str, Any]] = {}
        self._task = {
            "goal": f"refund order {plan.order_id}",
            "constraints": ["only the order's own amount", "only once"],
        }

    def planner(self) -> dict[str, Any]:
        """Look up the order and its policies, and say what is to be refunded."""
        plan, desk = self._plan, self._desk
        order = self._look_up(desk.find_order, {"order_id": plan.order_id, "amount_cents": plan.amount_cents})
        policies = self._look_up(desk.check_policy, [])
        result = {"order_id": order["order_id"], "amount_cents": order["amount_cents"]}
        payload = {"task": self._task, "results": [result], "policies": [item["policy"] for item in policies]}
        return self._send(PLAN_ROUTE, "ready", payload)

    def _look_up(self, tool: Callable[[str], Any], made_up: Any) -> Any:
        """Return what the tool says about the order; a reckless agent makes up what it could not look up."""
        try:
            return tool(self._plan.order_id)
        except ToolFailed:
            if self._plan.story.agent is not AgentFault.RECKLESS_ANSWER:
                raise
            return made_up

    def executor(self, handoff: dict[str, Any]) -> dict[str, Any]:
        """Refund the order. A wrapper may hide that it failed; a dreamer may only intend it."""
        found = handoff["payload"]["results"][0]
        honest = self._plan.story.agent is None
        receipt: dict[str, Any] = {}
        if self._plan.story.agent is not AgentFault.CLAIMED_INTENTION:
            try:
                receipt = self._desk.issue_refund(found["order_id"], found["amount_cents"])
            except ToolFailed:
                if honest:
                    raise
        payload = {"task": self._task, "result": SUBMITTED, **found, "refund_id": receipt.get("refund_id")}
        return self._send(WORK_ROUTE, "completed", payload)

    def reviewer(self, handoff: dict[str, Any]) -> dict[str, Any]:
        """Compare amount and constraints, as far as a look at the handoff can."""
        work = handoff["payload"]
        payload = {
            "task": self._task,
            "result": work["result"],
            "order_id": work["order_id"],
            "amount_cents": work["amount_cents"],
            "checked": work["task"]["constraints"],
        }
        return self._send(REVIEW_ROUTE, "completed", payload)

    def synthesizer(self, handoff: dict[str, Any]) -> str:
        """Tell the customer."""
        review = handoff["payload"]
        return f"{review['result']} Order {review['order_id']}, {review['amount_cents'] / 100:.2f} dollars."

    def resend(self, route: str) -> dict[str, Any]:
        """Send the handoff of this route once more, as its sender does when it is asked to repair it."""
        self._sent[route] += 1
        fault = self._plan.story.handoff
        handoff = self._whole[route]
        if fault is not None and ROUTE_OF[fault] == route and self._sent[route] <= self._plan.bad_attempts:
            return damage(handoff, fault)
        return handoff

    def _send(self, route: str, status: str, payload: dict[str, Any]) -> dict[str, Any]:
        source, target = route.split("->")
        self._whole[route] = {
            "handoff_id": f"{self._plan.order_id}-{source}",
            "task_id": self._plan.task_id,
            "source_agent": source,
            "target_agent": target,
            "task_type": "refund",
            "status": status,
            "schema_version": "1",
            "payload": payload,
            "context_version": CONTEXT_VERSION,
        }
        return self.resend(route)


def serve_customer(desk: Desk, plan: RunPlan) -> str:
    """Run one refund request to its end and return what the customer is told."""
    try:
        return _refund(desk, plan)
    except HandoffBlocked:
        return COLLEAGUE


def _refund(desk: Desk, plan: RunPlan) -> str:
    crew = Crew(desk, plan)
    with desk.watch.run(WORKFLOW, run_id=plan.run_id, task_id=plan.task_id, context_version=CONTEXT_VERSION) as run:
        run.expect(OPERATION, order_id=plan.order_id, amount_cents=plan.amount_cents)

        def hand_on(route: str, raw: dict[str, Any], receiver: Agent) -> Any:
            source, target = route.split("->")
            return run.transfer(source, target, raw, receiver=receiver, repair=lambda step: crew.resend(route))

        try:
            work = hand_on(PLAN_ROUTE, crew.planner(), crew.executor)
            review = hand_on(WORK_ROUTE, work, crew.reviewer)
            text = hand_on(REVIEW_ROUTE, review, crew.synthesizer)
        except ToolFailed as failure:
            run.claim("not_done")
            return failure.text
        answer = run.answer(text)
        run.claim("done" if answer.action == "answer" else "not_done")
        return answer.text or text
