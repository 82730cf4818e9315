"""Risk signals: what about a handoff asks for a critic, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch import Decision, RegistrationError
from handoffwatch.handoffs.risks import PAYLOAD_BYTES_USUAL, RiskLimits, risks_of
from handoffwatch.vocabulary import Mode, RiskSignal, Severity, Verdict

LIMITS = RiskLimits(confidence_min=0.5, payload_bytes_max=1_000, sensitive_task_types=frozenset({"refund"}))


def _decision(*reasons: str) -> Decision:
    return Decision(
        True, list(reasons), Severity.INFO, False, "h-1", None, Verdict.ALLOWED, (), "executor->reviewer", "1", 1,
        Mode.ENFORCE, (), (), 0.0,
    )  # fmt: skip


def _risks(
    payload: object = None,
    *reasons: str,
    task_type: object = "search",
    payload_bytes: int = 100,
    limits: RiskLimits = LIMITS,
    is_new_version: bool = False,
) -> set[str]:
    handoff = {"task_type": task_type, "payload": {} if payload is None else payload}
    decision = _decision(*reasons)
    return set(risks_of(handoff, decision, payload_bytes=payload_bytes, limits=limits, is_new_version=is_new_version))


def test_risks_are_none_when_nothing_is_unusual() -> None:
    """An ordinary handoff costs no critic."""
    assert _risks({"confidence": 0.5, "result": "done"}) == set()


@pytest.mark.parametrize(
    ("changes", "signal"),
    [
        ({"reasons": ("low_confidence",)}, "low_confidence"),
        ({"payload": {"confidence": 0.49}}, "low_confidence"),
        ({"payload": {"confidence": 0}}, "low_confidence"),
        ({"payload": {"confidence": -1}}, "low_confidence"),
        ({"reasons": ("missing_handoff_id", "merge_conflict")}, "agents_in_conflict"),
        ({"payload": {"operation_id": "op-1"}}, "sensitive_operation"),
        ({"payload": {"operation_id": 0}}, "sensitive_operation"),
        ({"task_type": "refund"}, "sensitive_operation"),
        ({"payload_bytes": 1_001}, "large_payload"),
        ({"is_new_version": True}, "new_schema_version"),
    ],
    ids=str,
)
def test_risks_are_the_one_signal_when_one_thing_is_unusual(changes: dict[str, Any], signal: str) -> None:
    """Each cause has its own signal."""
    payload, reasons = changes.pop("payload", None), changes.pop("reasons", ())
    assert _risks(payload, *reasons, **changes) == {signal}


@pytest.mark.parametrize(
    "payload",
    [
        {"confidence": 0.5},
        {"confidence": 1},
        {"confidence": None},
        {"confidence": "0.1"},
        {"confidence": False},
        {"confidence": [0.1]},
        {"operation_id": None},
        {"operation_id": ""},
        {"operation_id": "  \n"},
        [],
        "text",
        7,
    ],
    ids=str,
)
def test_risks_are_none_when_a_field_says_nothing(payload: object) -> None:
    """A number on the limit, what is no number, a blank operation and a payload that is no object are no signals."""
    assert _risks(payload) == set()


def test_risks_are_all_signals_when_everything_is_unusual() -> None:
    """One signal does not hide another."""
    found = _risks(
        {"confidence": 0.1, "operation_id": "op-1"},
        "merge_conflict",
        task_type="refund",
        payload_bytes=2_000,
        is_new_version=True,
    )
    assert found == set(RiskSignal)


def test_risks_leave_confidence_to_the_contract_when_no_limit_is_set() -> None:
    """Without a limit of its own only the contract's finding is a signal."""
    assert _risks({"confidence": 0.0}, limits=RiskLimits()) == set()
    assert _risks({"confidence": 0.0}, "low_confidence", limits=RiskLimits()) == {"low_confidence"}


@pytest.mark.parametrize("size", [PAYLOAD_BYTES_USUAL, PAYLOAD_BYTES_USUAL + 1])
def test_risks_name_a_large_payload_when_it_is_beyond_the_default(size: int) -> None:
    """The default limit is the last size that is not large."""
    expected = {"large_payload"} if size > PAYLOAD_BYTES_USUAL else set()
    assert _risks(payload_bytes=size, limits=RiskLimits()) == expected


@pytest.mark.parametrize("task_type", [None, 3, ["refund"], {"refund": 1}])
def test_risks_are_none_when_the_task_type_is_no_text(task_type: object) -> None:
    """A shadow route passes on what it received."""
    assert _risks(task_type=task_type) == set()


_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "refund", [], ["refund"], {}])
_HANDOFFS = st.fixed_dictionaries(
    {},
    optional={
        "task_type": _VALUES,
        "payload": _VALUES | st.fixed_dictionaries({}, optional={"confidence": _VALUES, "operation_id": _VALUES}),
    },
)


@given(_HANDOFFS, st.integers(0, 2_000), st.booleans())
def test_risks_name_size_and_version_whatever_the_handoff_holds(
    handoff: dict[str, Any], payload_bytes: int, is_new: bool
) -> None:
    """Nothing that was received raises, or hides what the caller knows."""
    found = risks_of(handoff, _decision(), payload_bytes=payload_bytes, limits=LIMITS, is_new_version=is_new)
    assert (RiskSignal.LARGE_PAYLOAD in found) == (payload_bytes > 1_000)
    assert (RiskSignal.NEW_SCHEMA_VERSION in found) == is_new
    assert RiskSignal.AGENTS_IN_CONFLICT not in found


@pytest.mark.parametrize(
    ("field", "value", "rule", "example"),
    [
        ("confidence_min", 1.01, "a number from 0 to 1, or None, got float", "0.5"),
        ("confidence_min", -0.01, "a number from 0 to 1, or None, got float", "0.5"),
        ("confidence_min", float("nan"), "a number from 0 to 1, or None, got float", "0.5"),
        ("confidence_min", True, "a number from 0 to 1, or None, got bool", "0.5"),
        ("confidence_min", "0.5", "a number from 0 to 1, or None, got str", "0.5"),
        ("payload_bytes_max", 0, "an integer of at least 1, got int", "65536"),
        ("payload_bytes_max", 1e6, "an integer of at least 1, got float", "65536"),
        ("payload_bytes_max", True, "an integer of at least 1, got bool", "65536"),
        ("payload_bytes_max", None, "an integer of at least 1, got NoneType", "65536"),
        ("sensitive_task_types", "refund", "a set of texts, got str", '{"refund"}'),
        ("sensitive_task_types", ["refund"], "a set of texts, got list", '{"refund"}'),
        ("sensitive_task_types", {1}, "a set of texts, got set", '{"refund"}'),
        ("sensitive_task_types", {""}, "a set of texts, got set", '{"refund"}'),
    ],
)
def test_limits_are_refused_when_a_value_breaks_its_rule(field: str, value: object, rule: str, example: str) -> None:
    """The message names the field, the rule and the kind of value; the hint can be typed."""
    with pytest.raises(RegistrationError) as caught:
        RiskLimits(**{field: value})  # type: ignore[arg-type]
    assert caught.value.message == f"risk limits: {field}: must be {rule}"
    assert caught.value.hint == f"{field}={example}"


def test_limits_keep_their_task_types_when_the_set_changes_later() -> None:
    """What was declared stays as it was."""
    types = {"refund"}
    limits = RiskLimits(sensitive_task_types=types)
    types.clear()
    assert _risks(task_type="refund", limits=limits) == {"sensitive_operation"}
