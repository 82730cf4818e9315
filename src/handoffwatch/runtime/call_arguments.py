"""The arguments of a call: by name, as a digest that tells one call from another, and as the key of its request."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from handoffwatch.values.canonical import canonical_form
from handoffwatch.values.json_text import decode

_RECEIVERS: Final = ("self", "cls")
_UNCHANGING: Final = frozenset({str, int, float, bool, type(None)})
"""Types of arguments that no tool can change."""


class Parameters:
    """The parameters of a tool's function, looked up when they are first needed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @functools.cached_property
    def signature(self) -> inspect.Signature | None:
        """How the function is called; None for one that does not tell, such as some of those written in C."""
        try:
            return inspect.signature(self._function)
        except (TypeError, ValueError):  # it does not tell
            return None


class CallArguments:
    """The arguments of one call. They are remembered as they are now, whatever the tool makes of them.

    Args:
        args: Those given by position.
        kwargs: Those given by name.
        parameters: What names the first; None where all are named.

    Attributes:
        args: As given.
        kwargs: As given.
        may_change: Whether a tool could change one of them.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], parameters: Parameters | None = None) -> None:
        self.args = args
        self.kwargs = kwargs
        self._parameters = parameters
        self.may_change = not (
            _UNCHANGING.issuperset(map(type, args)) and _UNCHANGING.issuperset(map(type, kwargs.values()))
        )
        if self.may_change:
            _ = self.said  # read before the call

    @classmethod
    def told(cls, args: object) -> CallArguments:
        """Return the arguments that a framework tells: a mapping, or the JSON text of an object, as models write it."""
        if isinstance(args, str):
            try:
                args = decode(args)
            except ValueError:  # no JSON: the text is the one argument
                pass
        return cls((), dict(args) if isinstance(args, Mapping) else {"arguments": args})

    def bound(self) -> dict[str, Any]:
        """Return the arguments by the names of the function's parameters, its defaults included.

        Raises:
            TypeError: They do not fit the parameters.
        """
        signature = self._parameters.signature if self._parameters is not None else None
        if signature is None:
            return dict(self.kwargs)
        arguments = signature.bind(*self.args, **self.kwargs)
        arguments.apply_defaults()
        return arguments.arguments

    @functools.cached_property
    def named(self) -> dict[str, Any]:
        """The arguments by name, however the call is spelt: without those that only repeat a default, and without the
        object that a method belongs to."""
        signature = self._parameters.signature if self._parameters is not None else None
        try:
            found = signature.bind(*self.args, **self.kwargs).arguments if signature is not None else None
        except TypeError:  # the function itself will refuse them
            found = None
        if signature is None or found is None:
            return {str(place): value for place, value in enumerate(self.args)} | dict(self.kwargs)
        named: dict[str, Any] = {}
        for place, (name, value) in enumerate(found.items()):
            parameter = signature.parameters[name]
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                named |= value
            elif not (place == 0 and name in _RECEIVERS) and not _is_default(parameter.default, value):
                named[name] = value
        return named

    @property
    def receiver(self) -> object:
        """The object that a method belongs to; None for a function."""
        signature = self._parameters.signature if self._parameters is not None and self.args else None
        first = next(iter(signature.parameters), "") if signature is not None else ""
        return self.args[0] if first in _RECEIVERS else None

    @functools.cached_property
    def said(self) -> str:
        """The digest of the arguments by name, for this process alone; empty when they have no canonical form."""
        return canonical_form(self.named).digest

    def are_those_of(self, other: CallArguments) -> bool:
        """Return whether these are the very objects of another call, given in the same way."""
        mine, theirs = self.kwargs, other.kwargs
        return (
            len(self.args) == len(other.args)
            and all(one is other for one, other in zip(self.args, other.args, strict=True))
            and mine.keys() == theirs.keys()
            and all(mine[name] is theirs[name] for name in mine)
        )


def key_of(run_id: str, operation: str, digest: str) -> str:
    """Return the idempotency key of a call: 32 hexadecimal digits, the same for every attempt of it.

    Whoever knows the run can try what small arguments a key was made of: it goes to the tool's service, which is given
    the arguments too, and stands nowhere beside arguments that are secret.

    Args:
        run_id: The run.
        operation: The kind of operation, else the tool: a key is for one end point.
        digest: That of the arguments.

    Source: DESIGN section 3 rule 1.
    """
    return hashlib.blake2b("\x00".join((run_id, operation, digest)).encode(), digest_size=16).hexdigest()


def _is_default(default: object, value: object) -> bool:
    return value is default or (type(value) is type(default) and type(value) in _UNCHANGING and value == default)
