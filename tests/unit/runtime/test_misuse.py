"""What hosts do that nobody meant: overlapping attempts, late calls, odd functions, odd names, foreign exceptions."""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Any, ClassVar

import pytest

from handoffwatch import Action, HandoffBlocked, NeedsHuman, RegistrationError
from handoffwatch.vocabulary import ToolCode
from support.telemetry import counted
from support.watched import bad_handoff, handoff, new_watched


def test_handoffs_all_end_when_attempts_of_one_key_overlap() -> None:
    """Two blocked attempts under one key wait side by side; none is forgotten when the run ends."""
    watch = new_watched().watch

    with watch.run("refunds", task_id="t-1") as run:
        first, second = (
            run.handoffs.judge("planner", "executor", bad_handoff(handoff_id=handoff_id), None)
            for handoff_id in ("h-1", "h-2")
        )
        assert [run.handoffs.conclude(each).action for each in (first, second)] == [Action.REPAIR, Action.REPAIR]

    assert counted(watch.registry, "handoffs_total", "handoff_attempts_sum") == {
        'handoffs_total{outcome="stopped",route="planner->executor",schema_version="1",source_agent="planner",'
        'target_agent="executor"}': 2,
        'handoff_attempts_sum{route="planner->executor"}': 2,
    }


def test_handoff_is_stopped_when_its_run_has_ended() -> None:
    """Nothing is let through after the end, and the late handoff ends as well."""
    watch = new_watched().watch
    run = watch.run("refunds", task_id="t-1")
    run.finish()

    step = run.handoff("planner", "executor", handoff())

    assert step.action is Action.STOP
    ended = counted(watch.registry, "handoffs_total")
    assert [key.split(",")[0] for key in ended] == ['handoffs_total{outcome="stopped"']


def test_transfer_ends_the_handoff_when_nobody_repairs_it() -> None:
    """The next handoff of the task is a new one, not the repair of one that was given up."""
    watch = new_watched().watch

    with watch.run("refunds", task_id="t-1") as run:
        for number in range(3):
            bad = bad_handoff("planner", "executor", handoff_id=f"h-{number}")
            with pytest.raises(HandoffBlocked):
                run.transfer("planner", "executor", bad, receiver=print)

    tried = counted(watch.registry, "handoff_inspections_total")
    assert [(key.split('attempt="')[1].split('"')[0], count) for key, count in tried.items()] == [("first", 3)]
    assert sum(counted(watch.registry, "handoffs_total").values()) == 3


def test_call_counts_an_attempt_once_when_two_callbacks_end_it() -> None:
    """The second end of an attempt that was begun changes nothing."""
    watch = new_watched().watch
    watch.tool("find", safety="safe", attempts_max=2)

    call = watch.run("refunds").call("find")
    call.attempt()
    steps = [call.raised(TimeoutError()), call.raised(TimeoutError())]

    assert [step.action for step in steps] == [Action.RETRY, Action.RETRY]
    assert counted(watch.registry, "tool_attempts_total") == {'tool_attempts_total{code="timeout",tool="find"}': 1}


def test_call_ends_when_attempts_are_never_begun() -> None:
    """A host that only reports ends uses its attempts up all the same."""
    watch = new_watched().watch
    watch.tool("find", safety="safe", attempts_max=3)
    call = watch.run("refunds").call("find")

    actions = [call.raised(TimeoutError()).action for _ in range(4)]

    assert actions == [Action.RETRY, Action.RETRY, Action.GIVE_UP, Action.GIVE_UP]


class _Hostile(Exception):
    """An exception that cannot be looked at."""

    errno: ClassVar[list[int]] = []

    @property
    def headers(self) -> dict[str, str]:
        raise ValueError("token tk-1")


def test_call_gives_an_answer_when_the_exception_cannot_be_read() -> None:
    """A primitive never raises; what says nothing is ambiguous on an unsafe tool."""
    watch = new_watched().watch
    watch.tool("pay", safety="unsafe")

    step = watch.run("refunds").call("pay").raised(_Hostile())

    assert step.action is Action.NEEDS_HUMAN


@pytest.mark.parametrize("name", [None, [], 7, uuid.UUID(int=1)], ids=lambda name: type(name).__name__)
def test_call_is_counted_as_other_when_its_name_is_no_text(name: Any) -> None:
    """A primitive never raises, whatever stands where the name should."""
    watch = new_watched().watch

    step = watch.run("refunds").call(name, call_id=name).returned([])

    assert step.action is Action.OK
    assert counted(watch.registry, "tool_calls_total") == {'tool_calls_total{tool="other"}': 1}


def test_primitives_do_not_raise_when_the_hosts_log_filter_does() -> None:
    """Recording never breaks the host, also where the host's own logging is broken."""

    def broken(_: logging.LogRecord) -> bool:
        raise RuntimeError("filter")

    logger = logging.getLogger("handoffwatch")
    logger.addFilter(broken)
    try:
        run = new_watched().watch.run("refunds", task_id="t-1")
        step = run.handoff("planner", "executor", bad_handoff("planner", "executor"))
        failed = run.call("nobody").classified(failure_class="fatal", code=ToolCode.EXCEPTION)  # type: ignore[arg-type]
    finally:
        logger.removeFilter(broken)

    assert (step.action, failed.action) == (Action.REPAIR, Action.GIVE_UP)


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (staticmethod(len), "must decorate a function, got staticmethod"),
        (7, "must decorate a function, got int"),
    ],
    ids=["staticmethod", "number"],
)
def test_tool_is_refused_when_its_function_cannot_be_watched(function: Any, got: str) -> None:
    """What would count as a success before it has run is refused where it is written."""
    with pytest.raises(RegistrationError, match=got):
        new_watched().watch.tool("pieces", safety="safe")(function)


def test_tool_is_refused_when_its_success_rule_is_a_coroutine_function() -> None:
    """A coroutine is true whatever it would say."""

    async def rule(_: object) -> bool:
        return False

    with pytest.raises(RegistrationError, match="success: must be a plain function, got a coroutine function"):
        new_watched().watch.tool("find", safety="safe", success=rule)  # type: ignore[arg-type]


def test_tool_fails_when_plain_code_gets_a_task_back() -> None:
    """A task that has not run is no result."""
    watch = new_watched().watch

    async def main() -> bool:
        @watch.tool("find", safety="safe")
        def find() -> Any:
            return asyncio.ensure_future(asyncio.sleep(0))

        with watch.run("refunds") as run:
            with pytest.raises(Exception, match="the call failed"):
                find()
            return run.answer("x").action is Action.REFUSE

    assert asyncio.run(main())


def test_tool_with_an_async_call_method_is_awaited() -> None:
    """An object whose `__call__` is a coroutine function is an async tool."""
    watch = new_watched().watch

    class Finder:
        __name__ = "finder"

        async def __call__(self) -> list[str]:
            return ["4417"]

    find = watch.tool("find", safety="safe")(Finder())

    assert asyncio.run(find()) == ["4417"]


def test_inner_ambiguity_reaches_the_host_when_a_tool_calls_a_tool() -> None:
    """What may have happened is not turned into a plain failure by the tool around it."""
    watch = new_watched().watch

    @watch.tool("pay", safety="unsafe")
    def pay() -> None:
        raise TimeoutError

    @watch.tool("checkout", safety="safe")
    def checkout() -> None:
        pay()

    with watch.run("refunds"), pytest.raises(NeedsHuman, match="tool pay"):
        checkout()


@pytest.mark.parametrize("run_id", ["\ud83c", "", "r" * 256, uuid.UUID(int=1), 7], ids=repr)
def test_run_is_refused_when_its_id_cannot_be_stored(run_id: Any) -> None:
    """An id that no database takes would break every durable step, so it is refused at the start."""
    with pytest.raises(RegistrationError, match="run_id: must be a text of 1 to 255 characters"):
        new_watched().watch.run("refunds", run_id=run_id)


def test_current_finds_the_second_run_when_the_first_of_one_id_has_ended() -> None:
    """Two runs that share an id do not take each other away."""
    watch = new_watched().watch
    first, second = watch.run("refunds", run_id="r-1"), watch.run("refunds", run_id="r-1")
    first.finish()

    assert watch.current("r-1") is second
