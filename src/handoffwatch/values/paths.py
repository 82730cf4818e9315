"""Paths into JSON-like data: keys and indices with dots, `*` for every key or index of one level.

`places` looks up one path in a value. Who walks through a value anyway follows many paths at once: `rests_of` at the
top, `rests_below` at each step down, and `is_reached` tells that a path leads here. Only these know `**`, which stands
for any number of levels, also none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

PATH_CHARACTERS_MAX: Final = 200

Place = tuple[tuple[str | int, ...], object]
"""Where a value stands, and the value."""

Rests = frozenset[tuple[str, ...]]
"""Of each path that may still lead somewhere below a place, the parts that are left."""

_ANY_LEVELS = "**"


def is_path(text: object) -> bool:
    """Return whether a text is a path: parts with dots between them, none of them empty."""
    return isinstance(text, str) and bool(text) and all(text.split("."))


def dotted(parts: Iterable[str | int]) -> str:
    """Return a path in dots, bounded and printable; `$` is the whole value."""
    text = ".".join(str(part) for part in parts)[:PATH_CHARACTERS_MAX]
    if not text.isprintable():
        text = "".join(character if character.isprintable() else "?" for character in text)
    return text or "$"


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


def rests_of(paths: Iterable[str]) -> Rests:
    """Return what is left of paths at the top of a value: all their parts."""
    return frozenset(tuple(path.split(".")) for path in paths)


def rests_below(rests: Rests, key: str | int) -> Rests:
    """Return what is left of paths one level further down, under a key of an object or an index of a list."""
    return frozenset(rest for parts in rests for rest in _rests_after(parts, key)) if rests else rests


def is_reached(rests: Rests) -> bool:
    """Return whether one of the paths leads to this very place."""
    return bool(rests) and any(all(part == _ANY_LEVELS for part in rest) for rest in rests)


def leads_to(path: str, place: Iterable[str | int]) -> bool:
    """Return whether a path leads to a place, given by its keys and indices."""
    rests = rests_of((path,))
    for key in place:
        rests = rests_below(rests, key)
    return is_reached(rests)


def is_bare_name(path: str) -> bool:
    """Return whether a path is a name, for those who let names match at any depth."""
    return "." not in path and bool(path.strip("*"))


def names_or_leads_to(path: str, place: tuple[str | int, ...]) -> bool:
    """Return whether a path is the last key of a place, or leads there."""
    return path == place[-1] or leads_to(path, place)


def _rests_after(parts: tuple[str, ...], key: str | int) -> Iterator[tuple[str, ...]]:
    for at, part in enumerate(parts):
        if part != _ANY_LEVELS:
            if part == "*" or _is_for(part, key):
                yield parts[at + 1 :]
            return
        yield parts[at:]


def _is_for(part: str, key: str | int) -> bool:
    if isinstance(key, str):
        return part == key
    return part.isascii() and part.isdigit() and (part.lstrip("0") or "0") == str(key)
