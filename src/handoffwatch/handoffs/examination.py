"""What one contract says about one handoff that was read: its shape, its demands, its completeness, its sense."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from handoffwatch.decision import Finding
from handoffwatch.handoffs.context import HandoffContext
from handoffwatch.handoffs.contract import CompiledContract
from handoffwatch.handoffs.history import judge_history
from handoffwatch.handoffs.plausibility import judge_plausibility
from handoffwatch.handoffs.rules import judge_completeness, judge_demands
from handoffwatch.handoffs.structure import errors_of, findings_of_errors, findings_of_faults
from handoffwatch.values.json_text import Shape, encode, find_faults, survey
from handoffwatch.values.paths import places


def examine_dict(
    found: list[Finding], raw: dict[str, Any], contract: CompiledContract, *, context: HandoffContext, now_unix_s: float
) -> dict[str, Any] | None:
    """Judge a dict as it is, by a closed contract; returns the normalised handoff.

    It is None, or `found` has an entry, when the handoff must be looked at with care: nothing is named here.

    Raises:
        Exception: Whatever a validator of the contract raises.
    """
    model: Any = None
    normalized: dict[str, Any]
    if contract.plain is not None:
        normalized = contract.plain.validate_python(raw, strict=True, extra="forbid")
    elif contract.closed is not None:
        model = contract.closed.validate_python(raw, strict=True, extra="forbid")
        normalized = contract.serializer.to_python(model, mode="json")
    else:
        return None
    judge_completeness(found, normalized, contract)
    _judge_sense(found, normalized, model, contract, context, now_unix_s)
    return normalized


def examine_text(
    found: list[Finding],
    handoff: Mapping[str, Any],
    text: bytes,
    contract: CompiledContract,
    *,
    context: HandoffContext,
    now_unix_s: float,
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Judge a handoff by its JSON text and name everything that is wrong.

    Args:
        found: Gets the findings; a gap that a rule names counts once.
        handoff: What the text says.
        text: The JSON text; empty when `found` says already why there is none.
        contract: Judges it.
        context: What the orchestrator knows.
        now_unix_s: The time, for age and deprecation.

    Returns:
        The normalised handoff, or None when its shape is wrong; and the paths of the values that were converted.
    """
    model: Any = None
    coerced: tuple[str, ...] = ()
    if text:
        try:
            model, coerced = _validated(handoff, text, contract)
        except ValidationError as error:
            name_errors(found, handoff, errors_of(error), contract)
    if model is None:
        if not text:
            judge_completeness(found, handoff, contract)
        judge_demands(found, handoff, contract, context=context, now_unix_s=now_unix_s)
        return None, ()
    normalized: dict[str, Any] = contract.serializer.to_python(model, mode="json")
    if coerced and survey(normalized, values_max=len(text)) is Shape.BENT:
        found += findings_of_faults(find_faults(normalized))
        return None, ()
    judge_completeness(found, normalized, contract)
    _judge_sense(found, normalized, model, contract, context, now_unix_s)
    return normalized, coerced


def name_errors(
    found: list[Finding], handoff: Mapping[str, Any], details: Iterable[ErrorDetails], contract: CompiledContract
) -> None:
    """Add to `found` what a validator objected to and what is lacking; a gap that a rule names counts once."""
    complete: list[Finding] = []
    judge_completeness(complete, handoff, contract)
    shape = findings_of_errors(details, handoff, is_tagged=contract.is_tagged)
    if complete:
        named = {item.path for item in complete}
        shape = [item for item in shape if item.path not in named]
    found += shape
    found += complete


def _validated(handoff: Mapping[str, Any], text: bytes, contract: CompiledContract) -> tuple[Any, tuple[str, ...]]:
    """Return the validated handoff, and where a lax contract converted what a strict one refuses."""
    try:
        return contract.validator.validate_json(text, strict=True, extra="forbid"), ()
    except ValidationError as error:
        refused = error.errors(include_url=False, include_context=False, include_input=True)
        if not contract.options.lax or any(detail["loc"][:1] != ("payload",) for detail in refused):
            raise
    model = contract.validator.validate_json(text, strict=False, extra="forbid")
    normalized = contract.serializer.to_python(model, mode="json")
    paths = [item.path for item in findings_of_errors(refused, handoff, is_tagged=contract.is_tagged)]
    return model, tuple(path for path in dict.fromkeys(paths) if _is_converted(handoff, normalized, path))


def _is_converted(handoff: Mapping[str, Any], normalized: Mapping[str, Any], path: str) -> bool:
    """Return whether a value that was refused is delivered as another one."""
    sent = [value for _, value in places(handoff, path)]
    return encode(sent) != encode([value for _, value in places(normalized, path)])


def _judge_sense(
    found: list[Finding],
    normalized: dict[str, Any],
    model: Any,
    contract: CompiledContract,
    context: HandoffContext,
    now_unix_s: float,
) -> None:
    judge_demands(found, normalized, contract, context=context, now_unix_s=now_unix_s)
    judge_plausibility(found, normalized, contract, context=context)
    messages = contract.options.messages
    if messages is not None:
        judge_history(found, normalized["payload"].get(messages), path=f"payload.{messages}")
    for rule in contract.rules:
        rule.judge(found, model.payload, handoff=normalized, context=context)
