"""Which functions can be watched as tools."""

from __future__ import annotations

import inspect
from typing import Any

from handoffwatch.errors import RegistrationError


def is_async(function: Any) -> bool:
    """Return whether a call of the function gives a coroutine; an object with an async `__call__` counts."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def refuse_uncallable(tool: str, function: Any) -> None:
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
