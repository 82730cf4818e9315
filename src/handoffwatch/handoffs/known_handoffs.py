"""Handoffs whose verdict is known beforehand: one that a contract should accept, and one that it should not."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from handoffwatch.handoffs.context import HandoffContext, TaskFacts
from handoffwatch.handoffs.contract import CompiledContract, LooseContract
from handoffwatch.handoffs.routes import Route
from handoffwatch.values.paths import places
from handoffwatch.values.result_flags import is_blank
from handoffwatch.values.schema_examples import NoExample, SchemaExamples
from handoffwatch.vocabulary import Status

_NAME: Final = "selftest"
_UNKNOWN_FIELD: Final = "selftest_unknown_field"


@dataclass(frozen=True, slots=True)
class KnownHandoff:
    """A handoff whose verdict is known beforehand.

    Attributes:
        handoff: The envelope with its payload.
        context: What an orchestrator would know of it.
        wrong_at: The path that is wrong; empty in a good handoff.
    """

    handoff: dict[str, Any]
    context: HandoffContext
    wrong_at: str = ""


def good_handoff(route: Route, contract: CompiledContract) -> KnownHandoff:
    """Return a handoff that the contract should accept.

    Raises:
        NoExample: No payload is given, and none can be derived.
    """
    given = contract.good_example
    if given is not None:
        payload = dict(given)
        status = _status_of(payload, contract)
    else:
        status = contract.accepts[0]
        payload = _derived(contract, status)
    task_id = _task_of(payload, contract)
    if given is None:
        _make_sensible(payload, contract, task_id)
    handoff = {
        "handoff_id": _NAME,
        "task_id": task_id,
        "source_agent": route.source,
        "target_agent": route.target,
        "task_type": _NAME,
        "status": str(status),
        "schema_version": contract.version,
        "payload": payload,
        "run_id": _NAME,
        "context_version": 1,
        "attempt": 1,
    }
    operation_id = payload.get("operation_id")
    finished = frozenset({operation_id} if isinstance(operation_id, str) else ())
    return KnownHandoff(handoff, HandoffContext(_NAME, task_id, 1, _NAME, 1, finished, frozenset(), TaskFacts()))


def bad_handoff(good: KnownHandoff, contract: CompiledContract) -> KnownHandoff:
    """Return the good handoff with one thing wrong: a required field is gone, or there is one that nobody knows."""
    payload = dict(good.handoff["payload"])
    failed = contract.failed is not None and good.handoff["status"] == Status.FAILED
    required = {"error"} if failed else contract.required
    removed = next((name for name in payload if name in required), None)
    if removed is not None:
        del payload[removed]
        return KnownHandoff(good.handoff | {"payload": payload}, good.context, f"payload.{removed}")
    if isinstance(contract.origin, LooseContract):
        return KnownHandoff(good.handoff | {"payload": None}, good.context, "payload")
    payload[_UNKNOWN_FIELD] = True
    return KnownHandoff(good.handoff | {"payload": payload}, good.context, f"payload.{_UNKNOWN_FIELD}")


class _Quiet(GenerateJsonSchema):
    """Writes no warnings: what it leaves out of a schema shows in the verdict on what is derived from it."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Do nothing."""


def _derived(contract: CompiledContract, status: str) -> dict[str, Any]:
    if status == Status.FAILED and contract.failed is not None:
        return {"error": "x"}
    payload = SchemaExamples(_schema_of(contract)).example(filled=_needed(contract, status))
    if not isinstance(payload, dict):
        raise NoExample(())
    return copy.deepcopy(payload)


def _schema_of(contract: CompiledContract) -> Mapping[str, Any]:
    origin = contract.origin
    if isinstance(origin, LooseContract):
        schema = origin.schema
    else:
        try:
            schema = origin.model_json_schema(schema_generator=_Quiet) if origin is not None else None
        except PydanticUserError:
            schema = None
    if schema is None:
        raise NoExample(())
    return schema


def _needed(contract: CompiledContract, status: str) -> set[str]:
    """Return the fields that the contract asks for beside its types."""
    options = contract.options
    needed = {Status.READY: set(options.ready_needs), Status.COMPLETED: {"result"}, Status.FAILED: {"error"}}
    fields = needed[Status(status)]
    if options.needs_results:
        fields.add("results")
    if options.irreversible:
        fields.add("operation_id")
    for selected, candidates in options.choices.items():
        if selected.partition(".")[0] in contract.required:
            fields.add(candidates.partition(".")[0])
    return fields


def _status_of(payload: Mapping[str, Any], contract: CompiledContract) -> str:
    """Return the first accepted status for which a given payload brings what is asked for."""
    for status in contract.accepts:
        asked = {Status.READY: contract.options.ready_needs, Status.FAILED: ("error",)}.get(Status(status), ())
        if not any(is_blank(payload.get(name)) for name in asked):
            return status
    return contract.accepts[0]


def _task_of(payload: Mapping[str, Any], contract: CompiledContract) -> str:
    """Return the task that the payload speaks of, else a name of our own."""
    for path in contract.options.same_task:
        for _, value in places(payload, path):
            if isinstance(value, str) and value:
                return value
    return _NAME


def _make_sensible(payload: dict[str, Any], contract: CompiledContract, task_id: str) -> None:
    """Make a derived payload say what can be true: one task, a choice that was offered, enough confidence."""
    options = contract.options
    for path in options.same_task:
        for place, _ in places(payload, path):
            _put(payload, place, task_id)
    for selected, candidates in options.choices.items():
        offered = [value for _, value in places(payload, candidates)]
        for place, value in places(payload, selected) if offered else ():
            _put(payload, place, offered[:1] if isinstance(value, list) else offered[0])
    if options.confidence_min is not None and isinstance(payload.get("confidence"), int | float):
        payload["confidence"] = max(payload["confidence"], options.confidence_min)


def _put(payload: Any, place: tuple[str | int, ...], value: object) -> None:
    for part in place[:-1]:
        payload = payload[part]
    payload[place[-1]] = value
