"""Functions as tools: which can be watched, and what stands in their place."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from handoffwatch.errors import RegistrationError

if TYPE_CHECKING:
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.watch import Watch
    from handoffwatch.tools.tool import Tool

F = TypeVar("F", bound=Callable[..., Any])


def is_async(function: Any) -> bool:
    """Return whether a call of the function gives a coroutine; an object with an async `__call__` counts."""
    return _is(inspect.iscoroutinefunction, function)


def _refuse_uncallable(tool: str, function: Any) -> None:
    """Refuse what cannot be watched.

    Raises:
        RegistrationError: It is a descriptor, or no function at all.
    """
    if isinstance(function, staticmethod | classmethod) or not callable(function):
        raise RegistrationError(
            f"tool {tool}: must decorate a function, got {type(function).__name__}",
            hint="write @staticmethod or @classmethod above @watch.tool, not below it",
        )


def refuse_async_rule(tool: str, success: Any) -> None:
    """Refuse a success rule that would answer with a coroutine, which is true whatever it says.

    Raises:
        RegistrationError: The rule is a coroutine function.
    """
    if success is not None and is_async(success):
        raise RegistrationError(
            f"tool {tool}: success: must be a plain function, got a coroutine function",
            hint="await inside the tool, and let the rule look at what it returned",
        )


def watched(watch: Watch, tool: Tool, function: F) -> F:
    """Return the function with every call of it judged and counted; it stays of its kind.

    Plain functions, coroutine functions, generator functions and async generator functions are watched, and objects
    that are called like one of them.

    Raises:
        RegistrationError: It cannot be watched, or its parameters do not fit the tool's operation.
    """
    from handoffwatch.runtime.call_arguments import CallArguments, Parameters
    from handoffwatch.runtime.drivers import drive, drive_async
    from handoffwatch.runtime.streams import watched_pieces, watched_pieces_async
    from handoffwatch.runtime.tool_flows import call
    from handoffwatch.runtime.wanted_calls import Wanted

    _refuse_uncallable(tool.name, function)
    parameters = Parameters(function)
    if tool.operation is not None:
        signature = inspect.signature(function)
        watch.registrations.operations[tool.operation].check_parameters(signature.parameters, tool=tool.name)

    def wanted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Wanted:
        return Wanted(watch, tool, function, CallArguments(args, kwargs, parameters))

    if _is(inspect.isasyncgenfunction, function):
        return functools.wraps(function)(watched_pieces_async(wanted))  # type: ignore[return-value]
    if _is(inspect.isgeneratorfunction, function):
        return functools.wraps(function)(watched_pieces(wanted))  # type: ignore[return-value]
    if is_async(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await drive_async(call(wanted(args, kwargs)), watch.clock)

        return awaited  # type: ignore[return-value]

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return drive(call(wanted(args, kwargs)), watch.clock)

    return called  # type: ignore[return-value]


def bound(current: ContextVar[Run | None], run: Run, function: F) -> F:
    """Return a function that finds `run` as the current run, whatever thread or task calls it; it stays of its kind."""
    if _is(inspect.isasyncgenfunction, function):

        @functools.wraps(function)
        async def streamed_async(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            async with contextlib.aclosing(function(*args, **kwargs)) as pieces:
                while True:
                    with _set(current, run):
                        try:
                            piece = await anext(pieces)
                        except StopAsyncIteration:
                            return
                    yield piece

        return streamed_async  # type: ignore[return-value]
    if _is(inspect.isgeneratorfunction, function):

        @functools.wraps(function)
        def streamed(*args: Any, **kwargs: Any) -> Generator[Any, None, Any]:
            with contextlib.closing(function(*args, **kwargs)) as pieces:
                while True:
                    with _set(current, run):
                        try:
                            piece = next(pieces)
                        except StopIteration as end:
                            return end.value
                    yield piece

        return streamed  # type: ignore[return-value]
    if is_async(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with _set(current, run):
                return await function(*args, **kwargs)

        return awaited  # type: ignore[return-value]

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with _set(current, run):
            return function(*args, **kwargs)

    return called  # type: ignore[return-value]


@contextlib.contextmanager
def _set(current: ContextVar[Run | None], run: Run) -> Iterator[None]:
    token = current.set(run)
    try:
        yield
    finally:
        current.reset(token)


def _is(kind: Callable[[Any], bool], function: Any) -> bool:
    """Return whether a function is of a kind; an object with such a `__call__` counts."""
    return kind(function) or kind(getattr(function, "__call__", None))  # noqa: B004
