"""Public bug reports about state that did not survive a crossing, each named by its number."""

from __future__ import annotations

import json
import pickle
import struct
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel

from handoffwatch.boundary.comparison import Comparison, capture, compare
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.transforms import Transform
from handoffwatch.values.canonical import canonical_form
from support.crossings import POLICY, altered, crossing, policy, said, state


def test_capture_stays_as_taken_when_the_sender_goes_on_working() -> None:
    """BR-033: an append and an edit after the capture rewrite neither the text nor the digest."""
    live: dict[str, Any] = {"schema_version": 1, "items": [1], "task": {"deep": {"n": 1}}}
    made = BoundaryPolicy(exact_paths=("items", "task"))
    before = capture(live, made)
    text, digest = before.form.json, before.form.digest

    live["items"].append(2)
    live["task"]["deep"]["n"] = 2

    assert (before.form.json, before.form.digest) == (text, digest)
    assert text == b'{"items":[1],"schema_version":1,"task":{"deep":{"n":1}}}'
    assert said(compare(before, capture(live, made), made)) == [
        ("value_added", "items.1", "items"),
        ("value_changed", "task.deep.n", "task"),
    ]


class Receipt(BaseModel):
    """What the sender knows as a model."""

    id: str
    amount_cents: int


@dataclass
class Renamed:
    """The same fields under another name."""

    id: str
    amount_cents: int


@pytest.mark.parametrize(
    ("imported", "sentence"),
    [
        ({"id": "re_1", "amount_cents": 3800}, "receipt must be Receipt as before, and is an object"),
        (None, "receipt must be Receipt as before, and is null"),
        (Renamed("re_1", 3800), "receipt must be Receipt as before, and is Renamed"),
        ('{"id":"re_1","amount_cents":3800}', "receipt must be Receipt as before, and is text"),
    ],
    ids=["a bare dict", "nothing", "another class", "text"],
)
def test_comparison_names_the_lost_type_when_a_class_could_not_be_rebuilt(imported: object, sentence: str) -> None:
    """BR-035: a bare dict or null in place of an object is a divergence with its path."""
    made = policy(exact_paths=("receipt",))

    comparison = crossing(state(receipt=Receipt(id="re_1", amount_cents=3800)), state(receipt=imported), made)

    assert [(finding.code, finding.path, finding.sentence) for finding in comparison.findings] == [
        ("type_changed", "receipt", sentence)
    ]


KINDS = {
    "schema_version": 1, "c": Counter(a=2), "d": defaultdict(list), "o": OrderedDict(b=1, a=2), "t": (1, 2),
    "s": {3, 1}, "x": Decimal("1.10"), "b": b"\xff",
}  # fmt: skip


def test_states_are_equal_when_each_type_comes_back_as_its_rule_allows() -> None:
    """BR-036: Counter, defaultdict and OrderedDict are objects, a tuple is a list, a set has no order."""
    made = BoundaryPolicy(exact_paths=tuple(KINDS))
    back = {"b": bytearray(b"\xff"), "x": Decimal("1.10"), "s": frozenset([1, 3]), "t": [1, 2], "o": {"a": 2, "b": 1},
            "d": {}, "c": {"a": 2}, "schema_version": 1}  # fmt: skip

    assert crossing(KINDS, back, made) == Comparison((), ())
    assert crossing(KINDS, pickle.loads(pickle.dumps(KINDS)), made) == Comparison((), ())
    assert canonical_form(KINDS).value == {
        "schema_version": 1, "c": {"a": 2}, "d": {}, "o": {"a": 2, "b": 1}, "t": [1, 2], "s": [1, 3], "x": "1.10",
        "b": {"length": 1, "sha256": "a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("c", {"a": 2.0}, "type_changed"),
        ("t", [2, 1], "order_changed"),
        ("s", [1, 3], "type_changed"),
        ("s", {1, 2}, "value_changed"),
        ("x", Decimal("1.1"), "value_changed"),
        ("x", 1.1, "type_changed"),
        ("x", "1.10", "type_changed"),
        ("b", "ÿ", "type_changed"),
        ("b", b"\xfe", "value_changed"),
    ],
)
def test_states_differ_when_a_type_comes_back_as_something_else(key: str, value: object, code: str) -> None:
    """BR-036: what the rules do not call equal is found at its path."""
    made = BoundaryPolicy(exact_paths=tuple(KINDS))

    found = said(crossing(KINDS, {**KINDS, key: value}, made))

    assert [(each[0], each[2]) for each in found] == [(code, key)]


@pytest.mark.parametrize("odd", [1 + 2j, range(3), {1: 2}, object()], ids=["complex", "range", "key", "object"])
def test_comparison_gives_a_code_when_a_type_has_no_rule(odd: object) -> None:
    """BR-036: an unsupported type is a finding, not a traceback."""
    assert {finding.code for finding in crossing(state(odd=odd), state(odd=odd)).findings} == {"not_serialisable"}


@pytest.mark.parametrize(
    ("number", "text"),
    [(10, "10"), (10.0, "10.0"), (0, "0"), (0.0, "0.0"), (-0.0, "0.0"), (1e-7, "1e-7"), (1e20, "1e+20"),
     (10**20, '"100000000000000000000"'), (1e16, "1e+16"), (1e15, "1000000000000000.0"), (1e-5, "0.00001"),
     (5e-324, "5e-324")],
)  # fmt: skip
def test_canonical_text_of_a_number_is_the_written_one_when_libraries_disagree(number: float, text: str) -> None:
    """BR-039: one text for each number; an integer and a float differ always."""
    assert canonical_form(number).json.decode() == text
    assert canonical_form([number, (number,)]).json.decode() == f"[{text},[{text}]]"


def test_states_differ_when_an_integer_became_a_float() -> None:
    """BR-039: 10 and 10.0 differ at every path, 0.0 and -0.0 at none."""
    assert [each[0] for each in said(crossing(state(n=10), state(n=10.0)))] == ["rest_changed"]
    assert crossing(state(n=0.0), state(n=-0.0)) == Comparison((), ())


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        ("2026-03-29T02:30:00Z", "2026-03-29T02:30:00+00:00", True),
        ("2026-03-29T02:30:00", "2026-03-29T02:30:00Z", False),
        ("2026-03-29T02:30:00+02:00", "2026-03-29T00:30:00Z", False),
        ("2026-03-29T02:30:00.123456Z", "2026-03-29T02:30:00Z", False),
        (datetime(2026, 3, 29, 2, 30, tzinfo=UTC), datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta())), True),
        (datetime(2026, 3, 29, 2, 30), datetime(2026, 3, 29, 2, 30, tzinfo=UTC), False),
        (datetime(2026, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")), datetime(2026, 3, 29, 2, 30), False),
        (datetime(2026, 3, 29, 2, 30, 0, 1), datetime(2026, 3, 29, 2, 30), False),
        (datetime(2026, 3, 29, 2, 30, tzinfo=UTC), "2026-03-29T02:30:00Z", True),
    ],
    ids=str,
)
def test_times_are_compared_by_the_written_rule_when_zones_come_and_go(
    left: object, right: object, is_equal: bool
) -> None:
    """BR-041: Z and +00:00 are one; naive and aware, another offset and a lost microsecond are divergences."""
    made = policy(exact_paths=("at",), times=("at",))

    assert said(crossing(state(at=left), state(at=right), made)) == (
        [] if is_equal else [("value_changed", "at", "at")]
    )


MESSAGES = [{"role": "user", "content": f"message {number}"} for number in range(14)]


def test_comparison_lists_what_was_dropped_when_only_the_last_message_came_back() -> None:
    """BR-042: the thirteen lost messages are named."""
    made = policy(exact_paths=("messages",))

    found = said(crossing(state(messages=MESSAGES), state(messages=MESSAGES[-1:]), made))

    assert found == [("value_missing", f"messages.{number}", "messages") for number in range(13)]


def test_comparison_takes_the_last_message_when_the_policy_names_this_reduction() -> None:
    """BR-042: a reduction that somebody declared is not a surprise, and another one is."""
    last = Transform("last_message", lambda before, after: after == before[-1:])
    made = policy(transforms={"messages": last})

    assert crossing(state(messages=MESSAGES), state(messages=MESSAGES[-1:]), made) == Comparison((), ())
    assert said(crossing(state(messages=MESSAGES), state(messages=MESSAGES[:1]), made)) == [
        ("value_changed", "messages", "messages")
    ]


class Client:
    """An object whose text form holds its address."""


def test_comparison_names_the_cycle_when_a_state_contains_itself() -> None:
    """BR-043: the path is named, on whichever side it is."""
    looped: dict[str, Any] = {}
    looped["self"] = looped

    assert said(crossing(state(d=looped), state(d={}))) == [("cyclic_value", "d.self", "**")]
    assert said(crossing(state(d={}), state(d=looped))) == [("cyclic_value", "d.self", "**")]


@dataclass
class Memory:
    """An object that stands in a state and holds one without a form."""

    client: Client = field(default_factory=Client)


def test_two_looks_at_one_state_agree_when_it_holds_an_object_with_an_address() -> None:
    """BR-043: a text form is never hashed, so that nothing depends on where an object lies."""
    before, again = capture(state(m=Memory()), POLICY), capture(state(m=Memory()), POLICY)

    assert before == again
    assert said(compare(before, again, POLICY)) == [("not_serialisable", "m.client", "**")]
    assert "0x" not in repr(before.form.faults)


def test_the_filled_in_constraint_is_named_when_the_exporter_dropped_it() -> None:
    """An exporter that drops `task.constraints` and an importer that fills in [] are stopped by name."""

    def export(sent: dict[str, Any]) -> str:
        return json.dumps({**sent, "task": {key: sent["task"][key] for key in ("id", "goal")}})

    def bring_in(text: str) -> dict[str, Any]:
        there: dict[str, Any] = json.loads(text)
        there["task"].setdefault("constraints", [])
        return there

    comparison = crossing(state(), bring_in(export(state())))

    assert said(comparison) == [("value_changed", "task.constraints", "task.constraints")]
    assert crossing(state(), bring_in(json.dumps(state()))) == Comparison((), ())
    assert capture(bring_in(json.dumps(altered(lambda there: None))), POLICY) == capture(state(), POLICY)


def test_bits_of_a_float_survive_when_the_text_is_read_back() -> None:
    """BR-039: the shortest text of a float is that float again, over the whole range."""
    for bits in range(0, 2**63, 2**63 // 997):
        number = struct.unpack(">d", struct.pack(">Q", bits))[0]
        if number - number == 0:
            assert struct.pack(">d", canonical_form(number).value) == struct.pack(">Q", bits)
