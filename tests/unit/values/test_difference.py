"""The difference of two canonical trees: where, how, and never what."""

from __future__ import annotations

import copy
import itertools
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.values.canonical import canonical_form
from handoffwatch.values.difference import Difference, differences, differences_at, trace
from handoffwatch.values.paths import rests_of
from handoffwatch.vocabulary import DivergenceKind

MISSING, ADDED, CHANGED, TYPE, ORDER = DivergenceKind


def tree(value: object) -> Any:
    """Return the canonical tree of a value."""
    form = canonical_form(value)
    assert form.faults == ()
    return form.tree


def found(before: object, after: object, **options: Any) -> list[tuple[str, str]]:
    """Return the places at which two values differ, and how."""
    pairs = differences(tree(before), tree(after), **options)
    return [(".".join(map(str, each.path)), str(each.kind)) for each in pairs]


STATE = {"task": {"id": "t", "goal": None, "constraints": ["a", "b", "c"]}, "n": 1, "empty": []}


def with_(path: str, value: object) -> dict[str, Any]:
    """Return a copy of the state with one value in place of another."""
    state = copy.deepcopy(STATE)
    *above, last = path.split(".")
    here: Any = state
    for key in above:
        here = here[key]
    here[int(last) if isinstance(here, list) else last] = value
    return state


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (STATE, []),
        (with_("n", 2), [("n", "changed")]),
        (with_("n", 1.0), [("n", "type")]),
        (with_("n", True), [("n", "type")]),
        (with_("n", "1"), [("n", "type")]),
        (with_("n", None), [("n", "type")]),
        (with_("task.goal", ""), [("task.goal", "type")]),
        (with_("task", {}), [("task", "changed")]),
        (with_("task", []), [("task", "type")]),
        (with_("task.constraints", []), [("task.constraints", "changed")]),
        (with_("task.constraints", {}), [("task.constraints", "type")]),
        (with_("task.constraints", ["a", "b"]), [("task.constraints.2", "missing")]),
        (with_("task.constraints", ["b", "c"]), [("task.constraints.0", "missing")]),
        (with_("task.constraints", ["x", "a", "b", "c"]), [("task.constraints.0", "added")]),
        (
            with_("task.constraints", ["a", "x", "y", "b", "c"]),
            [("task.constraints.1", "added"), ("task.constraints.2", "added")],
        ),
        (with_("task.constraints", ["c", "a", "b"]), [("task.constraints", "order")]),
        (with_("task.constraints", ["a", "c", "b"]), [("task.constraints", "order")]),
        (with_("task.constraints", ["a", "b", "b"]), [("task.constraints.2", "changed")]),
        (
            with_("task.constraints", ["x"]),
            [("task.constraints.0", "changed"), ("task.constraints.1", "missing"), ("task.constraints.2", "missing")],
        ),
        (with_("task.constraints.1", ["b"]), [("task.constraints.1", "type")]),
        (with_("empty", [1]), [("empty.0", "added")]),
        (with_("empty", None), [("empty", "type")]),
        (with_("new", None), [("new", "added")]),
        ({**STATE, "A": 1, "n": 2, "z": 3}, [("A", "added"), ("n", "changed"), ("z", "added")]),
        ({}, [("", "changed")]),
        ([], [("", "type")]),
    ],
    ids=str,
)  # fmt: skip
def test_differences_name_place_and_kind_when_one_thing_changed(after: object, expected: list[tuple[str, str]]) -> None:
    """Lost, new, another value, another type, another order, in the order of the places."""
    assert found(STATE, after) == expected


def test_differences_say_what_stood_there_in_words_when_they_are_found() -> None:
    """Kinds are named, values never."""
    before = tree({"a": "secret", "b": [1], "c": datetime(2026, 1, 1, tzinfo=UTC), "d": 1, "e": b"\xff", "f": {1}})
    after = tree({"a": "", "b": [], "c": "2026-01-01T00:00:00Z", "e": b"\xfe", "f": {2}, "g": None})

    assert list(differences(before, after)) == [
        Difference(("a",), CHANGED, "text", "an empty text"),
        Difference(("b",), CHANGED, "a list", "an empty list"),
        Difference(("c",), TYPE, "datetime", "text"),
        Difference(("d",), MISSING, "an integer", "nothing"),
        Difference(("e",), CHANGED, "bytes", "bytes"),
        Difference(("f", 0), CHANGED, "an integer", "an integer"),
        Difference(("g",), ADDED, "nothing", "null"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([1, 1.0], [1.0, 1], [("", "order")]),
        ([1, True], [True, True], [("0", "type")]),
        ([{"a": 1}, {"a": 2}, {"a": 3}], [{"a": 3}, {"a": 1}, {"a": 2}], [("", "order")]),
        ([date(2026, 1, 1), "2026-01-01"], ["2026-01-01", date(2026, 1, 1)], [("", "order")]),
        ([date(2026, 1, 1)], ["2026-01-01"], [("0", "type")]),
        ([[1, 2], [3]], [[2, 1], [3]], [("0", "order")]),
        ([{"a": [1]}, 2], [{"a": [1, 2]}, 2], [("0.a.1", "added")]),
        ([0] * 5, [0] * 3, [("3", "missing"), ("4", "missing")]),
    ],
    ids=str,
)
def test_differences_of_lists_are_strict_when_parts_look_alike(
    before: object, after: object, expected: list[tuple[str, str]]
) -> None:
    """1, 1.0 and true are three things, and so are a date and its text, also where only the order changed."""
    assert found(before, after) == expected


def test_differences_list_what_was_dropped_when_only_the_last_message_arrived() -> None:
    """BR-042: of fourteen messages the thirteen that were lost are named."""
    messages = [{"role": "user", "content": f"message {index}"} for index in range(14)]

    assert found(messages, messages[-1:]) == [(str(index), "missing") for index in range(13)]


@pytest.mark.parametrize(
    ("but", "expected"),
    [
        ([], [("a.x", "changed"), ("b.0.id", "changed"), ("b.1", "missing"), ("c", "missing")]),
        (["a"], [("b.0.id", "changed"), ("b.1", "missing"), ("c", "missing")]),
        (["a.x", "b.*.id", "c"], [("b.1", "missing")]),
        (["a.x", "b.**"], [("c", "missing")]),
        (["a.*", "b.*", "c"], []),
    ],
    ids=str,
)
def test_differences_pass_over_places_when_paths_lead_there(but: list[str], expected: list[tuple[str, str]]) -> None:
    """What is passed over is neither compared nor missed."""
    before = {"a": {"x": 1}, "b": [{"id": 1, "n": 2}, {"id": 2, "n": 3}], "c": 4}
    after = {"a": {"x": 2}, "b": [{"id": 9, "n": 2}]}

    assert found(before, after, but=rests_of(but)) == expected


@pytest.mark.parametrize(
    ("path", "places", "absent"),
    [
        ("task.id", [("task", "id")], []),
        ("task.nothing", [], [("task", "nothing")]),
        ("nothing.at.all", [], [("nothing", "at", "all")]),
        ("task.goal", [("task", "goal")], []),
        ("task.goal.x", [], [("task", "goal", "x")]),
        ("task.goal.*", [], [("task", "goal", "*")]),
        ("empty", [("empty",)], []),
        ("empty.*", [], []),
        ("empty.*.id", [], []),
        ("empty.0", [], [("empty", "0")]),
        ("hits.*.id", [("hits", 0, "id"), ("hits", 2, "id")], [("hits", 1, "id")]),
        ("hits.1", [("hits", 1)], []),
        ("hits.01", [("hits", 1)], []),
        ("hits.3", [], [("hits", "3")]),
        ("hits." + "9" * 5_000, [], [("hits", "9" * 5_000)]),
        ("hits.-1", [], [("hits", "-1")]),
        ("**.id", [("hits", 0, "id"), ("hits", 2, "id"), ("task", "id")], []),
        ("hits.**.id", [("hits", 0, "id"), ("hits", 2, "id")], []),
        ("**.**.id", [("hits", 0, "id"), ("hits", 2, "id"), ("task", "id")], []),
        ("**.nothing", [], [("**", "nothing")]),
        ("nothing.**.id", [], [("nothing", "**", "id")]),
        ("hits.0.**", [("hits", 0), ("hits", 0, "id")], []),
        ("tags.*", [("tags", 0), ("tags", 1)], []),
        ("raw.length", [], [("raw", "length")]),
    ],
)
def test_trace_tells_where_a_path_leads_when_some_of_it_is_not_there(
    path: str, places: list[object], absent: list[object]
) -> None:
    """Each place is named, and each that was asked for in vain; an empty container lacks nothing."""
    state = {"task": {"id": 1, "goal": None}, "empty": [], "hits": [{"id": 1}, {}, {"id": 2}], "tags": {"a", "b"},
             "raw": b"x"}  # fmt: skip

    traced = trace(tree(state), path)

    assert (list(traced.found), list(traced.absent)) == (places, absent)


@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        ("a", {"a": 1}, {"a": 1}, []),
        ("a", {}, {}, [(("a",), MISSING, "nothing", "nothing")]),
        ("a", {"a": None}, {}, [(("a",), MISSING, "null", "nothing")]),
        ("a", {}, {"a": []}, [(("a",), ADDED, "nothing", "an empty list")]),
        ("a", {"a": []}, {"a": None}, [(("a",), TYPE, "an empty list", "null")]),
        ("a.b", {"a": {"b": 1}}, {}, [(("a", "b"), MISSING, "an integer", "nothing")]),
        ("a.b", {}, {"a": 1}, [(("a", "b"), MISSING, "nothing", "nothing")]),
        ("a.*.id", {"a": []}, {"a": []}, []),
        ("a.*.id", {"a": [{}]}, {"a": [{}]}, [(("a", 0, "id"), MISSING, "nothing", "nothing")]),
        ("a.*.id", {"a": [{"id": 1}]}, {"a": []}, [(("a", 0, "id"), MISSING, "an integer", "nothing")]),
        ("a.*.id", {"a": []}, {"a": [{"id": 1}]}, [(("a", 0, "id"), ADDED, "nothing", "an integer")]),
        ("**.id", {"x": 1}, {"x": 1}, [(("**", "id"), MISSING, "nothing", "nothing")]),
    ],
    ids=str,
)
def test_differences_at_tell_missing_from_empty_when_one_path_is_compared_alone(
    path: str, before: object, after: object, expected: list[object]
) -> None:
    """Missing, null and empty are three things, and what is on neither side is told from what was lost."""
    pairs = differences_at(trace(tree(before), path), trace(tree(after), path))

    assert [tuple(each) for each in pairs] == expected


def test_differences_at_pass_over_the_place_itself_when_a_path_leads_there() -> None:
    """What another rule judges is not compared, only whether it is there."""
    before, after = trace(tree({"a": 1}), "a"), trace(tree({"a": 2}), "a")

    assert list(differences_at(before, after, but=rests_of(["a"]))) == []
    assert [each.kind for each in differences_at(before, trace(tree({}), "a"), but=rests_of(["a"]))] == [MISSING]


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from([0.0, 1.0, 2.5]) | st.text("ab", max_size=2)
    | st.dates(date(2026, 1, 1), date(2026, 1, 3)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(values, values)
def test_differences_are_none_exactly_when_digests_are_equal(before: object, after: object) -> None:
    """The difference and the digest never disagree, and neither depends on the order of keys."""
    forms = canonical_form(before), canonical_form(after)
    first = list(differences(forms[0].tree, forms[1].tree))

    assert (first == []) is (forms[0].digest == forms[1].digest)
    assert first == list(differences(canonical_form(before).tree, canonical_form(after).tree))
    assert len({(each.path, each.kind) for each in first}) == len(first)


def test_differences_come_one_by_one_when_only_the_first_are_wanted() -> None:
    """Whoever takes twenty of a million is not kept waiting for the rest."""
    pairs = differences([0] * 100_000, [1] * 100_000)

    assert [each.path for each in itertools.islice(pairs, 2)] == [(0,), (1,)]
