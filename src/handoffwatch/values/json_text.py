"""Any Python value to strict JSON text: whether it may be given to the encoder, and where it has no JSON form."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import itertools
import json
import math
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from handoffwatch.reasons import REASONS

DEPTH_MAX: Final = 64
"""Levels of nesting that are read; deeper values are named, never followed. Source: DESIGN section 11."""

FAULTS_MAX: Final = 20

INTEGER_MAX: Final = 2**53 - 1
"""The largest integer that every reader of JSON keeps exactly. Source: RFC 8259 section 6."""

INTEGER_BITS_MAX: Final = 2_048
"""Longer integers have no text in a Python that bounds the conversion. Source: sys.set_int_max_str_digits."""

PLAIN_TYPES: Final = frozenset({dict, list, str, int, float, bool, type(None)})
"""The types that JSON has; a value of another type is judged by its JSON text."""

KINDS_IN_WORDS: Final[dict[type, str]] = {
    str: "text",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}

_SCALARS: Final = frozenset({str, bool, type(None)})
_NATIVE: Final = (datetime.datetime, datetime.date, datetime.time, uuid.UUID)
_LONG_NUMBER: Final = re.compile(rb"[0-9]{16}")
_CONSTANT: Final = re.compile(rb"NaN|Infinity")


class Shape(enum.Enum):
    """What a value is to the encoder.

    PLAIN: dicts, lists and scalars only, so the value and its JSON text say the same. CONVERTIBLE: it may be encoded,
    and only its JSON text can be judged. BENT: it may be encoded, and a number would be another one for its reader.
    TOO_DEEP and TOO_LARGE: it must not be encoded.
    """

    PLAIN = "plain"
    CONVERTIBLE = "convertible"
    BENT = "bent"
    TOO_DEEP = "too_deep"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a value has no JSON form: the reason code, the path, and the kind of value found there."""

    code: str
    path: tuple[str | int, ...]
    found: str

    def sentence(self, path: str) -> str:
        """Return what is wrong, at a path as it may be shown."""
        return f"{path}: {REASONS[self.code].meaning} (found {self.found})"


class TooDeep(ValueError):
    """A JSON text is nested more deeply than any reader takes."""


def survey(value: object, *, values_max: int) -> Shape:
    """Return what `value` is to the encoder, level by level and without recursion.

    The encoder has no bound of its own for tuples, nor for a value that is small because it shares its parts.

    Args:
        value: Anything.
        values_max: The most values that may be encoded, each counted as often as it stands there.
    """
    level: Collection[object] = (value,)
    seen = 0
    plain, bent = True, False
    for _ in range(DEPTH_MAX + 1):
        below: list[object] = []
        for item in level:
            kind = type(item)
            if kind is dict:
                item = item.values()  # type: ignore[attr-defined]
            elif kind is not list:
                bent = bent or (isinstance(item, int | float) and not -INTEGER_MAX <= item <= INTEGER_MAX)
                plain = plain and kind in PLAIN_TYPES
                item = tuple(itertools.islice(_values(item), values_max - seen + 1))
            seen += len(item)  # type: ignore[arg-type]
            if seen > values_max:
                return Shape.TOO_LARGE
            for child in item:  # type: ignore[attr-defined]
                kind = type(child)
                if kind is int or kind is float:
                    bent = bent or not -INTEGER_MAX <= child <= INTEGER_MAX
                elif kind not in _SCALARS:
                    below.append(child)
        if not below:
            return Shape.BENT if bent else Shape.PLAIN if plain else Shape.CONVERTIBLE
        level = below
    return Shape.TOO_DEEP


def encode(value: object) -> bytes:
    """Return a surveyed value as JSON text.

    Models are dumped, mappings become objects, tuples lists; dates and times become RFC 3339 text. Nothing is turned
    into its text form for want of a better one.

    Raises:
        TypeError: The value has no JSON form; `find_faults` says where.
    """
    return orjson.dumps(value, default=_plain)


def canonical(value: object) -> bytes:
    """Return the JSON text of a plain value with its keys in order: equal values give equal texts; 1 is not true."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def decode(text: bytes | str) -> Any:
    """Return the value of a JSON text; integers keep all their digits.

    NaN, Infinity and halves of characters, which some writers let through, are read: `survey` and `encode` refuse them.

    Raises:
        TooDeep: The text is nested too deeply.
        ValueError: The text is not one complete JSON value.
    """
    raw = text.encode() if isinstance(text, str) else text
    try:
        if _LONG_NUMBER.search(raw):
            return json.loads(raw)
        try:
            return orjson.loads(raw)
        except ValueError as error:
            if "depth limit" in str(error) or "recursion" in str(error).lower():
                raise TooDeep("nested too deeply") from None
            if "surrogate" in str(error) or _CONSTANT.search(raw):
                return json.loads(raw)
            raise
    except RecursionError:
        raise TooDeep("nested too deeply") from None


def find_faults(value: object) -> list[Fault]:
    """Return where a value has no JSON form, at most 20 places, without recursion.

    Codes: cyclic_value, too_deep, non_finite_number, unsafe_integer, invalid_text, not_serialisable.
    """
    faults: list[Fault] = []
    stack: list[tuple[object, tuple[str | int, ...], frozenset[int]]] = [(value, (), frozenset())]
    while stack and len(faults) < FAULTS_MAX:
        item, path, parents = stack.pop()
        children = children_of(item)
        if children is None:
            code = _leaf_fault(item)
            if code is not None:
                faults.append(Fault(code, path, kind_of(item)))
        elif id(item) in parents:
            faults.append(Fault("cyclic_value", path, kind_of(item)))
        elif len(path) >= DEPTH_MAX:
            faults.append(Fault("too_deep", path[:8], kind_of(item)))
        else:
            below = parents | {id(item)}
            for key, child in reversed(list(children)):
                if isinstance(key, str | int) and not isinstance(key, bool) and (is_list(item) or _is_text(key)):
                    stack.append((child, (*path, key), below))
                else:
                    code = "invalid_text" if isinstance(key, str) else "not_serialisable"
                    faults.append(Fault(code, path, f"{kind_of(key)} as a key"))
    return faults[:FAULTS_MAX]


def members_of(value: object) -> dict[object, object] | None:
    """Return the members of what becomes a JSON object, as they are; None for anything else."""
    children = None if is_list(value) else children_of(value)
    return None if children is None else dict(children)


def children_of(item: object) -> Iterator[tuple[object, object]] | None:
    """Return the parts of a container; the built-in ones are read by their own methods, whatever a subclass says."""
    if isinstance(item, dict):
        return iter(dict.items(item))
    if isinstance(item, list):
        return enumerate(list.__iter__(item))
    if isinstance(item, tuple):
        return enumerate(tuple.__iter__(item))
    if isinstance(item, Mapping):
        return iter(item.items())
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return ((field.name, getattr(item, field.name)) for field in dataclasses.fields(item))
    if isinstance(getattr(type(item), "__pydantic_fields__", None), dict):
        return iter((vars(item) | (getattr(item, "__pydantic_extra__", None) or {})).items())
    return None


def is_list(item: object) -> bool:
    """Return whether a value becomes a JSON list."""
    return isinstance(item, list | tuple)


def kind_of(item: object) -> str:
    """Return the name of a value's class, without asking the class."""
    return str(type.__dict__["__name__"].__get__(type(item)))


def _plain(value: object) -> object:
    children = children_of(value)
    if children is None:
        raise TypeError(kind_of(value))
    return [child for _, child in children] if is_list(value) else dict(children)


def _values(item: object) -> Iterable[object]:
    if isinstance(item, enum.Enum):
        return (item.value,)
    children = children_of(item)
    return () if children is None else (child for _, child in children)


def _leaf_fault(item: object) -> str | None:
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, enum.Enum):
        return _leaf_fault(item.value) if type(item.value) in PLAIN_TYPES else "not_serialisable"
    if isinstance(item, str):
        return None if is_encodable(item) else "invalid_text"
    if isinstance(item, int):
        return None if -INTEGER_MAX <= item <= INTEGER_MAX else "unsafe_integer"
    if isinstance(item, float):
        return None if math.isfinite(item) else "non_finite_number"
    return None if isinstance(item, _NATIVE) else "not_serialisable"


def is_encodable(text: str) -> bool:
    """Return whether a text is free of halves of characters, which no encoder takes."""
    if str.isascii(text):
        return True
    try:
        str.encode(text)
    except UnicodeEncodeError:
        return False
    return True


def _is_text(key: object) -> bool:
    return isinstance(key, str) and is_encodable(key)
