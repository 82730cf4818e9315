"""Whether a client sent another request before the one that it tells of: the other may have done it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

from handoffwatch.tools.foreign import attribute_of, names_of

_CAUSES_MAX: Final = 8
_NEVER_SENT: Final = frozenset({"NewConnectionError", "ConnectTimeoutError"})
"""Errors in urllib3's history of attempts that reached nobody."""
_REPEATED: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""Methods whose requests aiohttp sends twice. Source: RFC 9110, 9.2.2."""


def sent_before(told: object) -> bool:
    """Return whether a client followed a redirect or repeated its request, so that an earlier one was answered or lost.

    Responses have a history; an exception has none where the last connection was refused, and only the functions that
    it went through say it. Clients whose functions are unknown are taken to have sent one request.

    Args:
        told: What a tool returned or raised.
    """
    for holder in (told, attribute_of(told, "response")):
        has_history = isinstance(holder, Exception) or attribute_of(holder, "headers") is not None
        history = attribute_of(holder, "history") if has_history else None
        if isinstance(history, list | tuple) and history:
            return True
    return isinstance(told, BaseException) and any(map(_says_so, _frames(told)))


def _frames(error: BaseException) -> Iterator[FrameType]:
    """Give the frames that an error and those behind it went through."""
    behind: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if behind is None:
            return
        trace = behind.__traceback__
        while trace is not None:
            yield trace.tb_frame
            trace = trace.tb_next
        behind = behind.__context__ if behind.__cause__ is None else behind.__cause__


def _says_so(frame: FrameType) -> bool:
    told = _TELLING.get(frame.f_code.co_name)
    if told is None:
        return False
    package, says_so = told
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and module.startswith(package) and says_so(frame.f_locals)


def _always(_: Any) -> bool:
    return True


def _has_history(local: Any) -> bool:
    history = local.get("history")
    return isinstance(history, list | tuple) and bool(history)


def _is_repeated(local: Any) -> bool:
    retries = local.get("retries_taken")
    return type(retries) is int and retries > 0


def _is_second_try(local: Any) -> bool:
    """Return whether aiohttp has sent a request again whose connection was dropped, of which it tells nobody."""
    may_repeat = attribute_of(local.get("self"), "_retry_connection") is True
    return may_repeat and local.get("method") in _REPEATED and local.get("retry_persistent_connection") is False


def _is_later_attempt(local: Any) -> bool:
    attempts = local.get("attempts")
    return type(attempts) is int and attempts > 1


def _reached_somebody(local: Any) -> bool:
    history = attribute_of(local.get("retries"), "history")
    errors = [attribute_of(entry, "error") for entry in history] if isinstance(history, tuple) else []
    return any(not isinstance(error, Exception) or not names_of(error) & _NEVER_SENT for error in errors)


_TELLING: Final[dict[str, tuple[tuple[str, ...], Callable[[Any], bool]]]] = {
    "resolve_redirects": (("requests.",), _always),
    "http_error_302": (("urllib.request",), _always),
    "_send_handling_redirects": (("httpx.",), _has_history),
    "_request": (
        ("aiohttp.client", "openai.", "anthropic."),
        lambda local: _has_history(local) or _is_repeated(local) or _is_second_try(local),
    ),
    "request": (("openai.", "anthropic."), _is_repeated),
    "_send_request": (("botocore.endpoint",), _is_later_attempt),
    "urlopen": (("urllib3.connectionpool",), _reached_somebody),
}
"""By the name of a client's function: its modules, and what of its variables says that it goes on after a request."""
