"""From producing a handoff to naming what is wrong with it: timed where both are known, and never below 0."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Any

import pytest

from support.flows import FlowDesk, answers, bad_plan, plan
from support.telemetry import attributes, counted

ROUTE_LABEL = '{route="planner->executor"}'
NOW = datetime.datetime.fromtimestamp(1_000_000, datetime.UTC)
"""When the time of a desk begins: 1970-01-12T13:46:40Z."""


def observed(desk: FlowDesk) -> tuple[int, float, int]:
    """Return how often the time was observed, its sum, and how often a clock was askew."""
    found = counted(
        desk.watch.registry,
        "handoff_detection_seconds_count",
        "handoff_detection_seconds_sum",
        "clock_skew_total",
    )
    return (
        int(found.get(f"handoff_detection_seconds_count{ROUTE_LABEL}", 0)),
        found.get(f"handoff_detection_seconds_sum{ROUTE_LABEL}", 0.0),
        int(found.get("clock_skew_total", 0)),
    )


def send(desk: FlowDesk, raw: object) -> None:
    """Send one attempt, and no more of it."""
    with desk.watch.run("refunds", task_id="t-1") as run:
        run.submit("planner", "executor", raw)


@pytest.mark.parametrize("shape", [lambda raw: raw, json.dumps], ids=["dict", "text"])
@pytest.mark.parametrize(
    ("produced_at", "expected"),
    [
        ("1970-01-12T13:46:30Z", (1, 10.0, 0)),
        ("1970-01-12T13:46:30.500+00:00", (1, 9.5, 0)),
        ("1970-01-12T15:46:30+02:00", (1, 10.0, 0)),
        ("1970-01-12T13:46:40Z", (1, 0.0, 0)),
        ("1970-01-12T13:46:50Z", (1, 0.0, 1)),
        ("9999-12-31T23:59:59Z", (1, 0.0, 1)),
        ("1970-01-12T13:46:30", (0, 0.0, 0)),
        ("1970-01-12", (0, 0.0, 0)),
        ("ten seconds ago", (0, 0.0, 0)),
        ("", (0, 0.0, 0)),
        (None, (0, 0.0, 0)),
        (999_990, (0, 0.0, 0)),
    ],
)
def test_detection_is_timed_when_something_is_wrong_and_a_zoned_time_says_since_when(
    produced_at: object, expected: tuple[int, float, int], shape: Callable[[Any], object]
) -> None:
    """A time ahead of ours is no time before 0: it counts as 0, and as a clock that is askew."""
    desk = FlowDesk().route()

    send(desk, shape(bad_plan(produced_at=produced_at)))

    assert observed(desk) == expected
    told = attributes(desk.spans.one("handoff executor")).get("handoffwatch.handoff.detection")
    assert told == (expected[1] if expected[0] else None)


@pytest.mark.parametrize("produced_at", ["1970-01-12T13:46:30Z", "1970-01-12T13:46:50Z"])
def test_detection_is_not_timed_when_nothing_is_wrong(produced_at: str) -> None:
    """There is nothing that was named, and no clock that matters."""
    desk = FlowDesk().route()
    send(desk, plan(produced_at=produced_at))
    assert observed(desk) == (0, 0.0, 0)


def test_detection_is_not_timed_when_the_handoff_has_no_such_time() -> None:
    """The field is optional."""
    desk = FlowDesk().route()
    send(desk, bad_plan())
    assert observed(desk) == (0, 0.0, 0)


@pytest.mark.parametrize(
    "options", [{"mode": "shadow"}, {"reactions": {"type_mismatch": "warn"}}, {"reactions": {"type_mismatch": "hold"}}]
)
def test_detection_is_timed_when_a_finding_does_not_stop_the_handoff(options: dict[str, Any]) -> None:
    """What was found was named, whatever followed."""
    desk = FlowDesk().route(**options)
    send(desk, bad_plan(produced_at="1970-01-12T13:46:30Z"))
    assert observed(desk) == (1, 10.0, 0)


def test_detection_is_timed_for_each_attempt_from_its_own_time() -> None:
    """A repair is produced anew, and the person's or the model's time in between is not in it."""
    desk = FlowDesk().route()

    def at(seconds: float) -> str:
        return (NOW + datetime.timedelta(seconds=seconds)).isoformat()

    first, second, last = bad_plan(produced_at=at(-10)), bad_plan(produced_at=at(95)), plan(produced_at=at(99))
    given = answers(second, last)

    def repair(step: object) -> object:
        desk.time.now_s = 1_000_100.0
        return given(step)

    with desk.watch.run("refunds", task_id="t-1") as run:
        assert run.transfer("planner", "executor", first, receiver=desk.receive, repair=repair) == "received"

    assert observed(desk) == (2, 15.0, 0)
