"""Findings about the shape: codes and sentences from the vocabulary, paths in dots."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict

from handoffwatch.decision import Finding
from handoffwatch.handoffs.structure import finding, findings_of_faults, kind_in_words
from handoffwatch.reasons import REASONS
from handoffwatch.values.json_text import Fault
from handoffwatch.vocabulary import Reaction, Severity
from support.refund_handoffs import handoff, payload, refund_watchdog


@pytest.mark.parametrize("code", REASONS)
def test_finding_follows_the_vocabulary_when_a_code_is_named(code: str) -> None:
    """Reaction, severity and retryability are those of the code."""
    reason = REASONS[code]

    assert finding(code, "payload", "words") == Finding(
        code, "payload", "words", reason.reaction, reason.severity, reason.retryable, "validate"
    )


@pytest.mark.parametrize(
    ("value", "kind"),
    [("x", "text"), (True, "true or false"), (7, "an integer"), (0.5, "a number"), ([], "a list"), ({}, "an object"),
     (None, "null"), (b"x", "bytes"), (range(0), "range")],
    ids=repr,
)  # fmt: skip
def test_kind_in_words_says_what_a_value_is_when_it_is_not_to_be_quoted(value: object, kind: str) -> None:
    """The kind in words, never the value."""
    assert kind_in_words(value) == kind


def test_findings_of_faults_names_place_and_kind_when_values_have_no_json_form() -> None:
    """One finding for each fault, in order."""
    faults = [Fault("cyclic_value", ("payload", "a"), "dict"), Fault("invalid_text", (), "str")]

    assert findings_of_faults(faults) == [
        Finding("cyclic_value", "payload.a", "payload.a: a value contains itself (found dict)"),
        Finding("invalid_text", "$", "$: a text holds half a character that no encoder accepts (found str)"),
    ]
    assert {(item.reaction, item.severity) for item in findings_of_faults(faults)} == {(Reaction.BLOCK, Severity.ERROR)}


class Wild(BaseModel):
    """A payload that a program hands over as a model with names of its own choice."""

    model_config = ConfigDict(extra="forbid")

    order_id: str = "4417"
    amount_cents: int = 1
    hits: list[dict[str, object]] = []


def test_path_follows_models_when_a_nested_value_of_a_model_is_wrong() -> None:
    """The path of a finding is the same for a model as for a dict."""
    raw = handoff(payload=Wild(hits=[{"id": "a"}, {"id": None}]))

    decision = refund_watchdog().inspect(raw)

    assert (decision.reasons, decision.paths) == (["null_field"], ["payload.hits.1.id"])


def test_path_is_not_misled_when_a_union_member_is_named_like_a_key() -> None:
    """The name of a union's member is left out even when the value has a field of that name."""
    raw = handoff(payload=payload(paid_by={"kind": "card", "Card": 1, "digits": 4}))

    decision = refund_watchdog().inspect(raw)

    assert "payload.paid_by.digits" in decision.paths
    assert not [path for path in decision.paths if path.startswith("payload.paid_by.Card.")]
