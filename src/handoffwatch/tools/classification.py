"""Sorting the exceptions of failed attempts by duck typing: no client library is imported.

Whether anything was sent decides, so an error is followed to the one that says so.
"""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Final

from handoffwatch.tools.failure import Failure
from handoffwatch.tools.foreign import attribute_of, member_of, names_of, packages_of, retry_after_of, status_of
from handoffwatch.tools.protocol_errors import classify_aws, classify_grpc, classify_mcp
from handoffwatch.tools.statuses import class_of_status, classify_status, code_of_status, unanswered
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode

_NEVER_SENT: Final = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
_UNREACHABLE: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH})
_NOT_CONNECTED_IN_TIME: Final = frozenset(
    {"ConnectTimeout", "PoolTimeout", "ConnectTimeoutError", "ConnectionTimeoutError"}
)
_NOTHING_SENT: Final = _NOT_CONNECTED_IN_TIME | {
    "ConnectError",
    "NewConnectionError",
    "ClientConnectorError",
    "EndpointConnectionError",
}
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
     "ClientPayloadError", "APIConnectionError", "HttpProcessingError", "ChunkedEncodingError"}
)  # fmt: skip
_WRAPPERS: Final = frozenset(
    {"APIConnectionError", "RequestException", "HTTPError", "HTTPClientError", "BotoCoreError", "ProtocolError"}
)
"""Errors of openai, anthropic, requests, urllib3 and botocore that stand for the one that says what was sent."""

_TELLING: Final = _NOTHING_SENT | {"IncompleteRead"}
"""Errors that say themselves what was sent, although libraries derive them from their wrappers."""

_HOLDING: Final = frozenset({"requests", "urllib3"})
"""Packages whose errors hold the one that they stand for among their arguments."""

_CAUSES_MAX: Final = 8


def classify_exception(error: BaseException, safety: Safety, *, now_s: float = 0.0) -> Failure:
    """Return how an attempt failed that raised `error`.

    Whether anything was sent decides: nothing sent is retryable; sent and unanswered is retryable for safe and
    idempotent tools and ambiguous for unsafe ones. An error without a code is ambiguous on an unsafe tool and fatal
    elsewhere: nobody may guess what it means. Nothing is raised, whatever the error does.

    Source: DESIGN section 3 rule 1.
    """
    try:
        return _sorted(error, safety, now_s=now_s)
    except Exception:  # noqa: BLE001 - a foreign error may raise wherever it is read, and then it says nothing
        return without_code(safety)


def _sorted(error: BaseException, safety: Safety, *, now_s: float) -> Failure:
    told = classify_grpc(error, safety) or classify_mcp(error, safety) or _answered(error, safety, now_s=now_s)
    if told is not None:
        return told
    error = _telling(error)
    names = names_of(error)
    number = attribute_of(error, "errno")
    is_unreachable = type(number) is int and number in _UNREACHABLE
    is_never_sent = names & _NOTHING_SENT or isinstance(error, _NEVER_SENT) or is_unreachable
    if is_never_sent or _is_of_handshake(error):
        return Failure(FailureClass.RETRYABLE, _connection_code(error, names), "connection_error")
    if isinstance(error, TimeoutError) or names & _TIMEOUTS:
        return Failure(unanswered(safety), ToolCode.TIMEOUT, "timeout")
    if isinstance(error, ssl.SSLError):
        return Failure(unanswered(safety), ToolCode.TLS, "connection_error")
    if isinstance(error, ConnectionError) or names & _LOST:
        return Failure(unanswered(safety), ToolCode.CONNECTION, "connection_error")
    return without_code(safety)


def without_code(safety: Safety) -> Failure:
    """Return the failure of an error that says nothing: ambiguous on an unsafe tool, fatal elsewhere."""
    failure_class = FailureClass.AMBIGUOUS if safety is Safety.UNSAFE else FailureClass.FATAL
    return Failure(failure_class, ToolCode.EXCEPTION, "an error")


def declared_codes(safety: Safety) -> list[tuple[ToolCode, FailureClass]]:
    """Return every pair of code and class that a tool of this safety can yield, for series born at 0."""
    pairs = {(code_of_status(status), class_of_status(status, safety)) for status in range(300, 600)}
    pairs |= {(ToolCode.TIMEOUT, unanswered(safety)), (ToolCode.TIMEOUT, FailureClass.RETRYABLE)}
    pairs |= {(ToolCode.CONNECTION, unanswered(safety)), (ToolCode.CONNECTION, FailureClass.RETRYABLE)}
    pairs |= {(ToolCode.TLS, unanswered(safety)), (ToolCode.TLS, FailureClass.RETRYABLE)}
    pairs |= {(ToolCode.DNS, FailureClass.RETRYABLE)}
    pairs |= {(ToolCode.EXCEPTION, FailureClass.AMBIGUOUS if safety is Safety.UNSAFE else FailureClass.FATAL)}
    pairs |= {(ToolCode.RESULT, failure_class) for failure_class in FailureClass}
    return sorted(pairs)


def _answered(error: BaseException, safety: Safety, *, now_s: float) -> Failure | None:
    """Return how a call failed that got an answer, by the status of the answer; None when it got none."""
    if "HttpProcessingError" in names_of(error if error.__cause__ is None else error.__cause__):
        return None  # aiohttp gives a status of its own to an answer that it could not read
    response = attribute_of(error, "response")
    status = status_of(response) if response is not None else None
    if status is None:
        status = status_of(error)
    if status is None:
        return classify_aws(error, safety, now_s=now_s)
    holder = response if response is not None else error
    return classify_status(status, safety, retry_after=retry_after_of(holder), now_s=now_s)


def _telling(error: BaseException) -> BaseException:
    """Return the error that says whether anything was sent: this one, or the one that a library has wrapped in it.

    What other errors were raised from may belong to an earlier request, and is left alone; so is the context of
    every error, in which Python keeps whatever was being handled: the refusal of a first host, say.
    """
    for _ in range(_CAUSES_MAX):
        inner = _inner(error)
        if inner is None:
            return error
        error = inner
    return error


def _inner(error: BaseException) -> BaseException | None:
    names = names_of(error)
    if names & _TELLING:
        return None
    reason = attribute_of(error, "reason")
    if isinstance(reason, Exception):
        return reason
    if names & _WRAPPERS and packages_of(error) & _HOLDING:
        held = [each for each in error.args if isinstance(each, Exception)]
        if held:
            return held[-1]
    if "ClientResponseError" in names and isinstance(error.__cause__, Exception):
        return error.__cause__
    if names & _WRAPPERS:
        cause = error.__cause__
        if cause is None:
            cause = member_of(attribute_of(error, "kwargs"), "error")  # botocore holds it there
        return cause if isinstance(cause, Exception) else None
    return None


def _is_of_handshake(error: BaseException) -> bool:
    """Return whether an error was raised in a TLS hand-shake: no request goes before it.

    Only where it was raised tells: OpenSSL gives the same reasons, WRONG_VERSION_NUMBER among them, to a hand-shake
    that fails and to an answer that is none. Every hand-shake of Python's ssl module passes one of its functions.
    """
    trace = error.__traceback__ if isinstance(error, OSError) else None
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name == "do_handshake" and frame.f_globals.get("__name__") == ssl.__name__:
            return True
        trace = trace.tb_next
    return False


def _connection_code(error: BaseException, names: set[str]) -> ToolCode:
    chain: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if isinstance(chain, socket.gaierror):
            return ToolCode.DNS
        if isinstance(chain, ssl.SSLError):
            return ToolCode.TLS
        chain = _cause(chain)
    if "NewConnectionError" in names:  # urllib3 derives it from its time-out
        return ToolCode.DNS if "NameResolutionError" in names else ToolCode.CONNECTION
    is_late = names & _NOT_CONNECTED_IN_TIME or isinstance(error, TimeoutError)
    return ToolCode.TIMEOUT if is_late else ToolCode.CONNECTION


def _cause(error: BaseException | None) -> BaseException | None:
    if error is None:
        return None
    # Only the label is read there: clients raise their errors from none, in the handler of what TLS or DNS said.
    return error.__context__ if error.__cause__ is None else error.__cause__
