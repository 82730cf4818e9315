"""Sorting failed attempts: one row per status and safety, and exceptions by whether anything was sent."""

from __future__ import annotations

import contextlib
import errno
import http.client
import socket
import ssl
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import httpx
import pytest

from handoffwatch.tools.classification import classify_exception, declared_codes
from handoffwatch.tools.failure import Failure
from handoffwatch.tools.foreign import retry_after_of, status_of
from handoffwatch.tools.statuses import classify_status
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode

OK = None
RETRYABLE, FATAL, REJECTED, AMBIGUOUS = FailureClass
NOW_S = 1_792_567_620.0
"""One minute before the date of the Retry-After headers below."""

STATUSES: dict[int, tuple[ToolCode, FailureClass | None, FailureClass | None, FailureClass | None]] = {
    # status: (code, safe, idempotent, unsafe)
    200: (ToolCode.RESULT, OK, OK, OK),
    201: (ToolCode.RESULT, OK, OK, OK),
    202: (ToolCode.RESULT, OK, OK, OK),
    204: (ToolCode.RESULT, OK, OK, OK),
    207: (ToolCode.RESULT, OK, OK, OK),
    299: (ToolCode.RESULT, OK, OK, OK),
    301: (ToolCode.OTHER_3XX, FATAL, FATAL, FATAL),
    302: (ToolCode.OTHER_3XX, FATAL, FATAL, FATAL),
    304: (ToolCode.OTHER_3XX, OK, FATAL, FATAL),
    307: (ToolCode.OTHER_3XX, FATAL, FATAL, FATAL),
    400: (ToolCode.HTTP_400, REJECTED, REJECTED, REJECTED),
    401: (ToolCode.HTTP_401, FATAL, FATAL, FATAL),
    402: (ToolCode.OTHER_4XX, REJECTED, REJECTED, REJECTED),
    403: (ToolCode.HTTP_403, FATAL, FATAL, FATAL),
    404: (ToolCode.HTTP_404, FATAL, FATAL, FATAL),
    405: (ToolCode.OTHER_4XX, REJECTED, REJECTED, REJECTED),
    407: (ToolCode.OTHER_4XX, FATAL, FATAL, FATAL),
    408: (ToolCode.HTTP_408, RETRYABLE, RETRYABLE, AMBIGUOUS),
    409: (ToolCode.HTTP_409, REJECTED, REJECTED, REJECTED),
    410: (ToolCode.OTHER_4XX, FATAL, FATAL, FATAL),
    418: (ToolCode.OTHER_4XX, REJECTED, REJECTED, REJECTED),
    422: (ToolCode.HTTP_422, REJECTED, REJECTED, REJECTED),
    423: (ToolCode.OTHER_4XX, REJECTED, REJECTED, REJECTED),
    425: (ToolCode.OTHER_4XX, RETRYABLE, RETRYABLE, RETRYABLE),
    429: (ToolCode.HTTP_429, RETRYABLE, RETRYABLE, RETRYABLE),
    451: (ToolCode.OTHER_4XX, REJECTED, REJECTED, REJECTED),
    499: (ToolCode.OTHER_4XX, RETRYABLE, RETRYABLE, AMBIGUOUS),
    500: (ToolCode.HTTP_500, RETRYABLE, RETRYABLE, AMBIGUOUS),
    501: (ToolCode.OTHER_5XX, FATAL, FATAL, FATAL),
    502: (ToolCode.HTTP_502, RETRYABLE, RETRYABLE, AMBIGUOUS),
    503: (ToolCode.HTTP_503, RETRYABLE, RETRYABLE, AMBIGUOUS),
    504: (ToolCode.HTTP_504, RETRYABLE, RETRYABLE, AMBIGUOUS),
    505: (ToolCode.OTHER_5XX, FATAL, FATAL, FATAL),
    507: (ToolCode.OTHER_5XX, RETRYABLE, RETRYABLE, AMBIGUOUS),
    520: (ToolCode.OTHER_5XX, RETRYABLE, RETRYABLE, AMBIGUOUS),
    529: (ToolCode.OTHER_5XX, RETRYABLE, RETRYABLE, AMBIGUOUS),
    599: (ToolCode.OTHER_5XX, RETRYABLE, RETRYABLE, AMBIGUOUS),
    600: (ToolCode.OTHER_3XX, FATAL, FATAL, FATAL),
    999: (ToolCode.OTHER_3XX, FATAL, FATAL, FATAL),
    99: (ToolCode.OTHER_3XX, FATAL, FATAL, FATAL),
    0: (ToolCode.OTHER_3XX, FATAL, FATAL, FATAL),
    -1: (ToolCode.OTHER_3XX, FATAL, FATAL, FATAL),
}

ROWS = [(status, safety, row[0], row[1 + index]) for status, row in STATUSES.items()
        for index, safety in enumerate(Safety)]  # fmt: skip


@pytest.mark.parametrize(("status", "safety", "code", "failure_class"), ROWS)
def test_classify_status_follows_the_table_when_a_tool_has_this_safety(
    status: int, safety: Safety, code: ToolCode, failure_class: FailureClass | None
) -> None:
    """BR-065: a written table with a row for each status; 5xx, 408 and 499 depend on what repeating may do."""
    expected = None if failure_class is None else Failure(failure_class, code, str(status))

    assert classify_status(status, safety) == expected


@pytest.mark.parametrize(
    ("status", "safety", "code", "failure_class"), [row for row in ROWS if row[0] >= 100 and row[3] is not None]
)
def test_classify_exception_follows_the_table_when_a_client_raises_for_the_status(
    status: int, safety: Safety, code: ToolCode, failure_class: FailureClass
) -> None:
    """An error that carries a failing response is sorted by its status, outside 100 to 599 too."""
    error = httpx.HTTPStatusError(
        "raw text", request=httpx.Request("POST", "http://127.0.0.1"), response=httpx.Response(status)
    )

    assert classify_exception(error, safety) == Failure(failure_class, code, str(status))


@pytest.mark.parametrize("status", range(-1, 1001))
def test_declared_codes_hold_the_pair_when_any_status_arrives(status: int) -> None:
    """A failure's series exists at 0 before its first failure, whatever the status."""
    for safety in Safety:
        failure = classify_status(status, safety)
        assert failure is None or (failure.code, failure.failure_class) in declared_codes(safety)


@pytest.mark.parametrize("safety", Safety)
def test_declared_codes_are_sorted_and_unique_when_listed(safety: Safety) -> None:
    """No combination is declared twice, and an unsafe tool's lost answers are declared as ambiguous only."""
    codes = declared_codes(safety)

    assert codes == sorted(set(codes))
    assert ((ToolCode.HTTP_500, AMBIGUOUS) in codes) is (safety is Safety.UNSAFE)
    assert ((ToolCode.HTTP_500, RETRYABLE) in codes) is (safety is not Safety.UNSAFE)


@pytest.mark.parametrize("name", ["Retry-After", "retry-after", "RETRY-AFTER"])
@pytest.mark.parametrize(
    ("status", "header", "wait_s"),
    [
        (429, "7", 7.0),
        (503, "7", 7.0),
        (429, "Wed, 21 Oct 2026 07:28:00 GMT", 60.0),
        (503, "Wed, 21 Oct 2026 07:28:00 GMT", 60.0),
        (429, "Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        (429, "soon", None),
        (429, "-1", None),
        (502, "7", None),
        (500, "7", None),
    ],
)
def test_classify_exception_reads_retry_after_when_the_response_carries_it(
    status: int, header: str, wait_s: float | None, name: str
) -> None:
    """BR-055: both forms, for 429 and 503, whatever the header's case; unreadable is as good as absent."""
    response = httpx.Response(status, headers={name: header})
    error = httpx.HTTPStatusError("raw", request=httpx.Request("GET", "http://127.0.0.1"), response=response)

    failure = classify_exception(error, Safety.SAFE, now_s=NOW_S)

    assert failure == Failure(RETRYABLE, ToolCode(str(status)), str(status), wait_s)


def test_classify_exception_reads_retry_after_when_the_headers_keep_their_case() -> None:
    """A header mapping that tells cases apart is searched without regard to case."""

    class Refused(Exception):
        status = 429
        headers = {"RETRY-after": "5"}  # noqa: RUF012

    assert classify_exception(Refused(), Safety.UNSAFE) == Failure(RETRYABLE, ToolCode.HTTP_429, "429", 5.0)


@pytest.mark.parametrize("safety", Safety)
def test_classify_exception_reads_the_code_when_urllib_raises(safety: Safety) -> None:
    """The standard library's HTTP error carries its status and headers itself."""
    headers = http.client.HTTPMessage()
    headers["Retry-After"] = "3"
    error = urllib.error.HTTPError("http://127.0.0.1", 429, "Too Many Requests", headers, None)

    assert classify_exception(error, safety) == Failure(RETRYABLE, ToolCode.HTTP_429, "429", 3.0)
    error.close()


NOTHING_SENT = (RETRYABLE, RETRYABLE, RETRYABLE)
UNANSWERED = (RETRYABLE, RETRYABLE, AMBIGUOUS)
UNCODED = (FATAL, FATAL, AMBIGUOUS)
Classes = tuple[FailureClass, FailureClass, FailureClass]

ERRORS: list[tuple[BaseException, ToolCode, str, Classes]] = [
    (httpx.ConnectError("x"), ToolCode.CONNECTION, "connection_error", NOTHING_SENT),
    (httpx.ConnectTimeout("x"), ToolCode.TIMEOUT, "connection_error", NOTHING_SENT),
    (httpx.PoolTimeout("x"), ToolCode.TIMEOUT, "connection_error", NOTHING_SENT),
    (httpx.ReadTimeout("x"), ToolCode.TIMEOUT, "timeout", UNANSWERED),
    (httpx.WriteTimeout("x"), ToolCode.TIMEOUT, "timeout", UNANSWERED),
    (httpx.ReadError("x"), ToolCode.CONNECTION, "connection_error", UNANSWERED),
    (httpx.WriteError("x"), ToolCode.CONNECTION, "connection_error", UNANSWERED),
    (httpx.RemoteProtocolError("x"), ToolCode.CONNECTION, "connection_error", UNANSWERED),
    (ConnectionRefusedError(), ToolCode.CONNECTION, "connection_error", NOTHING_SENT),
    (socket.gaierror(-2, "x"), ToolCode.DNS, "connection_error", NOTHING_SENT),
    (ssl.SSLCertVerificationError(1, "x"), ToolCode.TLS, "connection_error", NOTHING_SENT),
    (TimeoutError(), ToolCode.TIMEOUT, "timeout", UNANSWERED),
    (ConnectionResetError(), ToolCode.CONNECTION, "connection_error", UNANSWERED),
    (ConnectionAbortedError(), ToolCode.CONNECTION, "connection_error", UNANSWERED),
    (BrokenPipeError(), ToolCode.CONNECTION, "connection_error", UNANSWERED),
    (http.client.RemoteDisconnected("x"), ToolCode.CONNECTION, "connection_error", UNANSWERED),
    (http.client.IncompleteRead(b"x"), ToolCode.CONNECTION, "connection_error", UNANSWERED),
    (http.client.BadStatusLine("x"), ToolCode.CONNECTION, "connection_error", UNANSWERED),
    (ValueError("x"), ToolCode.EXCEPTION, "an error", UNCODED),
    (KeyError("x"), ToolCode.EXCEPTION, "an error", UNCODED),
    (PermissionError(errno.EACCES, "x"), ToolCode.EXCEPTION, "an error", UNCODED),
    (FileNotFoundError(errno.ENOENT, "x"), ToolCode.EXCEPTION, "an error", UNCODED),
    (RecursionError(), ToolCode.EXCEPTION, "an error", UNCODED),
]


@pytest.mark.parametrize(("error", "code", "status", "classes"), ERRORS, ids=lambda item: type(item).__name__)
@pytest.mark.parametrize(("index", "safety"), list(enumerate(Safety)))
def test_classify_exception_asks_what_was_sent_when_there_is_no_status(
    error: BaseException, code: ToolCode, status: str, classes: Classes, index: int, safety: Safety
) -> None:
    """BR-063: nothing sent is retryable, even for an unsafe tool; sent and unanswered depends on the safety."""
    assert classify_exception(error, safety) == Failure(classes[index], code, status)


@pytest.mark.parametrize("error", [ssl.SSLEOFError(8, "x"), ssl.SSLZeroReturnError(6, "x")])
def test_classify_exception_is_ambiguous_when_tls_ends_in_the_middle_of_an_unsafe_call(error: ssl.SSLError) -> None:
    """BR-063: a TLS session can end after the request was sent; only a failed handshake proves that nothing was."""
    assert classify_exception(error, Safety.UNSAFE).failure_class is AMBIGUOUS


@pytest.mark.parametrize("number", [errno.ENETUNREACH, errno.EHOSTUNREACH])
def test_classify_exception_is_retryable_when_the_network_cannot_be_reached(number: int) -> None:
    """Without a route to the host nothing was sent."""
    failure = classify_exception(OSError(number, "x"), Safety.UNSAFE)

    assert failure == Failure(RETRYABLE, ToolCode.CONNECTION, "connection_error")


def test_classify_exception_gives_an_answer_when_the_error_cannot_be_read() -> None:
    """An error whose properties raise is an error without a code."""

    class Unreadable(Exception):
        @property
        def response(self) -> object:
            raise RuntimeError("no response yet")

    assert classify_exception(Unreadable(), Safety.UNSAFE) == Failure(AMBIGUOUS, ToolCode.EXCEPTION, "an error")


@pytest.mark.parametrize("safety", Safety)
def test_declared_codes_hold_the_pair_when_any_exception_is_raised(safety: Safety) -> None:
    """A failure's series exists at 0 before its first failure, whatever is raised."""
    errors = [error for error, *_ in ERRORS] + [ssl.SSLEOFError(8, "x"), OSError(errno.ENETUNREACH, "x")]
    pairs = {(failure.code, failure.failure_class) for failure in (classify_exception(item, safety) for item in errors)}

    assert pairs <= set(declared_codes(safety))


@contextlib.contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Answer one connection on loopback in a thread, and give its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(5)


def read_request(connection: socket.socket) -> None:
    """Read a request whose body is an empty object."""
    received = b""
    while not received.endswith(b"{}"):
        received += connection.recv(4096)


def close_at_once(connection: socket.socket) -> None:
    read_request(connection)


def reset(connection: socket.socket) -> None:
    read_request(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def stall(connection: socket.socket) -> None:
    read_request(connection)
    connection.recv(4096)


def half_a_body(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")


def no_tls(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def closed_port() -> str:
    """Return an address of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "code", "status"),
    [
        (close_at_once, ToolCode.CONNECTION, "connection_error"),
        (reset, ToolCode.CONNECTION, "connection_error"),
        (half_a_body, ToolCode.CONNECTION, "connection_error"),
        (stall, ToolCode.TIMEOUT, "timeout"),
    ],
)
def test_classify_exception_is_ambiguous_when_a_real_server_falls_silent_after_an_unsafe_call(
    answer: Callable[[socket.socket], None], code: ToolCode, status: str
) -> None:
    """BR-057, BR-063: the request was read and not answered, so an unsafe tool stops, and a safe one may go on."""
    with serving(answer) as address, pytest.raises(httpx.TransportError) as raised:
        httpx.post(f"http://{address}/refunds", json={}, timeout=httpx.Timeout(5, read=0.05), trust_env=False)

    assert classify_exception(raised.value, Safety.UNSAFE) == Failure(AMBIGUOUS, code, status)
    assert classify_exception(raised.value, Safety.IDEMPOTENT) == Failure(RETRYABLE, code, status)


def test_classify_exception_is_retryable_when_a_real_port_is_closed() -> None:
    """Nothing was sent to a port that refuses, so even an unsafe tool may try again."""
    with pytest.raises(httpx.ConnectError) as raised:
        httpx.post(f"http://{closed_port()}/refunds", json={}, trust_env=False)

    assert classify_exception(raised.value, Safety.UNSAFE) == Failure(
        RETRYABLE, ToolCode.CONNECTION, "connection_error"
    )


def test_classify_exception_names_tls_when_a_real_server_speaks_none() -> None:
    """A failed handshake is told apart from a refused connection."""
    with serving(no_tls) as address, pytest.raises(httpx.ConnectError) as raised:
        httpx.get(f"https://{address}/", timeout=5, trust_env=False)

    assert classify_exception(raised.value, Safety.SAFE) == Failure(RETRYABLE, ToolCode.TLS, "connection_error")


def test_classify_exception_names_dns_when_a_name_cannot_be_resolved() -> None:
    """The resolver's error is found in the chain below the client's."""
    try:
        try:
            socket.getaddrinfo("name.invalid", 80, flags=socket.AI_NUMERICHOST)
        except socket.gaierror as cause:
            raise httpx.ConnectError("x") from cause
    except httpx.ConnectError as error:
        failure = classify_exception(error, Safety.UNSAFE)

    assert failure == Failure(RETRYABLE, ToolCode.DNS, "connection_error")


@pytest.mark.parametrize("safety", Safety)
def test_classify_exception_is_retryable_when_urllib_meets_a_closed_port(safety: Safety) -> None:
    """The standard library wraps the refusal in an error of its own; nothing was sent all the same."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.URLError) as raised:
        opener.open(f"http://{closed_port()}/")

    assert classify_exception(raised.value, safety) == Failure(RETRYABLE, ToolCode.CONNECTION, "connection_error")


def test_classify_exception_is_ambiguous_when_urllib_meets_a_server_that_hangs_up() -> None:
    """The standard library's own error for a lost answer stops an unsafe tool."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with serving(close_at_once) as address, pytest.raises(http.client.RemoteDisconnected) as raised:
        opener.open(f"http://{address}/", data=b"{}", timeout=5)

    assert classify_exception(raised.value, Safety.UNSAFE) == Failure(
        AMBIGUOUS, ToolCode.CONNECTION, "connection_error"
    )


@pytest.mark.parametrize(
    ("holder", "status"),
    [
        (httpx.Response(404), 404),
        (httpx.Response(999), 999),
        (type("Aio", (), {"status": 503})(), 503),
        (type("Coded", (), {"code": 409})(), 409),
        (type("Flag", (), {"status": True})(), None),
        (type("Text", (), {"status": "404"})(), None),
        (type("Exit", (), {"code": 1})(), None),
        (type("Socket", (), {"code": 1006})(), None),
        ({"status": 404}, None),
        (object(), None),
    ],
)
def test_status_of_reads_the_status_when_a_holder_carries_one(holder: object, status: int | None) -> None:
    """A response's own status code counts whatever its value; other numbers only inside the range of HTTP."""
    assert status_of(holder) == status


@pytest.mark.parametrize(
    ("holder", "header"),
    [
        (httpx.Response(429, headers={"Retry-After": "3"}), "3"),
        (httpx.Response(429), None),
        (type("Bare", (), {"headers": None})(), None),
        (type("Pairs", (), {"headers": [("Retry-After", "3")]})(), None),
        (type("Numbers", (), {"headers": {"Retry-After": 3}})(), None),
        (object(), None),
    ],
)
def test_retry_after_of_reads_the_header_when_there_is_one(holder: object, header: str | None) -> None:
    """Only a text in a mapping of headers is a header."""
    assert retry_after_of(holder) == header
