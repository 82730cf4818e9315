"""Errors of protocols that say their status in another way: gRPC, the services of AWS, and MCP."""

from __future__ import annotations

from typing import Final

from handoffwatch.tools.failure import Failure
from handoffwatch.tools.foreign import attribute_of, member_of, packages_of
from handoffwatch.tools.statuses import classify_status, unanswered
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode

_GRPC: Final = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
    "UNIMPLEMENTED": 501,
}
"""By the name of a gRPC status the HTTP status that its API guidelines give it. Source: google.rpc.Code."""

_THROTTLED: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
"""Codes of AWS services that refuse before any effect, whatever their status."""

_MCP: Final = {-32602: FailureClass.REJECTED, -32601: FailureClass.FATAL, -32600: FailureClass.FATAL,
               -32700: FailureClass.FATAL}  # fmt: skip
"""By the code of an MCP error what may follow: arguments that are refused, and requests that are none."""

_MCP_CLOSED: Final = -32000
_MCP_TIMEOUT: Final = -32001


def classify_grpc(error: BaseException, safety: Safety) -> Failure | None:
    """Return how a gRPC call failed, or None when the error is none of gRPC.

    UNAVAILABLE says neither that something was sent nor that nothing was: it counts as sent.
    """
    if "grpc" not in packages_of(error):
        return None
    code = attribute_of(error, "code")
    try:
        name = str(attribute_of(code() if callable(code) else code, "name"))
    except Exception:  # noqa: BLE001 - a foreign method may raise anything; what it would have said is unknown
        return None
    if name == "DEADLINE_EXCEEDED":
        return Failure(unanswered(safety), ToolCode.TIMEOUT, "timeout")
    if name == "UNAVAILABLE":
        return Failure(unanswered(safety), ToolCode.CONNECTION, "connection_error")
    return classify_status(_GRPC[name], safety) if name in _GRPC else None


def classify_aws(error: BaseException, safety: Safety, *, now_s: float) -> Failure | None:
    """Return how a call of an AWS service failed, or None when the error carries no answer of one."""
    answer = attribute_of(error, "response")
    metadata = member_of(answer, "ResponseMetadata")
    status = member_of(metadata, "HTTPStatusCode")
    retry_after = member_of(member_of(metadata, "HTTPHeaders"), "retry-after")
    code = member_of(member_of(answer, "Error"), "Code")
    if isinstance(code, str) and code in _THROTTLED:
        status = 429
    if type(status) is not int:
        return None
    return classify_status(
        status, safety, retry_after=retry_after if isinstance(retry_after, str) else None, now_s=now_s
    )


def classify_mcp(error: BaseException, safety: Safety) -> Failure | None:
    """Return how a call over MCP failed, or None when the error is none of MCP or its code says nothing."""
    if "mcp" not in packages_of(error):
        return None
    code = attribute_of(attribute_of(error, "error"), "code")
    code = attribute_of(error, "code") if code is None else code
    if code == _MCP_TIMEOUT:
        return Failure(unanswered(safety), ToolCode.TIMEOUT, "timeout")
    if code == _MCP_CLOSED:
        return Failure(unanswered(safety), ToolCode.CONNECTION, "connection_error")
    failure_class = _MCP.get(code) if type(code) is int else None
    if failure_class is None:
        return None
    status = "a refusal" if failure_class is FailureClass.REJECTED else "an error"
    return Failure(failure_class, ToolCode.RESULT, status)
