"""Public bug reports that one decision of a contract in full can catch, each named by its number."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import Field

from handoffwatch import Contract, HandoffContext
from handoffwatch.vocabulary import Severity, Verdict
from support.one_route import contract_class, found, judged, only, watchdog_of
from support.refund_handoffs import FORMS, HANDOFF_ID, handoff


class Conversation(Contract, messages="messages", accepts=("ready", "completed", "failed")):
    """A receiver that continues a conversation."""

    messages: list[dict[str, Any]] = Field(min_length=1)
    result: str | None = None
    error: str | None = None


def call(*ids: str) -> dict[str, Any]:
    """Return a turn of the model that calls tools."""
    calls = [{"id": each, "type": "function", "function": {"name": each, "arguments": "{}"}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> dict[str, Any]:
    """Return the result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": "done"}


QUESTION = {"role": "user", "content": "What is 3 + 4?"}


def test_inspect_blocks_with_orphaned_tool_call_when_only_the_result_of_the_handoff_travels_on() -> None:
    """BR-001: the call that lost its result is named, and the sender may attach the result that it really had."""
    decision = judged(Conversation, {"messages": [QUESTION, call("c1", "c2"), result("c2")]})

    assert found(decision) == [("orphaned_tool_call", "payload.messages.1.tool_calls.0")]
    assert only(decision).sentence == "payload.messages.1.tool_calls.0 must have a result: the call c1 has none"
    assert (decision.verdict, decision.retryable) == (Verdict.BLOCKED, True)
    mended = [QUESTION, call("c1", "c2"), result("c2"), result("c1")]
    assert judged(Conversation, {"messages": mended}).reasons == []


def test_inspect_blocks_with_orphaned_item_when_a_filter_left_the_reasoning_alone() -> None:
    """BR-003: blocked before the receiver is called."""
    items = [{"role": "user", "content": "a summary"}, {"type": "reasoning", "id": "rs_1", "summary": []}]

    assert found(judged(Conversation, {"messages": items})) == [("orphaned_item", "payload.messages.1")]


@pytest.mark.parametrize(
    "exported",
    [
        [QUESTION, call("c1")],
        [QUESTION, call("c1", "c2"), result("c1")],
        [QUESTION, result("c1")],
        [{"type": "function_call", "call_id": "c1", "name": "transfer_to_bob", "arguments": "{}"}],
        [{"type": "function_call_output", "call_id": "c1", "output": "{}"}],
    ],
    ids=["call alone", "one of two", "result alone", "item alone", "output alone"],
)
def test_inspect_blocks_the_export_when_it_could_not_be_imported(exported: list[dict[str, Any]]) -> None:
    """BR-004: a history that the next run would refuse is blocked on the sender's side."""
    decision = judged(Conversation, {"messages": exported, "result": "7"}, status="completed")

    assert decision.verdict is Verdict.BLOCKED
    assert set(decision.reasons) <= {"orphaned_tool_call", "orphaned_item"}


@pytest.mark.parametrize("form", FORMS)
def test_inspect_allows_what_it_exported_when_it_comes_back_unchanged(form: str) -> None:
    """BR-004: what one decision hands on, the next takes as it is, in every form."""
    watchdog = watchdog_of(Conversation)
    history = [QUESTION, call("c1", "c2"), result("c2"), result("c1"), {"role": "assistant", "content": "7"}]
    exported = watchdog.inspect(handoff(payload={"messages": history})).normalized_payload
    assert exported is not None

    again = watchdog.inspect(FORMS[form](exported))

    assert (again.reasons, again.normalized_payload) == ([], exported)


@pytest.mark.parametrize("form", [dict, json.dumps], ids=["dict", "json text"])
def test_inspect_names_target_and_messages_when_both_say_nothing(form: Any) -> None:
    """BR-011: no target and no messages are both told at once, also when the orchestrator knows the target."""
    raw = form(handoff(target_agent=None, payload={"messages": []}))

    decision = watchdog_of(Conversation).inspect(raw, expected_target="reviewer")

    assert sorted(found(decision)) == [("empty_field", "payload.messages"), ("null_field", "target_agent")]
    assert (decision.allowed, decision.retryable) == (False, True)


@pytest.mark.parametrize("output", [None, "", "  ", "\n"], ids=repr)
def test_inspect_blocks_an_empty_turn_when_it_bounced_back(output: str | None) -> None:
    """BR-012: an empty output is no result that can be delivered."""
    decision = judged(Conversation, {"messages": [QUESTION], "result": output}, status="completed")

    assert found(decision) == [("missing_result", "payload.result")]


@pytest.mark.parametrize("consumed", [{HANDOFF_ID, "h-2"}, [HANDOFF_ID], (HANDOFF_ID,), {HANDOFF_ID: 1}], ids=str)
def test_inspect_blocks_with_consumed_handoff_when_an_accepted_one_comes_again(consumed: Any) -> None:
    """BR-015: an id that was accepted is not accepted again, and no repair makes it fresh."""
    decision = judged(Conversation, {"messages": [QUESTION]}, context=HandoffContext(consumed=consumed))

    assert found(decision) == [("consumed_handoff", "handoff_id")]
    assert (decision.verdict, decision.retryable) == (Verdict.BLOCKED, False)
    assert "consumed_handoff" not in decision.skipped


def test_inspect_allows_the_latest_when_only_earlier_ones_were_consumed() -> None:
    """BR-015: the latest one that was not accepted is current."""
    context = HandoffContext(consumed={"h-1", "h-18", HANDOFF_ID.upper()})

    assert judged(Conversation, {"messages": [QUESTION]}, context=context).reasons == []


@pytest.mark.parametrize("order_id", [2512292042121000001, 2**53, -(2**53)])
@pytest.mark.parametrize("kind", [int, float, float | None, Any, int | str, dict[str, Any]], ids=str)
def test_inspect_blocks_with_unsafe_integer_when_an_id_passes_what_readers_keep(kind: Any, order_id: int) -> None:
    """BR-017: a 19-digit number would be rounded on its way, whatever field it stands in."""
    nested = kind == dict[str, Any]

    decision = judged(contract_class({"order_id": kind}), {"order_id": {"id": order_id} if nested else order_id})

    assert found(decision) == [("unsafe_integer", "payload.order_id.id" if nested else "payload.order_id")]


def test_inspect_allows_a_long_id_when_the_contract_takes_it_as_text() -> None:
    """BR-017: as a text it keeps every digit."""
    decision = judged(contract_class({"order_id": str, "most": int}), {"order_id": "2512292042121000001",
                                                                       "most": 2**53 - 1})  # fmt: skip

    assert decision.normalized_payload is not None
    assert decision.normalized_payload["payload"] == {"order_id": "2512292042121000001", "most": 2**53 - 1}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")], ids=str)
@pytest.mark.parametrize("kind", [float, Any, float | None, list[float], dict[str, float]], ids=str)
def test_inspect_blocks_when_a_number_is_not_finite_in_python_and_in_json(kind: Any, number: float) -> None:
    """BR-019: NaN and infinities never become null and never pass, in no kind of field and in no form."""
    value: Any = {"a": number} if kind == dict[str, float] else [number] if kind == list[float] else number
    path = "payload.confidence" + {dict: ".a", list: ".0"}.get(type(value), "")

    assert found(judged(contract_class({"confidence": kind}), {"confidence": value})) == [("non_finite_number", path)]


@pytest.mark.parametrize("leaf", ["NaN", "Infinity", "1234567890123456789", "1"])
def test_inspect_blocks_with_too_deep_when_an_endless_text_also_holds_what_only_some_parsers_read(leaf: str) -> None:
    """BR-020, BR-019: whatever is tried on a text, its depth ends in a finding and never in the interpreter's stack."""
    text = json.dumps(handoff(payload={"note": "HERE"})).replace('"HERE"', "[" * 100_000 + leaf + "]" * 100_000)

    decision = watchdog_of(contract_class({"note": Any})).inspect(text)

    assert (decision.verdict, decision.reasons[0]) == (Verdict.BLOCKED, "too_deep")


@pytest.mark.parametrize(
    ("changes", "expected", "severity"),
    [
        ({"task_id": "T-typo"}, [("foreign_task", "task_id")], Severity.CRITICAL),
        ({"task_id": "t-1 "}, [("foreign_task", "task_id")], Severity.CRITICAL),
        ({"run_id": "run of T2"}, [("foreign_run", "run_id")], Severity.CRITICAL),
        ({"task_id": "T2", "run_id": "run of T2"}, [("foreign_task", "task_id"), ("foreign_run", "run_id")],
         Severity.CRITICAL),
        ({"task_id": None}, [("null_field", "task_id")], Severity.ERROR),
        ({"task_id": ""}, [("empty_field", "task_id")], Severity.ERROR),
    ],
    ids=str,
)  # fmt: skip
def test_inspect_blocks_when_task_and_run_do_not_belong_together(
    changes: dict[str, Any], expected: list[tuple[str, str]], severity: Severity
) -> None:
    """BR-026: another task's id, a misspelt one and none at all are blocked; nothing becomes a new task."""
    context = HandoffContext(run_id="r-1", task_id="t-1")

    decision = judged(contract_class(), {}, context=context, **{"run_id": "r-1"} | changes)

    assert found(decision) == expected
    assert (decision.allowed, decision.severity) == (False, severity)
    assert decision.retryable is (severity is Severity.ERROR)


def test_inspect_blocks_when_a_reply_leaves_its_task_out() -> None:
    """BR-026: a continuing task is named; it is not filled in from the context."""
    raw = handoff(payload={})
    del raw["task_id"]

    decision = watchdog_of(contract_class()).inspect(raw, context=HandoffContext(task_id="t-1"))

    assert found(decision) == [("missing_field", "task_id")]


def test_inspect_blocks_when_a_nested_task_is_of_another_context() -> None:
    """BR-026: an envelope of this task around the work of another is foreign too."""
    contract = contract_class({"work": dict[str, str]}, same_task=("work.task_id",))

    decision = judged(contract, {"work": {"task_id": "T2"}}, context=HandoffContext(task_id="t-1"))

    assert found(decision) == [("foreign_reference", "payload.work.task_id")]
