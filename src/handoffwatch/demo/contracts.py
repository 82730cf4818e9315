"""What each Northwind agent needs of the handoff it receives."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, Field

from handoffwatch import Contract

PLAN_ROUTE: Final = "planner->executor"
WORK_ROUTE: Final = "executor->reviewer"
REVIEW_ROUTE: Final = "reviewer->synthesizer"

CRITICALITY_OF: Final = {PLAN_ROUTE: "critical", WORK_ROUTE: "critical", REVIEW_ROUTE: "routine"}
"""What a wrong handoff costs on each route: two lead to a payment, one to a sentence."""


Text = Annotated[str, Field(min_length=1)]


class Task(BaseModel):
    """What the customer wants, and within which limits; it goes all the way."""

    goal: Text
    constraints: list[str] = Field(min_length=1)


class Order(BaseModel):
    """An order that may be refunded."""

    order_id: Text
    amount_cents: int


class Plan(Contract, version="1", needs_results=True):
    """planner->executor: which order to refund. A plan without an order is no plan."""

    task: Task
    results: list[Order]
    policies: list[str] = Field(default_factory=list)


class Work(Contract, version="1"):
    """executor->reviewer: what was done. The refund's id stands there when the service gave one."""

    task: Task
    result: str
    order_id: Text
    amount_cents: int
    refund_id: str | None = None


class Review(Contract, version="1"):
    """reviewer->synthesizer: the work, and what was checked."""

    task: Task
    result: str
    order_id: Text
    amount_cents: int
    checked: list[str] = Field(min_length=1)


class RefundReceipt(BaseModel):
    """What the payments service returns for a refund."""

    status: str
    refund_id: str
    order_id: str
    amount_cents: int
