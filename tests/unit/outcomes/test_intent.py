"""Intents: what is written down before a call."""

import hashlib
from enum import Enum
from uuid import UUID

import pytest

from handoffwatch.errors import RegistrationError
from handoffwatch.outcomes import Intent, business_key, intent_of_call, intent_of_expectation
from support.outcomes import refund_kind


class Currency(Enum):
    """A value that is an enumeration."""

    EUR = "eur"


class Order(Enum):
    """Values that are no texts."""

    REFUNDED = 4417
    BY_ID = UUID(int=5)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("4417", "4417"),
        (4417, "4417"),
        (None, "null"),
        (True, "true"),
        ("", ""),
        ("a\x00b", "a\\x00b"),
        ("\ud800", "\\ud800"),
        ("é", "é"),
        ("x" * 200, "x" * 200),
        ("x" * 201, f"sha256:{hashlib.sha256(b'x' * 201).hexdigest()}"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Currency.EUR, "eur"),
        (Order.REFUNDED, "4417"),
        (Order.BY_ID, "00000000-0000-0000-0000-000000000005"),
    ],
)
def test_business_key_is_text_that_a_database_stores_when_the_value_is_anything(value: object, key: str) -> None:
    """Numbers and text share one form; what no database takes is escaped, what is too long is hashed."""
    assert business_key(value) == key


def test_intent_of_call_keeps_key_and_compared_values_when_the_call_has_more() -> None:
    """Other arguments are none of the ledger's business."""
    intent = intent_of_call(
        refund_kind(), {"order_id": 4417, "amount_cents": 3800, "note": "secret"}, run_id="r-1", workflow="refunds"
    )
    assert intent == Intent("r-1", "refunds", "refund", "4417", {"order_id": 4417, "amount_cents": 3800})


def test_intent_of_call_leaves_a_field_out_when_the_call_does_not_state_it() -> None:
    """What nobody stated is not compared later."""
    intent = intent_of_call(refund_kind(), {"order_id": "4417"}, run_id="r-1", workflow="refunds")
    assert intent.values == {"order_id": "4417"}


def test_intent_of_call_stores_plain_values_when_they_are_ids_or_enumerations() -> None:
    """An id becomes its text, an enumeration its value."""
    arguments = {"order_id": UUID(int=1), "amount_cents": Currency.EUR}
    intent = intent_of_call(refund_kind(), arguments, run_id="r-1", workflow="refunds")
    assert intent.values == {"order_id": "00000000-0000-0000-0000-000000000001", "amount_cents": "eur"}
    assert intent.key == "00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"amount_cents": 1}, "operation refund: order_id: must be given because it is the business key"),
        (
            {"order_id": "1", "amount_cents": {"value": 3800}},
            "operation refund: amount_cents: must be text, a finite number, true, false or null, got dict",
        ),
        (
            {"order_id": "1", "amount_cents": float("inf")},
            "operation refund: amount_cents: must be text, a finite number, true, false or null, got float",
        ),
    ],
)
def test_intent_of_call_says_what_is_wrong_when_it_cannot_be_stored(arguments: dict[str, object], message: str) -> None:
    """A value that cannot be compared later is a fault of the declaration; its value is not shown."""
    with pytest.raises(RegistrationError) as caught:
        intent_of_call(refund_kind(), arguments, run_id="r-1", workflow="refunds")
    assert caught.value.message == message


def test_intent_of_expectation_refuses_a_name_when_it_is_not_part_of_the_intent() -> None:
    """A misspelt field would never be compared."""
    with pytest.raises(RegistrationError) as caught:
        intent_of_expectation(refund_kind(), {"order_id": "1", "amount": 1}, run_id="r-1", workflow="refunds")
    assert str(caught.value) == (
        "operation refund: amount: must be the key or a compared field\nhint: use: order_id, amount_cents"
    )
