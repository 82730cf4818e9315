"""The drivers' time limit: what takes too long is cancelled or left behind, and the flow hears of it."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from handoffwatch.clock import Clock
from handoffwatch.runtime.drivers import Flow, Invoke, LeftRunning, NeedsAsyncDriver, drive, drive_async
from support.telemetry import Spans

LONG_S = 60.0
SHORT_S = 0.01

USER: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

Driver = Callable[[Flow[Any]], Any]


def _plain(flow: Flow[Any]) -> Any:
    return drive(flow, Clock())


def _async(flow: Flow[Any]) -> Any:
    return asyncio.run(drive_async(flow, Clock()))


both_drivers = pytest.mark.parametrize("run", [_plain, _async], ids=["plain", "async"])


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hanging functions wait for; it opens when the test is over."""
    opened = threading.Event()
    yield opened
    opened.set()


def _one(function: Callable[..., Any], *args: Any, limit_s: float = LONG_S, **more: Any) -> Flow[Any]:
    """Invoke one function with a limit; returns what it returned, or the class of what the flow was thrown."""
    try:
        return (yield Invoke(function, args, limit_s=limit_s, **more))
    except Exception as error:  # noqa: BLE001 - whatever it is, the test compares its class
        return type(error)


@both_drivers
def test_limited_function_gives_its_result_when_it_is_in_time(run: Driver) -> None:
    """Arguments and result go through the thread."""
    assert run(_one(divmod, 7, 2)) == (3, 1)


@both_drivers
def test_limited_function_gives_its_exception_when_it_raises(run: Driver) -> None:
    """The flow gets what was raised."""
    assert run(_one(divmod, 7, 0)) is ZeroDivisionError


@both_drivers
def test_limited_function_gives_a_runtime_error_when_it_raises_stop_iteration(run: Driver) -> None:
    """It ends neither the flow nor the wait for the thread."""
    assert run(_one(next, iter([]))) is RuntimeError


@both_drivers
def test_limited_function_is_left_behind_when_it_takes_too_long(run: Driver, gate: threading.Event) -> None:
    """The flow goes on, and the function goes on without it, also when it would have blocked an event loop."""
    ended = threading.Event()

    def hang() -> None:
        gate.wait(LONG_S)
        ended.set()

    assert run(_one(hang, limit_s=SHORT_S)) is LeftRunning
    assert not ended.is_set()
    gate.set()
    assert ended.wait(LONG_S)


@both_drivers
def test_limited_function_sees_the_callers_context_and_span_when_it_runs(run: Driver) -> None:
    """Spans that it starts have their parent, and context variables their values."""
    spans = Spans()
    tracer = spans.provider.get_tracer("host")
    around = tracer.start_span("around")

    def look() -> str:
        with tracer.start_as_current_span("within"):
            return USER.get()

    def act() -> Any:
        USER.set("operator")
        return run(_one(look, span=around))

    assert contextvars.copy_context().run(act) == "operator"
    around.end()
    assert spans.parent(spans.one("within")) == "around"


@pytest.mark.parametrize("limit_s", [None, LONG_S], ids=["unlimited", "limited"])
def test_coroutine_function_is_refused_when_the_code_is_plain(limit_s: float | None) -> None:
    """Its coroutine is closed, so that nothing warns of one that was never awaited."""

    async def work() -> None:
        raise AssertionError("it was awaited")

    flow: Flow[Any] = (step for step in [Invoke(work, limit_s=limit_s)])
    with pytest.raises(NeedsAsyncDriver, match="use transfer_async"):
        drive(flow, Clock())


def test_coroutine_is_cancelled_when_it_takes_too_long() -> None:
    """It has time to clean up, and the flow gets the time-out."""
    seen: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    assert _async(_one(hang, limit_s=SHORT_S)) is TimeoutError
    assert seen == ["cancelled"]


def test_coroutine_runs_on_the_loop_when_a_plain_function_makes_it() -> None:
    """A partial or a lambda over a coroutine function is awaited where it can be."""

    async def work(number: int) -> tuple[int, bool]:
        await asyncio.sleep(0)
        return number, threading.current_thread() is threading.main_thread()

    assert _async(_one(functools.partial(work, 7))) == (7, True)
    assert _async(_one(lambda: work(8))) == (8, True)


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_cancellation_passes_through_when_the_task_is_cancelled_within_the_limit(
    kind: str, gate: threading.Event
) -> None:
    """A time limit does not turn the host's cancellation into anything else."""

    async def main() -> bool:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hang() -> None:
            loop.call_soon_threadsafe(begun.set)
            gate.wait(LONG_S)

        async def hang_async() -> None:
            begun.set()
            await asyncio.Event().wait()

        flow = _one(hang if kind == "plain" else hang_async)
        task = asyncio.create_task(drive_async(flow, Clock()))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main())


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_loop_goes_on_when_a_limited_function_takes_its_time(kind: str, gate: threading.Event) -> None:
    """Neither kind of function holds up what else runs on the loop."""

    async def wait_for_gate() -> bool:
        return await asyncio.to_thread(gate.wait, LONG_S)

    async def main() -> Any:
        work = asyncio.create_task(drive_async(_one(gate.wait if kind == "plain" else wait_for_gate), Clock()))
        await asyncio.sleep(0)
        gate.set()
        return await work

    assert asyncio.run(main()) is True
