"""Rules about a payload whose shape is right: whether what it says can be true."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

from handoffwatch.decision import Finding
from handoffwatch.handoffs.context import HandoffContext
from handoffwatch.handoffs.contract import CompiledContract
from handoffwatch.handoffs.structure import finding
from handoffwatch.values.json_text import canonical
from handoffwatch.values.paths import dotted, places
from handoffwatch.values.result_flags import is_blank, says_it_failed

FINDINGS_MAX: Final = 20
"""The most findings of one rule."""


def judge_plausibility(
    found: list[Finding], handoff: Mapping[str, Any], contract: CompiledContract, *, context: HandoffContext
) -> None:
    """Add to `found` what cannot be true of a validated handoff: it is judged as it would be delivered."""
    payload = handoff["payload"]
    _judge_status(found, handoff["status"], payload)
    if contract.is_questioned:
        _judge_answers(found, handoff, contract, context)


def _judge_answers(
    found: list[Finding], handoff: Mapping[str, Any], contract: CompiledContract, context: HandoffContext
) -> None:
    """Add to `found` what contradicts the questions that the contract's options ask."""
    payload = handoff["payload"]
    options = contract.options
    for name in contract.counts:
        count = payload.get(name)
        if isinstance(count, int) and count < 0:
            found.append(finding("negative_count", f"payload.{name}", f"payload.{name} must not be below 0"))
    confidence = payload.get("confidence")
    least = options.confidence_min
    if least is not None and isinstance(confidence, int | float) and confidence < least:
        found.append(
            finding("low_confidence", "payload.confidence", f"payload.confidence should be at least {least:g}")
        )
    for selected, candidates in options.choices.items():
        _judge_choice(found, payload, selected, candidates)
    for path in options.same_task:
        _judge_same_task(found, payload, path, handoff["task_id"])
    if options.merged is not None:
        _judge_merged(found, payload.get(options.merged), f"payload.{options.merged}")
    if options.irreversible and handoff["status"] == "completed" and context.finished_operations is not None:
        operation = payload.get("operation_id")
        if not is_blank(operation) and operation not in context.finished_operations:
            path = "payload.operation_id"
            found.append(finding("operation_unconfirmed", path, f"{path} must name an operation that was confirmed"))


def _judge_status(found: list[Finding], status: str, payload: Mapping[str, Any]) -> None:
    """Completed work tells of no failure, and failed work brings no result; what is empty tells and brings nothing."""
    result = payload.get("result")
    if status == "completed":
        if not is_blank(payload.get("error")) and payload["error"]:
            found.append(_contradiction("payload.error", "payload.error must be empty in completed work"))
        if type(result) is dict and says_it_failed(result):
            sentence = "payload.result must not tell of a failure in completed work"
            found.append(_contradiction("payload.result", sentence))
    elif status == "failed" and not is_blank(result) and result:
        found.append(_contradiction("payload.result", "payload.result must be empty in failed work"))


def _contradiction(path: str, sentence: str) -> Finding:
    return finding("status_contradicts_result", path, sentence)


def _judge_choice(found: list[Finding], payload: Mapping[str, Any], selected: str, candidates: str) -> None:
    known = {canonical(value) for _, value in places(payload, candidates)}
    wrong = (
        dotted(("payload", *place))
        for place, choice in places(payload, selected)
        if choice is not None
        and not all(canonical(each) in known for each in (choice if isinstance(choice, list) else [choice]))
    )
    for path in itertools.islice(wrong, FINDINGS_MAX):
        sentence = f"{path} must be one of the values at payload.{candidates}"
        found.append(finding("selected_not_in_candidates", path, sentence))


def _judge_same_task(found: list[Finding], payload: Mapping[str, Any], path: str, task_id: str) -> None:
    wrong = (
        dotted(("payload", *place)) for place, value in places(payload, path) if value is not None and value != task_id
    )
    for where in itertools.islice(wrong, FINDINGS_MAX):
        found.append(finding("foreign_reference", where, f"{where} must belong to the task of the handoff"))


def _judge_merged(found: list[Finding], parts: object, path: str) -> None:
    """Name each key for which two parts give different values."""
    first: dict[str, bytes] = {}
    conflicts: dict[str, None] = {}
    for part in parts if isinstance(parts, list) else ():
        for key, value in part.items() if isinstance(part, Mapping) else ():
            if first.setdefault(key, canonical(value)) != canonical(value):
                conflicts[key] = None
    for key in itertools.islice(conflicts, FINDINGS_MAX):
        where = dotted((path, "*", key))
        found.append(finding("merge_conflict", where, f"{where} should be the same in all merged parts"))
