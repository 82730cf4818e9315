"""Paths into JSON-like data."""

from __future__ import annotations

import pytest

from handoffwatch.values.paths import Rests, dotted, is_path, is_reached, leads_to, places, rests_below, rests_of

DATA = {
    "task": {"id": "t-1", "goal": None},
    "hits": [{"id": "a"}, {"id": "b", "task": {"id": "t-2"}}, 7],
    "0": "zero",
    "*": "star",
    "empty": {},
    "none": [],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", True), ("a.b", True), ("a.0.b", True), ("*", True), ("a.*.id", True), ("ä ö", True),
        ("", False), (".", False), ("a.", False), (".a", False), ("a..b", False),
        (None, False), (7, False), (b"a", False), (["a"], False),
    ],
    ids=repr,
)  # fmt: skip
def test_is_path_tells_a_path_from_anything_else_when_a_part_is_empty_or_it_is_no_text(
    text: object, expected: bool
) -> None:
    """A path is a text of parts with dots between them."""
    assert is_path(text) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("task.id", [(("task", "id"), "t-1")]),
        ("task.goal", [(("task", "goal"), None)]),
        ("task", [(("task",), DATA["task"])]),
        ("hits.0.id", [(("hits", 0, "id"), "a")]),
        ("hits.*.id", [(("hits", 0, "id"), "a"), (("hits", 1, "id"), "b")]),
        ("hits.*.task.id", [(("hits", 1, "task", "id"), "t-2")]),
        ("task.*", [(("task", "id"), "t-1"), (("task", "goal"), None)]),
        ("*.id", [(("task", "id"), "t-1")]),
        ("0", [(("0",), "zero")]),
        ("empty.*", []),
        ("none.*", []),
        ("none.0", []),
        ("hits.3", []),
        ("hits.-1", []),
        ("hits.+1", []),
        ("hits. 1", []),
        ("hits.١", []),
        ("hits.²", []),
        ("hits.id", []),
        ("task.id.more", []),
        ("task.id.0", []),
        ("nothing", []),
        ("nothing.*.id", []),
    ],
)
def test_places_names_every_place_in_order_when_a_path_leads_there(path: str, expected: list[object]) -> None:
    """A part that is not there names no place, and null is a place."""
    assert list(places(DATA, path)) == expected


@pytest.mark.parametrize("value", [None, 7, "text", True, (1, 2), {1, 2}])
@pytest.mark.parametrize("path", ["a", "0", "*", "a.b"])
def test_places_names_none_when_the_value_holds_nothing(value: object, path: str) -> None:
    """Texts and numbers are never looked into."""
    assert list(places(value, path)) == []


def test_places_names_the_place_when_an_index_has_leading_zeros_or_many_digits() -> None:
    """An index is read as a number, and one that is far too large is not there."""
    assert list(places(["a", "b"], "01")) == [((1,), "b")]
    assert list(places(["a", "b"], "9" * 100)) == []


@pytest.mark.parametrize(
    ("path", "reached"),
    [
        ("task", [("task",)]),
        ("task.id", [("task", "id")]),
        ("hits.1", [("hits", 1)]),
        ("hits.01", [("hits", 1)]),
        ("hits.*.id", [("hits", 0, "id"), ("hits", 1, "id")]),
        ("*.id", [("task", "id")]),
        ("**.id", [("task", "id"), ("hits", 0, "id"), ("hits", 1, "id"), ("hits", 1, "task", "id")]),
        ("**.task.id", [("task", "id"), ("hits", 1, "task", "id")]),
        ("hits.**.id", [("hits", 0, "id"), ("hits", 1, "id"), ("hits", 1, "task", "id")]),
        ("hits.**.**.id", [("hits", 0, "id"), ("hits", 1, "id"), ("hits", 1, "task", "id")]),
        ("task.**", [("task",), ("task", "id"), ("task", "goal")]),
        ("**.0", [("hits", 0), ("0",)]),
        ("hits.-1", []),
        ("hits." + "9" * 10_000, []),
        ("task.id.more", []),
    ],
)
def test_rests_reach_every_place_when_a_path_leads_there(path: str, reached: list[tuple[str | int, ...]]) -> None:
    """Followed step by step a path leads where it says; `**` stands for any number of levels, also none."""
    found = []
    steps: list[tuple[tuple[str | int, ...], object, Rests]] = [((), DATA, rests_of([path]))]
    for at, value, rests in steps:
        if is_reached(rests):
            found.append(at)
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        steps.extend(((*at, key), child, rests_below(rests, key)) for key, child in pairs)

    assert sorted(found, key=str) == sorted(reached, key=str)


def test_rests_follow_many_paths_at_once_when_they_overlap() -> None:
    """Each step leaves what is left of each path, and nothing of a path that went elsewhere."""
    rests = rests_below(rests_of(["a.b", "a.*.c", "b", "**.d"]), "a")

    assert rests == {("b",), ("*", "c"), ("**", "d")}
    assert rests_below(rests_of(["a.b"]), "b") == frozenset()
    assert is_reached(frozenset()) is False


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ((), "$"),
        (("payload", "results", 0, "id"), "payload.results.0.id"),
        (("payload", ""), "payload."),
        (("\ud83c",), "?"),
        (("x" * 300,), "x" * 200),
        (("a", "日本"), "a.日本"),
    ],
)
def test_dotted_gives_a_bounded_path_when_parts_are_joined(parts: tuple[str | int, ...], path: str) -> None:
    """Keys and indices with dots, 200 characters at most, encodable; the whole value is `$`."""
    assert dotted(parts) == path


@pytest.mark.parametrize(
    ("path", "place", "expected"),
    [
        ("task.id", ("task", "id"), True),
        ("task.id", ("task",), False),
        ("task", ("task", "id"), False),
        ("hits.*.id", ("hits", 3, "id"), True),
        ("hits.3", ("hits", 3), True),
        ("**.id", ("id",), True),
        ("**.id", ("a", 0, "id"), True),
        ("**", (), True),
        ("a", (), False),
    ],
)
def test_leads_to_tells_whether_a_path_names_a_place_when_both_are_given(
    path: str, place: tuple[str | int, ...], expected: bool
) -> None:
    """All parts of the path and all steps of the place are used up."""
    assert leads_to(path, place) is expected
