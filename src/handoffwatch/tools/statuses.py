"""The table of HTTP statuses: what may follow each, by what repeating the call may do."""

from __future__ import annotations

from typing import Final

from handoffwatch.tools.failure import Failure
from handoffwatch.tools.retry_after import parse_retry_after_s
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode

_SENT_AND_UNANSWERED: Final = frozenset({408, 499, 500, 502, 503, 504, 507, 520, 529})
_REFUSED_BEFORE_EFFECT: Final = frozenset({425, 429})
_FATAL: Final = frozenset({401, 403, 404, 407, 410, 501, 505})
_CODES: Final = {int(code): code for code in ToolCode if code.value.isdigit()}


def classify_status(
    status: int, safety: Safety, *, retry_after: str | None = None, now_s: float = 0.0
) -> Failure | None:
    """Return how an HTTP status failed, or None when it is a success.

    Args:
        status: The status code, any integer.
        safety: What repeating the call may do.
        retry_after: The Retry-After header as received; honoured for 429 and 503.
        now_s: Unix time in seconds, for the header's date form.

    Source: DESIGN section 3 rule 1; RFC 9110 section 15.
    """
    if 200 <= status <= 299 or (status == 304 and safety is Safety.SAFE):
        return None
    wait_s = parse_retry_after_s(retry_after, now_s=now_s) if status in {429, 503} else None
    return Failure(class_of_status(status, safety), code_of_status(status), str(status), wait_s)


def class_of_status(status: int, safety: Safety) -> FailureClass:
    """Return what may follow a status that is no success."""
    if status in _REFUSED_BEFORE_EFFECT:
        return FailureClass.RETRYABLE
    if status in _FATAL:
        return FailureClass.FATAL
    if status in _SENT_AND_UNANSWERED or 500 <= status <= 599:
        return unanswered(safety)
    if 400 <= status <= 499:
        return FailureClass.REJECTED
    return FailureClass.FATAL


def code_of_status(status: int) -> ToolCode:
    """Return the label of a status that is no success."""
    if status in _CODES:
        return _CODES[status]
    if 400 <= status <= 499:
        return ToolCode.OTHER_4XX
    if 500 <= status <= 599:
        return ToolCode.OTHER_5XX
    return ToolCode.OTHER_3XX


def unanswered(safety: Safety) -> FailureClass:
    """Return what may follow a request that was sent and got no answer."""
    return FailureClass.AMBIGUOUS if safety is Safety.UNSAFE else FailureClass.RETRYABLE
