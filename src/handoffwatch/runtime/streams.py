"""Tools that answer in pieces: watched until the last one, and never begun again after the first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from opentelemetry import trace

from handoffwatch.errors import ToolFailed
from handoffwatch.runtime.drivers import Flow, drive, drive_async
from handoffwatch.runtime.step import Step
from handoffwatch.runtime.tool_flows import attempts, concluded, open_call
from handoffwatch.runtime.wanted_calls import Opened, Wanted
from handoffwatch.vocabulary import Action, WhenFailed


class _Begun(NamedTuple):
    """A stream that has given its first piece, or has ended without one.

    Attributes:
        pieces: What gives the rest.
        first: The first piece.
        is_empty: Whether there is none.
        returned: What a generator without pieces returned.
    """

    pieces: Any
    first: Any = None
    is_empty: bool = False
    returned: Any = None


def pieces_of(wanted: Wanted) -> Generator[Any, None, Any]:
    """Give the pieces of a generator function's stream, each judged by the tool's success rule.

    Raises:
        ToolFailed: The stream could not be begun, or broke off.
    """
    clock = wanted.watch.clock
    try:
        opened, begun = drive(_begin(wanted._replace(function=_first_of(wanted.function))), clock)
        last, returned, step, cause = begun.first, begun.returned, None, None
        try:
            while not begun.is_empty:
                step = _refused(opened, last)
                if step is not None:
                    break
                yield last
                with _running(opened):
                    last = next(begun.pieces)
        except StopIteration as end:
            returned = end.value
        except GeneratorExit:
            begun.pieces.close()
            opened.call.cancelled()
            raise
        except Exception as error:  # noqa: BLE001 - classified here; raised from it
            step, cause = opened.call.broke_off(error), error
        drive(_end(wanted, opened, last, step, cause), clock)
        return returned
    except ToolFailed as failed:
        if wanted.tool.when_failed is WhenFailed.RAISE:
            raise
        yield failed.text
        return None


async def pieces_of_async(wanted: Wanted) -> AsyncIterator[Any]:
    """Give the pieces of an async generator function's stream, as `pieces_of` does."""
    clock = wanted.watch.clock
    try:
        opened, begun = await drive_async(_begin(wanted._replace(function=_first_of_async(wanted.function))), clock)
        last, step, cause = begun.first, None, None
        try:
            while not begun.is_empty:
                step = _refused(opened, last)
                if step is not None:
                    break
                yield last
                with _running(opened):
                    last = await anext(begun.pieces)
        except StopAsyncIteration:
            pass
        except Exception as error:  # noqa: BLE001 - classified here; raised from it
            step, cause = opened.call.broke_off(error), error
        except BaseException:
            opened.call.cancelled()
            await begun.pieces.aclose()
            raise
        await drive_async(_end(wanted, opened, last, step, cause), clock)
    except ToolFailed as failed:
        if wanted.tool.when_failed is WhenFailed.RAISE:
            raise
        yield failed.text


def _begin(wanted: Wanted) -> Flow[tuple[Opened, _Begun]]:
    """Begin a stream: before its first piece an attempt is repeated as any other."""
    opened = yield from open_call(wanted)
    begun, step, cause = yield from attempts(wanted, opened, told=lambda begun: _told(opened, begun))
    if step.action is not Action.OK:
        yield from concluded(wanted, opened, None, step, cause)
    return opened, begun


def _end(wanted: Wanted, opened: Opened, last: Any, step: Step | None, cause: Exception | None) -> Flow[Any]:
    """End a stream; no step says that it came to its own end. Its last piece is its receipt."""
    return concluded(wanted, opened, last, opened.call.streamed() if step is None else step, cause)


def _told(opened: Opened, begun: _Begun) -> Step:
    return Step(Action.OK) if begun.is_empty else opened.call.began(begun.first)


def _refused(opened: Opened, piece: Any) -> Step | None:
    """Return the end of a call whose piece failed by the success rule; None for a good one."""
    failure = opened.call.judge(piece)
    return None if failure is None else opened.call.broke_off(None, failure)


def _first_of(function: Callable[..., Any]) -> Callable[..., _Begun]:
    def begin(*args: Any, **kwargs: Any) -> _Begun:
        pieces = function(*args, **kwargs)
        try:
            return _Begun(pieces, next(pieces))
        except StopIteration as end:
            return _Begun(pieces, None, True, end.value)

    return begin


def _first_of_async(function: Callable[..., Any]) -> Callable[..., Any]:
    async def begin(*args: Any, **kwargs: Any) -> _Begun:
        pieces = function(*args, **kwargs)
        try:
            return _Begun(pieces, await anext(pieces))
        except StopAsyncIteration:
            return _Begun(pieces, None, True)

    return begin


@contextmanager
def _running(opened: Opened) -> Iterator[None]:
    """Make a call the current one while its stream goes on."""
    call = opened.call
    token = call.watch.calls.set(call)
    try:
        with trace.use_span(call.scope.span, record_exception=False, set_status_on_exception=False):
            yield
    finally:
        call.watch.calls.reset(token)
