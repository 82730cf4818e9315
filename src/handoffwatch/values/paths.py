"""Paths into JSON-like data: keys and indices with dots, `*` for every key or index of one level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Place = tuple[tuple[str | int, ...], object]
"""Where a value stands, and the value."""


def is_path(text: object) -> bool:
    """Return whether a text is a path: parts with dots between them, none of them empty."""
    return isinstance(text, str) and bool(text) and all(text.split("."))


def places(value: object, path: str) -> Iterator[Place]:
    """Return every place that a path names in a value, in order; a part that is not there names none."""
    found: list[Place] = [((), value)]
    for part in path.split("."):
        found = [place for here in found for place in _below(here, part)]
    return iter(found)


def _below(here: Place, part: str) -> Iterator[Place]:
    path, value = here
    if isinstance(value, Mapping):
        if part == "*":
            yield from (((*path, key), child) for key, child in value.items())
        elif part in value:
            yield (*path, part), value[part]
    elif isinstance(value, list):
        if part == "*":
            yield from (((*path, index), child) for index, child in enumerate(value))
        elif part.isascii() and part.isdigit() and int(part) < len(value):
            yield (*path, int(part)), value[int(part)]
