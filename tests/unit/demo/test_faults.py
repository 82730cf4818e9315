"""The fault plan: seeded, exact in its rates, and equal in every process."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from handoffwatch.demo import faults
from handoffwatch.demo.faults import STORIES, FaultPlan, HandoffFault, RunPlan

BLOCK = sum(share for _, share in STORIES)


def _runs(seed: int, count: int, first: int = 0) -> list[RunPlan]:
    plan = FaultPlan(seed)
    return [plan.run(index) for index in range(first, first + count)]


def test_stories_fill_forty_runs() -> None:
    """The stated rates are shares of 40 runs."""
    assert BLOCK == 40


def test_documented_rates_are_the_real_ones() -> None:
    """The table in the module's docstring says what the plan does."""
    rows = re.findall(r"^\| (\w+) \| \w* *\| (\d+) \|", faults.__doc__ or "", re.MULTILINE)
    assert {name: int(share) for name, share in rows} == {story.name: share for story, share in STORIES}


@pytest.mark.parametrize("seed", [1, 2, 3, -7, 10**12])
@pytest.mark.parametrize("block", [0, 1, 25])
def test_plan_has_every_story_at_its_stated_rate_when_forty_runs_are_taken(seed: int, block: int) -> None:
    """Each block of 40 runs holds each story exactly as often as stated."""
    told = Counter(run.story for run in _runs(seed, BLOCK, first=block * BLOCK))
    assert told == Counter(dict(STORIES))


def test_plan_is_equal_when_the_seed_is_equal() -> None:
    """Two plans of one seed agree on every run, whatever was asked before."""
    forwards = _runs(5, 90)
    plan = FaultPlan(5)
    backwards = [plan.run(index) for index in reversed(range(90))]
    assert forwards == list(reversed(backwards))


def test_plan_differs_when_the_seed_differs() -> None:
    """Another seed tells the stories in another order."""
    assert [run.story for run in _runs(1, BLOCK)] != [run.story for run in _runs(2, BLOCK)]


def test_plan_is_the_one_released_when_the_seed_is_one() -> None:
    """The first runs of seed 1 are frozen: the random source of another Python version must not change them."""
    first = [(run.order_id, run.amount_cents, run.story.name) for run in _runs(1, 4)]
    assert first == [
        ("40000", 17350, "completed_without_result"),
        ("40001", 16200, "hiding_wrapper"),
        ("40002", 7950, "none"),
        ("40003", 8350, "none"),
    ]


def test_plan_repairs_some_handoffs_and_not_others_when_many_runs_are_taken() -> None:
    """Repaired at once, repaired late and never repaired all occur, and the hopeless faults are never repaired."""
    runs = _runs(1, 400)
    damaged = [run for run in runs if run.story.handoff is not None]
    assert {1, 2} < {run.bad_attempts for run in damaged}
    assert any(run.bad_attempts > 3 for run in damaged if run.story.handoff is HandoffFault.NUMBER_AS_TEXT)
    hopeless = {HandoffFault.LOST_CONSTRAINTS, HandoffFault.FOREIGN_TASK, HandoffFault.WRONG_TARGET}
    assert all(run.bad_attempts > 3 for run in damaged if run.story.handoff in hopeless)
    assert all(run.bad_attempts == 0 for run in runs if run.story.handoff is None)


def test_plan_finds_the_run_when_given_its_order() -> None:
    """The payments service finds the same run by the order's id."""
    plan = FaultPlan(3)
    run = plan.run(17)
    assert plan.for_order(run.order_id) == run


@pytest.mark.parametrize("order_id", ["", "0", "39999", "-40001", "4e4", "٤٠٠٠١", "40001 ", "9" * 5000])
def test_plan_knows_no_run_when_the_order_was_never_sold(order_id: str) -> None:
    """An order id that Northwind never gave out has no plan."""
    assert FaultPlan(1).for_order(order_id) is None


def test_plan_refuses_a_run_when_its_index_is_negative() -> None:
    """Runs are counted from 0."""
    with pytest.raises(ValueError, match="run index: must be at least 0, got -1"):
        FaultPlan(1).run(-1)
