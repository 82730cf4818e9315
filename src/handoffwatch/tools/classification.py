"""Sorting failed attempts: HTTP statuses by table, exceptions by duck typing, without importing any client library."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any, Final

from handoffwatch.tools.failure import Failure
from handoffwatch.tools.retry_after import parse_retry_after_s
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode

_SENT_AND_UNANSWERED: Final = frozenset({408, 499, 500, 502, 503, 504, 507, 520, 529})
_REFUSED_BEFORE_EFFECT: Final = frozenset({425, 429})
_FATAL: Final = frozenset({401, 403, 404, 407, 410, 501, 505})
_CODES: Final = {int(code): code for code in ToolCode if code.value.isdigit()}

_NEVER_SENT: Final = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
_UNREACHABLE: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH})
_NOTHING_SENT: Final = frozenset(
    {
        "ConnectTimeout",
        "ConnectError",
        "PoolTimeout",
        "NewConnectionError",
        "ConnectTimeoutError",
        "ClientConnectorError",
        "ConnectionTimeoutError",
        "EndpointConnectionError",
    }
)
_TIMEOUTS: Final = frozenset(
    {
        "TimeoutException",
        "Timeout",
        "ReadTimeout",
        "WriteTimeout",
        "ReadTimeoutError",
        "ServerTimeoutError",
        "APITimeoutError",
    }
)
_LOST: Final = frozenset(
    {"TransportError", "NetworkError", "ProtocolError", "RemoteProtocolError", "ReadError", "WriteError",
     "ServerDisconnectedError", "ClientConnectionError", "IncompleteRead", "BadStatusLine", "ConnectionClosedError",
     "ClientPayloadError", "APIConnectionError"}
)  # fmt: skip
_WRAPPERS: Final = frozenset(
    {"APIConnectionError", "RequestException", "HTTPError", "HTTPClientError", "BotoCoreError"}
)
"""Errors of openai, anthropic, requests, urllib3 and botocore whose cause alone says whether anything was sent."""
_CAUSES_MAX: Final = 8


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
    return Failure(_class_of_status(status, safety), _code_of_status(status), str(status), wait_s)


def classify_exception(error: BaseException, safety: Safety, *, now_s: float = 0.0) -> Failure:
    """Return how an attempt failed that raised `error`.

    Whether anything was sent decides: nothing sent is retryable; sent and unanswered is retryable for safe and
    idempotent tools and ambiguous for unsafe ones. An error without a code is ambiguous on an unsafe tool and fatal
    elsewhere: nobody may guess what it means.
    """
    response = _attribute(error, "response")
    status = status_of(response) if response is not None else None
    if status is None:
        status = status_of(error)
    if status is not None:
        holder = response if response is not None else error
        failure = classify_status(status, safety, retry_after=_header(holder, "retry-after"), now_s=now_s)
        if failure is not None:
            return failure
    error = _telling(error)
    names = {cls.__name__ for cls in type(error).__mro__}
    if names & _NOTHING_SENT or isinstance(error, _NEVER_SENT) or _number(error, "errno") in _UNREACHABLE:
        return Failure(FailureClass.RETRYABLE, _connection_code(error, names), "connection_error")
    if isinstance(error, TimeoutError) or names & _TIMEOUTS:
        return Failure(_unanswered(safety), ToolCode.TIMEOUT, "timeout")
    if isinstance(error, ssl.SSLError):
        return Failure(_unanswered(safety), ToolCode.TLS, "connection_error")
    if isinstance(error, ConnectionError) or names & _LOST:
        return Failure(_unanswered(safety), ToolCode.CONNECTION, "connection_error")
    return without_code(safety)


def without_code(safety: Safety) -> Failure:
    """Return the failure of an error that says nothing: ambiguous on an unsafe tool, fatal elsewhere."""
    failure_class = FailureClass.AMBIGUOUS if safety is Safety.UNSAFE else FailureClass.FATAL
    return Failure(failure_class, ToolCode.EXCEPTION, "an error")


def status_of(holder: object) -> int | None:
    """Return the HTTP status that a response or an error carries, or None.

    `status_code` is one whatever its value; `status` and `code` have other meanings too and count from 100 to 599.
    """
    for name in ("status_code", "status", "code"):
        value = _attribute(holder, name)
        if type(value) is int and (name == "status_code" or 100 <= value <= 599):
            return value
    return None


def retry_after_of(holder: object) -> str | None:
    """Return the Retry-After header of a response, whatever its case, or None."""
    return _header(holder, "retry-after")


def declared_codes(safety: Safety) -> list[tuple[ToolCode, FailureClass]]:
    """Return every pair of code and class that a tool of this safety can yield, for series born at 0."""
    pairs = {(_code_of_status(status), _class_of_status(status, safety)) for status in range(300, 600)}
    pairs |= {(ToolCode.TIMEOUT, _unanswered(safety)), (ToolCode.TIMEOUT, FailureClass.RETRYABLE)}
    pairs |= {(ToolCode.CONNECTION, _unanswered(safety)), (ToolCode.CONNECTION, FailureClass.RETRYABLE)}
    pairs |= {(ToolCode.TLS, _unanswered(safety)), (ToolCode.TLS, FailureClass.RETRYABLE)}
    pairs |= {(ToolCode.DNS, FailureClass.RETRYABLE)}
    pairs |= {(ToolCode.EXCEPTION, FailureClass.AMBIGUOUS if safety is Safety.UNSAFE else FailureClass.FATAL)}
    pairs |= {(ToolCode.RESULT, failure_class) for failure_class in FailureClass}
    return sorted(pairs)


def _class_of_status(status: int, safety: Safety) -> FailureClass:
    if status in _REFUSED_BEFORE_EFFECT:
        return FailureClass.RETRYABLE
    if status in _FATAL:
        return FailureClass.FATAL
    if status in _SENT_AND_UNANSWERED or 500 <= status <= 599:
        return _unanswered(safety)
    if 400 <= status <= 499:
        return FailureClass.REJECTED
    return FailureClass.FATAL


def _code_of_status(status: int) -> ToolCode:
    if status in _CODES:
        return _CODES[status]
    if 400 <= status <= 499:
        return ToolCode.OTHER_4XX
    if 500 <= status <= 599:
        return ToolCode.OTHER_5XX
    return ToolCode.OTHER_3XX


def _unanswered(safety: Safety) -> FailureClass:
    return FailureClass.AMBIGUOUS if safety is Safety.UNSAFE else FailureClass.RETRYABLE


def _telling(error: BaseException) -> BaseException:
    """Return the error that says whether anything was sent: the error itself, or the one that it wraps.

    Only known wrappers are looked into: the context of any other error may belong to another request.
    """
    for _ in range(_CAUSES_MAX):
        names = {cls.__name__ for cls in type(error).__mro__}
        inner = _attribute(error, "reason")
        if not isinstance(inner, Exception):
            says = names & (_NOTHING_SENT | _TIMEOUTS | _LOST) and "APIConnectionError" not in names
            inner = None if says or not names & _WRAPPERS else error.__cause__ or error.__context__
        if inner is None:
            return error
        error = inner
    return error


def _connection_code(error: BaseException, names: set[str]) -> ToolCode:
    chain: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if isinstance(chain, socket.gaierror):
            return ToolCode.DNS
        if isinstance(chain, ssl.SSLError):
            return ToolCode.TLS
        chain = None if chain is None else chain.__cause__ or chain.__context__
    timed_out = names & {"ConnectTimeout", "PoolTimeout", "ConnectTimeoutError", "ConnectionTimeoutError"}
    return ToolCode.TIMEOUT if timed_out and "NewConnectionError" not in names else ToolCode.CONNECTION


def _attribute(holder: object, name: str) -> Any:
    """Return an attribute of a foreign object; None when it has none, or a property of it raises."""
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - a foreign property may raise anything; what it would have said is unknown
        return None


def _number(holder: object, name: str) -> int | None:
    value = _attribute(holder, name)
    return value if type(value) is int else None


def _header(holder: Any, name: str) -> str | None:
    headers = _attribute(holder, "headers")
    if _attribute(headers, "items") is None:
        return None
    for key, value in headers.items():
        if isinstance(key, str) and key.lower() == name and isinstance(value, str):
            return value
    return None
