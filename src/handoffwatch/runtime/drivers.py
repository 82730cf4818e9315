"""Flows are generators of steps; one driver runs them in plain code, one in async code, and neither knows the flow."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from opentelemetry import trace

from handoffwatch.clock import Clock
from handoffwatch.runtime.tool_functions import is_async
from handoffwatch.threads import DaemonThreads

LIMITED_MAX: Final = 64
"""How many plain functions with a time limit may run at once in this process, those left behind included."""

_THREADS: Final = DaemonThreads("handoffwatch-limited", threads_max=LIMITED_MAX)


class NeedsAsyncDriver(TypeError):
    """A function that was to be called in plain code returned something that must be awaited.

    Args:
        has_begun: Whether it may run already, as a task does; a coroutine has not.
    """

    def __init__(self, *, has_begun: bool) -> None:
        super().__init__(
            "the function returned a coroutine in plain code: use transfer_async, or declare the tool `async def`"
        )
        self.has_begun = has_begun


class Invoke(NamedTuple):
    """Call the user's function; its result or exception goes back into the flow.

    Attributes:
        function: A plain function, or in async code also a coroutine function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        span: What is the current span meanwhile; None leaves the current one.
        limit_s: The most seconds of real time that the flow waits, then it gets a TimeoutError; None waits for ever.
            A coroutine is cancelled at the limit. A plain function runs in a daemon thread, with the caller's context
            variables, and is left behind there: it goes on until it returns. When too many of them run the flow gets
            ThreadsExhausted.
        grace_s: How many seconds more what goes on is waited for.
        is_left_running: Whether a coroutine is left behind at the limit too, since cancelling undoes nothing that was
            sent. Whatever is left behind gives the flow a LeftRunning.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})
    span: trace.Span | None = None
    limit_s: float | None = None
    grace_s: float = 0.0
    is_left_running: bool = False


class LeftRunning(TimeoutError):
    """A function did not return within its limit, and goes on.

    Args:
        work: The thread's future or the task.
    """

    def __init__(self, work: Future[Any] | asyncio.Future[Any]) -> None:
        super().__init__("the function did not return within its limit, and goes on")
        self._work = work

    @property
    def goes_on(self) -> bool:
        """Whether it still runs."""
        return not self._work.done()

    def when_done(self, told: Callable[[Any], object]) -> None:
        """Call a function with the work once it is done, in whatever thread it ends."""
        self._work.add_done_callback(told)


class Wait(NamedTuple):
    """Let time pass."""

    seconds: float


class Write(NamedTuple):
    """Run a durable step: it may wait for one commit, so async code runs it off the loop."""

    function: Callable[[], Any]


FlowStep = Invoke | Wait | Write
_LEFT: Final[set[asyncio.Future[Any]]] = set()
"""Work that was left running; a loop itself holds it weakly."""

_NOTHING: Final = nullcontext()

T = TypeVar("T")
Flow = Generator[FlowStep, Any, T]


def drive(flow: Flow[T], clock: Clock) -> T:
    """Run a flow to its end in the calling thread and return its result.

    Raises:
        NeedsAsyncDriver: A function that is to be called returned a coroutine.
        Exception: Whatever the flow raises, unchanged.
    """
    result: Any = None
    failed: BaseException | None = None
    thrown: StopIteration | None = None  # the flow may do more before it raises that again
    while True:
        unwrapped: StopIteration | None = None
        try:
            step = flow.send(result) if failed is None else flow.throw(failed)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        except RuntimeError as error:
            if thrown is None or error.__cause__ is not thrown:
                raise
            unwrapped = thrown
        if unwrapped is not None:
            raise unwrapped
        try:
            result, failed = _perform(step, clock), None
        except BaseException as error:  # noqa: BLE001 - handed to the flow, which raises it again
            failed = error
            thrown = error if isinstance(error, StopIteration) else None


async def drive_async(flow: Flow[T], clock: Clock) -> T:
    """Run a flow to its end without blocking the event loop and return its result.

    Raises:
        Exception: Whatever the flow raises, unchanged; cancellation too.
    """
    result: Any = None
    failed: BaseException | None = None
    while True:
        try:
            step = flow.send(result) if failed is None else flow.throw(failed)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        try:
            result, failed = await _perform_async(step, clock), None
        except BaseException as error:  # noqa: BLE001 - handed to the flow, which raises it again
            failed = error


def _current(span: trace.Span | None) -> AbstractContextManager[object]:
    """Make a span the current one; one that nobody records changes nothing within another, since that is not recorded
    either."""
    if span is None or not (span.is_recording() or trace.get_current_span() is trace.INVALID_SPAN):
        return _NOTHING
    return trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False)


def _perform(step: FlowStep, clock: Clock) -> Any:
    if isinstance(step, Wait):
        return clock.sleep(step.seconds)
    if isinstance(step, Write):
        return step.function()
    with _current(step.span):
        result = _call(step) if step.limit_s is None else _limited(_start(step), step)
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise NeedsAsyncDriver(has_begun=not inspect.iscoroutine(result))
    return result


async def _perform_async(step: FlowStep, clock: Clock) -> Any:
    if isinstance(step, Wait):
        return await clock.sleep_async(step.seconds)
    if isinstance(step, Write):
        return await asyncio.to_thread(step.function)
    with _current(step.span):
        if step.limit_s is None:
            return await _awaited(_call(step))
        return await _awaited(await _limited_async(step))


def _limited(work: Future[Any], step: Invoke) -> Any:
    """Return the result of a thread's work, which is left running at its limit."""
    assert step.limit_s is not None
    try:
        return work.result(step.limit_s + step.grace_s)
    except TimeoutError:
        if work.done():
            return work.result()  # it ended just now, or the time-out is its own
        raise LeftRunning(work) from None


async def _limited_async(step: Invoke) -> Any:
    """Return the result of a thread's work or of a coroutine, as far as they come within the limit."""
    assert step.limit_s is not None
    is_coroutine = is_async(step.function)
    if is_coroutine and not step.is_left_running:
        async with asyncio.timeout(step.limit_s):
            return await _call(step)
    thread = None if is_coroutine else _start(step)
    work = asyncio.ensure_future(_call(step)) if thread is None else asyncio.wrap_future(thread)
    try:
        await asyncio.wait({work}, timeout=step.limit_s + step.grace_s)
    except asyncio.CancelledError:
        leave(work)
        if is_coroutine:  # the host's cancellation goes on to it
            work.cancel()
            await asyncio.wait({work})
        raise
    if work.done():
        return work.result()
    leave(work)
    raise LeftRunning(thread or work)


def leave(work: asyncio.Future[Any]) -> None:
    """Leave work running that nobody waits for: it is held until it ends, and what it raises is asked for."""
    _LEFT.add(work)
    work.add_done_callback(_forget)


def _forget(work: asyncio.Future[Any]) -> None:
    """Let go of work that was left running; what it raised has been asked for."""
    _LEFT.discard(work)
    if not work.cancelled():
        work.exception()


def _call(step: Invoke) -> Any:
    return step.function(*step.args, **step.kwargs)


def _start(step: Invoke) -> Future[Any]:
    return _THREADS.start(partial(_call_in_thread, step))


def _call_in_thread(step: Invoke) -> Any:
    """Call the function; StopIteration becomes a RuntimeError, as in a coroutine: no future of asyncio can hold it."""
    try:
        return _call(step)
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
