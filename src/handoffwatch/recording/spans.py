"""Events to spans: their names, and the attributes that an event adds when it ends.

Standard attributes keep their `gen_ai.` names as opaque constants pinned here; ours stand under `handoffwatch.`.
No content of payloads, arguments or results is ever an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opentelemetry.trace import Link

from handoffwatch import events as e
from handoffwatch.decision import Decision
from handoffwatch.recording.traceparent import links_to
from handoffwatch.vocabulary import Action, ToolOutcome, Verdict, VerificationResult

SEMCONV: Final = "gen-ai-dev/1106985"
"""The revision of the GenAI conventions that the standard names below were taken from."""

Attribute = str | bool | int | float | tuple[str, ...]
Attributes = Mapping[str, Attribute]

OPERATION_NAME: Final = "gen_ai.operation.name"
AGENT_NAME: Final = "gen_ai.agent.name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
ERROR_TYPE: Final = "error.type"
RUN_ID: Final = "handoffwatch.run.id"
KEEP: Final = "handoffwatch.keep"

TEXT_CHARACTERS_MAX: Final = 256

HANDOFF: Final = "handoff"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_WORKFLOW: Final = "invoke_workflow"
VERIFY_EFFECT: Final = "verify_effect"


def clean(text: str) -> str:
    """Return a name or id as it may leave: at most 256 characters, and none that an exporter cannot encode."""
    if len(text) > TEXT_CHARACTERS_MAX:
        text = text[:TEXT_CHARACTERS_MAX]
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def handoff_attributes(event: e.HandoffInspected) -> Attributes:
    """Return the attributes of an inspected attempt."""
    decision = event.decision
    source = clean(event.source)
    attributes: dict[str, Attribute] = {
        OPERATION_NAME: HANDOFF,
        AGENT_NAME: source,
        WORKFLOW_NAME: event.workflow,
        RUN_ID: clean(event.run_id),
        "handoffwatch.handoff.id": clean(decision.handoff_id),
        "handoffwatch.handoff.route": decision.route,
        "handoffwatch.handoff.source": source,
        "handoffwatch.handoff.target": clean(event.target),
        "handoffwatch.handoff.target_type": "agent",
        "handoffwatch.handoff.task_id": clean(event.task_id),
        "handoffwatch.handoff.attempt": decision.attempt,
        "handoffwatch.handoff.action": event.action,
        "handoffwatch.handoff.overhead": event.overhead_s,
    }
    _add_found(attributes, decision, event.digests)
    if decision.verdict is Verdict.BLOCKED:
        attributes[KEEP] = True
    if event.detection_s is not None:
        attributes["handoffwatch.handoff.detection"] = max(0.0, event.detection_s)
    return attributes


def tool_attributes(event: e.ToolCallEnded) -> Attributes:
    """Return the attributes of an ended call."""
    attributes: dict[str, Attribute] = {
        RUN_ID: clean(event.run_id),
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
    }
    if event.unrecovered_tool_failure or event.guard == "refused" or event.claimed in {"done", "partial"}:
        attributes[KEEP] = True
    if event.claimed is not None:
        attributes["handoffwatch.run.claimed"] = event.claimed.value
    return attributes


def verification_attributes(event: e.EffectVerified) -> Attributes:
    """Return the attributes of a read-back."""
    attributes: dict[str, Attribute] = {
        WORKFLOW_NAME: event.workflow,
        RUN_ID: clean(event.run_id),
        "handoffwatch.operation.kind": event.operation,
        "handoffwatch.operation.id": event.operation_id,
        "handoffwatch.operation.criticality": event.criticality.value,
        "handoffwatch.operation.effect": event.result.value,
        "handoffwatch.operation.trigger": "poll",
    }
    if event.result is VerificationResult.NOT_LANDED:
        attributes[KEEP] = True
    return attributes


ATTRIBUTES: Final[dict[type, Callable[[Any], Attributes]]] = {
    e.ToolCallEnded: tool_attributes,
    e.RunEnded: run_attributes,
}
"""By the class of the event that closes a scope: what it adds to the open span."""


def lost_attributes(event: e.HandoffCompared, decision: Decision) -> Attributes:
    """Return the attributes of a handoff that was let through and did not survive its way."""
    source, _, target = event.route.partition("->")
    attributes: dict[str, Attribute] = {
        OPERATION_NAME: HANDOFF,
        AGENT_NAME: clean(source),
        RUN_ID: clean(event.run_id),
        "handoffwatch.handoff.id": clean(event.handoff_id),
        "handoffwatch.handoff.route": decision.route,
        "handoffwatch.handoff.source": clean(source),
        "handoffwatch.handoff.target": clean(target),
        "handoffwatch.handoff.target_type": "agent",
        "handoffwatch.handoff.attempt": event.attempt,
        "handoffwatch.handoff.action": Action.STOP,
        KEEP: True,
    }
    _add_found(attributes, decision, event.digests)
    return attributes


def _add_found(attributes: dict[str, Attribute], decision: Decision, digests: tuple[str, str]) -> None:
    """Add what a decision says, and the digests of a state that crossed a boundary."""
    attributes["handoffwatch.handoff.schema_version"] = decision.schema_version
    attributes["handoffwatch.handoff.allowed"] = decision.allowed
    attributes["handoffwatch.handoff.verdict"] = decision.verdict
    attributes["handoffwatch.handoff.severity"] = decision.severity
    attributes["handoffwatch.handoff.retryable"] = decision.retryable
    attributes["handoffwatch.handoff.mode"] = decision.mode
    if digests[0]:
        attributes["handoffwatch.handoff.digest_before"], attributes["handoffwatch.handoff.digest_after"] = digests
    if decision.findings:
        attributes["handoffwatch.handoff.reasons"] = tuple(decision.reasons)
        attributes["handoffwatch.handoff.paths"] = tuple(decision.paths[:20])
        attributes["handoffwatch.handoff.stage"] = decision.findings[0].stage


def _handoff_check(event: e.HandoffInspected) -> Check:
    name = f"{HANDOFF} {clean(event.target)}"
    return name, handoff_attributes(event), event.overhead_s, None, event.traceparent


def _lost_check(event: e.HandoffCompared) -> Check | None:
    if event.lost is None:
        return None  # the span of its attempt, which is written when that is concluded, tells it
    name = f"{HANDOFF} {clean(event.route.partition('->')[2])}"
    return name, lost_attributes(event, event.lost), 0.0, None, ""


def _verification_check(event: e.EffectVerified) -> Check:
    name = f"{VERIFY_EFFECT} {event.operation}"
    return name, verification_attributes(event), event.duration_s, links_to(event.traceparent), ""


Check = tuple[str, Attributes, float, Sequence[Link] | None, str]
"""The span of a check: its name, its attributes, the seconds it took, what it is linked to, and the `traceparent` of
its parent in another process, empty when it has none there.

A check starts nothing of its own, so its span is written when it has ended. All attributes are there when the span
starts: a head sampler can keep the bad ones.
"""

CHECKS: Final[dict[type, Callable[[Any], Check | None]]] = {
    e.HandoffInspected: _handoff_check,
    e.HandoffCompared: _lost_check,
    e.EffectVerified: _verification_check,
}
"""By the event's class: the span of a check; None when the fact has none of its own."""


def is_worth_a_span(event: object) -> bool:
    """Return whether a check found something, so that a sampler is asked even inside an unsampled trace."""
    return not isinstance(event, e.HandoffInspected) or bool(event.decision.findings)


def error_type(event: object) -> str | None:
    """Return the low-cardinality error of an event whose span must be marked as an error, or None.

    A block is not an error; a failed tool call is.
    """
    if isinstance(event, e.ToolCallEnded) and event.outcome is ToolOutcome.FAILED:
        return str(event.code or "_OTHER")
    return None
