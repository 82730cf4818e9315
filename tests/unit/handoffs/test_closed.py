"""Closed contracts: what a dict may hide in nested models is seen without encoding it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from handoffwatch import Contract
from handoffwatch.handoffs.contract import compile_contract
from support.refund_handoffs import handoff


class Part(BaseModel):
    """A model of a team's own, less strict than a contract."""

    weight: float = 0.0


class Order(Contract):
    """A contract with a nested model."""

    parts: list[Part]


@pytest.mark.parametrize(
    "part",
    [{"weight": float("nan")}, {"weight": float("inf")}, {"weight": "1"}, {"weight": 1.0, "colour": "red"},
     Part.model_construct(weight="heavy")],
    ids=["NaN", "infinity", "text", "unknown field", "unchecked instance"],
)  # fmt: skip
def test_closed_validator_refuses_what_a_nested_model_would_take(part: Any) -> None:
    """The strictness of the contract reaches into models that do not share it."""
    closed = compile_contract(Order).closed
    assert closed is not None

    with pytest.raises(ValueError, match="validation error"):
        closed.validate_python(handoff(payload={"parts": [part]}), strict=True, extra="forbid")


def test_contract_is_open_when_a_field_takes_anything() -> None:
    """What the contract does not name must be encoded before it is judged."""

    class Loose(Contract):
        note: Any = None

    assert compile_contract(Loose).closed is None
