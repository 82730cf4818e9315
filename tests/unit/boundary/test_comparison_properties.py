"""What must hold of every state and policy: damage at an exact path is always named, equal states never stop."""

from __future__ import annotations

import copy
import enum
import pickle
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st

from handoffwatch.boundary.comparison import Comparison
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.vocabulary import Reaction
from support.crossings import crossing


class Colour(enum.Enum):
    """An enumeration."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A dataclass."""

    x: Any
    y: Any


keys = st.text("abcé", min_size=1, max_size=3)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.binary(max_size=4)
    | st.datetimes(timezones=st.none() | st.just(UTC) | st.just(timezone(timedelta(hours=2))))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.uuids()
    | st.sampled_from(Colour)
    | st.sets(st.integers(0, 9), max_size=3)
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=10,
)
states = st.dictionaries(keys, values, min_size=1, max_size=4).map(lambda state: {"schema_version": 1, **state})


def fields(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every value that stands under a key."""
    inner = value.items() if isinstance(value, dict) else vars(value).items() if isinstance(value, Point) else ()
    for key, child in inner:
        yield (*path, key)
        yield from fields(child, (*path, key))
    if isinstance(value, list | tuple):
        for index, child in enumerate(value):
            yield from fields(child, (*path, str(index)))


def at(value: Any, path: tuple[str, ...]) -> Any:
    """Return what stands at a path."""
    for key in path:
        value = (
            value[key] if isinstance(value, dict)
            else value[int(key)] if isinstance(value, list | tuple)
            else getattr(value, key)
        )  # fmt: skip
    return value


def put(value: Any, path: tuple[str, ...], new: Any) -> Any:
    """Return a copy of a value with another one at a path."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**value, key: put(value[key], rest, new)}
    if isinstance(value, Point):
        return Point(**{**vars(value), key: put(getattr(value, key), rest, new)})
    parts = [put(child, rest, new) if index == int(key) else child for index, child in enumerate(value)]
    return type(value)(parts)


def without(value: Any, path: tuple[str, ...]) -> Any:
    """Return a copy of a value that has lost what stands at a path."""
    holder = at(value, path[:-1])
    assume(isinstance(holder, dict))
    return put(value, path[:-1], {key: child for key, child in holder.items() if key != path[-1]})


def of_another_type(value: Any, random: Random) -> Any:
    """Return what an importer makes of a value that it cannot rebuild."""
    made = [[value], {"value": value}, repr(value), True if value is not True else 1, Point(1, 2)]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        made.append(float(value))
    if isinstance(value, datetime):
        made.append(value.isoformat())
    if isinstance(value, Point):
        made.append(vars(value))
    if isinstance(value, Colour):
        made.append(value.value)
    if isinstance(value, set):
        made.append(sorted(value))
    return random.choice([new for new in made if type(new) is not type(value)])


def with_one_element_changed(value: Any, random: Random) -> Any:
    """Return a container in which one element is another one."""
    assume(isinstance(value, list | tuple | dict | set | Point) and (isinstance(value, Point) or len(value) > 0))
    if isinstance(value, set):
        return {*sorted(value)[1:], 99}
    inner = [str(index) for index in range(len(value))] if isinstance(value, list | tuple) else None
    key = random.choice(inner or sorted(vars(value) if isinstance(value, Point) else value))
    return put(value, (key,), "another element")


def emptied(value: Any, random: Random) -> Any:
    """Return the empty value of the same type."""
    assume(isinstance(value, list | tuple | dict | set | str | bytes) and len(value) > 0)
    return type(value)()


DAMAGES = {
    "emptied": emptied,
    "null": lambda value, random: None,
    "of another type": of_another_type,
    "one element changed": with_one_element_changed,
}


@given(states, st.data(), st.sampled_from(["lost", *DAMAGES]), st.randoms(use_true_random=False))
def test_damage_is_named_when_it_is_at_an_exact_path(
    before: dict[str, Any], data: st.DataObject, damage: str, random: Random
) -> None:
    """Lost, emptied, null, another type or one element: a finding that blocks, at the path and for its pattern."""
    path = data.draw(st.sampled_from(sorted(fields(before))), label="exact path")
    value = at(before, path)
    assume(damage == "lost" or damage != "null" or value is not None)
    after = without(before, path) if damage == "lost" else put(before, path, DAMAGES[damage](value, random))
    pattern = ".".join(path)

    comparison = crossing(before, after, BoundaryPolicy(exact_paths=(pattern,)))

    assert pattern in comparison.diverged
    found = [each for each, broken in zip(*comparison, strict=True) if broken == pattern]
    assert all(each.reaction is Reaction.BLOCK and each.code != "rest_changed" for each in found)
    assert all(each.path == pattern or each.path.startswith(f"{pattern}.") for each in found)


@given(states, st.data(), st.sampled_from(["lost", *DAMAGES]), st.randoms(use_true_random=False))
def test_damage_is_found_when_no_path_names_it(
    before: dict[str, Any], data: st.DataObject, damage: str, random: Random
) -> None:
    """What no path names is compared as well; nothing passes because nobody thought of it."""
    path = data.draw(st.sampled_from(sorted(fields(before))), label="damaged path")
    assume(path != ("schema_version",))
    value = at(before, path)
    assume(damage == "lost" or damage != "null" or value is not None)
    after = without(before, path) if damage == "lost" else put(before, path, DAMAGES[damage](value, random))

    assert crossing(before, after, BoundaryPolicy()).diverged == ("**",)


def remade(value: Any, random: Random) -> Any:
    """Return a value that the rules call equal: other containers, other orders, another zero."""
    if isinstance(value, dict):
        pairs = [(key, remade(child, random)) for key, child in value.items()]
        random.shuffle(pairs)
        return random.choice([dict, OrderedDict])(pairs)
    if isinstance(value, list | tuple):
        return random.choice([list, tuple])([remade(child, random) for child in value])
    if isinstance(value, Point):
        return Point(remade(value.x, random), remade(value.y, random))
    if isinstance(value, set):
        return frozenset(sorted(value, reverse=True))
    if isinstance(value, bytes):
        return bytearray(value)
    if isinstance(value, float) and value == 0:
        return -value
    if isinstance(value, datetime) and value.tzinfo is UTC:
        return value.replace(tzinfo=timezone(timedelta()))
    return copy.copy(value)


@given(states, st.randoms(use_true_random=False))
def test_equal_states_have_no_finding_when_they_were_made_another_way(before: dict[str, Any], random: Random) -> None:
    """Over all supported types, with every path exact: what the rules call equal is never stopped."""
    exact = tuple(".".join(path) for path in fields(before))
    made = BoundaryPolicy(exact_paths=exact)

    for after in (remade(before, random), copy.deepcopy(before), pickle.loads(pickle.dumps(before))):
        assert crossing(before, after, made) == Comparison((), ())
        assert crossing(after, before, made) == Comparison((), ())


def test_all_types_are_drawn_when_states_are_made() -> None:
    """The strategy above names each supported type; this one state holds them all and survives."""
    state = {
        "schema_version": "1", "list": [1, 2.5, None, True], "big": 2**80, "set": {1, 2}, "bytes": b"\x00",
        "at": datetime(2026, 1, 1, tzinfo=UTC), "day": date(2026, 1, 1), "wait": timedelta(seconds=1),
        "price": Decimal("1.10"), "id": UUID(int=1), "colour": Colour.RED, "point": Point(1, (2, 3)),
    }  # fmt: skip
    made = BoundaryPolicy(exact_paths=tuple(state))

    assert crossing(state, copy.deepcopy(state), made) == Comparison((), ())
