"""The refund desk: everything Northwind registers with handoffwatch, and the tools its agents work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from handoffwatch import RecordVerifier, Watch
from handoffwatch.demo.contracts import (
    CRITICALITY_OF,
    PLAN_ROUTE,
    REVIEW_ROUTE,
    WORK_ROUTE,
    Plan,
    RefundReceipt,
    Review,
    Work,
)

WORKFLOW: Final = "refunds"
OPERATION: Final = "refund"

REFUND_LIMIT_S: Final = 2.0
"""How long an agent waits for the payments service to answer a refund."""

_LIMIT_S: Final = 10.0

FindOrder = Callable[[str], dict[str, Any]]
CheckPolicy = Callable[[str], list[dict[str, Any]]]
IssueRefund = Callable[[str, int], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Desk:
    """The watch and the tools registered with it; `clients` are the connections to the payments service."""

    watch: Watch
    find_order: FindOrder
    check_policy: CheckPolicy
    issue_refund: IssueRefund
    clients: tuple[httpx.Client, ...]

    def close(self) -> None:
        """Close the watch and the connections."""
        self.watch.close()
        for client in self.clients:
            client.close()


def open_desk(payments_url: str, *, config: Path | None = None) -> Desk:
    """Return a desk that works with the payments service at `payments_url`.

    Args:
        payments_url: Address of the service, without a slash at the end.
        config: The settings file; None takes HANDOFFWATCH_CONFIG.
    """
    agents, verifier = _client(payments_url, "agents"), _client(payments_url, "verifier")
    watch = Watch(config)
    for route, contract in ((PLAN_ROUTE, Plan), (WORK_ROUTE, Work), (REVIEW_ROUTE, Review)):
        watch.route(route, contract=contract, criticality=CRITICALITY_OF[route])
    watch.operation(
        OPERATION,
        key="order_id",
        compare=("amount_cents",),
        criticality="critical",
        receipt=RefundReceipt,
        receipt_id="refund_id",
        verifier=_verifier(verifier),
    )
    watch.workflow(WORKFLOW, tools="required", operations=[OPERATION])
    return Desk(watch, *_register_tools(watch, agents), clients=(agents, verifier))


def _client(payments_url: str, caller: str) -> httpx.Client:
    return httpx.Client(
        base_url=payments_url, headers={"Authorization": f"Bearer {caller}"}, timeout=_LIMIT_S, trust_env=False
    )


def _verifier(payments: httpx.Client) -> RecordVerifier:
    """Return the verifier: it reads the stored refunds with credentials of its own."""

    def by_receipt(refund_id: str) -> dict[str, Any] | None:
        response = payments.get(f"/refunds/{refund_id}")
        return None if response.status_code == httpx.codes.NOT_FOUND else _object(response)

    def by_order(order_id: str) -> dict[str, Any] | None:
        refunds = _list(payments.get("/refunds", params={"order_id": order_id}))
        return refunds[0] if refunds else None

    return RecordVerifier(by_receipt=by_receipt, by_key=by_order)


def _register_tools(watch: Watch, payments: httpx.Client) -> tuple[FindOrder, CheckPolicy, IssueRefund]:
    @watch.tool("find_order", safety="safe")
    def find_order(order_id: str) -> dict[str, Any]:
        """Return the order as it was sold."""
        return _object(payments.get(f"/orders/{order_id}"))

    @watch.tool("check_policy", safety="safe")
    def check_policy(order_id: str) -> list[dict[str, Any]]:
        """Return the policies that restrict a refund; an empty list is a good answer."""
        return _list(payments.get("/policies", params={"order_id": order_id}))

    @watch.tool("issue_refund", safety="unsafe", operation=OPERATION)
    def issue_refund(order_id: str, amount_cents: int) -> dict[str, Any]:
        """Refund the order and return the receipt."""
        body = {"order_id": order_id, "amount_cents": amount_cents}
        key = {"Idempotency-Key": f"refund-{order_id}"}
        return _object(payments.post("/refunds", json=body, headers=key, timeout=REFUND_LIMIT_S))

    return find_order, check_policy, issue_refund


def _object(response: httpx.Response) -> dict[str, Any]:
    body: dict[str, Any] = response.raise_for_status().json()
    return body


def _list(response: httpx.Response) -> list[dict[str, Any]]:
    body: list[dict[str, Any]] = response.raise_for_status().json()
    return body
