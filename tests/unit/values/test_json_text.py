"""Any Python value to strict JSON text, and where a value has no JSON form."""

from __future__ import annotations

import dataclasses
import enum
import json
import uuid
from collections import OrderedDict, defaultdict
from datetime import UTC, date, datetime, time
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from handoffwatch.values.json_text import (
    DEPTH_MAX,
    FAULTS_MAX,
    INTEGER_MAX,
    Fault,
    Shape,
    decode,
    encode,
    find_faults,
    survey,
)


class Colour(enum.Enum):
    """An enumeration of texts."""

    RED = "red"


class Size(enum.IntEnum):
    """An enumeration of integers."""

    BIG = 2


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int
    y: object = None


class Order(BaseModel):
    """A model that keeps what it does not know."""

    model_config = ConfigDict(extra="allow")

    order_id: str
    parts: list[Any] = []


class Pair(NamedTuple):
    """A named tuple."""

    left: object
    right: object


NO_JSON = object()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"null"),
        (True, b"true"),
        (0, b"0"),
        (-0.0, b"-0.0"),
        (2**53 - 1, b"9007199254740991"),
        (-(2**53) + 1, b"-9007199254740991"),
        ("é", '"é"'.encode()),
        ((1, [2]), b"[1,[2]]"),
        ({"b": 1, "a": 2}, b'{"b":1,"a":2}'),
        (OrderedDict(a=1), b'{"a":1}'),
        (defaultdict(list, a=[1]), b'{"a":[1]}'),
        (MappingProxyType({"a": MappingProxyType({"b": 1})}), b'{"a":{"b":1}}'),
        (Point(1, [Point(2)]), b'{"x":1,"y":[{"x":2,"y":null}]}'),
        (Order(order_id="4417", parts=[Order(order_id="1")]),
         b'{"order_id":"4417","parts":[{"order_id":"1","parts":[]}]}'),
        (Order(order_id="4417", amout=50), b'{"order_id":"4417","parts":[],"amout":50}'),  # type: ignore[call-arg]
        ([Colour.RED, Size.BIG], b'["red",2]'),
        (uuid.UUID(int=7), b'"00000000-0000-0000-0000-000000000007"'),
        ([datetime(2026, 11, 30, 10, tzinfo=UTC), date(2026, 11, 30), time(10, 30)],
         b'["2026-11-30T10:00:00+00:00","2026-11-30","10:30:00"]'),
    ],
    ids=lambda item: type(item).__name__,
)  # fmt: skip
def test_encode_gives_json_text_when_a_value_has_one(value: object, text: bytes) -> None:
    """Models and mappings become objects, tuples lists, times RFC 3339, and no field is lost."""
    assert encode(value) == text
    assert find_faults(value) == []


def _cycle() -> list[Any]:
    value: list[Any] = []
    value.append({"again": value})
    return value


def _nested(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        (NO_JSON, [Fault("not_serialisable", (), "object")]),
        ({"a": {1}}, [Fault("not_serialisable", ("a",), "set")]),
        ([Decimal(1), b"x"], [Fault("not_serialisable", (0,), "Decimal"), Fault("not_serialisable", (1,), "bytes")]),
        ({1: 2}, [Fault("not_serialisable", (), "int as a key")]),
        ({None: 2}, [Fault("not_serialisable", (), "NoneType as a key")]),
        ({True: 2}, [Fault("not_serialisable", (), "bool as a key")]),
        ({"\ud83c": 1}, [Fault("invalid_text", (), "str as a key")]),
        (["\udc97"], [Fault("invalid_text", (0,), "str")]),
        (2**64, [Fault("unsafe_integer", (), "int")]),
        (-(2**63) - 1, [Fault("unsafe_integer", (), "int")]),
        (_cycle(), [Fault("cyclic_value", (0, "again"), "list")]),
        (_nested(300), [Fault("too_deep", (0,) * 8, "list")]),
        (_nested(100_000), [Fault("too_deep", (0,) * 8, "list")]),
        ([{"in": Point(1, NO_JSON)}], [Fault("not_serialisable", (0, "in", "y"), "object")]),
        (Order(order_id="1", parts=[NO_JSON]), [Fault("not_serialisable", ("parts", 0), "object")]),
        (Order(order_id="1", extra=NO_JSON), [Fault("not_serialisable", ("extra",), "object")]),  # type: ignore[call-arg]
    ],
    ids=lambda item: item[0].code if isinstance(item, list) and item and isinstance(item[0], Fault) else "",
)  # fmt: skip
def test_find_faults_names_every_place_when_encoding_fails(value: object, faults: list[Fault]) -> None:
    """Where `encode` fails there is a fault with code, path and kind."""
    with pytest.raises(TypeError):
        encode(value)

    assert find_faults(value) == faults


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_find_faults_sees_a_number_that_is_written_as_null_when_it_is_not_finite(value: float) -> None:
    """The encoder writes null without a word; the survey says so beforehand."""
    assert survey([0.5, {"a": value}], values_max=10) is Shape.BENT
    assert find_faults([0.5, {"a": value}]) == [Fault("non_finite_number", (1, "a"), "float")]


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"a": [1, 0.5, "x", None, True]}, Shape.PLAIN),
        ([None, 1.5], Shape.PLAIN),
        ({"a": (1, 2)}, Shape.CONVERTIBLE),
        (Colour.RED, Shape.CONVERTIBLE),
        ([2**53], Shape.BENT),
        ([[[1, 2, 3, 4], 5, 6], 7, 8, 9, 0], Shape.TOO_LARGE),
    ],
    ids=str,
)
def test_survey_says_what_the_encoder_may_be_given(value: object, shape: Shape) -> None:
    """Only a plain value may be judged as it is; one that is too large is not looked at to its end."""
    assert survey(value, values_max=10) is shape


def test_survey_is_too_deep_when_nesting_passes_the_limit() -> None:
    """The limit holds for tuples too, which the encoder would follow without end."""
    deep: object = ()
    for _ in range(DEPTH_MAX + 1):
        deep = (deep,)

    assert survey(deep, values_max=1_000) is Shape.TOO_DEEP


def test_find_faults_stops_when_it_has_named_twenty() -> None:
    """What is wrong everywhere is named twenty times."""
    faults = find_faults([NO_JSON] * 1_000)

    assert [fault.path for fault in faults] == [(index,) for index in range(FAULTS_MAX)]


def test_find_faults_takes_the_same_value_twice_when_it_is_no_cycle() -> None:
    """A value that stands in two places contains nothing of itself."""
    shared = {"id": "a"}

    assert find_faults([shared, shared, {"again": [shared]}]) == []


@pytest.mark.parametrize("depth", [1, 30, 60])
def test_find_faults_agrees_with_the_encoder_when_values_are_nested(depth: int) -> None:
    """A depth that the one takes, the other takes."""
    assert encode(_nested(depth))
    assert find_faults(_nested(depth)) == []


@pytest.mark.parametrize(("text", "value"), [("{}", {}), (b"[1, 2.5]", [1, 2.5]), (' "x" ', "x"), ("null", None)])
def test_decode_gives_the_value_when_the_text_is_json(text: str | bytes, value: object) -> None:
    """Text and bytes are both read."""
    assert decode(text) == value


@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "{}x", "{'a': 1}", '{"a": 1,}', "// c\n{}", b"\xff", "\ud83c", "[" * 5_000],
)  # fmt: skip
def test_decode_refuses_when_the_text_is_not_one_json_value(text: str | bytes) -> None:
    """Comments, single quotes, loose ends and endless nesting are a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - the parser's words are its own
        decode(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(-INTEGER_MAX, INTEGER_MAX)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(JSON)
def test_encode_is_undone_by_decode_when_the_value_is_json(value: object) -> None:
    """What is written reads back the same, for us and for another parser."""
    text = encode(value)

    assert decode(text) == value
    assert json.loads(text) == value
    assert find_faults(value) == []


ANYTHING = st.recursive(
    JSON | st.floats() | st.integers() | st.binary(max_size=3) | st.decimals() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.builds(Pair, inner, inner)
    | st.builds(Point, st.integers(), inner) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(ANYTHING)
def test_encode_and_find_faults_agree_when_the_value_is_arbitrary(value: object) -> None:
    """Either the text is the value's, or a fault says where it is not."""
    try:
        text: bytes | None = encode(value)
    except TypeError:
        text = None

    faults = find_faults(value)

    assert (text is None) <= bool(faults)
    assert text is None or not faults or {fault.code for fault in faults} <= {"non_finite_number", "unsafe_integer"}
