"""The canonical form: one text for equal states, a finished copy, and a fault for what has none."""

from __future__ import annotations

import dataclasses
import enum
import gc
import hashlib
import json
import uuid
from collections import Counter, OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from datetime import time as time_of_day
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from handoffwatch.values import canonical
from handoffwatch.values.canonical import Canonical, CanonicalRules, canonical_form
from handoffwatch.values.canonical_tree import LOCAL_MAX, kinds_in
from handoffwatch.values.json_text import DEPTH_MAX, FAULTS_MAX, Fault
from support import hostile_values


class Colour(enum.Enum):
    """An enumeration of texts."""

    RED = "red"


class Shade(enum.StrEnum):
    """An enumeration whose members are texts."""

    DARK = "dark"


class Size(enum.IntEnum):
    """An enumeration whose members are integers."""

    BIG = 2


class Odd(enum.Enum):
    """An enumeration of something that JSON does not have."""

    THING = object()


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int
    y: object = None


class Order(BaseModel):
    """A model that keeps what it does not know."""

    model_config = ConfigDict(extra="allow")

    order_id: str


class Pair(NamedTuple):
    """A named tuple."""

    left: object
    right: object


class Id(str):
    """A text with a class of its own."""

    __slots__ = ()


def nested(levels: int, leaf: object = 1) -> Any:
    """Return a value in so many lists."""
    for _ in range(levels):
        leaf = [leaf]
    return leaf


def walked(state: object, rules: CanonicalRules | None = None) -> Canonical:
    """Return the form of a state that is read value by value, whatever it holds."""
    rules = rules or CanonicalRules()
    return canonical_form(state, rules=dataclasses.replace(rules, sets=(*rules.sets, "no.such.path")))


DIGEST_OF_FF = hashlib.sha256(b"\xff").hexdigest()


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}', None),
        ((1, (2,)), "[1,[2]]", None),
        (Counter(a=2), '{"a":2}', None),
        (OrderedDict(b=1, a=2), '{"a":2,"b":1}', None),
        (defaultdict(list, a=[]), '{"a":[]}', None),
        (MappingProxyType({"a": 1}), '{"a":1}', None),
        (UserDict(a=1), '{"a":1}', None),
        ({3, 1, 2}, "[1,2,3]", "set"),
        (frozenset({"b", "a"}), '["a","b"]', "set"),
        ({10, 9, "9"}, '["9",10,9]', "set"),
        ("é😀\x00\u2028/", '"é😀\\u0000\u2028/"', None),
        (Id("a"), '"a"', None),
        (True, "true", None),
        (1, "1", None),
        (2**64 - 1, "18446744073709551615", None),
        (-(2**63), "-9223372036854775808", None),
        (2**64, '"18446744073709551616"', "int"),
        (-(2**63) - 1, '"-9223372036854775809"', "int"),
        (1.0, "1.0", None),
        (-0.0, "0.0", None),
        (0.1, "0.1", None),
        (None, "null", None),
        (datetime(2026, 3, 29, 2, 30, tzinfo=UTC), '"2026-03-29T02:30:00Z"', "datetime"),
        (datetime(2026, 3, 29, 2, 30, 0, 1), '"2026-03-29T02:30:00.000001"', "datetime"),
        (date(2026, 3, 29), '"2026-03-29"', "date"),
        (time_of_day(2, 30), '"02:30:00"', "time"),
        (time_of_day(2, 30, tzinfo=UTC), '"02:30:00Z"', "time"),
        (timedelta(days=1, microseconds=1), "86400000001", "timedelta"),
        (Decimal("1.10"), '"1.10"', "Decimal"),
        (Decimal("-0.0"), '"0.0"', "Decimal"),
        (Decimal("1E+3"), '"1E+3"', "Decimal"),
        (uuid.UUID(int=10), '"00000000-0000-0000-0000-00000000000a"', "UUID"),
        (b"\xff", f'{{"length":1,"sha256":"{DIGEST_OF_FF}"}}', "bytes"),
        (bytearray(b"\xff"), f'{{"length":1,"sha256":"{DIGEST_OF_FF}"}}', "bytes"),
        (memoryview(b"\xff"), f'{{"length":1,"sha256":"{DIGEST_OF_FF}"}}', "bytes"),
        (Colour.RED, '"red"', "Colour"),
        (Shade.DARK, '"dark"', "Shade"),
        (Size.BIG, "2", "Size"),
        (Point(1, (2,)), '{"x":1,"y":[2]}', "Point"),
        (Order(order_id="4417", note=None), '{"note":null,"order_id":"4417"}', "Order"),
        (Pair(1, "b"), '[1,"b"]', "Pair"),
    ],
    ids=repr,
)  # fmt: skip
def test_canonical_form_is_the_written_one_when_a_type_has_a_rule(value: object, text: str, kind: str | None) -> None:
    """BR-036: each type has its JSON, and the kind where JSON does not have the type."""
    form = canonical_form({"v": value})

    assert form.json.decode() == f'{{"v":{text}}}'
    assert kinds_in(form.tree) == ([] if kind is None else [(("v",), kind)])
    assert (form.faults, form.local) == ((), ())
    assert canonical_form(value).json.decode() == text


@pytest.mark.parametrize(
    ("value", "code", "path", "found"),
    [
        (object(), "not_serialisable", ("v",), "object"),
        ([1, Fraction(1, 3)], "not_serialisable", ("v", 1), "Fraction"),
        (1 + 2j, "not_serialisable", ("v",), "complex"),
        (range(3), "not_serialisable", ("v",), "range"),
        (PurePosixPath("/a"), "not_serialisable", ("v",), "PurePosixPath"),
        (deque([1]), "not_serialisable", ("v",), "deque"),
        (print, "not_serialisable", ("v",), "builtin_function_or_method"),
        (Order, "not_serialisable", ("v",), "ModelMetaclass"),
        (Odd.THING, "not_serialisable", ("v",), "Odd"),
        ({1: 2}, "not_serialisable", ("v",), "int as a key"),
        ({Colour.RED: 2}, "not_serialisable", ("v",), "Colour as a key"),
        ({"\ud800": 2}, "invalid_text", ("v",), "str as a key"),
        ({"a": "\ud800"}, "invalid_text", ("v", "a"), "str"),
        (float("nan"), "non_finite_number", ("v",), "float"),
        (-float("inf"), "non_finite_number", ("v",), "float"),
        (Decimal("sNaN"), "non_finite_number", ("v",), "Decimal"),
        (2**2_048, "unsafe_integer", ("v",), "int"),
        ({"s": {object}}, "not_serialisable", ("v", "s", "*"), "type"),
        ({Id("a"): 1, "b": {None: 1}}, "not_serialisable", ("v", "b"), "NoneType as a key"),
    ],
    ids=repr,
)
def test_canonical_form_names_path_and_type_when_a_value_has_no_rule(
    value: object, code: str, path: tuple[str | int, ...], found: str
) -> None:
    """BR-036: what has no written rule is a fault, and the form is empty; no text form stands in."""
    form = canonical_form({"v": value})

    assert form.faults == (Fault(code, path, found),)
    assert (form.json, form.digest, form.value) == (b"", "", None)


def test_canonical_form_names_twenty_places_when_there_are_more() -> None:
    """The list of faults is bounded and stands in the order of the places."""
    form = canonical_form([object() for _ in range(30)])

    assert [fault.path for fault in form.faults] == [(index,) for index in range(FAULTS_MAX)]


@pytest.mark.parametrize("name", ["itself", "two rounds", "in a list", "in an object"])
def test_canonical_form_names_the_place_when_a_value_contains_itself(name: str) -> None:
    """BR-043: a cycle is a fault with its path, at once."""
    state: dict[str, Any] = {"a": {}}
    if name == "itself":
        state["a"]["b"] = state
    elif name == "two rounds":
        state["a"] = {"b": {"c": state["a"]}}
        state["a"]["b"]["c"]["b"] = state["a"]
    elif name == "in a list":
        state["a"]["b"] = [state["a"]]
    else:
        state["a"]["b"] = Point(1)
        state["a"]["b"].y = state

    form = canonical_form(state)

    assert [fault.code for fault in form.faults] == ["cyclic_value"]
    assert form.faults[0].path[:2] == ("a", "b")


def test_canonical_form_takes_the_same_part_twice_when_it_is_no_cycle() -> None:
    """What stands in a state in two places is written in both."""
    part = {"x": [1]}

    assert canonical_form({"a": part, "b": part, "c": (part,)}).json == b'{"a":{"x":[1]},"b":{"x":[1]},"c":[{"x":[1]}]}'


@pytest.mark.parametrize("leaf", [1, "[[{{", [], {}, ()], ids=repr)
@pytest.mark.parametrize("others", [0, 5_000])
def test_canonical_form_is_too_deep_when_a_state_has_more_than_64_levels(leaf: object, others: int) -> None:
    """The bound is exact for small states and for large ones, and a container counts also when it is empty."""
    levels = DEPTH_MAX - (leaf in ([], {}, ()))
    deep: list[Any] = [nested(levels - 1, leaf), *([0] for _ in range(others))]

    assert canonical_form(deep).faults == ()
    assert [fault.code for fault in canonical_form([deep]).faults] == ["too_deep"]
    assert [fault.code for fault in canonical_form(nested(100_000)).faults] == ["too_deep"]


@pytest.mark.parametrize("holder", [Point, Pair], ids=["dataclasses", "named tuples"])
def test_canonical_form_counts_levels_of_objects_when_they_stand_in_each_other(holder: Callable[..., Any]) -> None:
    """An object is one level, like any container, and 64 of them have a text and kinds."""
    state: Any = 1
    for _ in range(DEPTH_MAX):
        state = holder(state, None)

    form = canonical_form(state)
    assert (form.faults, len(kinds_in(form.tree))) == ((), DEPTH_MAX)
    assert [fault.code for fault in canonical_form([state]).faults] == ["too_deep"]


@pytest.mark.parametrize(
    ("state", "local"),
    [
        ({"a": [1, None]}, ()),
        ({"a": [1, None], "created_at": 5}, (("created_at",),)),
        ({"a": (1, None)}, ()),
        ({"a": [1, float("nan")]}, ()),
        ({"a": [1.0, None]}, ()),
        ({"a": [1, {"created_at": 1}]}, (("a", 1, "created_at"),)),
        ({"a": [1, object()]}, ()),
    ],
    ids=str,
)
def test_canonical_form_is_the_same_when_another_one_is_at_hand(
    state: object, local: tuple[tuple[str | int, ...], ...]
) -> None:
    """What is known of a like form saves time and changes nothing."""
    for other in ({"a": [1, None]}, {"a": [1, None], "created_at": 3}, {"a": (1, None)}, {"a": object()}):
        like = canonical_form(other, rules=LOCAL)

        form = canonical_form(state, rules=LOCAL, like=like)

        assert form == canonical_form(state, rules=LOCAL)
        assert form.local == local


def _many_times_in_itself(parts: int, levels: int, kind: type = list) -> Any:
    part: Any = 0
    for _ in range(levels):
        part = kind([part] * parts) if kind is not dict else {str(index): part for index in range(parts)}
    return part


@pytest.mark.parametrize(
    "made",
    [
        lambda: _many_times_in_itself(2, 60),
        lambda: _many_times_in_itself(2, 60, tuple),
        lambda: _many_times_in_itself(9, 20, dict),
        lambda: _many_times_in_itself(10_000, 3),
        lambda: {"a": _many_times_in_itself(100, 30), "b": object()},
    ],
    ids=["two by two", "tuples", "objects", "wide", "with a fault"],
)
def test_canonical_form_ends_soon_when_small_parts_stand_in_a_state_many_times(made: Callable[[], object]) -> None:
    """A state that is small because it shares its parts does not fill the memory: it is too large."""
    form = canonical_form(made(), rules=CanonicalRules(bytes_max=100_000))

    assert "too_large" in [fault.code for fault in form.faults]


@pytest.mark.parametrize("value", ["x" * 98, ["x" * 96], [1] * 49 + [11], Point(1, "x" * 80)], ids=lambda v: str(v)[:9])
def test_canonical_form_is_too_large_when_its_text_is_longer_than_the_rules_allow(value: object) -> None:
    """The bound is that of the text, whichever way it is made."""
    size = len(canonical_form(value).json)

    assert canonical_form(value, rules=CanonicalRules(bytes_max=size)).faults == ()
    assert canonical_form(value, rules=CanonicalRules(bytes_max=size - 1)).faults == (
        Fault("too_large", (), type(value).__name__),
    )


def test_canonical_form_stays_as_taken_when_the_state_changes_afterwards() -> None:
    """BR-033: the form shares nothing with the state, whichever way it was made."""
    for made in (canonical_form, walked):
        state: dict[str, Any] = {"items": [1], "deep": {"list": [{"a": 1}]}}
        form = made(state)
        taken = (form.json, form.digest, form.value, form.tree)

        state["items"].append(2)
        state["deep"]["list"][0]["a"] = 2
        state["new"] = 1
        form.value["items"].append(3)

        assert (form.json, form.digest, form.value, form.tree) == taken
        assert form.json == b'{"deep":{"list":[{"a":1}]},"items":[1]}'


EQUAL = [
    [{"a": 1, "b": 2}, OrderedDict(b=2, a=1), defaultdict(int, b=2, a=1), Counter(b=2, a=1)],
    [[1, 2], (1, 2)],
    [{1, 2}, frozenset({2, 1})],
    [0.0, -0.0],
    [b"a", bytearray(b"a")],
    ["a", Id("a")],
    [
        datetime(2026, 3, 29, 2, 30, tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta())),
        datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(), "GMT")),
    ],
    [Decimal("0.0"), Decimal("-0.0")],
    [Point(1), Point(1, None)],
]

DIFFERENT = [
    [None, [], {}, "", 0, 0.0, False, "null", "0"],
    [1, 1.0, True, "1", 2**64, str(2**64), Decimal(1), Size.BIG],
    [[1, 2], [2, 1], {1, 2}, [1, 2, 2], [[1, 2]]],
    [{"a": 1}, {"a": 1, "b": None}, {"A": 1}, {"a": "1"}, Point(1), Order(order_id="1")],
    [
        datetime(2026, 3, 29, 2, 30, tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30),
        datetime(2026, 3, 29, 4, 30, tzinfo=timezone(timedelta(hours=2))),
        datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=UTC),
        "2026-03-29T02:30:00Z",
        "2026-03-29T02:30:00+00:00",
    ],
    [Decimal("1.10"), Decimal("1.1"), "1.10", 1.1],
    [Colour.RED, "red"],
    [Shade.DARK, "dark"],
    [Pair(1, 2), (1, 2)],
    [b"\xff", b"\xfe", {"length": 1, "sha256": DIGEST_OF_FF}],
    [uuid.UUID(int=1), str(uuid.UUID(int=1))],
    [{"y": {"x": date(2026, 1, 1)}}, {"y": {"x": "2026-01-01"}}, {"y": Point(1)}],
    ["é", "e\u0301"],
]


@pytest.mark.parametrize("values", EQUAL, ids=str)
def test_digests_are_equal_when_states_are_equal_by_the_rules(values: list[object]) -> None:
    """What the rules call equal has one text and one digest."""
    forms = [canonical_form({"v": value}) for value in values]

    assert len({(form.json, form.digest) for form in forms}) == 1


@pytest.mark.parametrize("values", DIFFERENT, ids=str)
def test_digests_differ_when_states_differ_by_the_rules(values: list[object]) -> None:
    """A lost type, an order, a microsecond, an offset or a digit is another digest."""
    assert len({canonical_form({"v": value}).digest for value in values}) == len(values)


def test_digest_is_that_of_the_text_when_a_state_has_no_kinds() -> None:
    """What is written for such a state has the digest that `sha256sum` prints."""
    state = {"a": [1, {"b": (2.5, -0.0)}]}

    for form in (canonical_form(state), walked(state)):
        assert form.digest == hashlib.sha256(form.json).hexdigest()


def test_keys_are_in_the_order_of_code_points_when_they_lie_outside_the_basic_plane() -> None:
    """BR-039: U+FB33 comes before U+1F600, where UTF-16 would put it behind; also when the state is walked."""
    state = {"\U0001f600": 1, "\ufb33": 2, "a": 3, "": 4, "B": 5}

    for form in (canonical_form(state), walked(state)):
        assert form.json.decode() == '{"":4,"B":5,"a":3,"\ufb33":2,"\U0001f600":1}'


RULES = CanonicalRules(times=("at", "log.*.at"), sets=("tags", "log.*.tags"), non_finite=("score", "log.*.score"))


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        ({"at": "2026-03-29T02:30:00Z"}, {"at": "2026-03-29T02:30:00+00:00"}, True),
        ({"at": "2026-03-29T02:30:00Z"}, {"at": datetime(2026, 3, 29, 2, 30, tzinfo=UTC)}, True),
        ({"at": "2026-03-29T02:30:00.5Z"}, {"at": datetime(2026, 3, 29, 2, 30, 0, 500_000, tzinfo=UTC)}, True),
        ({"at": "2026-03-29T02:30:00Z"}, {"at": "2026-03-29T02:30:00"}, False),
        ({"at": "2026-03-29T02:30:00Z"}, {"at": "2026-03-29T04:30:00+02:00"}, False),
        ({"at": "2026-03-29T02:30:00Z"}, {"at": "2026-03-29T02:30:00.000001Z"}, False),
        ({"to": "2026-03-29T02:30:00Z"}, {"to": "2026-03-29T02:30:00+00:00"}, False),
        ({"at": {"x": "2026-03-29T02:30:00Z"}}, {"at": {"x": "2026-03-29T02:30:00+00:00"}}, False),
        ({"log": [{"at": "2026-03-29T02:30:00Z"}]}, {"log": [{"at": "2026-03-29T02:30:00+00:00"}]}, True),
        ({"tags": ["b", "a"]}, {"tags": ["a", "b"]}, True),
        ({"tags": ["b", "a"]}, {"tags": {"a", "b"}}, True),
        ({"tags": ("b", "a")}, {"tags": frozenset({"a", "b"})}, True),
        ({"tags": ["a", "a"]}, {"tags": ["a"]}, False),
        ({"tags": [["b", "a"]]}, {"tags": [["a", "b"]]}, False),
        ({"tags": [{"b": [1, 2]}, {"a": 1}]}, {"tags": [{"a": 1}, {"b": [1, 2]}]}, True),
        ({"tags": [1, 1.0, True]}, {"tags": [True, 1, 1.0]}, True),
        ({"tags": [1, 1, True]}, {"tags": [True, True, 1]}, False),
        ({"names": ["b", "a"]}, {"names": ["a", "b"]}, False),
        ({"log": [{"tags": [2, 1]}, {"tags": [3]}]}, {"log": [{"tags": [1, 2]}, {"tags": [3]}]}, True),
        ({"score": float("nan")}, {"score": -float("nan")}, True),
        ({"score": float("inf")}, {"score": -float("inf")}, False),
        ({"score": float("inf")}, {"score": "Infinity"}, False),
        ({"score": Decimal("NaN")}, {"score": float("nan")}, False),
    ],
    ids=str,
)
def test_canonical_form_obeys_the_rules_of_a_path_when_times_sets_or_odd_numbers_stand_there(
    left: object, right: object, is_equal: bool
) -> None:
    """BR-041: the rules hold where their paths lead, and nowhere else."""
    forms = [canonical_form(state, rules=RULES) for state in (left, right)]

    assert [form.faults for form in forms] == [(), ()]
    assert (forms[0].digest == forms[1].digest) is is_equal


def test_sets_in_sets_are_ordered_from_the_inside_when_both_are_declared() -> None:
    """The order of the outer list does not depend on the order that the inner ones had."""
    rules = CanonicalRules(sets=("tags", "tags.*"))

    assert canonical_form({"tags": [["b", "a"], ["a", "c"]]}, rules=rules).json == b'{"tags":[["a","b"],["a","c"]]}'
    assert canonical_form({"tags": [["c", "a"], ["a", "b"]]}, rules=rules).json == b'{"tags":[["a","b"],["a","c"]]}'


LOCAL = CanonicalRules(ignored=("created_at", "task.cache", "**.tmp.*", "steps.*.took_s"))


@pytest.mark.parametrize(
    ("state", "text", "local"),
    [
        ({"a": 1}, '{"a":1}', []),
        ({"a": 1, "created_at": 2}, '{"a":1}', [("created_at",)]),
        ({"a": 1, "created_at": object()}, '{"a":1}', [("created_at",)]),
        ({"a": [{"created_at": 2, "b": 1}]}, '{"a":[{"b":1}]}', [("a", 0, "created_at")]),
        ({"task": {"cache": lambda: 1, "id": 2}, "cache": 3}, '{"cache":3,"task":{"id":2}}', [("task", "cache")]),
        ({"x": {"tmp": {"a": 1, "b": object()}}}, '{"x":{"tmp":{}}}', [("x", "tmp", "a"), ("x", "tmp", "b")]),
        ({"steps": [{"took_s": 1}, {"n": 2}]}, '{"steps":[{},{"n":2}]}', [("steps", 0, "took_s")]),
        ({"a": "created_at", "b": '"created_at":'}, '{"a":"created_at","b":"\\"created_at\\":"}', []),
        (Order(order_id="1", created_at=2), '{"order_id":"1"}', [("created_at",)]),
        (Point(1, {"created_at": 2}), '{"x":1,"y":{}}', [("y", "created_at")]),
        ([{"created_at": 1}], "[{}]", [(0, "created_at")]),
    ],
    ids=str,
)
def test_canonical_form_leaves_out_what_is_local_when_the_rules_ignore_it(
    state: object, text: str, local: list[tuple[str | int, ...]]
) -> None:
    """What is ignored is never read, may be anything, and its places are noted."""
    form = canonical_form(state, rules=LOCAL)

    assert (form.json.decode(), list(form.local), form.faults) == (text, local, ())
    assert walked(state, LOCAL).json == form.json


def test_canonical_form_leaves_out_parts_of_lists_when_an_index_is_ignored() -> None:
    """The parts behind move up, and only twenty places are noted."""
    assert canonical_form([1, 2, 3], rules=CanonicalRules(ignored=("**.1",))).json == b"[1,3]"
    many = canonical_form({"a": list(range(50))}, rules=CanonicalRules(ignored=("a.*",)))
    assert (many.json, len(many.local)) == (b'{"a":[]}', LOCAL_MAX)
    assert canonical_form({"a": 1, "b": 2}, rules=CanonicalRules(ignored=("*",))).json == b"{}"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_both_ways_agree_when_a_state_is_plain(state: object) -> None:
    """The encoders alone and the walk give one text and one digest, and reading the text gives the state back."""
    quick, slow = canonical_form(state), walked(state)

    assert (quick.json, quick.digest) == (slow.json, slow.digest)
    assert quick.value == state
    assert canonical_form(quick.value).json == quick.json


def test_plain_states_are_not_walked_when_they_hold_nothing_odd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain states, small and large, with and without what is local at the top, are left to the encoders."""

    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("walked")

    monkeypatch.setattr(canonical, "CanonicalTree", refuse)
    rules = CanonicalRules(ignored=("created_at", "task.cache"))
    large = [{"id": index, "share": 0.25, "title": f"title {index}", "null": None} for index in range(5_000)]

    assert canonical_form({"a": [1, None, "-0.0", 0.0]}, rules=rules).json == b'{"a":[1,null,"-0.0",0.0]}'
    assert canonical_form({"a": 1, "created_at": object()}, rules=rules).json == b'{"a":1}'
    assert len(canonical_form(large, rules=rules).value) == 5_000
    with pytest.raises(AssertionError, match="walked"):
        canonical_form({"a": (1,)}, rules=rules)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), -0.0])
@pytest.mark.parametrize("others", [1, 5_000])
def test_odd_numbers_are_seen_when_only_the_encoders_read_a_state(number: float, others: int) -> None:
    """NaN is not null, an infinity is not null, and -0.0 is 0.0, also in a large state beside nulls."""
    form = canonical_form({"n": [number], "rest": [[None, "null", -0.05, 1.5] for _ in range(others)]})

    if number == 0:
        assert form.json.startswith(b'{"n":[0.0],')
    else:
        assert form.faults == (Fault("non_finite_number", ("n", 0), "float"),)


@pytest.mark.parametrize(
    "made",
    [
        hostile_values.EvilClass,
        hostile_values.EvilAttributes,
        hostile_values.EvilDefaults,
        hostile_values.EvilComparison,
        lambda: hostile_values.BrokenMapping("items"),
        lambda: hostile_values.BrokenMapping("items", fault=hostile_values.raise_nameless),
        lambda: hostile_values.EvilKeys([([], 1)]),
    ],
)
def test_canonical_form_names_the_place_when_a_foreign_value_raises(made: Callable[[], object]) -> None:
    """Whatever a value does when it is read, the answer is a fault."""
    form = canonical_form({"a": [made()], "created_at": 1}, rules=LOCAL)

    assert {fault.code for fault in form.faults} == {"not_serialisable"}
    assert all(fault.path[:2] == ("a", 0) for fault in form.faults)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: hostile_values.EvilText("a"), '"a"'),
        (lambda: hostile_values.LyingText("a"), '"a"'),
        (lambda: hostile_values.EvilInteger(7), "7"),
        (lambda: hostile_values.EvilList([1]), "[1]"),
        (lambda: hostile_values.EvilDict(a=1), '{"a":1}'),
    ],
)
def test_canonical_form_reads_the_value_itself_when_its_class_lies(made: Callable[[], object], text: str) -> None:
    """Built-in values are read by their own methods, whatever a subclass says."""
    assert canonical_form([made()]).json.decode() == f"[{text}]"


def test_canonical_form_refuses_two_keys_with_one_text_when_a_mapping_has_them() -> None:
    """Neither of two values is chosen silently."""
    twice = hostile_values.EvilKeys([("a", 1), (Id("a"), 2)])

    assert canonical_form(twice).faults == (Fault("not_serialisable", (), "Id as a key"),)


def test_text_forms_are_never_used_when_an_object_has_one() -> None:
    """BR-043: an object whose text form holds an address is a fault, and two looks at it agree."""
    state = {"client": object(), "n": 1}

    assert canonical_form(state) == canonical_form(state)
    assert "0x" not in str(canonical_form(state))


def test_referents_are_the_parts_when_a_state_is_counted() -> None:
    """The count rests on this: the collector names each value of a dict and each part of a list."""
    assert sorted(gc.get_referents({"a": "b"}, ["c", "c"])) == ["b", "c", "c"]


def test_canonical_text_is_json_that_others_read_when_it_is_written() -> None:
    """The standard library reads the same value."""
    state = {"a": [1, 2.5, "é", None, True], "b": {"c": "\u2028"}}

    assert json.loads(canonical_form(state).json) == state
