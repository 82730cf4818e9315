"""The flow of a handoff: one receiver, started once and only when allowed, in plain and in async code alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from handoffwatch import HandoffBlocked, Run, Step
from support.telemetry import counted
from support.watched import bad_handoff, handoff, new_watched

_H = 'route="planner->executor",schema_version="1",source_agent="planner",target_agent="executor"'

Transfer = Callable[..., Any]


def _plain(run: Run, *args: Any, **kwargs: Any) -> Any:
    return run.transfer(*args, **kwargs)


def _async(run: Run, *args: Any, **kwargs: Any) -> Any:
    return asyncio.run(_awaited(run.transfer_async(*args, **kwargs)))


def _async_functions(run: Run, *args: Any, **kwargs: Any) -> Any:
    """Transfer with coroutine functions in place of the plain ones."""
    for name in ("receiver", "repair"):
        if name in kwargs:
            kwargs[name] = _as_async(kwargs[name])
    return _async(run, *args, **kwargs)


def _as_async(function: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
    async def called(argument: Any) -> Any:
        await asyncio.sleep(0)
        return function(argument)

    return called


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


@pytest.fixture(params=[_plain, _async, _async_functions], ids=["plain", "async", "async functions"])
def transfer(request: pytest.FixtureRequest) -> Transfer:
    """Each way to hand something over."""
    return request.param  # type: ignore[no-any-return]


def test_transfer_returns_what_the_receiver_returned_when_the_handoff_is_good(transfer: Transfer) -> None:
    """The receiver gets the normalised handoff, once."""
    watch = new_watched().watch
    got: list[dict[str, Any]] = []

    with watch.run("refunds", run_id="r-1", task_id="t-1") as run:
        result = transfer(run, "planner", "executor", handoff(), receiver=lambda item: got.append(item) or "done")

    assert result == "done"
    assert got == [handoff(run_id="r-1", context_version=None, attempt=1, produced_at=None, finish_reason=None)]
    assert counted(watch.registry, "handoffs_total") == {f'handoffs_total{{outcome="delivered",{_H}}}': 1}


def test_transfer_delivers_the_repaired_handoff_when_the_sender_mends_it(transfer: Transfer) -> None:
    """The sender is shown each step and sends again; the receiver sees the good one alone."""
    watch = new_watched().watch
    asked: list[Step] = []
    got: list[Any] = []

    def repair(step: Step) -> dict[str, Any]:
        asked.append(step)
        return bad_handoff() if len(asked) == 1 else handoff()

    with watch.run("refunds", task_id="t-1") as run:
        transfer(run, "planner", "executor", bad_handoff(), receiver=got.append, repair=repair)

    assert [(step.action, step.decision.attempt) for step in asked if step.decision] == [("repair", 1), ("repair", 2)]
    assert [len(step.text.splitlines()) for step in asked] == [3, 4]
    assert [item["payload"]["amount_cents"] for item in got] == [3800]
    assert counted(watch.registry, "handoffs_total", "handoff_repairs_total") == {
        f'handoffs_total{{outcome="delivered",{_H}}}': 1,
        f'handoff_repairs_total{{result="still_bad",{_H}}}': 1,
        f'handoff_repairs_total{{result="repaired",{_H}}}': 1,
    }


def test_transfer_raises_the_decision_when_the_repairs_are_used_up(transfer: Transfer) -> None:
    """The receiver never starts."""
    watch = new_watched().watch
    got: list[Any] = []

    def blocked() -> None:
        with watch.run("refunds", task_id="t-1") as run:
            transfer(run, "planner", "executor", bad_handoff(), receiver=got.append, repair=lambda _: bad_handoff())

    with pytest.raises(HandoffBlocked) as caught:
        blocked()

    assert str(caught.value) == (
        "handoff planner->executor: blocked before the receiver's first action after 3 attempts: "
        "type_mismatch, repair_exhausted\n"
        "hint: read error.decision.findings for the fields and what would be right"
    )
    assert caught.value.decision is not None
    assert caught.value.decision.attempt == 3
    assert got == []
    assert counted(watch.registry, "handoffs_total", "handoff_repairs_total", "runs_total") == {
        f'handoffs_total{{outcome="stopped",{_H}}}': 1,
        f'handoff_repairs_total{{result="still_bad",{_H}}}': 1,
        f'handoff_repairs_total{{result="exhausted",{_H}}}': 1,
        'runs_total{outcome="stopped",tools="required",workflow="refunds"}': 1,
    }


def test_transfer_stops_at_the_first_block_when_nobody_can_repair(transfer: Transfer) -> None:
    """Without a repair function there is one attempt."""
    watch = new_watched().watch

    def blocked() -> None:
        with watch.run("refunds", task_id="t-1") as run:
            transfer(run, "planner", "executor", bad_handoff(), receiver=print)

    with pytest.raises(HandoffBlocked):
        blocked()

    assert counted(watch.registry, "handoffs_total", "handoff_inspections_total") == {
        f'handoffs_total{{outcome="stopped",{_H}}}': 1,
        f'handoff_inspections_total{{attempt="first",mode="enforce",{_H}}}': 1,
    }


@pytest.mark.parametrize(
    "error",
    [KeyError("order"), RuntimeError(), KeyboardInterrupt(), StopIteration("end")],
    ids=lambda e: type(e).__name__,
)
def test_transfer_passes_the_receivers_exception_on_unchanged_when_it_raises(error: BaseException) -> None:
    """The very object comes through, without a cause of ours, and the handoff is receiver_failed."""
    watch = new_watched().watch

    def receiver(_: dict[str, Any]) -> None:
        raise error

    with watch.run("refunds", task_id="t-1") as run, pytest.raises(type(error)) as caught:
        run.transfer("planner", "executor", handoff(), receiver=receiver)

    assert caught.value is error
    assert (error.__cause__, error.__context__) == (None, None)
    assert counted(watch.registry, "handoffs_total") == {f'handoffs_total{{outcome="receiver_failed",{_H}}}': 1}


def test_transfer_passes_the_receivers_exception_on_unchanged_when_it_raises_in_async_code() -> None:
    """As in plain code."""
    watch = new_watched().watch
    error = KeyError("order")

    async def receiver(_: dict[str, Any]) -> None:
        raise error

    async def main() -> None:
        async with watch.run("refunds", task_id="t-1") as run:
            await run.transfer_async("planner", "executor", handoff(), receiver=receiver)

    with pytest.raises(KeyError) as caught:
        asyncio.run(main())

    assert caught.value is error
    assert counted(watch.registry, "handoffs_total") == {f'handoffs_total{{outcome="receiver_failed",{_H}}}': 1}


def test_transfer_passes_the_repairs_exception_on_unchanged_when_it_raises(transfer: Transfer) -> None:
    """A sender that is down is the host's matter; the handoff ends as stopped."""
    watch = new_watched().watch
    error = ConnectionError("the model is down")

    def repair(_: Step) -> None:
        raise error

    def fail() -> None:
        with watch.run("refunds", task_id="t-1") as run:
            transfer(run, "planner", "executor", bad_handoff(), receiver=print, repair=repair)

    with pytest.raises(ConnectionError) as caught:
        fail()

    assert caught.value is error
    assert counted(watch.registry, "handoffs_total") == {f'handoffs_total{{outcome="stopped",{_H}}}': 1}


def test_transfer_cancels_the_receiver_when_its_task_is_cancelled() -> None:
    """Cancellation reaches the receiver and comes back."""
    watch = new_watched().watch
    seen: list[str] = []

    async def main() -> None:
        started = asyncio.Event()

        async def receiver(_: dict[str, Any]) -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        async def work() -> None:
            async with watch.run("refunds", task_id="t-1") as run:
                await run.transfer_async("planner", "executor", handoff(), receiver=receiver)

        task = asyncio.create_task(work())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert seen == ["cancelled"]
    assert counted(watch.registry, "handoffs_total", "runs_total") == {
        f'handoffs_total{{outcome="receiver_failed",{_H}}}': 1,
        'runs_total{outcome="cancelled",tools="required",workflow="refunds"}': 1,
    }


@pytest.mark.parametrize("change", [{"task_id": "t-2"}, {"handoff_id": None}, {"schema_version": 1}, {}])
def test_transfer_gives_the_receiver_the_handoff_as_sent_when_its_route_is_in_shadow(
    transfer: Transfer, change: dict[str, Any]
) -> None:
    """In shadow mode the program works as if nobody watched: not even an id is filled in."""
    watch = new_watched(mode="shadow").watch
    sent = handoff(**change)
    got: list[Any] = []

    with watch.run("refunds", task_id="t-1") as run:
        transfer(run, "planner", "executor", sent, receiver=got.append)

    assert got == [handoff(**change)]


@pytest.mark.parametrize("raw", ["no JSON at all", [1, 2], None], ids=["text", "list", "nothing"])
def test_transfer_gives_the_receiver_the_original_when_it_is_no_object_and_the_route_is_in_shadow(raw: object) -> None:
    """What has no JSON object form passes as it is."""
    watch = new_watched(mode="shadow").watch
    got: list[Any] = []

    with watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", raw, receiver=got.append)

    assert len(got) == 1
    assert got[0] is raw


def test_transfer_refuses_a_coroutine_when_the_code_is_plain() -> None:
    """A receiver that was never awaited did nothing: it is a failure, and leaves no unawaited coroutine."""
    watch = new_watched().watch

    async def receiver(_: dict[str, Any]) -> str:
        return "done"

    with watch.run("refunds", task_id="t-1") as run, pytest.raises(TypeError) as caught:
        run.transfer("planner", "executor", handoff(), receiver=receiver)

    assert str(caught.value) == (
        "the function returned a coroutine in plain code: use transfer_async, or declare the tool `async def`"
    )
    assert counted(watch.registry, "handoffs_total") == {f'handoffs_total{{outcome="receiver_failed",{_H}}}': 1}


def test_transfers_are_counted_one_by_one_when_they_run_at_once() -> None:
    """Five handoffs of one route in one gather, each with its own key."""
    watch = new_watched().watch

    async def receiver(item: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return str(item["handoff_id"])

    async def main() -> list[str]:
        async with watch.run("refunds", task_id="t-1") as run:
            return await asyncio.gather(
                *(
                    run.transfer_async(
                        "planner", "executor", handoff(handoff_id=f"h-{number}"), receiver=receiver, key=f"{number}"
                    )
                    for number in range(5)
                )
            )

    assert asyncio.run(main()) == ["h-0", "h-1", "h-2", "h-3", "h-4"]
    assert counted(watch.registry, "handoffs_total", "handoff_repairs_total") == {
        f'handoffs_total{{outcome="delivered",{_H}}}': 5
    }
