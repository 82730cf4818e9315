"""TLS that fails before and after the request went out, met by real clients on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import aiohttp
import botocore.config
import botocore.session
import httpx
import httpx2
import pytest
import requests
import urllib3

from handoffwatch.tools.classification import classify_exception
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode

RETRYABLE, AMBIGUOUS = FailureClass.RETRYABLE, FailureClass.AMBIGUOUS


@pytest.fixture(scope="module")
def server_context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """Return the context of a server whose certificate nobody trusts."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate),
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _client_context(*, checks: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not checks:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def post_httpx(url: str, *, checks: bool) -> None:
    with httpx.Client(verify=_client_context(checks=checks), trust_env=False, timeout=1.0) as client:
        client.post(url, json={})


def post_httpx2(url: str, *, checks: bool) -> None:
    with httpx2.Client(verify=_client_context(checks=checks), trust_env=False, timeout=1.0) as client:
        client.post(url, json={})


def post_requests(url: str, *, checks: bool) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.post(url, json={}, timeout=1, verify=checks)


def post_urllib3(url: str, *, checks: bool) -> None:
    with urllib3.PoolManager(retries=False, ssl_context=_client_context(checks=checks)) as pool:
        pool.request("POST", url, json={}, timeout=1)


def post_aiohttp(url: str, *, checks: bool) -> None:
    async def post() -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=1, sock_read=1)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, json={}, ssl=_client_context(checks=checks)) as response,
        ):
            await response.read()

    asyncio.run(post())


def post_botocore(url: str, *, checks: bool) -> None:
    config = botocore.config.Config(retries={"max_attempts": 0}, read_timeout=1, connect_timeout=1, proxies={})
    client = botocore.session.Session().create_client(
        "dynamodb", "us-east-1", endpoint_url=url, verify=checks, config=config,
        aws_access_key_id="x", aws_secret_access_key="x",
    )  # fmt: skip
    try:
        client.list_tables()
    finally:
        client.close()


def post_http_client(url: str, *, checks: bool) -> None:
    address = urlsplit(url)
    connection = http.client.HTTPSConnection(
        str(address.hostname), address.port, timeout=1, context=_client_context(checks=checks)
    )
    with contextlib.closing(connection):
        connection.request("POST", "/", body=b"{}")
        connection.getresponse().read()


POSTS = [post_httpx, post_httpx2, post_requests, post_urllib3, post_aiohttp, post_botocore, post_http_client]
pytestmark = pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")


@contextlib.contextmanager
def _listening(act: Callable[[socket.socket], None]) -> Iterator[str]:
    """Play one connection on loopback in a thread, and give its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                connection.settimeout(5)
                with connection:
                    act(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(10)


def _raised(post: Callable[..., None], act: Callable[[socket.socket], None], *, checks: bool = False) -> Exception:
    with _listening(act) as url, pytest.raises(Exception) as raised:  # noqa: PT011 - each library has its own
        post(url, checks=checks)
    return raised.value


def _received(connection: socket.socket) -> bytes:
    """Return the head and the body of one small request, however many pieces they come in."""
    received = b""
    while b"{}" not in received:
        piece = connection.recv(65536)
        if not piece:
            break
        received += piece
    return received


def speak_no_tls(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def close_in_the_handshake(connection: socket.socket) -> None:
    connection.recv(4096)


def stall_in_the_handshake(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("act", [speak_no_tls, close_in_the_handshake, stall_in_the_handshake])
def test_classify_exception_is_retryable_when_the_handshake_fails(
    act: Callable[[socket.socket], None], post: Callable[..., None]
) -> None:
    """BR-063: no request goes before the hand-shake, so even an unsafe tool may try again."""
    error = _raised(post, act)

    for safety in Safety:
        assert classify_exception(error, safety).failure_class is RETRYABLE


@pytest.mark.parametrize("post", POSTS)
def test_classify_exception_names_tls_when_the_certificate_is_refused(
    server_context: ssl.SSLContext, post: Callable[..., None]
) -> None:
    """Who refuses the other side's certificate sends it nothing."""

    def present(connection: socket.socket) -> None:
        with server_context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(4096)

    failure = classify_exception(_raised(post, present, checks=True), Safety.UNSAFE)

    assert (failure.failure_class, failure.code) == (RETRYABLE, ToolCode.TLS)


@pytest.mark.parametrize("post", POSTS)
def test_classify_exception_is_ambiguous_when_what_is_no_tls_follows_a_request(
    server_context: ssl.SSLContext, post: Callable[..., None]
) -> None:
    """BR-057: OpenSSL says WRONG_VERSION_NUMBER then too, but the server had read the order."""
    seen: list[bytes] = []

    def break_off(connection: socket.socket) -> None:
        with server_context.wrap_socket(connection, server_side=True) as tls:
            seen.append(_received(tls))
            os.write(tls.fileno(), b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            with contextlib.suppress(OSError):
                tls.recv(4096)  # until the client has read it and hangs up

    error = _raised(post, break_off)

    assert seen[0].startswith(b"POST")
    assert classify_exception(error, Safety.UNSAFE).failure_class is AMBIGUOUS
    assert classify_exception(error, Safety.IDEMPOTENT).failure_class is RETRYABLE


def test_classify_exception_is_ambiguous_when_a_tls_error_was_never_raised_in_a_handshake() -> None:
    """Its reason alone does not say when it came."""
    error = ssl.SSLError(1, "x")
    error.reason = "WRONG_VERSION_NUMBER"

    assert classify_exception(error, Safety.UNSAFE).failure_class is AMBIGUOUS
