"""Whether a sender was cut off: what its API's finish reason says, and where its text ends."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.decision import Finding
from handoffwatch.handoffs.truncation import is_cut_off, judge_truncation
from handoffwatch.vocabulary import Reaction

ENDS_TOO_EARLY = [
    '{', '{ ', '{"', '{"a', '{"a\\', '{"a\\u', '{"a\\u00e', '{"a"', '{"a" ', '{"a":', '{"a": ', '{"a":"', '{"a":"x"',
    '{"a":1', '{"a":-', '{"a":1.', '{"a":1.5e', '{"a":1.5e+', '{"a":t', '{"a":tru', '{"a":true', '{"a":fals',
    '{"a":nul', '{"a":1,', '{"a":1, ', '{"a":[', '{"a":[1', '{"a":[1,', '{"a":[]', '{"a":{}', '{"a":{"b":[{"c":',
    ' \n{"a":1',
    '[', '[[', '"', '"a', '-', '1.', '1e', 't', 'nul', '{"a":"\ud83c', b'{"a":"\xc3', b'{"a":"\xf0\x9f\x98', b'{"\xe2',
]  # fmt: skip

WHOLE_OR_WRONG = [
    '', ' ', '\n\t', '{}', '{} ', ' {"a":[1,{"b":null}],"c":"\\u00e9"}\r\n', '[]', '1', '-0', '1.5e+3', '"a"', 'true',
    '{}x', '{}{', '{} {', '{"a":1}}', '{"a":1}"', '{"a":1},', '1 2', '1,', '[]]', 'true"', 'truex',
    '{1', '{a', "{'a", '{"a" 1', '{"a",', '{"a":1 ,,', '{,', '{"a":1]', '[1}', '[1 2', '[,', '{"a":tru3', '{"a":TRUE',
    '{"a":NaN', '{"a":Infinity', '{"a":01', '{"a":+1', '{"a":.5', '{"a":1.e', '{"a":--', '{"a":"\\x', '{"a":"\\u00g',
    '{"a":"x\ny', '{"a":"\x00', '// {"a":', '\ufeff{"a":', 'Here it is: {"a":', '```json\n{"a":',
    b'{"a":"\xff', b'{"a":"\xc3(', b'{\xc3', b'\xff\xfe{',
]  # fmt: skip

CUT_OFF_REASONS = [
    "length", "content_filter", "max_output_tokens", "incomplete", "max_completion_tokens",  # OpenAI, Azure
    "max_tokens", "model_context_window_exceeded", "pause_turn", "refusal",  # Anthropic
    "guardrail_intervened", "content_filtered",  # Bedrock
    "MAX_TOKENS", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",  # Gemini
    "FinishReason.MAX_TOKENS",  # and the text form of its enumeration
    "ERROR", "ERROR_LIMIT", "ERROR_TOXIC", "USER_CANCEL", "TIMEOUT",  # Cohere
    "model_length", "insufficient_system_resource", "abort", "time_limit", "cancelled", "not_finished",  # and others
    "content-filter", "maxTokens",  # as the SDKs write them
]  # fmt: skip

OTHER_REASONS = [
    "stop", "tool_calls", "function_call", "end_turn", "stop_sequence", "tool_use", "STOP", "COMPLETE", "eos_token",
    "FINISH_REASON_UNSPECIFIED", "OTHER", "other", "", ".", "lengthy", "never heard of", "length" * 100,
    None, 0, 1, True, ["length"], {"length": True}, b"length",
]  # fmt: skip


def judged(handoff: dict[str, Any], *, raw_text_ended: bool = True) -> list[Finding]:
    """Return the findings of one handoff."""
    found: list[Finding] = []
    judge_truncation(found, handoff, raw_text_ended=raw_text_ended)
    return found


@pytest.mark.parametrize("text", ENDS_TOO_EARLY, ids=repr)
def test_is_cut_off_says_yes_when_more_text_would_make_it_whole(text: str | bytes) -> None:
    """A text that is right so far and lacks its end was cut off, wherever it ends."""
    assert is_cut_off(text)


@pytest.mark.parametrize("text", WHOLE_OR_WRONG, ids=repr)
def test_is_cut_off_says_no_when_no_more_text_would_help(text: str | bytes) -> None:
    """A text that is whole, wrong before its end, or has not begun was not cut off."""
    assert not is_cut_off(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(st.text(max_size=4), json_values, max_size=4)
indents = st.sampled_from([None, 0, 2, "\t"])


@given(json_objects, indents, st.booleans(), st.data())
def test_is_cut_off_says_yes_when_a_text_is_the_beginning_of_an_object(
    value: dict[str, Any], indent: int | str | None, ascii_only: bool, data: st.DataObject
) -> None:
    """Every proper beginning of an object's text was cut off, also one that ends inside a character's bytes."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    whole: str | bytes = text if data.draw(st.booleans()) else text.encode()

    assert is_cut_off(whole[: data.draw(st.integers(1, len(whole) - 1))])


@given(json_values, indents, st.text(min_size=1, max_size=4).filter(str.strip))
def test_is_cut_off_says_no_when_a_text_is_whole_or_has_something_after_it(
    value: object, indent: int | str | None, garbage: str
) -> None:
    """A whole text was not cut off, and something after its end does not make it so."""
    text = json.dumps(value, indent=indent)

    assert not is_cut_off(text)
    assert not is_cut_off(text.encode())
    assert not is_cut_off(f"{text} {garbage}")


json_like = st.text(alphabet='{}[]",:\\ \n\t0123456789.eE+-truefalsnu\u00e9x', max_size=30)


@given(json_like | st.text(max_size=30) | st.binary(max_size=30))
def test_is_cut_off_agrees_with_a_parser_when_a_text_is_arbitrary(text: str | bytes) -> None:
    """Nothing raises, and what a parser reads was not cut off."""
    cut_off = is_cut_off(text)
    try:
        json.loads(text if isinstance(text, str) else text.decode(), parse_constant=_no_json)
    except ValueError:
        return
    assert not cut_off


def _no_json(name: str) -> object:
    raise ValueError(name)


@pytest.mark.parametrize(
    ("text", "cut_off"),
    [
        ("[" * 1_000_000, True),
        ('{"a":' * 200_000, True),
        ("[" * 500_000 + "]" * 500_000, False),
        ('"' + "\\n" * 500_000, True),
        ('"' + "x" * 1_000_000 + "\n", False),
        ('{"a":' + "1" * 1_000_000, True),
        ("[" + "tru" * 300_000, False),
        (" " * 1_000_000, False),
    ],
    ids=["lists", "objects", "closed lists", "escapes", "wrong string", "number", "words", "space"],
)
def test_is_cut_off_stays_linear_when_a_text_is_a_megabyte_of_one_thing(text: str, cut_off: bool) -> None:
    """No recursion and no backtracking: a megabyte takes a moment."""
    started_s = time.perf_counter()

    assert is_cut_off(text) is cut_off
    assert time.perf_counter() - started_s < 15


@pytest.mark.parametrize("reason", CUT_OFF_REASONS)
def test_judge_truncation_blocks_when_the_finish_reason_says_so(reason: str) -> None:
    """BR-023: a sender that was cut off is blocked, also when its text parses."""
    handoff = {"finish_reason": reason, "payload": {"commands": ["npm install", "npm test"]}}

    sentence = "finish_reason must be that of a finished output, and says that the sender was cut off"
    assert judged(handoff) == [Finding("truncated_payload", "finish_reason", sentence)]
    assert judged(handoff)[0].reaction is Reaction.BLOCK


@pytest.mark.parametrize("reason", OTHER_REASONS, ids=repr)
def test_judge_truncation_finds_nothing_when_the_finish_reason_says_nothing_of_it(reason: object) -> None:
    """A natural end, an unknown value and what is no text say nothing."""
    assert judged({"finish_reason": reason}) == []


def test_judge_truncation_blocks_when_the_text_ended_in_the_middle() -> None:
    """BR-023: unterminated text is blocked, whatever the server calls its end; both signals are named."""
    sentence = "the handoff must be whole: its text ends before its JSON does"
    at_the_text = Finding("truncated_payload", "$", sentence)

    assert is_cut_off('{"commands":["npm install","npm test"')
    assert judged({}, raw_text_ended=False) == [at_the_text]
    assert judged({"finish_reason": "tool_calls"}, raw_text_ended=False) == [at_the_text]
    assert [item.path for item in judged({"finish_reason": "length"}, raw_text_ended=False)] == ["$", "finish_reason"]
    assert judged({}) == []
