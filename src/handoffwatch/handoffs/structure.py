"""Findings about the shape of a handoff: what a validator or the JSON encoder objected to, named by path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic_core import ErrorDetails, ValidationError

from handoffwatch.decision import Finding
from handoffwatch.reasons import REASONS
from handoffwatch.values.json_text import DEPTH_MAX, KINDS_IN_WORDS, PLAIN_TYPES, Fault, kind_of
from handoffwatch.values.paths import PATH_CHARACTERS_MAX, dotted
from handoffwatch.vocabulary import Reaction, Severity

FINDINGS_MAX: Final = 50

_DOTTED: Final = tuple(".".join(["%s"] * steps) for steps in range(DEPTH_MAX + 1))
"""Makes a path of so many steps its text."""

_new: Final = tuple.__new__
"""Makes a named tuple of all its fields, without the call of a Python function for each finding."""

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


def finding(code: str, path: str, sentence: str) -> Finding:
    """Return a finding with the reaction, severity and retryability that the vocabulary gives its code."""
    reason = REASONS[code]
    return Finding(code, path, sentence, reason.reaction, reason.severity, reason.retryable)


def kind_in_words(value: object) -> str:
    """Return what kind of JSON value this is, in words, or the name of its class; never the value."""
    return KINDS_IN_WORDS.get(type(value)) or kind_of(value)


def findings_of_faults(faults: Iterable[Fault]) -> list[Finding]:
    """Return a finding for each place that has no JSON form."""
    found = []
    for fault in faults:
        path = dotted(fault.path)
        found.append(finding(fault.code, path, fault.sentence(path)))
    return found


def findings_of_errors(
    details: Iterable[ErrorDetails], raw: Mapping[str, Any], *, is_tagged: bool = True
) -> list[Finding]:
    """Return a finding for each error of a validator. Values and the validator's texts are never quoted.

    Args:
        details: What the validator objected to, as `errors_of` gives it.
        raw: What it judged.
        is_tagged: Whether its places may hold the names of union members, which stand nowhere in the handoff.
    """
    found: list[Finding] = []
    for detail in details:
        kind, place, value = detail["type"], detail["loc"], detail["input"]
        path = (
            _path(place, raw, missing=kind == "missing")
            if is_tagged or len(place) > DEPTH_MAX
            else _DOTTED[len(place)] % place
        )
        if not path.isprintable() or len(path) > PATH_CHARACTERS_MAX or not path:
            path = dotted([path])
        code, tail, reaction, severity, retryable = _OBJECTIONS.get((kind, type(value))) or _objection(
            kind, place, value
        )
        found.append(_new(Finding, (code, path, path + tail, reaction, severity, retryable, "validate")))
    return list(dict.fromkeys(found)) if is_tagged else found


def errors_of(error: ValidationError) -> list[ErrorDetails]:
    """Return what a validator objected to, at most 50, with the values it saw: they are looked at, never passed on."""
    return error.errors(include_url=False, include_context=False, include_input=True)[:FINDINGS_MAX]


_Objection = tuple[str, str, Reaction, Severity, bool]
"""Code, the sentence after the path, and what the code's reason says of reaction, severity and retryability."""

_OBJECTIONS: Final[dict[tuple[str, type], _Objection]] = {}
"""By the validator's word and the type of the value, for those that no value can change."""


def _objection(kind: str, place: tuple[str | int, ...], value: object) -> _Objection:
    """Return what an error comes to."""
    code, tail = _named(kind, place, value)
    reason = REASONS[code]
    objection = code, tail, reason.reaction, reason.severity, reason.retryable
    if code in _FIXED and type(value) in PLAIN_TYPES:
        _OBJECTIONS[kind, type(value)] = objection
    return objection


_FIXED: Final = frozenset({"missing_field", "unknown_field", "non_finite_number", "null_field", "type_mismatch"})


def _named(kind: str, place: tuple[str | int, ...], value: object) -> tuple[str, str]:
    if kind == "missing":
        return "missing_field", " must be there"
    if kind == "extra_forbidden":
        return "unknown_field", " is not a field of the contract: remove it or correct its name"
    if kind == "finite_number":
        return "non_finite_number", " must be a finite number"
    if value is None:
        return "null_field", " must have a value, and is null"
    if kind in {"string_too_short", "too_short"} and isinstance(value, str | list | dict) and not value:
        return "empty_field", " must not be empty"
    if kind == "literal_error" and place == ("status",):
        return "unknown_status", " must be one of ready, completed, failed"
    expected = _EXPECTED.get(kind)
    if expected is None:
        return "bad_format", f" must satisfy the contract ({kind})"
    if kind in {"literal_error", "enum"}:
        return "bad_format", f" must be {expected}"
    return "type_mismatch", f" must be {expected}, and is {kind_in_words(value)}"


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
