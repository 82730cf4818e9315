"""The life of a run: how it ends, what is counted, and which run the code is in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from handoffwatch import HandoffBlocked, Run, ToolDown, Watch
from handoffwatch.vocabulary import RunOutcome
from support.telemetry import counted, samples
from support.watched import bad_handoff, handoff, new_watched

RUNS = ("runs_started_total", "runs_in_progress", "runs_total")


def _ended(watch: Watch, outcome: str, count: int = 1) -> None:
    """Assert that so many runs began, ended so, and that none is in progress."""
    assert counted(watch.registry, *RUNS) == {
        'runs_started_total{workflow="refunds"}': count,
        f'runs_total{{outcome="{outcome}",tools="required",workflow="refunds"}}': count,
    }


def _run(watch: Watch, act: Callable[[Run], Any]) -> None:
    with watch.run("refunds", task_id="t-1") as run:
        act(run)


def _fail(error: BaseException) -> Callable[[Run], None]:
    def act(_: Run) -> None:
        raise error

    return act


def test_run_is_completed_when_its_block_ends() -> None:
    """Nothing went wrong."""
    watch = new_watched().watch

    _run(watch, lambda run: None)

    _ended(watch, "completed")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ValueError("x"), "failed"),
        (SystemExit(1), "failed"),
        (KeyboardInterrupt(), "cancelled"),
        (asyncio.CancelledError(), "cancelled"),
        (GeneratorExit(), "cancelled"),
        (ToolDown("tool find: the call failed", text="x"), "stopped"),
        (HandoffBlocked("handoff a->b: blocked", decision=None), "stopped"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else value,
)
def test_run_ends_by_what_left_its_block_when_it_raises(error: BaseException, outcome: str) -> None:
    """The host's exception passes unchanged; a check of ours stopped the run, cancellation cancelled it."""
    watch = new_watched().watch

    with pytest.raises(type(error)) as caught:
        _run(watch, _fail(error))

    assert caught.value is error
    _ended(watch, outcome)


def test_run_is_stopped_when_a_check_stopped_a_handoff_and_the_host_went_on() -> None:
    """The host need not raise for the stop to count."""
    watch = new_watched().watch

    _run(watch, lambda run: run.handoff("planner", "executor", handoff(task_id="t-2")))

    _ended(watch, "stopped")


def test_run_is_stopped_when_a_blocked_handoff_was_never_repaired() -> None:
    """A handoff that ends as stopped makes its run a stopped one."""
    watch = new_watched().watch

    def act(run: Run) -> None:
        with pytest.raises(HandoffBlocked):
            run.transfer("planner", "executor", bad_handoff(), receiver=print)

    _run(watch, act)

    h = 'route="planner->executor",schema_version="1",source_agent="planner",target_agent="executor"'
    assert counted(watch.registry, "handoffs_total") == {f'handoffs_total{{outcome="stopped",{h}}}': 1}
    _ended(watch, "stopped")


def test_run_ends_once_when_it_is_finished_twice() -> None:
    """`finish` inside the block outweighs its end."""
    watch = new_watched().watch

    def act(run: Run) -> None:
        run.finish(RunOutcome.FAILED)
        run.finish(RunOutcome.COMPLETED)

    _run(watch, act)

    _ended(watch, "failed")


def test_run_counts_as_in_progress_when_it_has_not_ended() -> None:
    """The gauge goes up with the start and back with the end."""
    watch = new_watched().watch
    line = 'handoffwatch_runs_in_progress{workflow="refunds"}'

    run = watch.run("refunds")
    other = watch.run("refunds")
    assert samples(watch.registry)[line] == 2
    run.finish()
    assert samples(watch.registry)[line] == 1
    other.finish()

    assert samples(watch.registry)[line] == 0


_ZERO = ("runs_without_tool_success_total", "runs_with_unrecovered_tool_failure_total")


def _calls(*steps: tuple[str, object]) -> Callable[[Run], None]:
    def act(run: Run) -> None:
        for tool, value in steps:
            call = run.call(tool)
            call.raised(value) if isinstance(value, Exception) else call.returned(value)

    return act


_NONE_CALLED = 'runs_without_tool_success_total{cause="none_called",tools="required",workflow="refunds"}'
_ALL_FAILED = 'runs_without_tool_success_total{cause="all_failed",tools="required",workflow="refunds"}'
_UNRECOVERED = 'runs_with_unrecovered_tool_failure_total{workflow="refunds"}'


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], {_NONE_CALLED: 1}),
        ([("find", [])], {}),
        ([("find", 0), ("find", False), ("find", "")], {}),
        ([("find", ValueError())], {_ALL_FAILED: 1, _UNRECOVERED: 1}),
        ([("find", ValueError()), ("find", ValueError())], {_ALL_FAILED: 1, _UNRECOVERED: 1}),
        ([("find", ValueError()), ("find", ["4417"])], {}),
        ([("find", ["4417"]), ("find", ValueError())], {_UNRECOVERED: 1}),
        ([("find", ValueError()), ("look", ["4417"])], {_UNRECOVERED: 1}),
    ],
    ids=["none", "empty list", "falsy", "failed", "failed twice", "recovered", "failed at last", "other tool"],
)
def test_run_without_tool_success_has_its_cause_when_it_ends(
    steps: list[tuple[str, object]], expected: dict[str, float]
) -> None:
    """Zero successes have a cause; a failure that a later call of the tool recovered is none."""
    watch = new_watched().watch
    watch.tool("find", safety="safe", attempts_max=1)
    watch.tool("look", safety="safe", attempts_max=1)

    _run(watch, _calls(*steps))

    assert counted(watch.registry, *_ZERO) == expected


def test_run_without_inspection_is_counted_when_no_handoff_was_judged() -> None:
    """A run that goes around the watchdog is seen."""
    watch = new_watched().watch

    _run(watch, lambda run: None)
    _run(watch, lambda run: run.handoff("planner", "executor", handoff()))

    assert counted(watch.registry, "runs_without_inspection_total") == {
        'runs_without_inspection_total{workflow="refunds"}': 1
    }


def test_current_run_is_the_innermost_when_runs_are_nested() -> None:
    """The outer run comes back when the inner one ends."""
    watch = new_watched().watch
    seen = []

    assert watch.current() is None
    with watch.run("refunds") as outer:
        seen.append(watch.current())
        with watch.run("refunds") as inner:
            seen.append(watch.current())
        seen.append(watch.current())

    assert seen == [outer, inner, outer]
    assert watch.current() is None


def test_tool_counts_for_the_innermost_run_when_runs_are_nested() -> None:
    """The outer run had no success of its own."""
    watch = new_watched().watch

    @watch.tool("find", safety="safe")
    def find() -> list[str]:
        return []

    with watch.run("refunds"), watch.run("refunds"):
        find()

    assert counted(watch.registry, *_ZERO) == {_NONE_CALLED: 1}


def test_current_run_is_none_when_runs_ended_in_another_order_than_they_nest() -> None:
    """A run that has ended is nobody's current run."""
    watch = new_watched().watch
    first, second = watch.run("refunds"), watch.run("refunds")

    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)

    assert watch.current() is None


def test_run_is_found_by_its_id_when_it_is_in_progress() -> None:
    """Hooks that lose their context name the run; an ended run is forgotten."""
    watch = new_watched().watch

    run = watch.run("refunds", run_id="r-1")
    assert watch.current("r-1") is run
    assert watch.current("r-2") is None
    run.finish()

    assert watch.current("r-1") is None


def test_tool_counts_for_its_own_watch_when_a_run_of_another_watch_is_inside() -> None:
    """Two watches in one process do not meet."""
    ours, theirs = new_watched().watch, new_watched().watch

    @ours.tool("find", safety="safe")
    def find() -> list[str]:
        return []

    with ours.run("refunds") as run, theirs.run("refunds"):
        assert ours.current() is run
        find()
        assert run.answer("Nothing was ordered.").action == "answer"

    assert counted(ours.registry, *_ZERO) == {}


def test_run_id_is_made_when_none_is_given() -> None:
    """Every run has an id of its own."""
    watch = new_watched().watch
    made = [watch.run("refunds").run_id for _ in range(3)]

    assert len(set(made)) == 3
    assert all(len(run_id) == 32 for run_id in made)


def test_async_block_ends_the_run_when_it_is_cancelled() -> None:
    """Cancellation passes through and is counted as such."""
    watch = new_watched().watch

    async def work(started: asyncio.Event) -> None:
        async with watch.run("refunds"):
            started.set()
            await asyncio.Event().wait()

    async def main() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(work(started))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    _ended(watch, "cancelled")


def test_runs_are_counted_exactly_when_threads_run_them_at_once() -> None:
    """Each thread has its own current run."""
    watch = new_watched().watch

    @watch.tool("find", safety="safe")
    def find() -> list[str]:
        return []

    def work(number: int) -> bool:
        with watch.run("refunds", task_id=f"t-{number}") as run:
            find()
            run.transfer("planner", "executor", handoff(task_id=f"t-{number}"), receiver=lambda _: find())
            return watch.current() is run

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))

    _ended(watch, "completed", 40)
    assert counted(watch.registry, "tool_calls_total", *_ZERO) == {'tool_calls_total{tool="find"}': 80}


def test_runs_are_counted_exactly_when_tasks_run_them_at_once() -> None:
    """Each task has its own current run."""
    watch = new_watched().watch

    @watch.tool("find", safety="safe")
    async def find() -> list[str]:
        await asyncio.sleep(0)
        return []

    async def work() -> bool:
        async with watch.run("refunds") as run:
            await find()
            return watch.current() is run

    async def main() -> list[bool]:
        return await asyncio.gather(*(work() for _ in range(20)))

    assert all(asyncio.run(main()))
    _ended(watch, "completed", 20)
    assert counted(watch.registry, *_ZERO) == {}
