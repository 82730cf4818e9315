"""Northwind's payments service: real HTTP on loopback, its own database, and the faults that the plan gives an order.

    python -m handoffwatch.demo.payments --seed 1 --database payments.db

It says `northwind payments on http://127.0.0.1:<port>` on stdout once it listens, and ends on SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import time
from pathlib import Path
from typing import Final
from uuid import uuid4

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from handoffwatch.demo.books import (
    GET_ORDER,
    GET_POLICIES,
    GET_REFUND,
    GET_REFUNDS,
    HELD,
    POST_REFUND,
    Books,
    Deed,
    Refund,
)
from handoffwatch.demo.faults import FaultPlan, PaymentFault, RunPlan

ANNOUNCEMENT: Final = "northwind payments on "

_CALLERS: Final = {"Bearer agents": "agents", "Bearer verifier": "verifier"}
_PENDING_S: Final = 0.6
_HOLD_MAX_S: Final = 30.0
_TURNS_INTO: Final = {PaymentFault.PENDING_THEN_FAILED: "failed", PaymentFault.PENDING_THEN_LANDED: "succeeded"}


class PaymentsService:
    """The endpoints. All run on one event loop, each writes its deed in the transaction of what it did.

    Args:
        plan: Says which order meets which fault.
        books: The database.
    """

    def __init__(self, plan: FaultPlan, books: Books) -> None:
        self._plan = plan
        self._books = books

    def application(self) -> Starlette:
        """Return the service as an ASGI application."""
        return Starlette(
            routes=[
                Route("/orders/{order_id}", self.get_order, methods=["GET"]),
                Route("/policies", self.get_policies, methods=["GET"]),
                Route("/refunds", self.post_refund, methods=["POST"]),
                Route("/refunds", self.get_refunds, methods=["GET"]),
                Route("/refunds/{refund_id}", self.get_refund, methods=["GET"]),
            ]
        )

    async def get_order(self, request: Request) -> Response:
        """Answer an order with its amount; 404 when Northwind never sold it."""
        order_id = request.path_params["order_id"]
        order = self._plan.for_order(order_id)
        if self._shut_out(request, order):
            return self._refuse(request, GET_ORDER, order_id)
        if order is None:
            return self._answer(request, GET_ORDER, order_id, 404, {"error": "no such order"})
        body = {"order_id": order.order_id, "amount_cents": order.amount_cents, "status": "delivered"}
        return self._answer(request, GET_ORDER, order_id, 200, body)

    async def get_policies(self, request: Request) -> Response:
        """Answer the refund policies that restrict an order: often none."""
        order_id = request.query_params.get("order_id", "")
        order = self._plan.for_order(order_id)
        if self._shut_out(request, order):
            return self._refuse(request, GET_POLICIES, order_id)
        free = order is None or order.policy_is_empty
        return self._answer(request, GET_POLICIES, order_id, 200, [] if free else [{"policy": "within 30 days"}])

    async def post_refund(self, request: Request) -> Response:
        """Make a refund, once per idempotency key, unless the plan has a fault for its order."""
        body = await request.json()
        order_id, amount_cents = body.get("order_id"), body.get("amount_cents")
        order = self._plan.for_order(order_id) if isinstance(order_id, str) else None
        if order is None or type(amount_cents) is not int or amount_cents <= 0:
            return self._answer(request, POST_REFUND, str(order_id), 422, {"error": "unknown order or bad amount"})
        fault = order.story.payment
        if self._shut_out(request, order) or fault is PaymentFault.CREDENTIALS_LOST:
            return self._refuse(request, POST_REFUND, order.order_id)
        if fault is PaymentFault.THROTTLED and not self._books.count(order.order_id, POST_REFUND, "429"):
            refusal = self._answer(request, POST_REFUND, order.order_id, 429, {"error": "slow down"})
            refusal.headers["Retry-After"] = "1"
            return refusal
        return await self._make(request, order, amount_cents)

    async def get_refund(self, request: Request) -> Response:
        """Answer a refund by its id; 404 when it does not exist."""
        if _caller(request) == "nobody":
            return self._refuse(request, GET_REFUND, "")
        self._books.mature(time.time())
        refund = self._books.by_id(request.path_params["refund_id"])
        if refund is None:
            return self._answer(request, GET_REFUND, "", 404, {"error": "no such refund"}, "nothing")
        return self._answer(request, GET_REFUND, refund.order_id, 200, refund.public(), refund.status)

    async def get_refunds(self, request: Request) -> Response:
        """Answer the refunds of an order, as a list."""
        order_id = request.query_params.get("order_id", "")
        if _caller(request) == "nobody":
            return self._refuse(request, GET_REFUNDS, order_id)
        self._books.mature(time.time())
        refunds = self._books.by_order(order_id)
        said = ",".join(refund.status for refund in refunds) or "nothing"
        return self._answer(request, GET_REFUNDS, order_id, 200, [refund.public() for refund in refunds], said)

    async def _make(self, request: Request, order: RunPlan, amount_cents: int) -> Response:
        key = request.headers.get("Idempotency-Key")
        known = self._books.by_key(key) if key else None
        refund = known or _new_refund(order, amount_cents, key)
        fault = order.story.payment
        held = fault is PaymentFault.TIMEOUT_AFTER_COMMIT
        written = known is None and fault is not PaymentFault.SILENT_SUCCESS
        said = refund.status if written or known else "nothing"
        with self._books.transaction():
            if written:
                self._books.add(refund)
            self._books.note(Deed(_caller(request), POST_REFUND, order.order_id, HELD if held else "200", said))
        if held:
            await _until_hung_up(request)
        return JSONResponse(refund.public())

    def _shut_out(self, request: Request, order: RunPlan | None) -> bool:
        caller = _caller(request)
        locked = order is not None and order.story.payment is PaymentFault.LOCKED_OUT
        return caller == "nobody" or (locked and caller == "agents")

    def _refuse(self, request: Request, endpoint: str, order_id: str) -> Response:
        return self._answer(request, endpoint, order_id, 401, {"error": "credentials are not valid"})

    def _answer(
        self, request: Request, endpoint: str, order_id: str, code: int, body: object, said: str = ""
    ) -> Response:
        self._books.note(Deed(_caller(request), endpoint, order_id, str(code), said))
        return JSONResponse(body, status_code=code)


def _caller(request: Request) -> str:
    return _CALLERS.get(request.headers.get("Authorization", ""), "nobody")


def _new_refund(order: RunPlan, amount_cents: int, key: str | None) -> Refund:
    turns_into = _TURNS_INTO.get(order.story.payment) if order.story.payment else None
    return Refund(
        refund_id=f"re_{uuid4().hex[:16]}",
        order_id=order.order_id,
        amount_cents=amount_cents,
        status="pending" if turns_into else "succeeded",
        idempotency_key=key,
        turns_into=turns_into,
        turns_unix_s=time.time() + _PENDING_S if turns_into else None,
    )


async def _until_hung_up(request: Request) -> None:
    """Wait until the caller has given up, at most half a minute."""
    for _ in range(int(_HOLD_MAX_S / 0.05)):
        if await request.is_disconnected():
            return
        await asyncio.sleep(0.05)


def main(argv: list[str] | None = None) -> None:
    """Run the service until SIGTERM or Ctrl-C.

    Args:
        argv: Arguments without the program's name; those of the process when None.
    """
    parser = argparse.ArgumentParser(prog="python -m handoffwatch.demo.payments", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--database", type=Path, required=True)
    options = parser.parse_args(argv)
    books = Books(options.database)
    application = PaymentsService(FaultPlan(options.seed), books).application()
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{ANNOUNCEMENT}http://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    server = uvicorn.Server(
        uvicorn.Config(application, log_level="error", access_log=False, lifespan="off", timeout_keep_alive=60)
    )
    try:
        server.run(sockets=[listener])
    finally:
        books.close()


if __name__ == "__main__":
    main()
