"""What an operation's declaration must keep."""

from typing import Any

import pytest

from handoffwatch.errors import RegistrationError
from handoffwatch.outcomes import OperationKind, SettlementPolicy
from handoffwatch.vocabulary import Criticality
from support.outcomes import RefundReceipt, refund_kind

BAD_NAME = "operation: the name must be a text of 1 to 100 printable characters without spaces around, and not 'other'"

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, BAD_NAME),
    ({"name": " refund"}, BAD_NAME),
    ({"name": "re\nfund"}, BAD_NAME),
    ({"name": "other"}, BAD_NAME),
    ({"key": "order id"}, "operation refund: key and compare: must be names of arguments"),
    ({"compare": "amount_cents"}, "operation refund: compare: must be a tuple of field names, got text"),
    ({"compare": ("order_id",)}, "operation refund: compare: must name each field once, and not the key"),
    ({"criticality": "high"}, "operation refund: criticality: must be critical or routine"),
    ({"receipt": dict}, "operation refund: receipt: must be a pydantic model class"),
    ({"receipt_id": "refund_id"}, "operation refund: receipt_id: needs a receipt model"),
    ({"receipt": RefundReceipt, "receipt_id": "id"}, "operation refund: receipt_id: must be a field of RefundReceipt"),
    ({"verifier": object()}, "operation refund: verifier: must have a method verify, got object"),
    ({"read_back_window_s": -1.0}, "operation refund: read_back_window_s: must be at least 0, got -1.0"),
    ({"deadline_s": float("nan")}, "operation refund: deadline_s: must be at least 0, got nan"),
    ({"polls_s": ()}, "operation refund: polls_s: must be ascending seconds from 0"),
    ({"polls_s": (3.0, 1.0)}, "operation refund: polls_s: must be ascending seconds from 0"),
    ({"sample": 0.5}, "operation refund: sample: must be left out of a critical operation"),
    ({"sample": 1.5, "criticality": "routine"}, "operation refund: sample: must be 0 to 1, got 1.5"),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_operation_kind_names_the_broken_rule_when_a_field_is_wrong(fields: dict[str, Any], message: str) -> None:
    """A wrong declaration is refused with its field and with what to type."""
    with pytest.raises(RegistrationError) as caught:
        OperationKind(**{"name": "refund", "key": "order_id", **fields})
    assert caught.value.message == message
    assert caught.value.hint


def test_operation_kind_takes_texts_and_lists_when_they_are_valid() -> None:
    """Criticality may be its text, compare a list."""
    kind = OperationKind("refund", key="order_id", compare=["amount_cents"], criticality="routine")  # type: ignore[arg-type]
    assert kind.criticality is Criticality.ROUTINE
    assert kind.compare == ("amount_cents",)


def test_operation_kind_overrides_only_what_it_states_when_it_has_values_of_its_own() -> None:
    """The settings hold for everything else."""
    policy = refund_kind(read_back_window_s=5.0, polls_s=(0.0, 2.0)).policy(SettlementPolicy(deadline_s=60.0))
    assert policy == SettlementPolicy(read_back_window_s=5.0, polls_s=(0.0, 2.0), deadline_s=60.0)


def test_operation_kind_refuses_a_tool_when_a_parameter_is_missing() -> None:
    """A tool whose parameters do not hold the intent is refused when it is declared."""
    refund_kind().check_parameters(["order_id", "amount_cents", "note"], tool="issue_refund")
    with pytest.raises(RegistrationError) as caught:
        refund_kind().check_parameters(["order_id"], tool="issue_refund")
    assert caught.value.message == (
        "tool issue_refund: parameter amount_cents: must exist because operation refund needs it"
    )
