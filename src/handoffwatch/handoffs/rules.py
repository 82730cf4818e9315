"""The default rules: identity against the context, and completeness against the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handoffwatch.decision import Finding
from handoffwatch.handoffs.context import HandoffContext
from handoffwatch.handoffs.contract import CompiledContract
from handoffwatch.handoffs.structure import finding


def judge_identity(
    found: list[Finding],
    handoff: Mapping[str, Any],
    *,
    expected_source: str | None,
    expected_target: str | None,
    context: HandoffContext,
) -> None:
    """Add to `found` where the envelope names another sender, receiver, task or context than the orchestrator.

    Targets match exactly: neither case nor white space is forgiven. A field that is missing or no text is a matter
    of structure and is left to it.
    """
    _judge_agent(found, "source_agent", handoff.get("source_agent"), expected_source)
    _judge_agent(found, "target_agent", handoff.get("target_agent"), expected_target)
    if context.task_id is not None:
        task_id = handoff.get("task_id")
        if isinstance(task_id, str) and task_id and task_id != context.task_id:
            found.append(finding("foreign_task", "task_id", "task_id must be that of the active task"))
    if context.context_version is not None:
        version = handoff.get("context_version")
        if isinstance(version, int) and version < context.context_version:
            sentence = f"context_version must be at least {context.context_version}"
            found.append(finding("stale_context", "context_version", sentence))


def skipped_rules(handoff: Mapping[str, Any], context: HandoffContext) -> tuple[str, ...]:
    """Return the codes of the rules that could not be judged for want of context."""
    no_version = context.context_version is None or handoff.get("context_version") is None
    if context.task_id is None:
        return ("foreign_task", "stale_context") if no_version else ("foreign_task",)
    return ("stale_context",) if no_version else ()


def judge_completeness(found: list[Finding], handoff: Mapping[str, Any], contract: CompiledContract) -> None:
    """Add to `found` what the handoff lacks for its status. White space is empty; 0, false and [] are results."""
    status = handoff.get("status")
    payload = handoff.get("payload")
    if not isinstance(payload, dict):
        return
    if status == "completed" and "result" in contract.fields and is_blank(payload.get("result")):
        found.append(
            finding("missing_result", "payload.result", "payload.result must hold the result of completed work")
        )
    if status == "failed" and is_blank(payload.get("error")):
        found.append(finding("missing_error", "payload.error", "payload.error must say what failed"))
    if contract.needs_results and status != "failed" and _has_no_results(payload, contract):
        found.append(finding("empty_results", "payload.results", "payload.results must hold at least one item"))


def _has_no_results(payload: Mapping[str, Any], contract: CompiledContract) -> bool:
    """Return whether there is nothing to go on; a required field that is missing or null has its own finding."""
    results = payload.get("results")
    return results == [] or (results is None and "results" not in contract.required)


def is_blank(value: object) -> bool:
    """Return whether a value says nothing: it is absent, null, or a text of white space."""
    return value is None or (isinstance(value, str) and not value.strip())


def _judge_agent(found: list[Finding], path: str, named: object, expected: str | None) -> None:
    if expected is not None and named != expected and isinstance(named, str):
        found.append(finding("route_mismatch", path, f"{path} must be {expected}"))
