"""Message histories in the shapes of real APIs: whose calls, results and reasoning have lost their partners."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.decision import Finding
from handoffwatch.handoffs.history import judge_history
from handoffwatch.vocabulary import Reaction

Message = dict[str, Any]
CallId = str | None


def judged(messages: object) -> list[Finding]:
    """Return the findings of one history."""
    found: list[Finding] = []
    judge_history(found, messages, path="payload.messages")
    return found


def places(messages: object) -> list[tuple[str, str]]:
    """Return the code and the path below the history of each finding."""
    return [(item.code, item.path.removeprefix("payload.messages.")) for item in judged(messages)]


def without_none(message: Message) -> Message:
    """Return a message without its null fields: an API that has no ids sends none."""
    return {key: value for key, value in message.items() if value is not None}


# The shapes: how each API writes the calls of one turn, and the results of calls.


def chat_calls(ids: list[CallId]) -> list[Message]:
    calls = [without_none({"id": i, "type": "function", "function": {"name": "add", "arguments": "{}"}}) for i in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}]


def chat_results(ids: list[CallId]) -> list[Message]:
    return [without_none({"role": "tool", "tool_call_id": i, "content": "3"}) for i in ids]


def ag2_results(ids: list[CallId]) -> list[Message]:
    responses = [without_none({"tool_call_id": i, "role": "tool", "content": "3"}) for i in ids]
    return [{"role": "tool", "name": "executor", "content": "3\n3", "tool_responses": responses}]


def responses_calls(ids: list[CallId]) -> list[Message]:
    calls = [without_none({"type": "function_call", "id": f"fc_{n}", "call_id": i, "name": "add", "arguments": "{}"})
             for n, i in enumerate(ids)]  # fmt: skip
    return [{"type": "reasoning", "id": "rs_1", "summary": []}, *calls] if calls else []


def responses_results(ids: list[CallId]) -> list[Message]:
    return [without_none({"type": "function_call_output", "call_id": i, "output": "3"}) for i in ids]


def shell_calls(ids: list[CallId]) -> list[Message]:
    return [without_none({"type": "local_shell_call", "id": f"lsh_{n}", "call_id": i, "action": {}})
            for n, i in enumerate(ids)]  # fmt: skip


def shell_results(ids: list[CallId]) -> list[Message]:
    return [without_none({"type": "local_shell_call_output", "id": i, "output": "3"}) for i in ids]


def anthropic_calls(ids: list[CallId]) -> list[Message]:
    uses = [without_none({"type": "tool_use", "id": i, "name": "add", "input": {}}) for i in ids]
    return [{"role": "assistant", "content": [{"type": "text", "text": "I will add."}, *uses]}]


def anthropic_results(ids: list[CallId]) -> list[Message]:
    blocks = [without_none({"type": "tool_result", "tool_use_id": i, "content": "3"}) for i in ids]
    return [{"role": "user", "content": [*blocks, {"type": "text", "text": "Go on."}]}]


def bedrock_calls(ids: list[CallId]) -> list[Message]:
    return [{"role": "assistant", "content": [{"toolUse": without_none({"toolUseId": i, "name": "add"})} for i in ids]}]


def bedrock_results(ids: list[CallId]) -> list[Message]:
    return [{"role": "user", "content": [{"toolResult": without_none({"toolUseId": i, "content": []})} for i in ids]}]


def gemini_calls(ids: list[CallId]) -> list[Message]:
    return [{"role": "model", "parts": [{"functionCall": without_none({"id": i, "name": "add"})} for i in ids]}]


def gemini_results(ids: list[CallId]) -> list[Message]:
    return [{"role": "user", "parts": [{"functionResponse": without_none({"id": i, "name": "add"})} for i in ids]}]


def adk_calls(ids: list[CallId]) -> list[Message]:
    return [{"role": "model", "parts": [{"text": None, "function_call": {"id": i, "name": "add"}} for i in ids]}]


def adk_results(ids: list[CallId]) -> list[Message]:
    if not ids:
        return []
    return [{"role": "tool", "parts": [{"text": None, "function_response": {"id": i, "name": "add"}} for i in ids]}]


def langchain_calls(ids: list[CallId]) -> list[Message]:
    calls = [{"name": "add", "args": {}, "id": i, "type": "tool_call"} for i in ids]
    blocks = [{"type": "tool_use", "id": i, "name": "add", "input": {}} for i in ids]
    return [{"type": "ai", "content": blocks, "tool_calls": calls[:1], "invalid_tool_calls": calls[1:]}]


def langchain_results(ids: list[CallId]) -> list[Message]:
    return [{"type": "tool", "content": "3", "name": "add", "tool_call_id": i, "status": "success"} for i in ids]


def dumped(key: str, make: Callable[[list[CallId]], list[Message]]) -> Callable[[list[CallId]], list[Message]]:
    """Return the shape that LangChain's own dumps give a message: its fields one level down."""
    kind = {"data": {"type": "ai"}, "kwargs": {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"]}}[key]
    return lambda ids: [{**kind, key: message} for message in make(ids)]


def ai_sdk_calls(ids: list[CallId]) -> list[Message]:
    calls = [without_none({"type": "tool-call", "toolCallId": i, "toolName": "add", "input": {}}) for i in ids]
    return [{"role": "assistant", "content": [{"type": "text", "text": "I will add."}, *calls]}]


def ai_sdk_results(ids: list[CallId]) -> list[Message]:
    results = [without_none({"type": "tool-result", "toolCallId": i, "toolName": "add", "output": {}}) for i in ids]
    return [{"role": "tool", "content": results}] if results else []


def pydantic_ai_calls(ids: list[CallId]) -> list[Message]:
    parts = [{"part_kind": "tool-call", "tool_name": "add", "args": "{}", "tool_call_id": i} for i in ids]
    return [{"kind": "response", "parts": [{"part_kind": "thinking", "content": "…"}, *parts]}]


def pydantic_ai_results(ids: list[CallId]) -> list[Message]:
    kinds = ["tool-return", "retry-prompt"]
    parts = [{"part_kind": kinds[n % 2], "tool_name": "add", "content": "3", "tool_call_id": i}
             for n, i in enumerate(ids)]  # fmt: skip
    return [{"kind": "request", "parts": parts}]


SHAPES = {
    "openai chat": (chat_calls, chat_results),
    "ag2": (chat_calls, ag2_results),
    "openai responses": (responses_calls, responses_results),
    "openai shell": (shell_calls, shell_results),
    "anthropic": (anthropic_calls, anthropic_results),
    "ai sdk": (ai_sdk_calls, ai_sdk_results),
    "bedrock": (bedrock_calls, bedrock_results),
    "gemini": (gemini_calls, gemini_results),
    "adk": (adk_calls, adk_results),
    "langchain": (langchain_calls, langchain_results),
    "langchain data": (dumped("data", langchain_calls), dumped("data", langchain_results)),
    "langchain kwargs": (dumped("kwargs", langchain_calls), dumped("kwargs", langchain_results)),
    "pydantic ai": (pydantic_ai_calls, pydantic_ai_results),
}
shapes = st.sampled_from(sorted(SHAPES))
turns = st.lists(st.lists(st.sampled_from(["c1", "c2", "c3", ""]), max_size=4), max_size=5)
"""The ids of the calls of each turn; some are used twice."""


def history(shape: str, plan: list[list[str]], *, without: tuple[int, int] | None = None) -> list[Message]:
    """Return the messages of a conversation in one shape; `without` leaves the n-th result of a turn out."""
    make_calls, make_results = SHAPES[shape]
    messages: list[Message] = [{"role": "user", "content": "Add 1 and 2."}]
    for number, ids in enumerate(plan):
        answered = [i for n, i in enumerate(ids) if (number, n) != without]
        messages += [*make_calls(list(ids)), *make_results(list(answered)), {"role": "assistant", "content": "3"}]
    return messages


@given(shapes, turns)
def test_judge_history_finds_nothing_when_every_call_has_its_result(shape: str, plan: list[list[str]]) -> None:
    """A consistent history is never blocked, in any shape, also where ids are used again (BR-068)."""
    assert judged(history(shape, plan)) == []


@given(shapes, turns.filter(any), st.data())
def test_judge_history_names_the_call_when_one_result_is_removed(
    shape: str, plan: list[list[str]], data: st.DataObject
) -> None:
    """Whichever result is lost, one call of its id and turn is named."""
    turn = data.draw(st.sampled_from([number for number, ids in enumerate(plan) if ids]))
    lost = data.draw(st.integers(0, len(plan[turn]) - 1))

    found = judged(history(shape, plan, without=(turn, lost)))

    assert [item.code for item in found] == ["orphaned_tool_call"]
    call_id = plan[turn][lost]
    assert (f"the call {call_id} has none" if call_id else "the call has none") in found[0].sentence
    before = len(history(shape, plan[:turn]))
    after = before + len(SHAPES[shape][0](list(plan[turn])))
    assert before <= int(found[0].path.split(".")[2]) < after


@given(shapes, turns.filter(any), st.data())
def test_judge_history_names_the_result_when_its_call_is_removed(
    shape: str, plan: list[list[str]], data: st.DataObject
) -> None:
    """A result whose call is gone has lost its partner; nothing else is said."""
    _, make_results = SHAPES[shape]
    stray = data.draw(st.sampled_from(["c1", "c9"]))

    found = judged([*make_results([stray]), *history(shape, plan)])

    assert [item.code for item in found] == ["orphaned_item"]
    sentence = f"{found[0].path} must follow its call: the call {stray} is not there or has a result already"
    assert found[0].sentence == sentence


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_judge_history_pairs_by_order_when_ids_are_missing(shape: str) -> None:
    """BR-068: calls without ids are as many calls as there are, and each needs a result."""
    make_calls, make_results = SHAPES[shape]

    assert judged([*make_calls([None, None]), *make_results([None, None])]) == []
    assert [item.code for item in judged([*make_calls([None, None]), *make_results([None])])] == ["orphaned_tool_call"]


PLACES = [
    ("openai chat", "1.tool_calls.0", "2"),
    ("ag2", "1.tool_calls.0", "2.tool_responses.0"),
    ("openai responses", "2", "3"),
    ("openai shell", "1", "2"),
    ("anthropic", "1.content.1", "2.content.0"),
    ("ai sdk", "1.content.1", "2.content.0"),
    ("bedrock", "1.content.0.toolUse", "2.content.0.toolResult"),
    ("gemini", "1.parts.0.functionCall", "2.parts.0.functionResponse"),
    ("adk", "1.parts.0.function_call", "2.parts.0.function_response"),
    ("langchain", "1.tool_calls.0", "2"),
    ("langchain data", "1.data.tool_calls.0", "2.data"),
    ("langchain kwargs", "1.kwargs.tool_calls.0", "2.kwargs"),
    ("pydantic ai", "1.parts.1", "2.parts.0"),
]


@pytest.mark.parametrize(("shape", "call", "result"), PLACES)
def test_judge_history_names_the_place_when_two_partners_have_different_ids(shape: str, call: str, result: str) -> None:
    """The path leads to the call and to the result in the shape of the API."""
    make_calls, make_results = SHAPES[shape]
    messages = [{"role": "user", "content": "Add."}, *make_calls(["c1"]), *make_results(["c2"])]

    assert places(messages) == [("orphaned_tool_call", call), ("orphaned_item", result)]


def test_judge_history_blocks_when_a_handoff_took_another_calls_result_away() -> None:
    """BR-001: a turn asked for a tool and a handoff, and only the handoff's result travelled on."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}},
             {"id": "c2", "type": "function", "function": {"name": "transfer_to_bob", "arguments": "{}"}}]  # fmt: skip
    messages = [
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c2", "content": "Transferred to bob."},
    ]

    path = "payload.messages.0.tool_calls.0"
    assert judged(messages) == [Finding("orphaned_tool_call", path, f"{path} must have a result: the call c1 has none")]
    assert judged(messages)[0].reaction is Reaction.BLOCK
    assert judged(messages)[0].retryable


REASONING: Message = {"type": "reasoning", "id": "rs_1", "summary": []}
SUMMARY: Message = {"role": "assistant", "content": "What was said before."}
OUTPUT: Message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "3"}]}
QUESTION: Message = {"role": "user", "content": "And 2 and 2?"}


def test_judge_history_blocks_when_a_filter_left_reasoning_alone() -> None:
    """BR-003: a filter removed the tool items and left the reasoning that led to them."""
    path = "payload.messages.1"
    sentence = f"{path} must be followed by the output that the reasoning led to"

    assert judged([SUMMARY, {"type": "reasoning", "id": "rs_1"}]) == [Finding("orphaned_item", path, sentence)]


@pytest.mark.parametrize(
    ("messages", "lonely"),
    [
        ([REASONING], [0]),
        ([REASONING, OUTPUT], []),
        ([REASONING, {"role": "assistant", "content": "3"}], []),
        ([REASONING, *responses_calls(["c1"])[1:], *responses_results(["c1"])], []),
        ([REASONING, {"type": "web_search_call", "id": "ws_1", "status": "completed"}, REASONING, OUTPUT], []),
        ([REASONING, {"type": "item_reference", "id": "msg_1"}], []),
        ([REASONING, REASONING, OUTPUT], []),
        ([REASONING, REASONING], [0, 1]),
        ([REASONING, REASONING, QUESTION], [0, 1]),
        ([REASONING, QUESTION, OUTPUT], [0]),
        ([REASONING, {"type": "message", "role": "user", "content": []}], [0]),
        ([REASONING, {"role": "developer", "content": "Be brief."}, OUTPUT], [0]),
        ([*responses_calls(["c1"])[1:], REASONING, *responses_results(["c1"]), OUTPUT], [1]),
        ([OUTPUT, REASONING, OUTPUT, REASONING], [3]),
        ([REASONING, None, QUESTION], []),
        ([{"type": "ai", "content": [{"type": "reasoning", "reasoning": "…"}]}], []),
        ([{"type": ["reasoning"]}], []),
    ],
)  # fmt: skip
def test_judge_history_names_reasoning_when_what_follows_is_not_the_models(
    messages: list[object], lonely: list[int]
) -> None:
    """Reasoning needs an output after it: a message of the assistant, a call, or more reasoning that has one."""
    assert places(messages) == [("orphaned_item", str(place)) for place in lonely]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (["c1", "c1"], []),
        (["c1"], ["1.tool_calls.1"]),
        ([], ["1.tool_calls.0", "1.tool_calls.1"]),
        (["c1", "c1", "c1"], ["4"]),
    ],
)
def test_judge_history_counts_two_calls_when_one_id_is_used_twice(messages: list[CallId], expected: list[str]) -> None:
    """BR-068: two calls of one id need two results; a third result has no call."""
    assert [place for _, place in places([QUESTION, *chat_calls(["c1", "c1"]), *chat_results(messages)])] == expected


def test_judge_history_names_the_older_turn_when_its_id_is_used_again() -> None:
    """BR-068: the result of a new turn does not settle the open call of an old one."""
    old, new = chat_calls(["call_1"]), [*chat_calls(["call_1"]), *chat_results(["call_1"])]

    assert places([*old, QUESTION, *new]) == [("orphaned_tool_call", "0.tool_calls.0")]


def test_judge_history_names_both_when_a_result_stands_before_its_call() -> None:
    """A result follows its call; in the wrong order neither has a partner."""
    assert places([*chat_results(["c1"]), *chat_calls(["c1"])]) == [
        ("orphaned_item", "0"), ("orphaned_tool_call", "1.tool_calls.0"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "content": [{"type": "server_tool_use", "id": "s1", "name": "web_search"}]}],
        [{"role": "user", "content": [{"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}]}],
        [{"type": "web_search_call", "id": "ws_1"}, {"type": "mcp_call", "id": "m1"}],
        [{"kind": "request", "parts": [{"part_kind": "retry-prompt", "tool_name": None, "tool_call_id": "p1"}]}],
        [{"kind": "response", "parts": [{"part_kind": "builtin-tool-call", "tool_call_id": "b1"}]}],
        [{"role": "assistant", "content": "3", "tool_calls": None, "function_call": None}],
        [{"role": "assistant", "content": "3", "tool_calls": []}],
    ],
)  # fmt: skip
def test_judge_history_finds_nothing_when_the_provider_settles_the_call_itself(messages: list[Message]) -> None:
    """Hosted tools, a retry that answers no call, and calls that are null are no calls of the host."""
    assert judged(messages) == []


@pytest.mark.parametrize(
    ("call_id", "named"),
    [("c" * 64, True), ("c" * 65, False), ("c\n1", False), ("", False), (7, False), (["c1"], False), (None, False),
     ("Bestellung-ä", True)],
    ids=repr,
)  # fmt: skip
def test_judge_history_names_an_id_only_when_it_is_short_and_printable(call_id: object, named: bool) -> None:
    """An id stands in the sentence when it can be read there; nothing else of the history ever does."""
    secret = {"name": "secret tool", "arguments": "secret argument"}
    found = judged(
        [{"role": "assistant", "content": "secret text", "tool_calls": [{"id": call_id, "function": secret}]}]
    )

    call = f"the call {call_id}" if named else "the call"
    path = "payload.messages.0.tool_calls.0"
    assert found == [Finding("orphaned_tool_call", path, f"{path} must have a result: {call} has none")]


def test_judge_history_keeps_numbers_apart_when_ids_are_no_texts() -> None:
    """A number is an id of its own, and no text."""
    calls = {"role": "assistant", "content": "", "tool_calls": [{"id": 7}, {"id": 8}]}

    assert places([calls, {"role": "tool", "tool_call_id": 8}, {"role": "tool", "tool_call_id": "7"}]) == [
        ("orphaned_tool_call", "0.tool_calls.0"), ("orphaned_item", "2"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "messages",
    [None, "", "text", 0, 1.5, True, {}, {"tool_calls": [{"id": "c1"}]}, [], [None], ["text", 1, [], [{}]],
     [[{"role": "tool"}]], ({"role": "tool", "tool_call_id": "c1"},), [{}],
     [{"role": None, "type": None, "content": None}],
     [{"role": ["tool"], "type": {"a": 1}, "content": {"type": "tool_use"}, "tool_calls": {"id": "c1"}, "parts": "x"}],
     [{"role": "user", "content": [None, 1, "tool_use", ["tool_use"], {"type": ["tool_use"]}, {"toolUse": "x"}]}],
     [{"role": "assistant", "tool_calls": [None, "c1", 1]}], [{"data": {}, "kwargs": []}]],
    ids=repr,
)  # fmt: skip
def test_judge_history_finds_nothing_when_there_is_no_list_of_messages(messages: object) -> None:
    """Structure is judged elsewhere."""
    assert judged(messages) == []


words = st.sampled_from(
    ["type", "role", "content", "parts", "data", "kwargs", "tool_calls", "invalid_tool_calls", "id", "call_id",
     "tool_call_id", "tool_use_id", "tool_responses", "toolUse", "functionCall", "part_kind", "tool", "assistant",
     "tool_use", "tool_result", "function_call", "function_call_output", "reasoning", "user", "c1"]
)  # fmt: skip
hostile = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | words | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=25,
)


@given(hostile | st.lists(hostile, max_size=6))
def test_judge_history_never_raises_when_the_history_is_arbitrary(messages: object) -> None:
    """Whatever the JSON, there are findings with paths that lead somewhere, and no exception."""
    before = json.dumps(messages)

    for item in judged(messages):
        value: Any = messages
        for part in item.path.split(".")[2:]:
            value = value[int(part) if isinstance(value, list) else part]
        assert isinstance(value, dict)
    assert json.dumps(messages) == before


@pytest.mark.parametrize(
    "messages",
    [
        chat_calls(["c1"] * 100_000),
        chat_results(["c1"] * 100_000),
        [message for n in range(50_000) for message in chat_calls([f"c{n}"])],
        [*chat_calls(["c1"] * 50_000), *chat_results(["c1"] * 49_000)],
        [REASONING] * 100_000,
    ],
    ids=["calls", "results", "turns", "one id", "reasoning"],
)
def test_judge_history_stays_linear_and_bounded_when_a_history_is_long(messages: list[Message]) -> None:
    """A hundred thousand orphans give fifty findings in a moment."""
    started_s = time.perf_counter()

    assert len(judged(messages)) == 50
    assert time.perf_counter() - started_s < 15
