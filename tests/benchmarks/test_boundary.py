"""What a crossing costs in memory beside the plain comparison of before and after."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import orjson
import pytest

from handoffwatch.boundary.comparison import Comparison, capture, compare
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.values.canonical import canonical_form
from handoffwatch.values.difference import differences
from support.ratios import growth, load_baselines, ratio, report

BYTES = 10_000_000
LOCAL = ("created_at", "runtime_metrics", "local_cache")
SMALL = BoundaryPolicy(
    schema_version="1",
    exact_paths=("handoff_id", "task_id", "source_agent", "payload.result", "payload.results", "metadata"),
    ignore_paths=LOCAL,
)
LARGE = BoundaryPolicy(schema_version="1", exact_paths=("handoff_id", "task_id", "payload"), ignore_paths=LOCAL)


def _crossing(state: dict[str, Any], policy: BoundaryPolicy) -> Comparison:
    """Capture before, export and import as they are, capture after, compare and decide."""
    before = capture(state, policy)
    return compare(before, capture(state, policy, like=before), policy)


def _dumps_and_digests(state: dict[str, Any]) -> bool:
    """Two texts with their keys in order and two digests: the least that any comparison of two copies does."""
    texts = [orjson.dumps(state, option=orjson.OPT_SORT_KEYS) for _ in range(2)]
    return len({hashlib.sha256(text).hexdigest() for text in texts}) == 1


def _of_many_items(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = load_baselines(folder).handoff(208_000)
    return state


def _of_long_texts(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = load_baselines(folder).handoff(1)
    state["payload"]["messages"] = [{"role": "user", "content": "what was said then " * 58} for _ in range(9_000)]
    return state


@pytest.mark.bench
def test_crossing_is_many_times_faster_than_the_plain_way_when_the_state_is_small(shared_folder: Path) -> None:
    """Capture, comparison and decision take at most a fifth of two deep copies, canonical forms and digests."""
    baselines = load_baselines(shared_folder)
    state = baselines.handoff(10)
    assert _crossing(state, SMALL) == Comparison((), ())
    assert baselines.plain_boundary(state, lambda given: given, lambda given: given)

    measured = ratio(
        lambda: _crossing(state, SMALL),
        lambda: baselines.plain_boundary(state, lambda given: given, lambda given: given),
    )

    report(f"boundary, 10 items ({1 / measured:.1f} times faster)", measured, 0.2)
    assert measured <= 0.2


@pytest.mark.bench
@pytest.mark.parametrize("made", [_of_many_items, _of_long_texts], ids=["many items", "long texts"])
def test_crossing_stays_near_two_texts_and_digests_when_the_state_is_large(
    shared_folder: Path, made: Callable[[Path], dict[str, Any]]
) -> None:
    """Ten megabytes of small items and of long texts cost at most 2.5 times two texts in order and two digests."""
    state = made(shared_folder)
    assert abs(len(orjson.dumps(state)) / BYTES - 1) < 0.05
    assert _crossing(state, LARGE) == Comparison((), ())

    measured = ratio(lambda: _crossing(state, LARGE), lambda: _dumps_and_digests(state), calls=1)

    report(f"boundary, 10 MB, {made.__name__.removeprefix('_of_').replace('_', ' ')}", measured, 2.5)
    assert measured <= 2.5


@pytest.mark.bench
def test_canonical_form_takes_twice_as_long_when_a_walked_state_is_twice_as_long() -> None:
    """What the encoders cannot read alone is read value by value, in linear time."""
    short, long = ([{"at": date(2026, 1, 1), "n": index} for index in range(count)] for count in (30_000, 60_000))

    measured = growth(lambda: canonical_form(long), lambda: canonical_form(short))

    print(f"\ncanonical form, walked, twice as long: {measured:5.2f} times as long (at most 3)")
    assert measured <= 3


CHANGES: dict[str, Callable[[list[Any]], list[Any]]] = {
    "one new at the front": lambda parts: [{"id": -1, "n": [0]}, *parts],
    "reversed": lambda parts: parts[::-1],
    "each changed": lambda parts: [{**part, "n": [1]} for part in parts],
}


@pytest.mark.bench
@pytest.mark.parametrize("name", CHANGES)
def test_difference_takes_twice_as_long_when_lists_are_twice_as_long(name: str) -> None:
    """Whatever became of a list, all differences of it are found in linear time."""
    short, long = ([{"id": index, "n": [0]} for index in range(count)] for count in (30_000, 60_000))
    changed = {count: CHANGES[name](parts) for count, parts in ((1, short), (2, long))}

    measured = growth(lambda: list(differences(long, changed[2])), lambda: list(differences(short, changed[1])))

    print(f"\ndifference, {name}, twice as long: {measured:5.2f} times as long (at most 3)")
    assert measured <= 3
