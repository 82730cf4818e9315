"""Receipts: typed fields, never a sentence."""

import pytest

from handoffwatch.outcomes import OperationKind, Receipt, receipt_of
from support.outcomes import RefundReceipt, refund_kind

FIELDS = {"status": "succeeded", "refund_id": "re_1", "order_id": "4417", "amount_cents": 3800}


@pytest.mark.parametrize(
    "returned",
    [
        FIELDS,
        RefundReceipt(**FIELDS),
        '{"status": "succeeded", "refund_id": "re_1", "order_id": "4417", "amount_cents": 3800}',
    ],
)
def test_receipt_of_returns_the_fields_when_the_model_accepts_them(returned: object) -> None:
    """A mapping, a model and JSON text are receipts."""
    assert receipt_of(refund_kind(), returned) == Receipt(FIELDS, "re_1")


@pytest.mark.parametrize(
    "returned",
    [
        "Refund submitted.",
        None,
        {},
        {**FIELDS, "amount_cents": "3800"},
        {**FIELDS, "surprise": 1},
        [FIELDS],
        b"\xff",
    ],
)
def test_receipt_of_returns_none_when_the_model_refuses(returned: object) -> None:
    """A sentence is no receipt, nor is a mapping with a wrong field."""
    assert receipt_of(refund_kind(), returned) is None


def test_receipt_of_returns_none_when_the_kind_has_no_model() -> None:
    """Without a model nothing says what a receipt is."""
    assert receipt_of(OperationKind("note", key="order_id"), FIELDS) is None


def test_receipt_of_has_no_id_when_the_field_is_empty() -> None:
    """An empty id names no record."""
    receipt = receipt_of(refund_kind(), {**FIELDS, "refund_id": ""})
    assert receipt is not None
    assert receipt.receipt_id is None
