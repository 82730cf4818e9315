"""The JSON form of values that are neither texts nor containers, and the marks of those that have none."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from handoffwatch.values.json_marks import json_form, key_text, mark_of_kind
from handoffwatch.values.json_text import kind_of
from support.hostile_values import EvilClass, EvilInteger, EvilText, LyingText, NamelessMeta


class _Long(metaclass=NamelessMeta):
    """A class that refuses to say its name."""


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (None, None),
        (True, True),
        (0, 0),
        (-0.5, -0.5),
        (2**64, 2**64),
        (EvilInteger(7), 7),
        (10**5_000, "[no JSON form: int]"),
        (float("nan"), "[NaN]"),
        (float("inf"), "[Infinity]"),
        (float("-inf"), "[-Infinity]"),
        (datetime(2026, 11, 30, 10, tzinfo=UTC), "2026-11-30T10:00:00+00:00"),
        (date(2026, 11, 30), "2026-11-30"),
        (time(10, 30), "10:30:00"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Decimal("1.5"), "[no JSON form: Decimal]"),
        (b"secret", "[no JSON form: bytes]"),
        ({"secret"}, "[no JSON form: set]"),
        (_Long(), "[no JSON form: _Long]"),
    ],
    ids=kind_of,
)
def test_json_form_is_what_json_has_when_it_has_one(value: object, form: object) -> None:
    """Numbers stay numbers; of all else without a form only the class is named."""
    found = json_form(value)

    assert (type(found), found) == (type(form), form)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("a", "a"),
        ("", ""),
        (LyingText("a"), "a"),
        (EvilText("a"), "a"),
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (0.5, "0.5"),
        (float("nan"), "[NaN]"),
        ((1, 2), "[no JSON form: tuple]"),
        (EvilClass(), "[no JSON form: EvilClass]"),
    ],
    ids=kind_of,
)
def test_key_text_is_what_json_writes_when_a_key_is_any_value(key: object, text: str) -> None:
    """A key is always a plain text."""
    assert type(key_text(key)) is str
    assert str.__eq__(key_text(key), text) is True


def test_mark_of_kind_is_bounded_when_a_class_has_a_long_name() -> None:
    """A class may be named as its author likes."""
    assert mark_of_kind(type("X" * 1_000, (), {})()) == f"[no JSON form: {'X' * 100}]"
