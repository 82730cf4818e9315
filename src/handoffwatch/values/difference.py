"""Where two canonical trees differ: each place with how it differs, never with what stands there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from handoffwatch.values.canonical_tree import BYTES, Form, Tree, tree_text
from handoffwatch.values.json_text import KINDS_IN_WORDS
from handoffwatch.values.paths import Rests, is_reached, rests_below
from handoffwatch.vocabulary import DivergenceKind

Path = tuple[str | int, ...]
"""Keys and indices from the top of a tree."""

_DIGITS_MAX: Final = 18
"""A longer index stands in no list that fits into memory."""

NOTHING: Final = "nothing"
"""What is found at a place that is not there."""


_EMPTY: Final[dict[type, str]] = {str: "an empty text", list: "an empty list", dict: "an empty object"}


class Difference(NamedTuple):
    """A place at which two trees differ.

    Attributes:
        path: Keys and indices. A lost part of a list has the index that it had, a new one the index that it has.
        kind: How it differs. A list is only `order` when it holds the same parts on both sides.
        before: What stood there: `text`, `null`, `an empty list`, `datetime`, or `nothing` when it was not there.
        after: The same of the far side. Nothing on both sides is `missing`.
    """

    path: Path
    kind: DivergenceKind
    before: str
    after: str


class Traced(NamedTuple):
    """Where a path leads in a tree: the places that are there, and those that its keys ask for in vain."""

    found: dict[Path, Tree]
    absent: tuple[Path, ...]


def differences(before: Tree, after: Tree, *, at: Path = (), but: Rests = frozenset()) -> Iterator[Difference]:
    """Yield where two canonical trees differ, in the order of keys (by code point) and indices.

    An integer and a float differ, and so do forms of another kind. A container that was emptied is one place. Of two
    lists the parts at the beginning and at the end that are the same are passed over; what is left between them was
    lost or is new when one side has none of it, has another order when both have the same, and else is compared one by
    one. Without recursion; the time is linear in the size of the trees for a given depth.

    Args:
        before: A tree as `Canonical.tree` gives it.
        after: Another.
        at: The path of both, where they are parts of larger trees.
        but: What is left of paths that lead to places that are passed over.
    """
    pairs = [_Pair(at, before, after, but)]
    while pairs:
        pair = pairs.pop()
        path, old, new, rests = pair
        if type(old) is Form and type(new) is Form and old.kind == new.kind:
            if old.kind != BYTES:
                pairs.append(_Pair(path, old.value, new.value, rests))
            elif old != new:
                yield Difference(path, DivergenceKind.CHANGED, in_words(old), in_words(new))
        elif old is _ABSENT or new is _ABSENT or type(old) is not type(new) or type(old) is Form:
            yield _difference(pair)
        elif type(old) in (dict, list):
            if old and not new and not rests:
                yield _difference(pair)
            elif type(old) is dict:
                pairs += reversed(_members(pair))
            elif rests:
                pairs += reversed(_parts(pair, 0, len(old), len(new)))
            elif _is_reordered(old, new, *(unlike := _unlike(old, new))):
                yield Difference(path, DivergenceKind.ORDER, in_words(old), in_words(new))
            else:
                pairs += reversed(_parts(pair, *unlike))
        elif old != new:
            yield _difference(pair)


def differences_at(before: Traced, after: Traced, *, but: Rests = frozenset()) -> Iterator[Difference]:
    """Yield where two trees differ at the places of one path; what is on neither side is missing too.

    Args:
        before: Where the path leads in the one tree.
        after: Where it leads in the other.
        but: Paths from the top that lead to places that are passed over.
    """
    for place, old in before.found.items():
        if place in after.found:
            below = _below(but, place)
            if not is_reached(below):
                yield from differences(old, after.found[place], at=place, but=below)
        else:
            yield _difference(_Pair(place, old, _ABSENT, but))
    for place, new in after.found.items():
        if place not in before.found:
            yield _difference(_Pair(place, _ABSENT, new, but))
    absent = set(after.absent)
    for place in before.absent:
        if place in absent:
            yield Difference(place, DivergenceKind.MISSING, NOTHING, NOTHING)


def trace(tree: Tree, path: str) -> Traced:
    """Return where a path leads in a tree.

    A key or index that is not there is asked for in vain, and so is `*` where there is no container; `*` in an empty
    container is not. A path with `**` is asked for in vain when it leads nowhere.
    """
    found: dict[Path, Tree] = {(): tree}
    absent: list[Path] = []
    parts = path.split(".")
    for index, part in enumerate(parts):
        below: dict[Path, Tree] = {}
        for place, value in found.items():
            if part == "**":
                below.update(_all_levels(place, value))
                continue
            children = list(_children(place, value, part))
            below.update(children)
            if not children and not (part == "*" and type(bare(value)) in (dict, list)):
                absent.append((*place, *parts[index:]))
        found = below
    if "**" in parts:
        absent = [] if found else [tuple(parts)]
    return Traced(found, tuple(absent))


def in_words(tree: Tree) -> str:
    """Return what kind of value stands in a tree, never the value: `text`, `an empty list`, `datetime`."""
    if tree is _ABSENT:
        return NOTHING
    if type(tree) is Form:
        return str(tree.kind)
    kind: type = type(tree)
    return _EMPTY[kind] if kind in _EMPTY and not tree else KINDS_IN_WORDS[kind]


class _Absent:
    """What stands at a place that is not there."""


_ABSENT: Final = _Absent()


class _Pair(NamedTuple):
    """What stands at one place on both sides, and what is left of the paths to places that are passed over."""

    path: Path
    old: Tree
    new: Tree
    rests: Rests


def _difference(pair: _Pair) -> Difference:
    path, old, new, _ = pair
    kind = (
        DivergenceKind.ADDED if old is _ABSENT
        else DivergenceKind.MISSING if new is _ABSENT
        else DivergenceKind.CHANGED if type(old) is type(new) and type(old) is not Form
        else DivergenceKind.TYPE
    )  # fmt: skip
    return Difference(path, kind, in_words(old), in_words(new))


def _members(pair: _Pair) -> list[_Pair]:
    path, old, new, rests = pair
    below = ((key, rests_below(rests, key)) for key in sorted(old.keys() | new.keys()))
    return [
        _Pair((*path, key), old.get(key, _ABSENT), new.get(key, _ABSENT), left)
        for key, left in below
        if not is_reached(left)
    ]


def _parts(pair: _Pair, start: int, old_end: int, new_end: int) -> list[_Pair]:
    """Return the parts of two lists from `start` up to the end that each has."""
    path, old, new, rests = pair
    below = ((index, rests_below(rests, index)) for index in range(start, max(old_end, new_end)))
    return [
        _Pair(
            (*path, index),
            old[index] if index < old_end else _ABSENT,
            new[index] if index < new_end else _ABSENT,
            left,
        )
        for index, left in below
        if not is_reached(left)
    ]


def _is_reordered(old: list[Tree], new: list[Tree], start: int, old_end: int, new_end: int) -> bool:
    """Return whether what differs of two lists is the same parts in another order."""
    if old_end != new_end or start == old_end:
        return False
    return Counter(map(tree_text, old[start:old_end])) == Counter(map(tree_text, new[start:new_end]))


def _unlike(old: list[Tree], new: list[Tree]) -> tuple[int, int, int]:
    """Return where two lists begin to differ, and in each the end of the part that differs."""
    start, shared = 0, min(len(old), len(new))
    while start < shared and _is_same(old[start], new[start]):
        start += 1
    old_end, new_end = len(old), len(new)
    while min(old_end, new_end) > start and _is_same(old[old_end - 1], new[new_end - 1]):
        old_end -= 1
        new_end -= 1
    return start, old_end, new_end


def _is_same(old: Tree, new: Tree) -> bool:
    """Return whether two trees are the same; `==` alone takes 1 for true and for 1.0."""
    return bool(old == new) and tree_text(old) == tree_text(new)


def _below(rests: Rests, place: Path) -> Rests:
    for key in place:
        rests = rests_below(rests, key)
    return rests


def bare(tree: Tree) -> Tree:
    """Return what of a tree can be looked into."""
    return tree.value if type(tree) is Form and tree.kind != BYTES else tree


def _children(place: Path, tree: Tree, part: str) -> Iterator[tuple[Path, Tree]]:
    tree = bare(tree)
    if type(tree) is dict:
        if part == "*":
            yield from (((*place, key), tree[key]) for key in sorted(tree))
        elif part in tree:
            yield (*place, part), tree[part]
    elif type(tree) is list:
        if part == "*":
            yield from (((*place, index), child) for index, child in enumerate(tree))
        elif part.isascii() and part.isdigit() and len(part) <= _DIGITS_MAX and int(part) < len(tree):
            yield (*place, int(part)), tree[int(part)]


def _all_levels(place: Path, tree: Tree) -> Iterator[tuple[Path, Tree]]:
    stack = [(place, tree)]
    while stack:
        here, value = stack.pop()
        yield here, value
        stack += reversed(list(_children(here, value, "*")))
