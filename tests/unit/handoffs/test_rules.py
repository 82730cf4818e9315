"""The default rules on their own: identity, completeness, and what white space is."""

from __future__ import annotations

from typing import Any

import pytest

from handoffwatch import Contract, HandoffContext
from handoffwatch.decision import Finding
from handoffwatch.handoffs.contract import compile_contract, compile_envelope
from handoffwatch.handoffs.rules import is_blank, judge_completeness, judge_identity, skipped_rules


class WithoutResult(Contract):
    """A contract that has no field named result."""

    plan: str = ""


class WithResult(Contract):
    """A contract that has one, of any kind."""

    result: object = None


@pytest.mark.parametrize(
    ("value", "blank"),
    [(None, True), ("", True), (" ", True), ("\n\t\u3000", True), ("x", False), (0, False), (0.0, False),
     (False, False), ([], False), ({}, False), ((), False)],
    ids=repr,
)  # fmt: skip
def test_is_blank_tells_nothing_from_something_when_a_value_is_empty(value: object, blank: bool) -> None:
    """White space is empty; 0, false and an empty list are results."""
    assert is_blank(value) is blank


@pytest.mark.parametrize(
    ("contract", "status", "payload", "codes"),
    [
        (WithResult, "completed", {"result": 0}, []),
        (WithResult, "completed", {"result": False}, []),
        (WithResult, "completed", {"result": []}, []),
        (WithResult, "completed", {"result": " "}, ["missing_result"]),
        (WithResult, "completed", {}, ["missing_result"]),
        (WithResult, "ready", {}, []),
        (WithoutResult, "completed", {"plan": "x"}, []),
        (WithoutResult, "failed", {}, ["missing_error"]),
        (WithoutResult, "failed", {"error": {"code": 7}}, []),
        (WithResult, "done", {}, []),
        (WithResult, None, {}, []),
        (WithResult, ["completed"], {}, []),
        (WithResult, "completed", None, []),
        (WithResult, "completed", [], []),
    ],
)
def test_judge_completeness_looks_at_the_status_when_it_asks_for_a_result_or_an_error(
    contract: type[Contract], status: object, payload: object, codes: list[str]
) -> None:
    """Completed work has a result where the contract has a field for it; failed work says why."""
    found: list[Finding] = []

    judge_completeness(found, {"status": status, "payload": payload}, compile_contract(contract))

    assert [item.code for item in found] == codes


@pytest.mark.parametrize(
    ("handoff", "context", "skipped"),
    [
        (
            {},
            HandoffContext(),
            ("foreign_task", "foreign_run", "stale_context", "consumed_handoff", "duplicate_handoff", "loop_limit"),
        ),
        (
            {"context_version": 1},
            HandoffContext("r-1", context_version=1),
            ("foreign_task", "consumed_handoff", "duplicate_handoff", "loop_limit"),
        ),
        ({}, HandoffContext("r-1", "t-1", 1, consumed=()), ("stale_context", "duplicate_handoff", "loop_limit")),
        ({"context_version": 0}, HandoffContext("r-1", "t-1", 0, consumed=()), ("duplicate_handoff", "loop_limit")),
    ],
)
def test_skipped_rules_names_the_rules_when_a_fact_is_missing_on_either_side(
    handoff: dict[str, Any], context: HandoffContext, skipped: tuple[str, ...]
) -> None:
    """0 is a version; only absence skips a rule."""
    assert skipped_rules(handoff, compile_envelope(), context) == skipped


@pytest.mark.parametrize("value", [None, 7, True, [], {}])
@pytest.mark.parametrize("field", ["source_agent", "target_agent", "task_id"])
def test_judge_identity_leaves_a_field_to_the_structure_when_it_is_no_text(field: str, value: object) -> None:
    """One gap is one finding: what is no text is not called foreign as well."""
    found: list[Finding] = []

    judge_identity(
        found,
        {field: value},
        expected_source="a",
        expected_target="b",
        context=HandoffContext(task_id="t-1", context_version=1),
    )

    assert found == []
