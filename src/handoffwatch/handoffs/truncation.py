"""Whether the sender was cut off: by what its model's API said, and by where its text ends."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from typing import Any, Final

from handoffwatch.decision import Finding
from handoffwatch.handoffs.structure import finding
from handoffwatch.values.names import folded

_REASON_CHARACTERS_MAX: Final = 100

_CUT_OFF_REASONS: Final = frozenset(
    folded(reason)
    for reason in (
        # a limit of tokens, context, time or machines
        "length", "model_length", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_prompt_tokens",
        "token_limit", "error_limit", "model_context_window_exceeded", "time_limit", "timeout", "incomplete",
        "not_finished", "pause_turn", "insufficient_system_resource",
        # a filter that stopped the model, or kept back what it said
        "content_filter", "content_filtered", "guardrail_intervened", "refusal", "safety", "recitation", "blocklist",
        "prohibited_content", "spii", "language", "model_armor", "error_toxic",
        # somebody or something ended it
        "abort", "aborted", "cancelled", "user_cancel", "error",
    )
)  # fmt: skip
"""The values that say the output is not whole.

Source: finish_reason of OpenAI, Azure, Mistral, DeepSeek, Cohere, vLLM and watsonx; incomplete_details.reason of the
Responses API; stop_reason of Anthropic; stopReason of Bedrock; finishReason of Gemini. The SDKs write one value in
several ways (`MAX_TOKENS`, `maxTokens`, `content-filter`, `FinishReason.SAFETY`), so they are compared as `folded`
makes them.
"""

_SPACE: Final = re.compile(r"[ \t\n\r]*+")
_STRING: Final = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_INTEGER: Final = r"-?(?:0|[1-9][0-9]*+)"
_CUT_STRING: Final = _STRING + r"(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z"
_CUT_NUMBER: Final = rf"(?:-|{_INTEGER}\.|{_INTEGER}(?:\.[0-9]++)?[eE][+-]?)\Z"
_CUT_WORD: Final = r"(?:t(?:r(?:u)?)?|f(?:a(?:l(?:s)?)?)?|n(?:u(?:l)?)?)\Z"
_KEY: Final = re.compile(rf'{_STRING}"|(?P<cut>{_CUT_STRING})')
_VALUE: Final = re.compile(
    rf'(?P<open>[\[{{])|{_STRING}"|(?P<cut>{_CUT_STRING}|{_CUT_NUMBER}|{_CUT_WORD})'
    rf"|{_INTEGER}(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null"
)
_CLOSING: Final = {"{": "}", "[": "]"}


def judge_truncation(found: list[Finding], handoff: Mapping[str, Any], *, raw_text_ended: bool) -> None:
    """Add to `found` what says that the sender was cut off.

    A finish reason blocks also when the text parses: some repair what was cut. What is cut off is never closed here.

    Args:
        found: Gets the findings.
        handoff: The handoff as far as it could be read.
        raw_text_ended: False when the handoff came as text that `is_cut_off`; True otherwise.
    """
    if not raw_text_ended:
        found.append(finding("truncated_payload", "$", "the handoff must be whole: its text ends before its JSON does"))
    if _says_cut_off(handoff.get("finish_reason")):
        sentence = "finish_reason must be that of a finished output, and says that the sender was cut off"
        found.append(finding("truncated_payload", "finish_reason", sentence))


def is_cut_off(text: str | bytes) -> bool:
    """Return whether a text is the beginning of a JSON value that lacks its end.

    False for a text that is whole, a text in which something is wrong before its end, and a text in which nothing has
    begun. Bytes may end in the middle of a character. Linear in the text's length, and free of recursion.

    Source: RFC 8259.
    """
    readable = text if isinstance(text, str) else _readable(text)
    position = _end_of_space(readable, 0)
    if position == len(readable):
        return False
    opened: list[str] = []
    wanted = "value"
    while position < len(readable):
        character = readable[position]
        if wanted == "next" and not opened:
            return False
        if wanted in ("next", "first") and character == _CLOSING[opened[-1]]:
            opened.pop()
            wanted, position = "next", position + 1
        elif wanted == "next":
            if character != ",":
                return False
            wanted, position = "key" if opened[-1] == "{" else "value", position + 1
        elif wanted == "colon":
            if character != ":":
                return False
            wanted, position = "value", position + 1
        else:
            is_key = wanted == "key" or (wanted == "first" and opened[-1] == "{")
            token = (_KEY if is_key else _VALUE).match(readable, position)
            if token is None:
                return False
            if token["cut"] is not None:
                return True
            if not is_key and token["open"]:
                opened.append(token["open"])
                wanted = "first"
            else:
                wanted = "colon" if is_key else "next"
            position = token.end()
        position = _end_of_space(readable, position)
    return wanted != "next" or bool(opened)


def _end_of_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space is not None else position


def _readable(text: bytes) -> str:
    """Return a text that is wrong where its bytes are no UTF-8, and has half a character at its end for a whole one."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoded = decoder.decode(text)
    except UnicodeDecodeError as error:
        return text[: error.start].decode() + "\x00"
    return decoded + "\ufffd" if decoder.getstate()[0] else decoded


def _says_cut_off(reason: object) -> bool:
    """Return whether a finish reason is one of those; other values, also unknown ones, say nothing."""
    if not isinstance(reason, str) or len(reason) > _REASON_CHARACTERS_MAX:
        return False
    return folded(reason.rpartition(".")[2]) in _CUT_OFF_REASONS
