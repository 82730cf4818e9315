"""Findings about the shape of a handoff: what a validator or the JSON encoder objected to, named by path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic_core import ErrorDetails, ValidationError

from handoffwatch.decision import Finding
from handoffwatch.reasons import REASONS
from handoffwatch.values.json_text import Fault

FINDINGS_MAX: Final = 50
PATH_CHARACTERS_MAX: Final = 200

_EXPECTED: Final[dict[str, str]] = {
    "string_type": "a text",
    "string_sub_type": "a text",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "date_type": "a date as text",
    "datetime_type": "a time as text",
    "time_type": "a time of day as text",
    "decimal_type": "a decimal number",
    "uuid_type": "a UUID as text",
    "bytes_type": "a text",
    "none_required": "null",
    "literal_error": "one of the values that the contract lists",
    "enum": "one of the values that the contract lists",
}
_JSON_KINDS: Final[dict[type, str]] = {
    str: "text",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def finding(code: str, path: str, sentence: str) -> Finding:
    """Return a finding with the reaction, severity and retryability that the vocabulary gives its code."""
    reason = REASONS[code]
    return Finding(code, path, sentence, reason.reaction, reason.severity, reason.retryable)


def kind_of(value: object) -> str:
    """Return what kind of JSON value this is, in words, or the name of its class; never the value."""
    return _JSON_KINDS.get(type(value)) or str(type.__dict__["__name__"].__get__(type(value)))


def dotted(parts: Iterable[str | int]) -> str:
    """Return a path in dots, bounded and printable; `$` is the whole handoff."""
    text = ".".join(str(part) for part in parts)[:PATH_CHARACTERS_MAX]
    if not text.isprintable():
        text = "".join(character if character.isprintable() else "?" for character in text)
    return text or "$"


def findings_of_faults(faults: Iterable[Fault]) -> list[Finding]:
    """Return a finding for each place that has no JSON form."""
    found = []
    for fault in faults:
        path = dotted(fault.path)
        found.append(finding(fault.code, path, f"{path}: {REASONS[fault.code].meaning} (found {fault.found})"))
    return found


def findings_of_error(error: ValidationError, raw: Mapping[str, Any]) -> list[Finding]:
    """Return a finding for each error of a validator, at most 50. Values and the validator's texts are never quoted."""
    details = error.errors(include_url=False, include_context=True, include_input=True)
    found: dict[tuple[str, str], Finding] = {}
    for detail in details[:FINDINGS_MAX]:
        code = _code(detail)
        path = _path(detail["loc"], raw, missing=detail["type"] == "missing")
        found.setdefault((code, path), finding(code, path, _sentence(code, path, detail)))
    return list(found.values())


def _code(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind == "missing":
        return "missing_field"
    if kind == "extra_forbidden":
        return "unknown_field"
    if kind == "finite_number":
        return "non_finite_number"
    if detail["input"] is None:
        return "null_field"
    if kind == "string_too_short" and detail["input"] == "":
        return "empty_field"
    if kind == "too_short" and detail.get("ctx", {}).get("actual_length") == 0:
        return "empty_field"
    if kind == "literal_error" and detail["loc"] == ("status",):
        return "unknown_status"
    if kind in _EXPECTED and kind not in {"literal_error", "enum"}:
        return "type_mismatch"
    return "bad_format"


def _sentence(code: str, path: str, detail: ErrorDetails) -> str:
    if code == "missing_field":
        return f"{path} must be there"
    if code == "unknown_field":
        return f"{path} is not a field of the contract: remove it or correct its name"
    if code == "null_field":
        return f"{path} must have a value, and is null"
    if code == "empty_field":
        return f"{path} must not be empty"
    if code == "non_finite_number":
        return f"{path} must be a finite number"
    if code == "unknown_status":
        return "status must be one of ready, completed, failed"
    expected = _EXPECTED.get(detail["type"])
    if code == "type_mismatch":
        return f"{path} must be {expected}, and is {kind_of(detail['input'])}"
    if expected is not None:
        return f"{path} must be {expected}"
    return f"{path} must satisfy the contract ({detail['type']})"


def _path(loc: tuple[str | int, ...], raw: Mapping[str, Any], *, missing: bool) -> str:
    """Return the path of an error without the names of union members, which stand in `loc` but not in the handoff."""
    parts: list[str | int] = []
    here: Any = raw
    for index, part in enumerate(loc):
        if _holds(here, part):
            parts.append(part)
            here = here[part]
        elif missing and index == len(loc) - 1:
            parts.append(part)
    return dotted(parts)


def _holds(container: object, part: str | int) -> bool:
    if isinstance(container, Mapping):
        return part in container
    return isinstance(container, list | tuple) and isinstance(part, int) and part < len(container)
