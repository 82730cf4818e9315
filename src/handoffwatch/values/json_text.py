"""Any Python value to strict JSON text, and where a value has no JSON form."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

DEPTH_MAX: Final = 250
"""Levels of nesting that the encoder takes; deeper values are named, never followed."""

FAULTS_MAX: Final = 20
INTEGER_MAX: Final = 2**63 - 1

_NATIVE: Final = (datetime.datetime, datetime.date, datetime.time, uuid.UUID, enum.Enum)


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a value has no JSON form: the reason code, the path, and the kind of value found there."""

    code: str
    path: tuple[str | int, ...]
    found: str


def encode(value: object) -> bytes:
    """Return `value` as JSON text.

    Models are dumped, mappings become objects; dates and times become RFC 3339 text. Nothing is turned into its
    text form for want of a better one.

    Raises:
        TypeError: The value has no JSON form; `find_faults` says where.
    """
    return orjson.dumps(value, default=_plain)


def decode(text: bytes | str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: The text is not one complete JSON value.
    """
    return orjson.loads(text)


def may_hide_numbers(text: bytes) -> bool:
    """Return whether `encode` may have written a NaN or an infinity as null: then only `find_faults` can tell."""
    return b"null" in text


def find_faults(value: object) -> list[Fault]:
    """Return where `value` has no JSON form, at most 20 places, without recursion and without calling its methods.

    Codes: cyclic_value, too_deep, non_finite_number, unsafe_integer, invalid_text, not_serialisable.
    """
    faults: list[Fault] = []
    stack: list[tuple[object, tuple[str | int, ...], frozenset[int]]] = [(value, (), frozenset())]
    while stack and len(faults) < FAULTS_MAX:
        item, path, parents = stack.pop()
        children = _children(item)
        if children is None:
            code = _leaf_fault(item)
            if code is not None:
                faults.append(Fault(code, path, type(item).__name__))
        elif id(item) in parents:
            faults.append(Fault("cyclic_value", path, type(item).__name__))
        elif len(path) >= DEPTH_MAX:
            faults.append(Fault("too_deep", path[:8], type(item).__name__))
        else:
            below = parents | {id(item)}
            for key, child in reversed(list(children)):
                if isinstance(key, str | int) and not isinstance(key, bool) and (_is_index(item) or _is_text(key)):
                    stack.append((child, (*path, key), below))
                else:
                    code = "invalid_text" if isinstance(key, str) else "not_serialisable"
                    faults.append(Fault(code, path, f"{type(key).__name__} as a key"))
    return faults[:FAULTS_MAX]


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    fields = getattr(type(value), "__pydantic_fields__", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields}
    raise TypeError(type(value).__name__)


def _is_index(item: object) -> bool:
    return isinstance(item, list | tuple)


def _is_text(key: object) -> bool:
    return isinstance(key, str) and _encodable(key)


def _children(item: object) -> Iterator[tuple[object, object]] | None:
    if isinstance(item, Mapping):
        return iter(item.items())
    if isinstance(item, list | tuple):
        return iter(enumerate(item))
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return ((field.name, getattr(item, field.name)) for field in dataclasses.fields(item))
    fields = getattr(type(item), "__pydantic_fields__", None)
    if fields is not None:
        return ((name, getattr(item, name)) for name in fields)
    return None


def _leaf_fault(item: object) -> str | None:
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, str):
        return None if _encodable(item) else "invalid_text"
    if isinstance(item, int):
        return None if -(2**63) <= item <= 2 * INTEGER_MAX + 1 else "unsafe_integer"
    if isinstance(item, float):
        return None if math.isfinite(item) else "non_finite_number"
    return None if isinstance(item, _NATIVE) else "not_serialisable"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
