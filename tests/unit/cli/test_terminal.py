"""What reaches the terminal: aligned, short, and unable to steer it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.cli.terminal import fields, json_lines, listed, printable, section, table, time_text, to_type

TEXTS = st.text(st.characters(exclude_categories=()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_json_lines_say_the_same_value_in_printable_lines(value: Any) -> None:
    """Escapes are those of JSON, so that nothing is lost."""
    lines = json_lines(value)
    assert json.loads("\n".join(lines)) == value
    assert all(line.isprintable() for line in lines)


def test_json_lines_are_readable_when_a_text_is_not_english() -> None:
    """Only what could steer a terminal is escaped."""
    assert json_lines("Müller 退款 \u202e\x7f\U000e0001") == ['"Müller 退款 \\u202e\\u007f\\udb40\\udc01"']


@given(TEXTS)
def test_printable_text_is_one_line_that_cannot_steer_a_terminal(text: str) -> None:
    """A character for each."""
    assert printable(text).isprintable()
    assert len(printable(text)) == len(text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a\nb", "a?b"), (["a", "b"], "a,b"), (list("abcde"), "a,b,c,+2"), ([], ""), (3, "3"), (None, "None")],
)
def test_listed_value_is_short(value: object, shown: str) -> None:
    """A list of many items would push everything else off the screen."""
    assert listed(value) == shown


def test_table_leaves_out_what_says_nothing() -> None:
    """A column of `-`, and a table without rows; the last column leaves no blanks behind."""
    assert table(("A", "B", "CC"), [("1", "-", "x"), ("222", "-", "-")]) == ["A    CC", "1    x", "222  -"]
    assert table(("A", "B"), []) == []


def test_fields_are_aligned_and_say_when_there_is_nothing() -> None:
    """An empty text and an empty list are no blanks."""
    assert fields({"a": 1, "long name": ["x", "y"], "b": "", "c": []}) == [
        "a          1",
        "long name  x, y",
        "b          -",
        "c          -",
    ]
    assert section("head", ["x", ""]) == ["head", "  x", ""]


@pytest.mark.parametrize(
    ("config", "typed"),
    [
        (None, "handoffwatch case list"),
        ("a.yaml", "handoffwatch case list --config a.yaml"),
        ("my file\x1b.yaml", "handoffwatch case list --config 'my file?.yaml'"),
    ],
)
def test_hint_names_the_settings_file_that_was_named(config: str | None, typed: str) -> None:
    """What is copied works in the same place."""
    assert to_type("case list", config=config) == typed


def test_time_is_utc_to_the_second() -> None:
    """RFC 3339."""
    assert time_text(1_000_000_000.9) == "2001-09-09T01:46:40Z"
    assert time_text(None) == "-"
