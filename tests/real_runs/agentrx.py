"""Adapter for the 100 recorded runs of a retail support agent (microsoft/AgentRx, MIT).

The success rules say what each tool returns when it worked: a JSON record, a user id, a number, a fixed sentence. Every
other text is the tool's refusal of the arguments. The agent may not act before it has found out who the customer is, so
an answer that rests on no tool is no answer here: the workflow requires tools.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from real_runs.recorded import RecordedCall, RecordedRun, RecordedTool, answers_with

FOLDER: Final = "agentrx"
WORKFLOW: Final = "retail_support"
NEED: Final = "required"


def _is_user_id(result: object) -> bool:
    return isinstance(result, str) and re.fullmatch(r"[a-z]+_[a-z]+_[0-9]+", result) is not None


def _is_number(result: object) -> bool:
    return isinstance(result, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", result) is not None


def _is_record(result: object) -> bool:
    try:
        return isinstance(result, str) and isinstance(json.loads(result), dict)
    except json.JSONDecodeError:
        return False


_record = answers_with(_is_record)
_user_id = answers_with(_is_user_id)

TOOLS: Final = {
    "find_user_id_by_email": RecordedTool("safe", _user_id),
    "find_user_id_by_name_zip": RecordedTool("safe", _user_id),
    "get_order_details": RecordedTool("safe", _record),
    "get_product_details": RecordedTool("safe", _record),
    "get_user_details": RecordedTool("safe", _record),
    "list_all_product_types": RecordedTool("safe", _record),
    "calculate": RecordedTool("safe", answers_with(_is_number)),
    "think": RecordedTool("safe", answers_with(lambda result: result == "")),
    "modify_pending_order_address": RecordedTool("idempotent", _record),
    "modify_pending_order_payment": RecordedTool("unsafe", _record),
    "modify_pending_order_items": RecordedTool("unsafe", _record),
    "modify_user_address": RecordedTool("idempotent", _record),
    "cancel_pending_order": RecordedTool("unsafe", _record),
    "return_delivered_order_items": RecordedTool("unsafe", _record),
    "exchange_delivered_order_items": RecordedTool("unsafe", _record),
    "transfer_to_human_agents": RecordedTool("unsafe", answers_with(lambda result: result == "Transfer successful")),
}


def read_runs(folder: Path) -> Iterator[RecordedRun]:
    """Yield the recorded runs in the order of the file."""
    with gzip.open(folder / "tau_retail_runs.json.gz", "rt", encoding="utf-8") as file:
        for run in json.load(file):
            yield RecordedRun(f"retail-{run['task_id']}", tuple(_calls(run["traj"])), _answer(run["traj"]))


def _calls(messages: list[dict[str, Any]]) -> Iterator[RecordedCall]:
    open_calls: dict[str, dict[str, str]] = {}
    for message in messages:
        if message["role"] == "assistant":
            open_calls |= {call["id"]: call["function"] for call in message.get("tool_calls") or ()}
        elif message["role"] == "tool":
            made = open_calls.pop(message["tool_call_id"])
            args = json.loads(made["arguments"])
            yield RecordedCall(made["name"], message["tool_call_id"], args, message["content"])
    assert not open_calls, "a recorded call has no answer"


def _answer(messages: list[dict[str, Any]]) -> str | None:
    """Return the agent's last text; None when the run ended on a call."""
    last = [message for message in messages if message["role"] == "assistant"][-1]
    return None if last.get("tool_calls") else last["content"]
