"""Rules about a payload whose shape is right: whether what it says can be true."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from handoffwatch import Contract, HandoffContext
from handoffwatch.decision import Finding
from handoffwatch.handoffs.context import NO_CONTEXT
from handoffwatch.handoffs.contract import compile_contract
from handoffwatch.handoffs.plausibility import judge_plausibility
from handoffwatch.vocabulary import Reaction, Severity, Verdict
from support.one_route import contract_class, found, judged, only, watchdog_of
from support.refund_handoffs import handoff

ALL = ("ready", "completed", "failed")


class Anything(Contract, accepts=ALL):
    """A result and an error of any kind."""

    result: Any = None
    error: Any = None


@pytest.mark.parametrize(
    ("status", "payload", "expected"),
    [
        ("completed", {"result": "done"}, []),
        ("completed", {"result": 0}, []),
        ("completed", {"result": []}, []),
        ("completed", {"result": "Error: 401 Unauthorized"}, []),
        ("completed", {"result": "done", "error": None}, []),
        ("completed", {"result": "done", "error": " "}, []),
        ("completed", {"result": "done", "error": "no"}, [("status_contradicts_result", "payload.error")]),
        ("completed", {"result": {"error": "401"}}, [("status_contradicts_result", "payload.result")]),
        ("completed", {"result": {"isError": True}}, [("status_contradicts_result", "payload.result")]),
        ("completed", {"result": {"ok": False, "data": 1}}, [("status_contradicts_result", "payload.result")]),
        ("completed", {"result": {"status": "error"}}, [("status_contradicts_result", "payload.result")]),
        ("completed", {"result": {"errors": ["no"]}}, [("status_contradicts_result", "payload.result")]),
        ("completed", {"result": {"ok": True, "errors": []}}, []),
        ("failed", {"error": "no"}, []),
        ("failed", {"error": "no", "result": ""}, []),
        ("failed", {"error": "no", "result": "partly done"}, [("status_contradicts_result", "payload.result")]),
        ("ready", {"result": "draft", "error": "none yet"}, []),
    ],
    ids=str,
)
def test_inspect_blocks_with_status_contradicts_result_when_the_payload_tells_another_story(
    status: str, payload: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    """Completed work tells of no failure, failed work brings no result, and words decide nothing."""
    assert found(judged(Anything, payload, status=status)) == expected


@pytest.mark.parametrize(
    ("fields", "status", "payload"),
    [
        ({"result": (list[str], []), "error": (str | None, None)}, "failed", {"error": "no"}),
        ({"result": (dict[str, str], {}), "error": (str | None, None)}, "failed", {"error": "no"}),
        ({"result": (int, 0), "error": (str | None, None)}, "failed", {"error": "no"}),
        ({"result": (str, ...), "error": (dict[str, str], {})}, "completed", {"result": "done"}),
        ({"result": (str, ...), "error": (list[str], [])}, "completed", {"result": "done"}),
        ({"result": (str, ...), "error": (bool, False)}, "completed", {"result": "done"}),
    ],
    ids=["no list", "no dict", "no number", "empty error dict", "empty error list", "no error flag"],
)
def test_inspect_allows_when_a_result_or_an_error_is_only_the_default_of_the_contract(
    fields: dict[str, Any], status: str, payload: dict[str, Any]
) -> None:
    """What the sender did not say contradicts nothing."""
    body: dict[str, Any] = {
        "__module__": __name__,
        "__annotations__": {name: kind for name, (kind, _) in fields.items()},
    }
    body |= {name: default for name, (_, default) in fields.items() if default is not ...}
    contract = type(Contract)("Defaults", (Contract,), body, accepts=ALL)

    assert judged(contract, payload, status=status).reasons == []


@pytest.mark.parametrize(
    ("value", "reasons"), [(-1, ["negative_count"]), (-(2**53 - 1), ["negative_count"]), (0, []), (3, [])]
)
@pytest.mark.parametrize("name", ["count", "order_count"])
@pytest.mark.parametrize("kind", [int, int | None], ids=["integer", "optional integer"])
def test_inspect_blocks_with_negative_count_when_a_count_is_below_zero(
    kind: Any, name: str, value: int, reasons: list[str]
) -> None:
    """A field that counts something, by its name, is 0 or more, whether it may be left out or not."""
    assert judged(contract_class({name: kind}), {name: value}).reasons == reasons


@pytest.mark.parametrize("name", ["balance", "county", "discount", "amount_cents"])
def test_inspect_allows_when_a_negative_number_counts_nothing(name: str) -> None:
    """Only `count` and names that end in `_count` count."""
    assert judged(contract_class({name: int}), {name: -1}).reasons == []


class Sure(Contract, confidence_min=0.5):
    """A contract with a threshold."""

    confidence: float | None = None


@pytest.mark.parametrize(("confidence", "verdict"), [
    (0.5, Verdict.ALLOWED), (1, Verdict.ALLOWED), (None, Verdict.ALLOWED),
    (0.4999, Verdict.WARNED), (0, Verdict.WARNED), (-1.0, Verdict.WARNED),
])  # fmt: skip
def test_inspect_flags_low_confidence_when_it_is_below_the_threshold(
    confidence: float | None, verdict: Verdict
) -> None:
    """The threshold itself is enough, and a handoff below it goes on with a flag."""
    decision = judged(Sure, {"confidence": confidence})

    assert (decision.verdict, decision.allowed) == (verdict, True)
    assert [(item.code, item.reaction, item.severity) for item in decision.findings] == (
        [] if verdict is Verdict.ALLOWED else [("low_confidence", Reaction.FLAG, Severity.WARNING)]
    )


def test_inspect_says_nothing_of_confidence_when_the_contract_has_no_threshold() -> None:
    """The threshold is off by default."""
    assert judged(contract_class({"confidence": float}), {"confidence": 0.0}).reasons == []


class Candidate(BaseModel):
    """One of several."""

    id: str | int


class Choice(Contract, choices={"selected": "candidates.*.id", "also": "candidates.*.id"}):
    """Choices among candidates: one, and several."""

    selected: str | int | bool | None
    also: list[str | int] = Field(default_factory=list)
    candidates: list[Candidate]


CANDIDATES = [{"id": "a"}, {"id": "b"}, {"id": 1}]


@pytest.mark.parametrize(
    ("payload", "paths"),
    [
        ({"selected": "a"}, []),
        ({"selected": 1}, []),
        ({"selected": None}, []),
        ({"selected": "a", "also": []}, []),
        ({"selected": "a", "also": ["b", "a"]}, []),
        ({"selected": "c"}, ["payload.selected"]),
        ({"selected": "A"}, ["payload.selected"]),
        ({"selected": "a "}, ["payload.selected"]),
        ({"selected": ""}, ["payload.selected"]),
        ({"selected": "1"}, ["payload.selected"]),
        ({"selected": True}, ["payload.selected"]),
        ({"selected": "c", "also": ["a", "d"]}, ["payload.selected", "payload.also"]),
        ({"selected": "a", "candidates": []}, ["payload.selected"]),
    ],
    ids=str,
)
def test_inspect_blocks_with_selected_not_in_candidates_when_a_choice_is_none_of_them(
    payload: dict[str, Any], paths: list[str]
) -> None:
    """Compared exactly: neither case, space nor type is forgiven; null has chosen nothing."""
    decision = judged(Choice, {"candidates": CANDIDATES} | payload)

    assert found(decision) == [("selected_not_in_candidates", path) for path in paths]
    assert decision.retryable is bool(paths)


class Owned(Contract, same_task=("plan.task_id", "cited.*.task_id")):
    """References that must belong to the task."""

    plan: dict[str, str | None] = Field(default_factory=dict)
    cited: list[dict[str, str]] = Field(default_factory=list)


@pytest.mark.parametrize(
    ("payload", "paths"),
    [
        ({}, []),
        ({"plan": {"task_id": "t-1"}, "cited": [{"task_id": "t-1"}, {"id": "x"}]}, []),
        ({"plan": {"task_id": None}}, []),
        ({"plan": {"task_id": "t-2"}}, ["payload.plan.task_id"]),
        ({"plan": {"task_id": "T-1"}}, ["payload.plan.task_id"]),
        ({"cited": [{"task_id": "t-1"}, {"task_id": "t-2"}, {"task_id": ""}]},
         ["payload.cited.1.task_id", "payload.cited.2.task_id"]),
    ],
    ids=str,
)  # fmt: skip
def test_inspect_blocks_with_foreign_reference_when_a_nested_id_is_of_another_task(
    payload: dict[str, Any], paths: list[str]
) -> None:
    """What is nested or cited belongs to the task of the envelope."""
    assert found(judged(Owned, payload)) == [("foreign_reference", path) for path in paths]


class Merged(Contract, merged="parts"):
    """Parts that several agents wrote."""

    parts: list[dict[str, Any]]


@pytest.mark.parametrize(
    ("parts", "keys"),
    [
        ([], []),
        ([{"price": 1}], []),
        ([{"price": 1}, {"price": 1, "city": "Bern"}], []),
        ([{"price": 1}, {"city": "Bern"}], []),
        ([{"price": {"cents": 1, "currency": "CHF"}}, {"price": {"currency": "CHF", "cents": 1}}], []),
        ([{"price": 1}, {"price": 2}], ["price"]),
        ([{"price": 1}, {"price": "1"}], ["price"]),
        ([{"price": 1}, {"price": True}], ["price"]),
        ([{"price": 1}, {"price": None}], ["price"]),
        ([{"price": 1, "city": "Bern"}, {}, {"city": "Basel", "price": 3}, {"price": 1}], ["price", "city"]),
    ],
    ids=str,
)
def test_inspect_flags_each_conflict_when_merged_parts_contradict_each_other(
    parts: list[dict[str, Any]], keys: list[str]
) -> None:
    """Every key with two values is named once; the order of keys is no difference."""
    decision = judged(Merged, {"parts": parts})

    assert sorted(found(decision)) == sorted(("merge_conflict", f"payload.parts.*.{key}") for key in keys)
    assert decision.verdict is (Verdict.WARNED if keys else Verdict.ALLOWED)


class Refund(Contract, irreversible=True, accepts=ALL):
    """Work that cannot be taken back."""

    operation_id: str | None = None
    error: str | None = None


KNOWN = HandoffContext(finished_operations=frozenset({"op-1"}))


@pytest.mark.parametrize(
    ("status", "payload", "context", "expected"),
    [
        ("ready", {"operation_id": "op-9"}, KNOWN, []),
        ("completed", {"operation_id": "op-1"}, KNOWN, []),
        ("completed", {"operation_id": "op-9"}, KNOWN, [("operation_unconfirmed", "payload.operation_id")]),
        ("completed", {"operation_id": "op-9"}, HandoffContext(finished_operations=()),
         [("operation_unconfirmed", "payload.operation_id")]),
        ("completed", {"operation_id": "op-9"}, None, []),
        ("completed", {}, KNOWN, [("missing_operation_id", "payload.operation_id")]),
        ("ready", {"operation_id": " "}, KNOWN, [("missing_operation_id", "payload.operation_id")]),
        ("ready", {"operation_id": None}, None, [("missing_operation_id", "payload.operation_id")]),
        ("failed", {"error": "no"}, KNOWN, []),
    ],
    ids=str,
)  # fmt: skip
def test_inspect_asks_for_a_confirmed_operation_when_the_receiver_acts_for_good(
    status: str, payload: dict[str, Any], context: HandoffContext | None, expected: list[tuple[str, str]]
) -> None:
    """An operation is named before it is acted upon, and completed work names one that is known to be done."""
    decision = judged(Refund, payload, status=status, context=context)

    assert found(decision) == expected
    assert ("operation_unconfirmed" in decision.skipped) is (context is None)


def test_missing_operation_id_is_critical_when_it_is_found() -> None:
    """Nobody may guess the id of an operation that moves money."""
    decision = judged(Refund, {})

    assert (only(decision).severity, decision.retryable) == (Severity.CRITICAL, False)


@pytest.mark.parametrize(
    ("contract", "payload"),
    [
        (Owned, {"cited": [{"task_id": "t-2"}] * 2_000}),
        (Merged, {"parts": [{f"k{place}": value for place in range(2_000)} for value in (1, 2)]}),
    ],
    ids=["references", "conflicts"],
)  # fmt: skip
def test_inspect_gives_a_bounded_number_of_findings_when_every_part_is_wrong(
    contract: type[Contract], payload: dict[str, Any]
) -> None:
    """Two thousand wrong parts do not make two thousand findings."""
    assert 0 < len(watchdog_of(contract).inspect(handoff(payload=payload)).findings) <= 50


def test_inspect_compares_each_choice_once_when_choices_and_candidates_are_many() -> None:
    """Ten thousand choices among ten thousand candidates are looked up, not compared with one another."""
    compared = 0

    class Counted(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    many = [Counted(f"id-{place}") for place in range(1_000)]
    payload = {"selected": None, "also": [str(each) for each in many], "candidates": [{"id": each} for each in many]}
    findings: list[Finding] = []
    judge_plausibility(findings, handoff(payload=payload), compile_contract(Choice), context=NO_CONTEXT)

    assert findings == []
    assert compared <= 10 * len(many)
