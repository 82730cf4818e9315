"""The reason codes against the design: no code too many, none too few, each with its default."""

from __future__ import annotations

import re

import pytest

from handoffwatch.reasons import REASONS
from handoffwatch.vocabulary import Reaction, Severity

GROUPS = {
    "structure": "missing_field null_field empty_field type_mismatch unknown_field bad_format unknown_status "
    "unknown_schema_version deprecated_schema_version non_finite_number unsafe_integer invalid_text too_deep too_large "
    "cyclic_value not_serialisable unparsable_text truncated_payload missing_handoff_id",
    "completeness": "missing_result missing_error empty_results not_ready missing_operation_id status_not_accepted "
    "missing_context",
    "plausibility": "negative_count selected_not_in_candidates status_contradicts_result operation_unconfirmed "
    "foreign_reference merge_conflict low_confidence",
    "identity": "route_mismatch unknown_agent unknown_route foreign_task foreign_run stale_context stale_state "
    "orphaned_tool_call orphaned_item consumed_handoff duplicate_handoff loop_limit",
    "boundary": "value_missing value_added value_changed type_changed order_changed rest_changed artifact_changed "
    "seal_missing seal_invalid migration_failed capture_failed",
    "flow": "repair_exhausted route_stopped approval_required critic_concern check_failed",
}
WARNS = {"deprecated_schema_version", "missing_handoff_id"}
FLAGS = {"merge_conflict", "low_confidence", "critic_concern"}
HOLDS = {"approval_required"}
CRITICAL = {"missing_operation_id", "route_mismatch", "foreign_task", "foreign_run", "loop_limit", "check_failed"}
FINAL = {
    "missing_operation_id", "missing_context", "unknown_route", "consumed_handoff", "loop_limit", "repair_exhausted",
    "check_failed", "route_stopped", *GROUPS["boundary"].split(),
}  # fmt: skip


def test_reasons_are_those_of_the_design_when_listed_by_group() -> None:
    """Every code of the design, in its group and order, and none beside them."""
    listed = {group: [reason.code for reason in REASONS.values() if reason.group == group] for group in GROUPS}

    assert listed == {group: codes.split() for group, codes in GROUPS.items()}
    assert len(REASONS) == sum(len(codes) for codes in listed.values())


@pytest.mark.parametrize("code", REASONS)
def test_reason_has_the_reaction_of_the_design_when_no_contract_says_otherwise(code: str) -> None:
    """Block, error and retryable, unless the design says something else."""
    reason = REASONS[code]
    mild = code in WARNS | FLAGS | HOLDS

    assert reason.code == code
    assert reason.reaction is (
        Reaction.WARN if code in WARNS
        else Reaction.FLAG if code in FLAGS
        else Reaction.HOLD if code in HOLDS
        else Reaction.BLOCK
    )  # fmt: skip
    assert (reason.severity is Severity.CRITICAL) is (code in CRITICAL)
    assert (reason.severity in {Severity.INFO, Severity.WARNING}) is mild
    assert reason.retryable is (code not in FINAL)


@pytest.mark.parametrize("code", REASONS)
def test_reason_is_documented_when_it_can_be_found(code: str) -> None:
    """Each code has a meaning, an example and what the sender should do, short enough for a table."""
    reason = REASONS[code]

    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", code)
    for text in (reason.meaning, reason.advice, reason.example):
        assert text == text.strip()
        assert 5 <= len(text) <= 120
        assert not text.endswith(".")
