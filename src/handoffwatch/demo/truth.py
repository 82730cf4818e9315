"""Northwind's own record: what it broke, and the numbers that must follow from it.

Computed from the fault plan and from the payments service's database, never from a number of handoffwatch. A series is
named as in Prometheus, so that the record can be held against `/metrics` line by line; a series that is not in the
record must be 0 there.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from handoffwatch.demo.books import GET_ORDER, GET_POLICIES, HELD, POST_REFUND, Deed, Refund
from handoffwatch.demo.contracts import CRITICALITY_OF, PLAN_ROUTE, REVIEW_ROUTE, WORK_ROUTE
from handoffwatch.demo.damage import ROUTE_OF
from handoffwatch.demo.faults import AgentFault, HandoffFault, PaymentFault, RunPlan

Series = tuple[str, tuple[tuple[str, str], ...]]
"""A name in the exposition and its labels, sorted by name."""

ATTEMPTS_MAX: Final = 3
"""The first attempt of a handoff and two repairs of it."""

_CODE_OF: Final = {
    HandoffFault.EMPTY_PAYLOAD: "missing_field",
    HandoffFault.EMPTY_RESULTS: "empty_results",
    HandoffFault.NUMBER_AS_TEXT: "type_mismatch",
    HandoffFault.FOREIGN_TASK: "foreign_task",
    HandoffFault.STALE_CONTEXT: "stale_context",
    HandoffFault.COMPLETED_WITHOUT_RESULT: "missing_result",
    HandoffFault.WRONG_TARGET: "route_mismatch",
    HandoffFault.LOST_CONSTRAINTS: "missing_field",
}
_FINAL: Final = frozenset({HandoffFault.FOREIGN_TASK, HandoffFault.WRONG_TARGET})
_REFUND_FAILURE: Final = {
    PaymentFault.CREDENTIALS_LOST: ("401", "fatal"),
    PaymentFault.LOCKED_OUT: ("401", "fatal"),
}
_CONFIRMED: Final = PaymentFault.TIMEOUT_AFTER_COMMIT
"""The call gets no answer, and the refund is found: it happened, and the agent says that it did not."""

_TOOL_OF: Final = {
    GET_ORDER: "find_order",
    GET_POLICIES: "check_policy",
    POST_REFUND: "issue_refund",
}
_WORKFLOW: Final = {"workflow": "refunds"}
_OPERATION: Final = {"operation": "refund"}
_CRITICAL: Final = {**_WORKFLOW, **_OPERATION, "criticality": "critical"}


@dataclass(frozen=True, slots=True)
class FalseSuccess:
    """A refund that was claimed done and is not there."""

    run_id: str
    order_id: str
    cause: str
    origin: str


@dataclass
class Truth:
    """What must stand on the pages.

    Attributes:
        workload: The series of the process that runs the agents.
        settler: The series of the process that reads back.
        ledger: The series that are read from the ledger, without their label `ledger`.
        faults: How many runs told each story.
        false_successes: Every one, in the order of the runs.
    """

    workload: Counter[Series] = field(default_factory=Counter)
    settler: Counter[Series] = field(default_factory=Counter)
    ledger: Counter[Series] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    false_successes: list[FalseSuccess] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write the record as JSON."""
        record = {
            "faults": dict(sorted(self.faults.items())),
            "false_successes": [
                {"run_id": f.run_id, "order_id": f.order_id, "cause": f.cause, "origin": f.origin}
                for f in self.false_successes
            ],
            **{
                page: [
                    {"series": name, "labels": dict(labels), "value": value}
                    for (name, labels), value in sorted(getattr(self, page).items())
                ]
                for page in ("workload", "settler", "ledger")
            },
        }
        path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def series(name: str, /, **labels: str) -> Series:
    """Return the key of a series. An empty label is no label, as in Prometheus."""
    return f"handoffwatch_{name}", tuple(sorted((label, value) for label, value in labels.items() if value))


def tell_truth(plans: Iterable[RunPlan], refunds: Iterable[Refund], deeds: Iterable[Deed]) -> Truth:
    """Return the record of all runs that were driven.

    Args:
        plans: The plan of each run that was driven to its end.
        refunds: What the payments service has stored in the end.
        deeds: What it did.
    """
    truth = Truth()
    for page in (truth.workload, truth.settler):
        for route, criticality in CRITICALITY_OF.items():
            facts = {name: value for name, value in _agents(route).items() if name != "schema_version"}
            page[series("handoff_route_info", **facts, mode="enforce", criticality=criticality)] = 1
    stored: defaultdict[str, list[Refund]] = defaultdict(list)
    for refund in refunds:
        stored[refund.order_id].append(refund)
    for plan in plans:
        truth.faults[plan.story.name] += 1
        _Run(plan, truth.workload, truth.ledger).tell()
        _tell_outcome(plan, stored[plan.order_id], truth)
    _tell_deeds(deeds, truth)
    return truth


def claim_of(plan: RunPlan) -> str:
    """Return what the run claims in the end: done, not_done, or none when it was stopped."""
    if _stops(plan):
        return "none"
    hidden = plan.story.agent is AgentFault.HIDING_WRAPPER
    if plan.story.payment in (*_REFUND_FAILURE, _CONFIRMED) and not hidden:
        return "not_done"
    return "done"


def _is_final(plan: RunPlan) -> bool:
    return plan.story.handoff in _FINAL


def _stops(plan: RunPlan) -> bool:
    return plan.story.handoff is not None and (_is_final(plan) or plan.bad_attempts >= ATTEMPTS_MAX)


class _Run:
    """Walks through one run as its agents will, and counts what must be seen, in the process and as open cases."""

    def __init__(self, plan: RunPlan, tally: Counter[Series], cases: Counter[Series]) -> None:
        self._plan = plan
        self._tally = tally
        self._cases = cases

    def tell(self) -> None:
        story = self._plan.story
        locked_out = story.payment is PaymentFault.LOCKED_OUT
        self._count("runs_started_total", **_WORKFLOW)
        for tool in ("find_order", "check_policy"):
            self._call(tool, ("401", "fatal") if locked_out else None)
        stopped = self._handoffs()
        if story.payment in _REFUND_FAILURE:
            self._count("runs_with_unrecovered_tool_failure_total", **_WORKFLOW)
        required = {**_WORKFLOW, "tools": "required"}
        if locked_out:
            self._count("runs_without_tool_success_total", **required, cause="all_failed")
        self._count("runs_total", **required, outcome="stopped" if stopped else "completed")

    def _handoffs(self) -> bool:
        """Count the handoffs up to the first that ends the run; return whether one was stopped."""
        story = self._plan.story
        for route in (PLAN_ROUTE, WORK_ROUTE, REVIEW_ROUTE):
            fault = story.handoff if story.handoff and ROUTE_OF[story.handoff] == route else None
            if not self._passes(route, fault):
                return True
            gives_up = route == PLAN_ROUTE and self._refund() and story.agent is None
            self._end(route, "receiver_failed" if gives_up else "delivered")
            if gives_up:
                return False
        self._count("guard_checks_total", **_WORKFLOW, mode="enforce")
        if story.payment is PaymentFault.LOCKED_OUT:
            self._count("guard_blocks_total", **_WORKFLOW, mode="enforce", reason="no_tool_success")
        return False

    def _passes(self, route: str, fault: HandoffFault | None) -> bool:
        """Count the attempts of one handoff; return whether it got through."""
        bad = self._plan.bad_attempts if fault else 0
        for attempt in range(1, ATTEMPTS_MAX + 1):
            facts = {**_agents(route), "mode": "enforce"}
            kind = "first" if attempt == 1 else "repair"
            self._count("handoff_inspections_total", **facts, attempt=kind)
            self._count("handoff_overhead_seconds_count", route=route)
            passes = attempt > bad
            last = attempt == ATTEMPTS_MAX or (fault is not None and _is_final(self._plan))
            if attempt > 1:
                result = "repaired" if passes else "exhausted" if last else "still_bad"
                self._count("handoff_repairs_total", **_agents(route), result=result)
            if passes:
                self._attempts(route, attempt)
                return True
            assert fault is not None
            self._count("handoff_blocks_total", **facts, attempt=kind)
            self._count("handoff_findings_total", **facts, reason=_CODE_OF[fault], reaction="block")
            if last and not _is_final(self._plan):
                self._count("handoff_findings_total", **facts, reason="repair_exhausted", reaction="block")
            if last:
                self._attempts(route, attempt)
                self._end(route, "stopped")
                if CRITICALITY_OF[route] == "critical":
                    self._cases[series("ledger_cases_open", kind="blocked", criticality="critical")] += 1
                break
        return False

    def _refund(self) -> bool:
        """Count the call that issues the refund; return whether it ends without a result."""
        story = self._plan.story
        if story.agent is AgentFault.CLAIMED_INTENTION:
            return False
        failure = _REFUND_FAILURE.get(story.payment) if story.payment else None
        self._call("issue_refund", failure)
        if story.payment is _CONFIRMED:
            self._count("verifications_total", **_OPERATION, result="landed")
            self._count("verification_seconds_count", **_OPERATION)
        return failure is not None or story.payment is _CONFIRMED

    def _call(self, tool: str, failure: tuple[str, str] | None) -> None:
        self._count("tool_calls_total", tool=tool)
        self._count("tool_calls_ended_total", tool=tool, outcome="failed" if failure else "ok")
        self._count("tool_duration_seconds_count", tool=tool)
        if failure:
            self._count("tool_failures_total", tool=tool, code=failure[0], failure_class=failure[1])

    def _attempts(self, route: str, attempts: int) -> None:
        for bound in (1.0, 2.0, 3.0, 5.0, 8.0):
            if attempts <= bound:
                self._count("handoff_attempts_bucket", route=route, le=str(bound))
        self._count("handoff_attempts_bucket", route=route, le="+Inf")
        self._count("handoff_attempts_count", route=route)
        self._tally[series("handoff_attempts_sum", route=route)] += attempts

    def _end(self, route: str, outcome: str) -> None:
        self._count("handoffs_total", **_agents(route), outcome=outcome)

    def _count(self, name: str, /, **labels: str) -> None:
        self._tally[series(name, **labels)] += 1


def _agents(route: str) -> dict[str, str]:
    source, target = route.split("->")
    return {"route": route, "source_agent": source, "target_agent": target, "schema_version": "1"}


def _tell_outcome(plan: RunPlan, refunds: list[Refund], truth: Truth) -> None:
    """Count what the run claims against what the payments service has stored."""
    claimed, (effect, cause) = claim_of(plan), _effect(plan, refunds)
    ledger = truth.ledger
    ledger[series("ledger_claims_total", **_WORKFLOW, claimed=claimed)] += 1
    ledger[series("ledger_effects_settled_total", **_CRITICAL, effect=effect, cause=cause)] += 1
    truth.settler[series("settlement_seconds_count", **_OPERATION)] += 1
    if claimed == "done":
        ledger[series("ledger_claims_settled_total", **_WORKFLOW, claimed=claimed, effect=effect)] += 1
    if claimed == "not_done" and effect == "landed":
        ledger[series("ledger_unclaimed_effects_total", **_WORKFLOW, **_OPERATION)] += 1
    if claimed == "done" and effect == "not_landed":
        origin = _origin(plan)
        ledger[series("ledger_false_successes_total", **_CRITICAL, cause=cause, origin=origin)] += 1
        ledger[series("ledger_cases_open", kind="false_success", criticality="critical")] += 1
        truth.false_successes.append(FalseSuccess(plan.run_id, plan.order_id, cause, origin))


def _effect(plan: RunPlan, refunds: list[Refund]) -> tuple[str, str]:
    if not refunds:
        return "not_landed", "missing"
    if any(refund.amount_cents != plan.amount_cents for refund in refunds):
        return "not_landed", "mismatch"
    if any(refund.status == "succeeded" for refund in refunds):
        return "landed", ""
    return "not_landed", "failed"


def _origin(plan: RunPlan) -> str:
    match plan.story.agent:
        case AgentFault.HIDING_WRAPPER:
            return "wrapper"
        case AgentFault.CLAIMED_INTENTION:
            return "model"
        case _:
            return "tool"


def _tell_deeds(deeds: Iterable[Deed], truth: Truth) -> None:
    """Count the wire attempts and the read-backs as the far side saw them.

    The last read-back of a refund settles it; every earlier one found it pending, or not there yet. Those that the
    workload made itself, after a call without an answer, are its own.
    """
    reads = -truth.workload[series("verification_seconds_count", **_OPERATION)]
    for deed in deeds:
        tool = _TOOL_OF.get(deed.endpoint)
        if deed.caller == "agents" and tool is not None:
            code = {"200": "ok", HELD: "timeout"}.get(deed.code, deed.code)
            truth.workload[series("tool_attempts_total", tool=tool, code=code)] += 1
        reads += deed.caller == "verifier"
    results = Counter(dict.fromkeys(("landed", "not_landed"), 0))
    for (name, labels), count in truth.ledger.items():
        if name == "handoffwatch_ledger_effects_settled_total":
            results[dict(labels)["effect"]] += count
    results["pending"] = reads - results.total()
    for result, count in results.items():
        truth.settler[series("verifications_total", **_OPERATION, result=result)] = count
    truth.settler[series("verification_seconds_count", **_OPERATION)] = reads
