"""Attempts that a client library made by itself, where it tells: they multiply with those of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_RETRIES_MAX: Final = 1_000
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes, list, tuple, set})


def client_retries(told: object) -> int:
    """Return how many attempts a client library made before the one that it tells of; 0 when it tells of none.

    botocore says it in the metadata of its answers and errors, urllib3 and requests in the history of a response, the
    clients of OpenAI and Anthropic in a header of the request that they made last.

    Args:
        told: What a tool returned or raised.
    """
    if type(told) in _PLAIN or (type(told) is dict and "ResponseMetadata" not in told):
        return 0
    response = _attribute(told, "response")
    for holder in (told, response):
        for found in (
            _member(_member(holder, "ResponseMetadata"), "RetryAttempts"),
            _length(_attribute(_attribute(_attribute(holder, "raw"), "retries"), "history")),
            _length(_attribute(_attribute(holder, "retries"), "history")),
            _number(_member(_attribute(_attribute(holder, "request"), "headers"), "x-stainless-retry-count")),
        ):
            if type(found) is int and 0 < found <= _RETRIES_MAX:
                return found
    return 0


def _length(history: object) -> int | None:
    return len(history) if isinstance(history, tuple) else None


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isdigit() and len(text) <= 4 else None


def _member(holder: object, name: str) -> Any:
    """Return what a mapping, or the headers of a request, hold under a name."""
    try:
        return holder.get(name) if isinstance(holder, Mapping) else None
    except Exception:  # noqa: BLE001 - a foreign mapping may raise anything; it tells of nothing then
        return None


def _attribute(holder: object, name: str) -> Any:
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - a property of a foreign object may raise anything; it tells of nothing then
        return None
