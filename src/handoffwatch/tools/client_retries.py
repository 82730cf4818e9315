"""Attempts that a client library made by itself, where it tells: they multiply with those of the policy."""

from __future__ import annotations

from typing import Final

from handoffwatch.tools.foreign import attribute_of, member_of

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
    response = attribute_of(told, "response")
    for holder in (told, response):
        for found in (
            member_of(member_of(holder, "ResponseMetadata"), "RetryAttempts"),
            _length(attribute_of(attribute_of(attribute_of(holder, "raw"), "retries"), "history")),
            _length(attribute_of(attribute_of(holder, "retries"), "history")),
            _number(member_of(attribute_of(attribute_of(holder, "request"), "headers"), "x-stainless-retry-count")),
        ):
            if type(found) is int and 0 < found <= _RETRIES_MAX:
                return found
    return 0


def _length(history: object) -> int | None:
    return len(history) if isinstance(history, tuple) else None


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isdigit() and len(text) <= 4 else None
