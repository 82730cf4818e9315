"""Tools that answer in pieces: watched until the last one, and never begun again after the first."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace

from handoffwatch.errors import HandoffwatchError, ToolFailed
from handoffwatch.runtime.drivers import Flow, drive, drive_async
from handoffwatch.runtime.step import Step
from handoffwatch.runtime.stream_closing import clean_up, clean_up_after
from handoffwatch.runtime.tool_flows import attempts, concluded, is_watched_already, open_call
from handoffwatch.runtime.wanted_calls import Begun, Opened, Wanted
from handoffwatch.tools.control_flow import asks_the_model, is_control_flow
from handoffwatch.vocabulary import Action, WhenFailed


def watched_pieces(wanted_of: Callable[..., Wanted]) -> Callable[..., Generator[Any, Any, Any]]:
    """Return a generator function that gives the pieces of a tool, each judged by the tool's success rule.

    What the caller sends or throws into it goes to the tool.

    Args:
        wanted_of: Makes the wanted call of positional and keyword arguments.
    """

    def pieces(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        wanted = wanted_of(args, kwargs)
        if is_watched_already(wanted):
            return (yield from wanted.function(*args, **kwargs))
        clock = wanted.watch.clock
        thrown: BaseException | None = None
        try:
            opened, begun = drive(_begin(wanted._replace(function=_first_of(wanted))), clock)
            last, returned, step, cause = begun.first, begun.returned, None, None
            try:
                while not begun.is_empty and step is None:
                    try:
                        sent, thrown = (yield last), None
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001 - the caller's own, for the tool
                        thrown = error
                    with _running(opened):
                        last = begun.pieces.send(sent) if thrown is None else begun.pieces.throw(thrown)
                    step = _refused(opened, last)
            except StopIteration as end:
                returned = end.value
            except BaseException as error:  # noqa: BLE001 - classified or raised again
                step, cause = _broken(opened, error, thrown), error
            finally:
                with clean_up_after(opened, step):
                    begun.pieces.close()
            drive(_end(wanted, opened, last, step, cause), clock)
            return returned
        except ToolFailed as failed:
            if failed is thrown or wanted.tool.when_failed is WhenFailed.RAISE:
                raise
            yield failed.text
            return None

    return pieces


def watched_pieces_async(wanted_of: Callable[..., Wanted]) -> Callable[..., AsyncGenerator[Any, Any]]:
    """Return an async generator function that does as `watched_pieces`."""

    async def pieces(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        wanted = wanted_of(args, kwargs)
        if is_watched_already(wanted):
            async with contextlib.aclosing(wanted.function(*args, **kwargs)) as inner:
                answer = anext(inner)
                while True:
                    try:
                        piece = await answer
                    except StopAsyncIteration:
                        return
                    try:
                        answer = inner.asend((yield piece))
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001 - the caller's own, for the tool
                        answer = inner.athrow(error)
        clock = wanted.watch.clock
        thrown: BaseException | None = None
        try:
            opened, begun = await drive_async(_begin(wanted._replace(function=_first_of_async(wanted))), clock)
            last, step, cause = begun.first, None, None
            try:
                while not begun.is_empty and step is None:
                    try:
                        sent, thrown = (yield last), None
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001 - the caller's own, for the tool
                        thrown = error
                    with _running(opened):
                        last = await (begun.pieces.asend(sent) if thrown is None else begun.pieces.athrow(thrown))
                    step = _refused(opened, last)
            except StopAsyncIteration:
                pass  # it came to its end
            except BaseException as error:  # noqa: BLE001 - classified or raised again
                step, cause = _broken(opened, error, thrown), error
            finally:
                with clean_up_after(opened, step):
                    await begun.pieces.aclose()
            await drive_async(_end(wanted, opened, last, step, cause), clock)
        except ToolFailed as failed:
            if failed is thrown or wanted.tool.when_failed is WhenFailed.RAISE:
                raise
            yield failed.text

    return pieces


def _begin(wanted: Wanted) -> Flow[tuple[Opened, Begun]]:
    """Begin a stream: before its first piece an attempt is repeated as any other."""
    opened = yield from open_call(wanted)
    begun, step, cause = yield from attempts(wanted, opened, told=lambda begun: opened.call.began(begun.failure))
    if step.action is not Action.OK:
        yield from concluded(wanted, opened, None, step, cause)
    return opened, begun


def _end(wanted: Wanted, opened: Opened, last: Any, step: Step | None, cause: BaseException | None) -> Flow[Any]:
    """End a stream; no step says that it came to its own end. Its last piece is its receipt."""
    return concluded(wanted, opened, last, opened.call.streamed() if step is None else step, cause)


def _refused(opened: Opened, piece: Any) -> Step | None:
    """Return the end of a call whose piece failed by the success rule; None for a good one."""
    failure = opened.call.judge(piece)
    return None if failure is None else opened.call.broke_off(None, failure)


def _broken(opened: Opened, error: BaseException, thrown: BaseException | None) -> Step:
    """Return the end of a call whose stream has raised.

    Raises:
        BaseException: The same error again, where it is for the program: cancellation, control flow of a framework,
            an error of a call within it, and what the caller threw into the stream.
    """
    call = opened.call
    if error is thrown or not isinstance(error, Exception):
        call.cancelled()
    elif isinstance(error, HandoffwatchError):
        call.nested(error)
    elif is_control_flow(error):
        call.suspended()
    else:
        step = call.broke_off(error)
        if not asks_the_model(error):
            return step
    raise error


def _first_of(wanted: Wanted) -> Callable[..., Begun]:
    def begin(*args: Any, **kwargs: Any) -> Begun:
        pieces = wanted.function(*args, **kwargs)
        try:
            first = next(pieces)
        except StopIteration as end:
            return Begun(pieces, is_empty=True, returned=end.value)
        failure = _judged(wanted, first)
        if failure is not None:
            with clean_up(wanted.watch):
                pieces.close()
        return Begun(pieces, first, failure)

    return begin


def _first_of_async(wanted: Wanted) -> Callable[..., Any]:
    async def begin(*args: Any, **kwargs: Any) -> Begun:
        pieces = wanted.function(*args, **kwargs)
        try:
            first = await anext(pieces)
        except StopAsyncIteration:
            return Begun(pieces, is_empty=True)
        failure = _judged(wanted, first)
        if failure is not None:
            with clean_up(wanted.watch):
                await pieces.aclose()
        return Begun(pieces, first, failure)

    return begin


def _judged(wanted: Wanted, first: Any) -> Any:
    """Return how a first piece failed by the success rule, or None."""
    call = wanted.watch.current_call()
    assert call is not None  # the attempt runs within it
    return call.judge(first)


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
