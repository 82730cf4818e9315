"""The message history inside a handoff: no tool call without its result, no item without its partner.

A history is what chat APIs exchange, as plain JSON: OpenAI chat messages and Responses items, Anthropic and Bedrock
content blocks, Gemini, Pydantic AI and AI SDK parts, LangChain and AG2 dumps. Only calls that the host answers are
judged: a provider settles its hosted tools itself. What has none of these shapes is left alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Any, Final, NamedTuple

from handoffwatch.decision import Finding
from handoffwatch.handoffs.structure import FINDINGS_MAX, finding
from handoffwatch.values.paths import dotted

ID_CHARACTERS_MAX: Final = 64
"""The longest id of a call that a sentence names."""

Path = tuple[str | int, ...]


class _Kind(Enum):
    CALL = "call"
    RESULT = "result"
    REASONING = "reasoning"


class _Piece(NamedTuple):
    """A call, a result or a reasoning item, and where it stands; pieces without an id share the id None."""

    kind: _Kind
    call_id: str | int | None
    path: Path


_ITEMS: Final = {
    f"{name}_call{end}": kind
    for name in ("function", "custom_tool", "computer", "local_shell", "shell", "apply_patch")
    for end, kind in (("", _Kind.CALL), ("_output", _Kind.RESULT))
}
"""The items of the Responses API by type."""

_BLOCKS: Final = {
    ("type", "tool_use"): (_Kind.CALL, "id"),
    ("type", "tool_result"): (_Kind.RESULT, "tool_use_id"),
    ("type", "tool-call"): (_Kind.CALL, "toolCallId"),
    ("type", "tool-result"): (_Kind.RESULT, "toolCallId"),
    ("part_kind", "tool-call"): (_Kind.CALL, "tool_call_id"),
    ("part_kind", "tool-return"): (_Kind.RESULT, "tool_call_id"),
    ("part_kind", "retry-prompt"): (_Kind.RESULT, "tool_call_id"),
}
"""The blocks of Anthropic and the AI SDK and the parts of Pydantic AI: what each is, and where the call's id stands."""

_WRAPPED: Final = {
    "toolUse": (_Kind.CALL, "toolUseId"),
    "toolResult": (_Kind.RESULT, "toolUseId"),
    "functionCall": (_Kind.CALL, "id"),
    "functionResponse": (_Kind.RESULT, "id"),
    "function_call": (_Kind.CALL, "id"),
    "function_response": (_Kind.RESULT, "id"),
}
"""Bedrock's blocks and Gemini's parts, by the one key that they hold."""

_NOT_THE_MODEL: Final = frozenset({"user", "system", "developer", "tool"})


def judge_history(found: list[Finding], messages: object, *, path: str) -> None:
    """Add to `found` each call without a result, result without a call, and reasoning item without its output.

    A result belongs to a call of its id that stands before it; an id that is used again is another call. That a
    reasoning item's output is the right one, or that an output has lost its reasoning, cannot be seen. What is no list
    of objects is a matter of structure and is left to it.

    Args:
        found: Gets at most 50 findings, in the order of the history.
        messages: The history as plain JSON data.
        path: Where it stands in the handoff, such as `payload.messages`.

    Source: openai/openai-agents-python#2503, langchain-ai/langgraph-swarm-py#69.
    """
    if type(messages) is list:
        found += [_finding(piece, path) for piece in islice(_orphans(messages), FINDINGS_MAX)]


def _finding(piece: _Piece, history: str) -> Finding:
    path = dotted((history, *piece.path))
    if piece.kind is _Kind.REASONING:
        return finding("orphaned_item", path, f"{path} must be followed by the output that the reasoning led to")
    call = f"the call {piece.call_id}" if _can_be_named(piece.call_id) else "the call"
    if piece.kind is _Kind.CALL:
        return finding("orphaned_tool_call", path, f"{path} must have a result: {call} has none")
    return finding("orphaned_item", path, f"{path} must follow its call: {call} is not there or has a result already")


def _can_be_named(call_id: str | int | None) -> bool:
    return type(call_id) is str and 0 < len(call_id) <= ID_CHARACTERS_MAX and call_id.isprintable()


@dataclass(slots=True)
class _Waiting:
    """Calls that wait for their results, by id, those of one turn together."""

    _turns: dict[str | int | None, list[tuple[int, deque[int]]]] = field(default_factory=dict)

    def add(self, call_id: str | int | None, turn: int, position: int) -> None:
        """Remember a call."""
        turns = self._turns.setdefault(call_id, [])
        if not turns or turns[-1][0] != turn:
            turns.append((turn, deque()))
        turns[-1][1].append(position)

    def take(self, call_id: str | int | None) -> int | None:
        """Return the call that a result belongs to: the first of the newest turn in which one waits."""
        turns = self._turns.get(call_id)
        if not turns:
            return None
        _, positions = turns[-1]
        position = positions.popleft()
        if not positions:
            turns.pop()
        return position


def _orphans(messages: list[Any]) -> Iterator[_Piece]:
    """Yield the pieces without their partners, in the order of the history."""
    pieces: list[_Piece] = []
    partnered: set[int] = set()
    waiting = _Waiting()
    reasoning: list[int] = []
    turn = 0
    for index, entry in enumerate(messages):
        body, path = _unwrapped(entry, index)
        if reasoning and not _is_reasoning(body):
            if _may_be_output(body):
                partnered.update(reasoning)
            reasoning.clear()
        has_calls = False
        for piece in _pieces(body, path):
            position = len(pieces)
            pieces.append(piece)
            if piece.kind is _Kind.CALL:
                waiting.add(piece.call_id, turn, position)
                has_calls = True
            elif piece.kind is _Kind.REASONING:
                reasoning.append(position)
            elif (call := waiting.take(piece.call_id)) is not None:
                partnered.update((call, position))
        turn += not has_calls
    return (piece for position, piece in enumerate(pieces) if position not in partnered)


def _unwrapped(entry: object, index: int) -> tuple[dict[str, Any], Path]:
    """Return a message's own fields and where they stand; LangChain's dumps hold them one level down."""
    if type(entry) is not dict:
        return {}, (index,)
    for key in ("data", "kwargs"):
        inner = entry.get(key)
        if type(inner) is dict and "content" in inner:
            return inner, (index, key)
    return entry, (index,)


def _is_reasoning(body: dict[str, Any]) -> bool:
    return body.get("type") == "reasoning"


def _may_be_output(body: dict[str, Any]) -> bool:
    """Return whether the model may have written this; what nobody can tell is given the benefit of the doubt."""
    return _text(body, "role") not in _NOT_THE_MODEL and not _text(body, "type").endswith("_output")


def _pieces(body: dict[str, Any], path: Path) -> Iterator[_Piece]:
    """Yield what one message or item holds."""
    kind = _text(body, "type")
    if kind in _ITEMS:
        # the output of a local shell may name its call in `id`
        call_id = body.get("id") if kind == "local_shell_call_output" else None
        yield _Piece(_ITEMS[kind], _id(body.get("call_id", call_id)), path)
    elif kind == "reasoning":
        yield _Piece(_Kind.REASONING, None, path)
    calls = [*_calls(body, "tool_calls", path), *_calls(body, "invalid_tool_calls", path)]
    yield from calls
    blocks = [*_blocks(body, "content", path), *_blocks(body, "parts", path)]
    # LangChain repeats the calls that a message lists among the blocks of its content
    yield from (block for block in blocks if not (calls and block.kind is _Kind.CALL))
    is_tool = kind == "tool" or body.get("role") == "tool"
    if is_tool and not any(block.kind is _Kind.RESULT for block in blocks):
        yield from _results(body, path)


def _results(body: dict[str, Any], path: Path) -> Iterator[_Piece]:
    """Yield the results of a tool message: one, or AG2's list of them."""
    if type(body.get("tool_responses")) is list:
        for place, response in _objects(body, "tool_responses"):
            yield _Piece(_Kind.RESULT, _id(response.get("tool_call_id")), (*path, "tool_responses", place))
    else:
        yield _Piece(_Kind.RESULT, _id(body.get("tool_call_id")), path)


def _calls(body: dict[str, Any], key: str, path: Path) -> Iterator[_Piece]:
    for place, call in _objects(body, key):
        yield _Piece(_Kind.CALL, _id(call.get("id")), (*path, key, place))


def _blocks(body: dict[str, Any], key: str, path: Path) -> Iterator[_Piece]:
    for place, block in _objects(body, key):
        piece = _piece_of_block(block, (*path, key, place))
        if piece is not None:
            yield piece


def _piece_of_block(block: dict[str, Any], path: Path) -> _Piece | None:
    for tag in ("type", "part_kind"):
        found = _BLOCKS.get((tag, _text(block, tag)))
        if found is not None:
            # a retry that names no tool answers the model's text
            answers_text = block.get("part_kind") == "retry-prompt" and block.get("tool_name") is None
            return None if answers_text else _Piece(found[0], _id(block.get(found[1])), path)
    for wrapper, (piece, key) in _WRAPPED.items():
        inner = block.get(wrapper)
        if type(inner) is dict:
            return _Piece(piece, _id(inner.get(key)), (*path, wrapper))
    return None


def _objects(body: dict[str, Any], key: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a list with their places; what is no list has none."""
    values = body.get(key)
    if type(values) is list:
        for place, value in enumerate(values):
            if type(value) is dict:
                yield place, value


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    return value if type(value) is str else ""


def _id(value: object) -> str | int | None:
    return value if type(value) is str or type(value) is int else None
