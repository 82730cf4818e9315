"""Events to spans: their names, and the attributes that an event adds when it ends.

Standard attributes keep their `gen_ai.` names as opaque constants pinned here; ours stand under `handoffwatch.`.
No content of payloads, arguments or results is ever an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from handoffwatch import events as e
from handoffwatch.vocabulary import ToolOutcome, Verdict

SEMCONV: Final = "gen-ai-dev/1106985"
"""The revision of the GenAI conventions that the standard names below were taken from."""

Attribute = str | bool | int | float | tuple[str, ...]
Attributes = Mapping[str, Attribute]

OPERATION_NAME: Final = "gen_ai.operation.name"
AGENT_NAME: Final = "gen_ai.agent.name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
TOOL_NAME: Final = "gen_ai.tool.name"
ERROR_TYPE: Final = "error.type"
RUN_ID: Final = "handoffwatch.run.id"
KEEP: Final = "handoffwatch.keep"

HANDOFF: Final = "handoff"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_WORKFLOW: Final = "invoke_workflow"
VERIFY_EFFECT: Final = "verify_effect"


def handoff_attributes(event: e.HandoffInspected) -> Attributes:
    """Return the attributes of an inspected attempt."""
    decision = event.decision
    attributes: dict[str, Attribute] = {
        OPERATION_NAME: HANDOFF,
        AGENT_NAME: event.source,
        WORKFLOW_NAME: event.workflow,
        RUN_ID: event.run_id,
        "handoffwatch.handoff.id": decision.handoff_id,
        "handoffwatch.handoff.route": decision.route,
        "handoffwatch.handoff.source": event.source,
        "handoffwatch.handoff.target": event.target,
        "handoffwatch.handoff.target_type": "agent",
        "handoffwatch.handoff.task_id": event.task_id,
        "handoffwatch.handoff.schema_version": decision.schema_version,
        "handoffwatch.handoff.attempt": decision.attempt,
        "handoffwatch.handoff.allowed": decision.allowed,
        "handoffwatch.handoff.verdict": decision.verdict,
        "handoffwatch.handoff.severity": decision.severity,
        "handoffwatch.handoff.retryable": decision.retryable,
        "handoffwatch.handoff.mode": decision.mode,
        "handoffwatch.handoff.action": event.action,
        "handoffwatch.handoff.overhead": event.overhead_s,
    }
    if decision.verdict is Verdict.BLOCKED:
        attributes[KEEP] = True
    if decision.findings:
        attributes["handoffwatch.handoff.reasons"] = tuple(decision.reasons)
        attributes["handoffwatch.handoff.paths"] = tuple(decision.paths[:20])
        attributes["handoffwatch.handoff.stage"] = decision.findings[0].stage
    return attributes


def tool_attributes(event: e.ToolCallEnded) -> Attributes:
    """Return the attributes of an ended call."""
    attributes: dict[str, Attribute] = {
        RUN_ID: event.run_id,
        "handoffwatch.tool.safety": event.safety.value,
        "handoffwatch.tool.status": event.status,
        "handoffwatch.tool.attempts": event.attempts,
        "handoffwatch.tool.wait": event.wait_s,
    }
    if event.failure_class is not None:
        attributes["handoffwatch.tool.failure_class"] = event.failure_class.value
    if event.outcome is ToolOutcome.FAILED:
        attributes[ERROR_TYPE] = str(event.code or "_OTHER")
    return attributes


def run_attributes(event: e.RunEnded) -> Attributes:
    """Return the attributes of an ended run."""
    attributes: dict[str, Attribute] = {
        "handoffwatch.run.tools_succeeded": event.tools_succeeded,
        "handoffwatch.run.tools_failed": event.tools_failed,
        "handoffwatch.run.guard": event.guard,
        KEEP: event.unrecovered_tool_failure or event.guard == "refused" or event.claimed in {"done", "partial"},
    }
    if event.claimed is not None:
        attributes["handoffwatch.run.claimed"] = event.claimed.value
    return attributes


def verification_attributes(event: e.EffectVerified) -> Attributes:
    """Return the attributes of a read-back."""
    return {
        WORKFLOW_NAME: event.workflow,
        RUN_ID: event.run_id,
        "handoffwatch.operation.kind": event.operation,
        "handoffwatch.operation.id": event.operation_id,
        "handoffwatch.operation.criticality": event.criticality.value,
        "handoffwatch.operation.effect": event.result.value,
        "handoffwatch.operation.trigger": "poll",
        KEEP: event.result.value == "not_landed",
    }


ATTRIBUTES: Final[dict[type, Callable[[Any], Attributes]]] = {
    e.ToolCallEnded: tool_attributes,
    e.RunEnded: run_attributes,
}
"""By the class of the event that closes a scope: what it adds to the open span."""


def _handoff_check(event: e.HandoffInspected) -> Check:
    return f"{HANDOFF} {event.target}", handoff_attributes(event), event.overhead_s


def _verification_check(event: e.EffectVerified) -> Check:
    return f"{VERIFY_EFFECT} {event.operation}", verification_attributes(event), event.duration_s


Check = tuple[str, Attributes, float]
"""The span of a check: its name, its attributes, and the seconds it took.

A check starts nothing of its own, so its span is written when it has ended. All attributes are there when the span
starts: a head sampler can keep the bad ones.
"""

CHECKS: Final[dict[type, Callable[[Any], Check]]] = {
    e.HandoffInspected: _handoff_check,
    e.EffectVerified: _verification_check,
}
"""By the event's class: the span of a check."""


def error_type(event: object) -> str | None:
    """Return the low-cardinality error of an event whose span must be marked as an error, or None.

    A block is not an error; a failed tool call is.
    """
    if isinstance(event, e.ToolCallEnded) and event.outcome is ToolOutcome.FAILED:
        return str(event.code or "_OTHER")
    return None
