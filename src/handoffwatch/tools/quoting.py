"""Why a tool refused its arguments, as a model may read it: bounded, on one line, quoted, without secrets."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Final

from handoffwatch.tools.foreign import attribute_of, member_of
from handoffwatch.values.secret_names import is_secret_name
from handoffwatch.values.secret_shapes import without_secrets

DETAIL_CHARACTERS_MAX: Final = 200

_READ_CHARACTERS_MAX: Final = 4_096
_NAMES: Final = ("message", "detail", "error", "reason", "title", "error_description")
_LISTS: Final = ("errors", "content")
_ITEMS_MAX: Final = 3
_DEPTH_MAX: Final = 3


def quoted_reason(told: object) -> str:
    """Return why a tool refused, as it may be shown to a model; empty when it says nothing.

    What a service says is data: a sentence in it that reads like an instruction stands in quotes, and no control or
    invisible character, line break or secret of a known shape gets through.

    Args:
        told: What the tool returned or raised.
    """
    for text in _texts(told):
        cleaned = _cleaned(text)
        if cleaned:
            return cleaned
    return ""


def _texts(told: object) -> Iterator[str]:
    """Give what may say why, the best first."""
    if isinstance(told, BaseException):
        response = attribute_of(told, "response")
        if response is not None:
            yield from _of_response(response)
        yield from _of_body(attribute_of(told, "body"), _DEPTH_MAX)
        yield str(told) if type(told).__str__ is not object.__str__ else ""
    elif attribute_of(told, "headers") is not None:
        yield from _of_response(told)
    else:
        yield from _of_body(told, _DEPTH_MAX)


def _of_response(response: object) -> Iterator[str]:
    try:
        yield from _of_body(response.json(), _DEPTH_MAX)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - no JSON, or a body that was not read: its text is tried next
        text = attribute_of(response, "text")
        if isinstance(text, str):
            yield text


def _of_body(body: object, depth: int) -> Iterator[str]:
    if isinstance(body, str):
        yield body
    if depth == 0 or isinstance(body, str | bytes):
        return
    for name in _NAMES:
        yield from _of_body(member_of(body, name), depth - 1)
    for name in _LISTS:
        items = member_of(body, name)
        for item in islice(items, _ITEMS_MAX) if isinstance(items, list | tuple) else ():
            yield from _of_body(member_of(item, "text") or item, depth - 1)


def _cleaned(text: str) -> str:
    said = without_secrets(text[:_READ_CHARACTERS_MAX], is_secret=is_secret_name)
    kept = (" " if character.isspace() else character for character in said if _is_shown(character))
    line = " ".join("".join(kept).split()).replace('"', "'")
    return line if len(line) <= DETAIL_CHARACTERS_MAX else line[: DETAIL_CHARACTERS_MAX - 1] + "…"


def _is_shown(character: str) -> bool:
    return character.isspace() or not unicodedata.category(character).startswith("C")
