"""A clock that stands still, one kind of operation, and the world that its verifier reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from handoffwatch.clock import Clock
from handoffwatch.events import Event
from handoffwatch.ledger import Ledger, LedgerSettings
from handoffwatch.outcomes import Intent, OperationKind, Receipt, SettlementPolicy, Verifier, intent_of_call
from handoffwatch.settlement import RecordVerifier, SettlementSettings, Settler


class RefundReceipt(BaseModel):
    """What the refund tool returns on success."""

    model_config = ConfigDict(extra="forbid", strict=True)
    status: str
    refund_id: str
    order_id: str
    amount_cents: int


@dataclass
class StillClock:
    """Time that moves only when a test moves it."""

    now_s: float = 1_000_000.0

    def advance(self, seconds: float) -> None:
        """Move the time."""
        self.now_s += seconds

    def clock(self) -> Clock:
        """Return the product's clock on this time."""
        return Clock(wall_s=lambda: self.now_s, monotonic_s=lambda: self.now_s, sleep=self.advance)


@dataclass
class Store:
    """The payments service's records, and how it answers."""

    by_id: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_order: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: Exception | None = None

    def fetch_by_id(self, refund_id: str) -> dict[str, Any] | None:
        """Return a refund by its id."""
        if self.error:
            raise self.error
        return self.by_id.get(refund_id)

    def fetch_by_order(self, order_id: str) -> dict[str, Any] | None:
        """Return a refund by its order."""
        if self.error:
            raise self.error
        return self.by_order.get(order_id)

    def put(self, order_id: str, *, status: str = "succeeded", amount_cents: int = 3800) -> None:
        """Write a refund."""
        record = {"order_id": order_id, "amount_cents": amount_cents, "status": status}
        self.by_order[order_id] = self.by_id[f"re_{order_id}"] = record

    def verifier(self) -> RecordVerifier:
        """Return the record verifier that reads this store."""
        return RecordVerifier(by_receipt=self.fetch_by_id, by_key=self.fetch_by_order)


@dataclass(frozen=True)
class DeclaredWorkflow:
    """A workflow with operations."""

    name: str
    operations: tuple[str, ...]


def refund_kind(verifier: Verifier | None = None, **more: Any) -> OperationKind:
    """Return the kind `refund`, critical unless said."""
    return OperationKind(
        "refund",
        key="order_id",
        compare=("amount_cents",),
        receipt=RefundReceipt,
        receipt_id="refund_id",
        verifier=verifier,
        **more,
    )


def refund_intent(order_id: str, *, run_id: str = "r-1", amount_cents: int = 3800) -> Intent:
    """Return the intent to refund an order."""
    arguments = {"order_id": order_id, "amount_cents": amount_cents}
    return intent_of_call(refund_kind(), arguments, run_id=run_id, workflow="refunds")


def refund_receipt(order_id: str) -> Receipt:
    """Return the receipt of a refund."""
    return Receipt({"order_id": order_id, "status": "succeeded"}, f"re_{order_id}")


def open_ledger(path: Path, time: StillClock, *kinds: OperationKind, workflow: str = "refunds") -> Ledger:
    """Return a ledger in a file with one registered workflow."""
    ledger = Ledger(LedgerSettings(url=f"sqlite:///{path}"), policy=SettlementPolicy(), clock=time.clock())
    chosen = kinds or (refund_kind(),)
    ledger.register([DeclaredWorkflow(workflow, tuple(kind.name for kind in chosen))], chosen)
    return ledger


def new_settler(
    ledger: Ledger, time: StillClock, *kinds: OperationKind, emit: Callable[[Event], None], **settings: Any
) -> Settler:
    """Return a settler on the still clock."""
    return Settler(
        ledger,
        kinds={kind.name: kind for kind in kinds},
        emit=emit,
        clock=time.clock(),
        settings=SettlementSettings(**settings),
    )
