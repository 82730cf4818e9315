"""The exporter's HTTP surface: GET and HEAD on four addresses, security headers on every answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handoffwatch.events import InternalErrorCaught
from handoffwatch.exporter.landing import CONTENT_SECURITY_POLICY, render
from handoffwatch.exporter.negotiation import choose
from handoffwatch.exporter.off_loop import Busy, OffLoop
from handoffwatch.exporter.served import Served
from handoffwatch.vocabulary import Component

_HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

Endpoint = Callable[[Request], Awaitable[Response]]


def web_app(served: Served, off_loop: OffLoop) -> Starlette:
    """Return the ASGI application over what is served; all blocking work goes through `off_loop`."""

    async def metrics(request: Request) -> Response:
        encode, content_type = choose(request.headers.get("accept", ""))
        body = await off_loop.run(lambda: encode(served.watch.registry))
        return Response(body, headers={"content-type": content_type, "vary": "accept"})

    async def healthy(_request: Request) -> Response:
        return PlainTextResponse("handoffwatch is healthy\n")

    async def ready(_request: Request) -> Response:
        problem = await off_loop.run(served.ledger_problem)
        if problem:
            return PlainTextResponse(f"handoffwatch is not ready: {problem}\n", status_code=503)
        return PlainTextResponse("handoffwatch is ready\n")

    async def landing(_request: Request) -> Response:
        return HTMLResponse(render(await off_loop.run(served.landing)))

    async def failed(_request: Request, error: Exception) -> Response:
        served.watch.recorder.emit(InternalErrorCaught(Component.EXPORTER, type(error).__name__))
        return PlainTextResponse("handoffwatch failed; its log says where\n", status_code=500)

    endpoints = {"/": landing, "/metrics": metrics, "/-/healthy": healthy, "/-/ready": ready}
    app = Starlette(
        routes=[Route(path, endpoint, methods=["GET"]) for path, endpoint in endpoints.items()],
        middleware=[Middleware(_SecurityHeaders)],
        exception_handlers={Busy: _busy, Exception: failed},
    )
    app.router.redirect_slashes = False  # a redirect would repeat the Host header, which anybody can write
    return app


async def _busy(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"handoffwatch is busy: {error}\n", status_code=503, headers={"retry-after": "1"})


class _SecurityHeaders:
    """Adds the headers to every answer, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)
