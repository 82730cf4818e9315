"""Functions as tools: which can be watched, and what stands in their place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from handoffwatch.errors import RegistrationError

if TYPE_CHECKING:
    from handoffwatch.runtime.watch import Watch
    from handoffwatch.tools.tool import Tool

F = TypeVar("F", bound=Callable[..., Any])


def is_async(function: Any) -> bool:
    """Return whether a call of the function gives a coroutine; an object with an async `__call__` counts."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _refuse_uncallable(tool: str, function: Any) -> None:
    """Refuse what cannot be watched: an answer that comes in pieces is not known to be good when the call returns.

    Raises:
        RegistrationError: It is a generator function, a descriptor, or no function at all.
    """
    if isinstance(function, staticmethod | classmethod) or not callable(function):
        raise RegistrationError(
            f"tool {tool}: must decorate a function, got {type(function).__name__}",
            hint="write @staticmethod or @classmethod above @watch.tool, not below it",
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise RegistrationError(
            f"tool {tool}: must be a function that returns its result, got a generator function",
            hint="collect the pieces in the tool and return them",
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
    """Return the function with every call of it judged and counted; a coroutine function stays one.

    Raises:
        RegistrationError: It cannot be watched, or its parameters do not fit the tool's operation.
    """
    from handoffwatch.runtime import flows
    from handoffwatch.runtime.drivers import drive, drive_async

    _refuse_uncallable(tool.name, function)
    signature = inspect.signature(function) if tool.operation is not None else inspect.Signature()
    if tool.operation is not None:
        watch.registrations.operations[tool.operation].check_parameters(signature.parameters, tool=tool.name)

    def bind(*args: Any, **kwargs: Any) -> dict[str, Any]:
        arguments = signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        return arguments.arguments

    if is_async(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await drive_async(flows.call(watch, tool, function, args, kwargs, bind), watch.clock)

        return awaited  # type: ignore[return-value]

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return drive(flows.call(watch, tool, function, args, kwargs, bind), watch.clock)

    return called  # type: ignore[return-value]
