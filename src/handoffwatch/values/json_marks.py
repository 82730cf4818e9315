"""The JSON form of anything that is neither a text nor a container, and the marks that stand where there is none."""

from __future__ import annotations

import datetime
import json
import math
import uuid
from typing import Final

import orjson

from handoffwatch.values.json_text import INTEGER_BITS_MAX, kind_of

CYCLIC: Final = "[cyclic]"
TOO_DEEP: Final = "[too deep]"
LEFT_OUT: Final = "[left out]"

_KIND_CHARACTERS_MAX: Final = 100
_NATIVE: Final = frozenset({datetime.datetime, datetime.date, datetime.time, uuid.UUID})


def json_form(value: object) -> bool | int | float | str | None:
    """Return a value as JSON has it: null, booleans, numbers, and dates, times and ids as text; else a mark.

    Raises:
        Exception: Whatever a foreign value raises when it is read.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        whole = int.__int__(value)
        return whole if whole.bit_length() <= INTEGER_BITS_MAX else mark_of_kind(value)
    if isinstance(value, float):
        real = float.__float__(value)
        return real if math.isfinite(real) else f"[{json.dumps(real)}]"
    return orjson.dumps(value)[1:-1].decode() if type(value) in _NATIVE else mark_of_kind(value)


def key_text(key: object) -> str:
    """Return a key as the text that JSON writes for it; a mark for a key that JSON does not have. Never raises."""
    try:
        if isinstance(key, str):
            return str.__str__(key)
        form = json_form(key)
        return form if isinstance(form, str) else json.dumps(form)
    except Exception:  # noqa: BLE001 - a foreign key may raise whatever is asked of it: its class says enough
        return mark_of_kind(key)


def mark_of_kind(value: object) -> str:
    """Return the mark of a value without a JSON form: the name of its class, nothing of itself."""
    return f"[no JSON form: {kind_of(value)[:_KIND_CHARACTERS_MAX]}]"
