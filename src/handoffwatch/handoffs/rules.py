"""The default rules: identity and freshness against the context, completeness against the status."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Final

from handoffwatch.decision import Finding, reacting
from handoffwatch.handoffs.context import NO_CONTEXT, HandoffContext
from handoffwatch.handoffs.contract import CompiledContract
from handoffwatch.handoffs.structure import finding
from handoffwatch.values.paths import dotted, places
from handoffwatch.values.result_flags import is_blank
from handoffwatch.vocabulary import Reaction

_LIMITS: Final = ("duplicate_handoff", "loop_limit")
_WITHOUT_CONTEXT: Final = ("foreign_task", "foreign_run", "stale_context", "consumed_handoff", *_LIMITS)


def judge_identity(
    found: list[Finding],
    handoff: Mapping[str, Any],
    *,
    expected_source: str | None,
    expected_target: str | None,
    context: HandoffContext,
) -> None:
    """Add to `found` where the envelope names another sender, receiver, run, task or context than the orchestrator.

    Targets match exactly: neither case nor white space is forgiven. A field that is missing or no text is a matter
    of structure and is left to it.
    """
    _judge_agent(found, "source_agent", handoff.get("source_agent"), expected_source)
    _judge_agent(found, "target_agent", handoff.get("target_agent"), expected_target)
    if context.task_id is not None:
        _judge_owner(found, "foreign_task", "task_id", handoff.get("task_id"), context.task_id)
    if context.run_id is not None:
        _judge_owner(found, "foreign_run", "run_id", handoff.get("run_id"), context.run_id)
    if context.context_version is not None:
        version = handoff.get("context_version")
        if isinstance(version, int) and version < context.context_version:
            sentence = f"context_version must be at least {context.context_version}"
            found.append(finding("stale_context", "context_version", sentence))
    if context.consumed is not None:
        handoff_id = handoff.get("handoff_id")
        if isinstance(handoff_id, str) and handoff_id in context.consumed:
            found.append(finding("consumed_handoff", "handoff_id", "handoff_id must not have been accepted before"))


def judge_demands(
    found: list[Finding],
    handoff: Mapping[str, Any],
    contract: CompiledContract,
    *,
    context: HandoffContext,
    now_unix_s: float,
) -> None:
    """Add to `found` where the handoff lacks what the contract demands of every handoff: status, context, age, version.

    Args:
        found: Gets the findings.
        handoff: The envelope.
        contract: Whose demands.
        context: What the orchestrator knows.
        now_unix_s: The time, for age and deprecation.
    """
    options = contract.options
    status = handoff.get("status")
    if status in ("ready", "completed", "failed") and status not in options.accepts:
        sentence = f"status must be one of {', '.join(options.accepts)} for this receiver"
        found.append(finding("status_not_accepted", "status", sentence))
    if options.requires_context and context.task_id is None and context.run_id is None:
        found.append(finding("missing_context", "$", "this receiver needs the run or the task from the orchestrator"))
    if options.age_s_max is not None:
        _judge_age(found, handoff.get("produced_at"), options.age_s_max, now_unix_s)
    if options.deprecated_from is not None:
        day = options.deprecated_from
        today = datetime.datetime.fromtimestamp(now_unix_s, datetime.UTC).date()
        sentence = f"schema_version {options.version} ends on {day.isoformat()}: move to the newest"
        warning = finding("deprecated_schema_version", "schema_version", sentence)
        found.append(reacting(warning, Reaction.BLOCK) if today >= day else warning)


def skipped_rules(handoff: Mapping[str, Any], contract: CompiledContract, context: HandoffContext) -> tuple[str, ...]:
    """Return the codes of the rules that could not be judged for want of a fact, in context or envelope."""
    options = contract.options
    skipped: tuple[str, ...] = ()
    if options.age_s_max is not None and handoff.get("produced_at") is None:
        skipped = ("stale_state",)
    if options.irreversible and context.finished_operations is None:
        skipped = (*skipped, "operation_unconfirmed")
    if context is NO_CONTEXT:
        return _WITHOUT_CONTEXT + skipped
    if context.task is None:
        skipped = (*_LIMITS, *skipped) if context.consumed is not None else ("consumed_handoff", *_LIMITS, *skipped)
    if context.context_version is None or handoff.get("context_version") is None:
        skipped = ("stale_context", *skipped)
    if context.run_id is None:
        skipped = ("foreign_run", *skipped)
    return skipped if context.task_id is not None else ("foreign_task", *skipped)


def judge_completeness(found: list[Finding], handoff: Mapping[str, Any], contract: CompiledContract) -> None:
    """Add to `found` what the handoff lacks for its status. White space is empty; 0, false and [] are results."""
    status = handoff.get("status")
    payload = handoff.get("payload")
    if not isinstance(payload, dict):
        return
    options = contract.options
    if status == "completed" and is_blank(payload.get("result")) and contract.promises("result", payload):
        found.append(
            finding("missing_result", "payload.result", "payload.result must hold the result of completed work")
        )
    if status == "failed" and is_blank(payload.get("error")):
        found.append(finding("missing_error", "payload.error", "payload.error must say what failed"))
    if options.needs_results and status != "failed" and _has_no_results(payload, contract):
        found.append(finding("empty_results", "payload.results", "payload.results must hold at least one item"))
    if status == "ready":
        for path in options.ready_needs:
            here = [value for _, value in places(payload, path)]
            if all(map(is_blank, here)) and (here or path not in contract.required):
                where = f"payload.{path}"
                found.append(finding("not_ready", where, f"{where} must be there before the next step can start"))
    if options.irreversible and status != "failed" and is_blank(payload.get("operation_id")):
        path = "payload.operation_id"
        found.append(finding("missing_operation_id", path, f"{path} must name the operation before it is acted upon"))


def _judge_agent(found: list[Finding], path: str, named: object, expected: str | None) -> None:
    if expected is not None and named != expected and isinstance(named, str):
        found.append(finding("route_mismatch", path, f"{path} must be {dotted([expected])}"))


def _judge_owner(found: list[Finding], code: str, path: str, named: object, expected: str) -> None:
    if isinstance(named, str) and named and named != expected:
        found.append(finding(code, path, f"{path} must be that of the active {path.removesuffix('_id')}"))


def _judge_age(found: list[Finding], produced_at: object, age_s_max: float, now_unix_s: float) -> None:
    """Judge the age of a handoff that says when it was produced; a time without its zone says nothing."""
    if not isinstance(produced_at, str):
        return
    try:
        produced = datetime.datetime.fromisoformat(produced_at)
    except ValueError:
        produced = None
    if produced is None or produced.tzinfo is None:
        found.append(finding("bad_format", "produced_at", "produced_at must be a time with its zone (RFC 3339)"))
    elif now_unix_s - produced.timestamp() > age_s_max:
        found.append(finding("stale_state", "produced_at", f"produced_at must be at most {age_s_max:g} s ago"))


def _has_no_results(payload: Mapping[str, Any], contract: CompiledContract) -> bool:
    """Return whether there is nothing to go on; a required field that is missing or null has its own finding."""
    results = payload.get("results")
    return results == [] or (results is None and "results" not in contract.required)
