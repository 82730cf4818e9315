"""`docs/canonical-form.md` keeps its promises: each row of its tables is what the canonical form does."""

from __future__ import annotations

import dataclasses
import enum
import re
import struct
from collections import Counter, OrderedDict, deque
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel

from handoffwatch.values.canonical import canonical_form
from handoffwatch.values.canonical_tree import kinds_in
from support.requirements import ROOT

DOCUMENT = (ROOT / "docs" / "canonical-form.md").read_text(encoding="utf-8")


class Colour(enum.Enum):
    """The enumeration of the page."""

    RED = "red"


@dataclasses.dataclass
class Point:
    """The dataclass of the page."""

    x: int
    y: int


class Order(BaseModel):
    """The model of the page."""

    order_id: str


class Pair(NamedTuple):
    """The named tuple of the page."""

    left: int
    right: int


def lists_in_lists(levels: int) -> Any:
    """Return an empty list in so many lists, itself counted."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


contains_itself: list[Any] = []
contains_itself.append(contains_itself)

NAMES = {
    each.__name__: each
    for each in (
        Counter, OrderedDict, deque, date, datetime, time, timedelta, Decimal, Fraction, PurePosixPath, UUID, ZoneInfo,
        Colour, Point, Order, Pair, lists_in_lists,
    )
} | {"UTC": UTC, "contains_itself": contains_itself}  # fmt: skip


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without code marks."""
    section = DOCUMENT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = re.findall(r"^\| (.*) ?\|$", section, re.MULTILINE)[1:]
    return [[cell.strip().strip("`") for cell in re.split(r" \| | \|$", line)] for line in lines]


@pytest.mark.parametrize("row", rows("What each type becomes"), ids=lambda row: row[0])
def test_page_says_what_a_type_becomes_when_it_has_a_rule(row: list[str]) -> None:
    """The expression has that text and that kind."""
    expression, text, kind = row

    form = canonical_form(eval(expression, dict(NAMES)))

    assert form.json.decode() == text
    assert [name for _, name in kinds_in(form.tree)] == ([kind] if kind else [])


@pytest.mark.parametrize("row", rows("What has no canonical form"), ids=lambda row: row[0])
def test_page_says_which_code_a_value_has_when_it_has_no_form(row: list[str]) -> None:
    """The expression has that fault."""
    expression, link = row

    form = canonical_form(eval(expression, dict(NAMES)))

    assert [f"[{fault.code}](reasons/{fault.code}.md)" for fault in form.faults] == [link]


@pytest.mark.parametrize("row", rows("Beside the standard"), ids=lambda row: row[0])
def test_page_says_where_a_number_is_not_that_of_the_standard_when_it_is_a_float(row: list[str]) -> None:
    """The double with those bits has that text, also in a state that is walked, and is judged the same or different."""
    bits, standard, here, verdict = row
    number = struct.unpack(">d", bytes.fromhex(bits))[0]

    for state in (number, (number,)):
        form = canonical_form(state)
        text = form.json.decode().strip("[]") if form.json else form.faults[0].code
        assert text == here
    assert verdict == ("same" if standard in (here, "an error") else "differs")


def test_page_has_all_rows_when_it_is_read() -> None:
    """The pattern that finds the rows finds them."""
    assert [len(rows(heading)) for heading in (
        "What each type becomes", "What has no canonical form", "Beside the standard"
    )] == [26, 14, 26]  # fmt: skip
