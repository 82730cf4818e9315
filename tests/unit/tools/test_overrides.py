"""A tool's own classes, and attempts that a client made by itself."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from handoffwatch import NeedsHuman, RegistrationError, Settings, ToolDown, ToolRejected, Watch
from handoffwatch.tools.client_retries import client_retries
from handoffwatch.tools.failure import Failure
from handoffwatch.tools.overrides import NO_OVERRIDES, Overrides
from handoffwatch.vocabulary import FailureClass, ToolCode
from support.telemetry import born, counted
from support.watched import new_watched


class OutOfStock(Exception):
    """A tool's own error."""


class OutOfStockHere(OutOfStock):
    """A nearer one."""


@pytest.mark.parametrize(
    ("overrides", "status", "told", "expected"),
    [
        (NO_OVERRIDES, "409", None, "rejected"),
        (Overrides({409: "retryable"}, {}), "409", None, "retryable"),
        (Overrides({409: "retryable"}, {}), "422", None, "rejected"),
        (Overrides({}, {OutOfStock: "fatal"}), "an error", OutOfStock(), "fatal"),
        (Overrides({}, {OutOfStock: "fatal"}), "an error", OutOfStockHere(), "fatal"),
        (Overrides({}, {OutOfStock: "fatal", OutOfStockHere: "retryable"}), "x", OutOfStockHere(), "retryable"),
        (Overrides({}, {Exception: "ambiguous"}), "409", KeyError(), "ambiguous"),
        (Overrides({409: "fatal"}, {OutOfStock: "retryable"}), "409", OutOfStock(), "retryable"),
        (Overrides({409: "fatal"}, {OutOfStock: "retryable"}), "409", KeyError(), "fatal"),
    ],
)
def test_class_is_the_tools_own_where_it_has_one(
    overrides: Overrides, status: str, told: object, expected: str
) -> None:
    """The nearest class of an exception, then the status, then the table."""
    sorted_ = overrides.sorted(Failure(FailureClass.REJECTED, ToolCode.HTTP_409, status), told)

    assert sorted_.failure_class == expected
    assert (sorted_.code, sorted_.status) == (ToolCode.HTTP_409, status)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"statuses": {"409": "fatal"}}, "tool find: statuses: must be whole numbers, got str"),
        ({"statuses": {True: "fatal"}}, "tool find: statuses: must be whole numbers, got bool"),
        ({"statuses": {200: "fatal"}}, "tool find: statuses: must be 300 or more, got 200"),
        ({"statuses": {409: "again"}}, "class: must be one of retryable, fatal, rejected, ambiguous"),
        ({"errors": {"OutOfStock": "fatal"}}, "errors: must be classes of exceptions"),
        ({"errors": {KeyboardInterrupt: "fatal"}}, "errors: must be classes of exceptions"),
    ],
)
def test_tool_is_refused_when_its_own_classes_are_none(wrong: dict[str, Any], what: str) -> None:
    """At registration, with what would be right."""
    with pytest.raises(RegistrationError, match=what):
        Watch(settings=Settings()).tool("find", safety="safe", **wrong)


def test_tool_behaves_by_its_own_classes_and_its_series_are_born() -> None:
    """A conflict that may be tried again, and an error of the tool's own that the model can mend."""
    watched = new_watched()
    errors = iter([Conflict(), Conflict(), OutOfStock("none left")])

    @watched.watch.tool("order", safety="unsafe", statuses={409: "retryable"}, errors={OutOfStock: "rejected"})
    def order() -> None:
        raise next(errors)

    before = born(watched.watch.registry, "tool_failures_total")
    with watched.watch.run("refunds"), pytest.raises(ToolRejected) as rejected:
        order()
    after = counted(watched.watch.registry, "tool_failures_total")

    assert 'no instruction: "none left"' in rejected.value.text
    assert born(watched.watch.registry, "tool_failures_total").keys() == before.keys()
    assert {name: count for name, count in after.items() if count} == {
        'tool_failures_total{code="exception",failure_class="rejected",tool="order"}': 1
    }


class Conflict(Exception):
    """An HTTP client's error."""

    status_code = 409


class Busy(http.server.BaseHTTPRequestHandler):
    """Answers 503 to the first requests, then what its server says."""

    left = 2
    last = 200

    def do_GET(self) -> None:
        """Answer."""
        kind = type(self)
        kind.left -= 1
        self.send_response(503 if kind.left >= 0 else kind.last)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def busy() -> Iterator[tuple[str, type[Busy]]]:
    """Give the address of a server that is busy at first."""
    handler = type("Handler", (Busy,), {})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", handler
        server.shutdown()


def session(retries: int = 3) -> requests.Session:
    """Return a session of requests that repeats by itself."""
    made = requests.Session()
    made.trust_env = False
    again = Retry(total=retries, status_forcelist=[503], allowed_methods=None, raise_on_status=False)
    made.mount("http://", HTTPAdapter(max_retries=again))
    return made


def test_attempts_of_the_client_are_counted_and_warned_about(
    busy: tuple[str, type[Busy]], caplog: pytest.LogCaptureFixture
) -> None:
    """BR-067: three requests on the wire are three attempts, and the log says who repeats."""
    url, _ = busy
    watched = new_watched()

    @watched.watch.tool("find", safety="safe")
    def find() -> requests.Response:
        with session() as client:
            return client.get(url)

    with watched.watch.run("refunds"):
        assert find().status_code == 200

    attempts = counted(watched.watch.registry, "tool_attempts_total", "tool_calls_total")
    assert {name: count for name, count in attempts.items() if count} == {
        'tool_attempts_total{code="ok",tool="find"}': 1,
        'tool_attempts_total{code="exception",tool="find"}': 2,
        'tool_calls_total{tool="find"}': 1,
    }
    assert "tool repeated by its client: tool=find attempts=2" in caplog.text


def test_unsafe_call_that_its_client_repeated_is_ambiguous_though_the_last_attempt_did_nothing(
    busy: tuple[str, type[Busy]],
) -> None:
    """The 429 at the end says nothing of the 503 before it."""
    url, handler = busy
    handler.last = 429
    watched = new_watched()

    @watched.watch.tool("order", safety="unsafe")
    def order() -> requests.Response:
        with session() as client:
            return client.post(url)

    with watched.watch.run("refunds"), pytest.raises(NeedsHuman):
        order()


@pytest.mark.parametrize(
    ("told", "retries"),
    [
        ({"ResponseMetadata": {"RetryAttempts": 2, "HTTPStatusCode": 200}}, 2),
        ({"ResponseMetadata": {"RetryAttempts": 0}}, 0),
        ({"ResponseMetadata": {"RetryAttempts": True}}, 0),
        ({"ResponseMetadata": {"RetryAttempts": 10**9}}, 0),
        ([], 0), (None, 0), ("text", 0), (ValueError(), 0), ({"retries": ("x",)}, 0),
    ],
)  # fmt: skip
def test_retries_are_read_where_a_client_tells_of_them(told: object, retries: int) -> None:
    """botocore's metadata; what means something else is left alone."""
    assert client_retries(told) == retries


def test_retries_of_openai_stand_in_the_request_that_it_made_last() -> None:
    """A real client against a port that answers 500 each time."""
    openai = pytest.importorskip("openai")

    class Broken(Busy):
        left = 10**6

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with (
            openai.OpenAI(api_key="k", base_url=url, max_retries=1) as client,
            pytest.raises(openai.APIStatusError) as told,
        ):
            client.models.list()
        server.shutdown()

    assert client_retries(told.value) == 1


def test_service_that_asks_for_a_long_wait_is_told_in_the_hint() -> None:
    """BR-056: the wait would pass the deadline, so that the call stops at once and says what was asked."""
    watched = new_watched()

    class Throttled(Exception):
        status_code = 429
        headers = {"retry-after": "25"}  # noqa: RUF012 - as a client has it

    @watched.watch.tool("find", safety="safe", deadline_s=20)
    def find() -> None:
        raise Throttled

    with watched.watch.run("refunds"), pytest.raises(ToolDown) as down:
        find()

    assert watched.time.waits_s == []
    assert down.value.hint == "its service asks to wait 25 s before the next call"
