"""A call that falls back on a second host: what the first one failed of says nothing of the second request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import httpx
import pytest
import requests
import urllib3

from handoffwatch.tools.classification import classify_exception
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode

HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
HALF_A_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{"
NO_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{\r\n"


def post_httpx(url: str) -> None:
    httpx.post(url, json={}, trust_env=False, timeout=5)


def post_requests(url: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.post(url, json={}, timeout=5)


def post_urllib3(url: str) -> None:
    with urllib3.PoolManager(retries=False) as pool:
        pool.request("POST", url, json={}, timeout=5)


POSTS = [post_httpx, post_requests, post_urllib3]


def _fall_back(first: Callable[[], None], second: Callable[[], None]) -> None:
    """Call the second in the handler of what the first raises."""
    try:
        first()
    except Exception:  # noqa: BLE001 - each library has a class of its own
        second()


def _lost(post: Callable[[str], None], answer: bytes, first: Callable[[], None] | None) -> Exception:
    """Return what `post` raises whose answer breaks off, in the handler of what `first` raises."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                received = b""
                while b"{}" not in received:
                    received += connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with pytest.raises(Exception) as raised:  # noqa: PT011 - each library has a class of its own
            _fall_back(first, lambda: post(url)) if first is not None else post(url)
        thread.join(5)
    return raised.value


def _refused(post: Callable[[str], None]) -> Callable[[], None]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    return lambda: post(url)


def _without_tls(post: Callable[[str], None]) -> Callable[[], None]:
    def call() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def serve() -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

            thread = threading.Thread(target=serve)
            thread.start()
            try:
                post(f"https://127.0.0.1:{listener.getsockname()[1]}/")
            finally:
                thread.join(5)

    return call


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("first", [None, _refused, _without_tls], ids=["alone", "refused", "without_tls"])
@pytest.mark.parametrize(
    "answer", [b"", HALF, HALF_A_CHUNK, NO_CHUNK], ids=["none", "half", "half_a_chunk", "no_chunk"]
)
def test_classify_exception_is_ambiguous_when_the_second_host_has_read_the_order(
    answer: bytes, first: Callable[[Callable[[str], None]], Callable[[], None]] | None, post: Callable[[str], None]
) -> None:
    """BR-057: Python keeps the first host's refusal as the context of the second's lost answer."""
    error = _lost(post, answer, None if first is None else first(post))

    found = [classify_exception(error, safety) for safety in (Safety.UNSAFE, Safety.IDEMPOTENT)]

    assert [each.failure_class for each in found] == [FailureClass.AMBIGUOUS, FailureClass.RETRYABLE]
    assert {each.code for each in found} == {ToolCode.CONNECTION}


def test_classify_exception_is_ambiguous_when_a_handler_of_a_tls_error_fails() -> None:
    """A fault of the tool's own code proves nothing, whatever it was handling."""
    with pytest.raises(ValueError, match="invalid literal") as raised:
        _fall_back(_without_tls(post_httpx), lambda: print(int("later")))

    failure = classify_exception(raised.value, Safety.UNSAFE)

    assert (failure.failure_class, failure.code) == (FailureClass.AMBIGUOUS, ToolCode.EXCEPTION)
