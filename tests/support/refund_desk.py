"""A refund desk as a user would write it: two agents, one tool, one operation that moves money.

Its system of record is a folder with one JSON file for each order. The tool answers as if it had written one also when
it was told not to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from handoffwatch import Contract, RecordVerifier, Watch

CONFIG = """\
ledger:
  url: sqlite:///{folder}/ledger.db
settlement:
  read_back_window_s: 0.5
  polls_s: [0.0, 0.5, 1.0]
  tick_s: 0.1
"""


class Findings(Contract, version="1"):
    """planner->executor: which order to refund."""

    result: str
    order_id: str
    amount_cents: int


class RefundReceipt(BaseModel):
    """What the tool returns."""

    refund_id: str


@dataclass(frozen=True, slots=True)
class Desk:
    """The watch, and the tool that it watches."""

    watch: Watch
    issue_refund: Callable[[str, int, bool], dict[str, Any]]

    def run(self, order_id: str, *, honest: bool = True) -> None:
        """Refund an order, from the handoff to the claim that it is done."""
        with self.watch.run("refunds", task_id=f"task-{order_id}") as run:
            run.expect("refund", order_id=order_id, amount_cents=3800)
            run.transfer(
                "planner",
                "executor",
                _handoff(order_id),
                receiver=lambda handoff: self.issue_refund(order_id, handoff["payload"]["amount_cents"], honest),
            )
            run.answer(f"Order {order_id} has been refunded.")
            run.claim("done")


def open_desk(folder: Path) -> Desk:
    """Return the desk whose configuration, ledger and records lie in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "handoffwatch.yaml"
    config.write_text(CONFIG.format(folder=folder), encoding="utf-8")
    watch = Watch(config)
    watch.route("planner->executor", contract=Findings, criticality="critical")

    def find(name: str) -> dict[str, Any] | None:
        record = folder / f"{name}.json"
        return json.loads(record.read_text(encoding="utf-8")) if record.is_file() else None

    watch.operation(
        "refund",
        key="order_id",
        compare=("amount_cents",),
        criticality="critical",
        receipt=RefundReceipt,
        receipt_id="refund_id",
        verifier=RecordVerifier(by_receipt=find, by_key=lambda order_id: find(f"refund-{order_id}")),
    )

    watch.workflow("refunds", tools="required", operations=["refund"])

    @watch.tool("issue_refund", safety="unsafe", operation="refund")
    def issue_refund(order_id: str, amount_cents: int, honest: bool) -> dict[str, Any]:
        refund_id = f"refund-{order_id}"
        record = {"refund_id": refund_id, "order_id": order_id, "amount_cents": amount_cents, "status": "succeeded"}
        if honest:
            (folder / f"{refund_id}.json").write_text(json.dumps(record), encoding="utf-8")
        return record

    return Desk(watch, issue_refund)


def _handoff(order_id: str) -> dict[str, Any]:
    return {
        "handoff_id": f"handoff-{order_id}",
        "task_id": f"task-{order_id}",
        "source_agent": "planner",
        "target_agent": "executor",
        "task_type": "refund",
        "status": "ready",
        "schema_version": "1",
        "payload": {"result": "refundable", "order_id": order_id, "amount_cents": 3800},
        "metadata": {},
    }
