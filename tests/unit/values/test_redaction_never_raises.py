"""Anything at all can be redacted: the copy is plain JSON that every encoder takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.values.json_text import kind_of
from handoffwatch.values.redaction import Redaction
from support.hostile_values import (
    BrokenMapping,
    EvilAttributes,
    EvilClass,
    EvilComparison,
    EvilDefaults,
    EvilDict,
    EvilInteger,
    EvilKeys,
    EvilList,
    EvilText,
    LyingText,
    NamelessError,
    ShiftingMapping,
    raise_nameless,
)

REDACTION = Redaction(["credentials", "a.*.b", "**.x"], values_max=10_000, text_characters_max=10_000)


class _Endless(BrokenMapping):
    """A mapping that goes on for ever."""

    def items(self) -> Any:
        return ((str(number), number) for number in iter(int, 1))


HOSTILE: list[object] = [
    EvilAttributes(), EvilClass(), EvilComparison(), EvilDefaults(), EvilDict(a=1), EvilInteger(7), EvilList([1]),
    EvilText("token=x9"), LyingText("password"), NamelessError("x9"), NamelessError, ShiftingMapping(), BrokenMapping(),
    BrokenMapping("items"), BrokenMapping("iter"), BrokenMapping("getitem"), BrokenMapping("len"), _Endless(),
    BrokenMapping("items", fault=raise_nameless), EvilKeys([(EvilClass(), 1), ([], 2), (EvilText("x"), 3)]),
    EvilKeys([(LyingText("token"), EvilComparison()), ("b", 1)]), object(), object, print, iter([1]), Exception("x9"),
    time(1, tzinfo=ZoneInfo("Europe/Berlin")), datetime.max.replace(tzinfo=UTC), Decimal("NaN"), 1j, ...,
    NotImplemented, range(3), b"x9", bytearray(b"x9"), memoryview(b"x9"), {1, 2}, frozenset({1}), lambda: 1,
]  # fmt: skip


def _check(value: object) -> Any:
    redacted = REDACTION.redacted(value)
    assert orjson.loads(orjson.dumps(redacted, option=orjson.OPT_PASSTHROUGH_SUBCLASS)) == redacted
    return redacted


@pytest.mark.parametrize("number", range(len(HOSTILE)), ids=[f"{at}-{kind_of(v)}" for at, v in enumerate(HOSTILE)])
@pytest.mark.parametrize("place", ["top", "member", "element", "secret"])
def test_redacted_answers_when_a_value_raises_or_lies(number: int, place: str) -> None:
    """Objects whose methods raise, lie or never end are read as far as they can be, or named by their class."""
    value = HOSTILE[number]
    state = {"top": value, "member": {"a": [{"b": value}], "n": value}, "element": [value], "secret": {"token": value}}

    redacted = _check(state[place])

    assert "x9" not in json.dumps(redacted)


_SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
    | st.datetimes() | st.decimals() | st.uuids() | st.text(alphabet="\ud83c\udc97\u2028\x00a\"'\\{}[]:=")
)  # fmt: skip
_KEYS = st.text() | st.integers() | st.none() | st.booleans() | st.sampled_from(["token", "a", "x", "name", "value"])


@given(
    st.recursive(
        _SCALARS,
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(_KEYS, inner)
            | st.tuples(inner, inner)
            | st.lists(st.tuples(st.sampled_from(["token", "--key", "a"]), inner))
        ),
        max_leaves=30,
    )
)
def test_redacted_answers_when_a_state_is_anything(state: object) -> None:
    """Every state has a copy that is strict JSON."""
    _check(state)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_redacted_answers_when_a_text_is_any_json(state: object) -> None:
    """A text of JSON stays one."""
    text = json.dumps(state)

    redacted = REDACTION.redacted_text(text)

    if len(text) <= 10_000 and text[0] in '[{"':
        json.loads(redacted)
