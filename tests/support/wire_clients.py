"""The four HTTP clients that tools are written with, each as a tool that calls the faulty server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx
import pytest
import requests

from handoffwatch import NeedsHuman, ToolDown, ToolRejected, Watch
from support.faulty_server import CALL_ID_HEADER, Script, Target

aiohttp = pytest.importorskip("aiohttp")

Tool = Callable[[Script], Any]

ARGUMENTS: Final = {"order": "4417", "amount_cents": 3800}
ENDS: Final = {ToolDown: "down", ToolRejected: "rejected", NeedsHuman: "needs_human"}


def _unverified() -> ssl.SSLContext:
    """Return a context for a port that speaks no TLS: no certificate will be seen, so none need be loaded."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_TLS: Final = _unverified()


def _request(target: Target, method: str) -> dict[str, Any]:
    """Return what every client sends; only what may change something has a body."""
    body = {} if method == "GET" else {"json": ARGUMENTS}
    return {"method": method, "url": target.url, "headers": {CALL_ID_HEADER: target.call_id}, **body}


def _httpx_timeout(target: Target) -> httpx.Timeout:
    return httpx.Timeout(target.read_timeout_s, connect=target.connect_timeout_s)


def _value(response: Any) -> Any:
    """Return what a tool makes of a response: an error for a bad status, the data of a 200, else the response."""
    status = response.status_code
    if status >= 400:
        response.raise_for_status()
    return response.json() if status == 200 else response


def send_httpx(target: Target, method: str) -> Any:
    """Send with httpx in plain code."""
    with httpx.Client(verify=_TLS, trust_env=False, timeout=_httpx_timeout(target)) as client:
        return _value(client.request(**_request(target, method)))


async def send_httpx_async(target: Target, method: str) -> Any:
    """Send with httpx in async code."""
    async with httpx.AsyncClient(verify=_TLS, trust_env=False, timeout=_httpx_timeout(target)) as client:
        return _value(await client.request(**_request(target, method)))


def send_requests(target: Target, method: str) -> Any:
    """Send with requests."""
    with requests.Session() as session:
        session.trust_env = False
        timeouts = (target.connect_timeout_s, target.read_timeout_s)
        return _value(
            session.request(**_request(target, method), timeout=timeouts, allow_redirects=False, verify=False)
        )


async def send_aiohttp(target: Target, method: str) -> Any:
    """Send with aiohttp."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=target.connect_timeout_s, sock_read=target.read_timeout_s)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.request(**_request(target, method), allow_redirects=False, ssl=_TLS) as response,
    ):
        if response.status >= 400:
            response.raise_for_status()
        data = await response.read()
        return await response.json() if response.status == 200 and data is not None else response


PLAIN: Final[dict[str, Callable[[Target, str], Any]]] = {"httpx": send_httpx, "requests": send_requests}
ASYNC: Final[dict[str, Callable[[Target, str], Awaitable[Any]]]] = {
    "httpx_async": send_httpx_async,
    "aiohttp": send_aiohttp,
}
CLIENTS: Final = ("httpx", "httpx_async", "requests", "aiohttp")


def wire_tool(watch: Watch, name: str, client: str, safety: str, **more: Any) -> Tool:
    """Register a tool that calls with this client; safe tools GET (aiohttp: POST), others POST.

    Returns:
        A function that makes one logical call, played by a script; the async clients get an event loop for each call.
    """
    # aiohttp repeats a GET by itself when the server disconnects, unseen by any tool; a POST it sends once.
    method = "GET" if safety == "safe" and client != "aiohttp" else "POST"
    if client in PLAIN:

        @watch.tool(name, safety=safety, **more)
        def call(script: Script) -> Any:
            return PLAIN[client](script.target(), method)

        return call

    @watch.tool(name, safety=safety, **more)
    async def call_async(script: Script) -> Any:
        return await ASYNC[client](script.target(), method)

    return lambda script: asyncio.run(call_async(script))


def end_of(tool: Tool, script: Script) -> str:
    """Make one logical call and return how it ended: ok, down, rejected or needs_human."""
    try:
        tool(script)
    except tuple(ENDS) as error:
        return ENDS[type(error)]
    return "ok"
