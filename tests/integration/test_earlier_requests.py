"""Clients that send several requests: the first of an unsafe call may have done it, though the last was refused."""

from __future__ import annotations

import asyncio
import http.server
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from handoffwatch import NeedsHuman, ToolDown
from support.watched import Watched, new_watched

aiohttp = pytest.importorskip("aiohttp")
botocore_session = pytest.importorskip("botocore.session")
openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

TIMEOUT_S = 10


@dataclass
class Redirecting:
    """A server that answers with redirects, or drops the connection after it has read the request.

    Attributes:
        url: Where it is.
        refusing: An address where nobody listens.
        seen: The paths of the requests that reached it.
    """

    url: str
    refusing: str
    seen: list[str] = field(default_factory=list)


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def server() -> Iterator[Redirecting]:
    """A server of one test."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told.seen.append(self.path)
            word = self.path.split("/")[1]
            if word == "drop":
                httpd.shutdown_request(self.request)
                listener_closed.set()
                httpd.socket.close()  # whoever tries again is refused
                self.close_connection = True
                return
            status, to = word.split("-")
            self.send_response(int(status))
            if to:
                self.send_header("Location", told.refusing if to == "refusing" else f"{told.url}/{to}-")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_PUT = do_POST

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    listener_closed = threading.Event()
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told = Redirecting(f"http://127.0.0.1:{httpd.server_port}", f"http://127.0.0.1:{_closed_port()}/x")
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield told
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def post_requests(url: str) -> Any:
    with requests.Session() as session:
        session.trust_env = False
        response = session.post(url, data={"a": "1"}, timeout=TIMEOUT_S)
        response.raise_for_status()
        return response


def post_httpx(url: str) -> Any:
    with httpx.Client(trust_env=False, follow_redirects=True, timeout=TIMEOUT_S) as client:
        return client.post(url, data={"a": "1"}).raise_for_status()


def post_httpx_async(url: str) -> Any:
    async def main() -> Any:
        async with httpx.AsyncClient(trust_env=False, follow_redirects=True, timeout=TIMEOUT_S) as client:
            return (await client.post(url, data={"a": "1"})).raise_for_status()

    return asyncio.run(main())


def post_aiohttp(url: str) -> Any:
    async def main() -> Any:
        async with aiohttp.ClientSession() as session, session.post(url, data={"a": "1"}) as response:
            response.raise_for_status()

    return asyncio.run(main())


def post_urllib3(url: str) -> Any:
    with urllib3.PoolManager() as pool:
        return pool.request("POST", url, fields={"a": "1"}, timeout=TIMEOUT_S)


def post_urllib(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, data=b"a=1"), timeout=TIMEOUT_S) as response:
        return response.read()


CLIENTS: list[Callable[[str], Any]] = [
    post_requests, post_httpx, post_httpx_async, post_aiohttp, post_urllib3, post_urllib,
]  # fmt: skip
all_clients = pytest.mark.parametrize("post", CLIENTS, ids=lambda post: post.__name__.removeprefix("post_"))


def end_of(watched: Watched, post: Callable[[str], Any], url: str, *, safety: str = "unsafe") -> type[Exception] | None:
    """Return what a tool raises that posts once, without repetition of ours; None when it worked."""
    tool = watched.watch.tool(f"post_{safety}", safety=safety, attempts_max=1)(post)
    with watched.watch.run("refunds"):
        try:
            tool(url)
        except (NeedsHuman, ToolDown) as error:
            return type(error)
    return None


@all_clients
@pytest.mark.parametrize("status", [302, 303])
def test_refused_redirect_of_an_unsafe_call_is_unknown(
    server: Redirecting, post: Callable[[str], Any], status: int
) -> None:
    """The service has had the request, and answered it; that the second address refuses says nothing of that."""
    watched = new_watched()
    assert end_of(watched, post, f"{server.url}/{status}-refusing") is NeedsHuman
    assert end_of(watched, post, f"{server.url}/{status}-refusing", safety="safe") is ToolDown
    assert len(server.seen) == 2


@all_clients
def test_failed_redirect_of_an_unsafe_call_is_unknown(server: Redirecting, post: Callable[[str], Any]) -> None:
    """Whatever the answer at the second address is: the first may have done it."""
    assert end_of(new_watched(), post, f"{server.url}/303-401") is NeedsHuman
    assert len(server.seen) == 2


@all_clients
def test_refused_connection_alone_is_no_unknown_call(server: Redirecting, post: Callable[[str], Any]) -> None:
    """Nothing was sent, so that nothing happened; a client's own tries that were refused too change nothing."""
    assert end_of(new_watched(), post, server.refusing) is ToolDown


@all_clients
def test_refusal_after_a_redirect_of_another_call_is_no_unknown_call(
    server: Redirecting, post: Callable[[str], Any]
) -> None:
    """A tool whose first request was answered well sends a second one, which is refused."""

    def twice(url: str) -> Any:
        with suppress(Exception):
            post(f"{server.url}/200-")
        return post(url)

    assert end_of(new_watched(), twice, server.refusing) is ToolDown


def _retrying_requests(url: str) -> None:
    retries = urllib3.Retry(total=2, allowed_methods=None, backoff_factor=0.01)
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", HTTPAdapter(max_retries=retries))
        session.post(url, data={"a": "1"}, timeout=TIMEOUT_S)


def _retrying_urllib3(url: str) -> None:
    with urllib3.PoolManager(retries=urllib3.Retry(total=2, allowed_methods=None, backoff_factor=0.01)) as pool:
        pool.request("POST", url, fields={"a": "1"}, timeout=TIMEOUT_S)


def _retrying_openai(url: str) -> None:
    with openai.OpenAI(api_key="k", base_url=url, max_retries=2, timeout=TIMEOUT_S) as client:
        client.responses.create(model="m", input="x")


def _retrying_anthropic(url: str) -> None:
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=2, timeout=TIMEOUT_S) as client:
        client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])


def _retrying_botocore(url: str) -> None:
    session = botocore_session.get_session()
    session.set_credentials("a", "b")
    client = session.create_client("sqs", region_name="eu-west-1", endpoint_url=url)
    client.send_message(QueueUrl=f"{url}/1/q", MessageBody="x")


def _retrying_aiohttp(url: str) -> None:
    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            await session.put(url, data={"a": "1"})

    asyncio.run(main())


RETRYING = [
    _retrying_aiohttp,
    _retrying_requests,
    _retrying_urllib3,
    _retrying_openai,
    _retrying_anthropic,
    _retrying_botocore,
]


@pytest.mark.parametrize("post", RETRYING, ids=lambda post: post.__name__.removeprefix("_retrying_"))
def test_clients_own_repetition_that_was_refused_is_unknown(server: Redirecting, post: Callable[[str], Any]) -> None:
    """The first request was read and its connection dropped; then the service was gone."""
    assert end_of(new_watched(), post, f"{server.url}/drop") is NeedsHuman
    assert len(server.seen) == 1


@pytest.mark.parametrize("post", [_retrying_requests, _retrying_urllib3], ids=["requests", "urllib3"])
def test_clients_own_repetition_that_was_refused_each_time_is_no_unknown_call(
    server: Redirecting, post: Callable[[str], Any]
) -> None:
    """Its history says that no request reached anybody."""
    assert end_of(new_watched(), post, server.refusing) is ToolDown
