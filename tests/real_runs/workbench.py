"""Adapter for WorkBench's 2,240 recorded runs on e-mail, calendar and project tools (olly-styles/WorkBench, MIT).

`full_response` is the text form of a Python object: the agent's output, and one step per call, `AgentAction(...)` and
what the tool answered. It is parsed into a syntax tree and read from there; nothing of it is run. The benchmark's own
record of the calls is `function_calls`: steps beyond it were not counted as calls there and are not replayed.

The success rules say what each tool answers when it worked: a list of hits (or, in words, that there are none), a
record, the id of what it created, a fixed sentence. Every other text is the tool's refusal of the arguments. Some of
the right answers call nothing at all, so tools are needed only where one was called. Where the model made up a tool,
the host found none and told the model so; nothing was called.
"""

from __future__ import annotations

import ast
import csv
import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from real_runs.recorded import RecordedCall, RecordedRun, RecordedTool, SuccessRule, answers_with

FOLDER: Final = "workbench"
WORKFLOW: Final = "office_work"
NEED: Final = "if_called"


def _hits(none: str | None = None) -> SuccessRule:
    return answers_with(lambda result: isinstance(result, list) or (none is not None and result == none))


def _says(sentence: str) -> SuccessRule:
    return answers_with(lambda result: result == sentence)


def _is_new_id(result: object) -> bool:
    return isinstance(result, str) and re.fullmatch(r"[0-9]{8}", result) is not None


_record = answers_with(lambda result: isinstance(result, dict))
_new_id = answers_with(_is_new_id)

TOOLS: Final = {
    "calendar.search_events": RecordedTool("safe", _hits("No events found.")),
    "calendar.get_event_information_by_id": RecordedTool("safe", _record),
    "calendar.create_event": RecordedTool("unsafe", _new_id),
    "calendar.update_event": RecordedTool("idempotent", _says("Event updated successfully.")),
    "calendar.delete_event": RecordedTool("idempotent", _says("Event deleted successfully.")),
    "email.search_emails": RecordedTool("safe", _hits("No emails found.")),
    "email.get_email_information_by_id": RecordedTool("safe", _record),
    "email.send_email": RecordedTool("unsafe", _says("Email sent successfully.")),
    "email.reply_email": RecordedTool("unsafe", _says("Email replied successfully.")),
    "email.forward_email": RecordedTool("unsafe", _says("Email forwarded successfully.")),
    "email.delete_email": RecordedTool("idempotent", _says("Email deleted successfully.")),
    "project_management.search_tasks": RecordedTool("safe", _hits()),
    "project_management.get_task_information_by_id": RecordedTool("safe", _record),
    "project_management.create_task": RecordedTool("unsafe", _new_id),
    "project_management.update_task": RecordedTool("idempotent", _says("Task updated successfully.")),
    "project_management.delete_task": RecordedTool("idempotent", _says("Task deleted successfully.")),
    "company_directory.find_email_address": RecordedTool("safe", _hits()),
    "customer_relationship_manager.search_customers": RecordedTool("safe", _hits()),
}


def read_runs(folder: Path) -> Iterator[RecordedRun]:
    """Yield the recorded runs, set-up by set-up, in the order of the files."""
    csv.field_size_limit(2**31 - 1)
    for path in sorted((folder / "results").glob("*/*.csv.gz")):
        setup = f"{path.parent.name}-{path.name.removesuffix('.csv.gz')}"
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file)):
                yield _run(f"{setup}-{number}", row)


def _run(task_id: str, row: dict[str, str]) -> RecordedRun:
    made = len(ast.literal_eval(row["function_calls"]))
    if not row["full_response"]:
        assert made == 0, "a crashed run has no record of its calls"
        return RecordedRun(task_id, (), None, crash=row["error"])
    response = _fields(ast.parse(row["full_response"], mode="eval").body)
    steps = response["intermediate_steps"]
    assert isinstance(steps, ast.List)
    calls = tuple(_call(f"{task_id}-{index}", step) for index, step in enumerate(steps.elts[:made]))
    return RecordedRun(task_id, calls, str(_value(response["output"])))


def _call(call_id: str, step: ast.expr) -> RecordedCall:
    """Return the call out of one recorded pair of `AgentAction(tool=..., tool_input=..., log=...)` and answer."""
    assert isinstance(step, ast.Tuple)
    action, answer = step.elts
    assert isinstance(action, ast.Call)
    given = {keyword.arg: keyword.value for keyword in action.keywords}
    tool, args = _value(given["tool"]), _value(given["tool_input"])
    assert isinstance(tool, str)
    assert isinstance(args, dict)
    result = _value(answer)
    exists = not (isinstance(result, str) and result.startswith(f"{tool} is not a valid tool, try one of ["))
    return RecordedCall(tool, call_id, args, result, exists)


def _fields(node: ast.expr) -> dict[str, ast.expr]:
    assert isinstance(node, ast.Dict)
    return {str(_value(key)): value for key, value in zip(node.keys, node.values, strict=True) if key is not None}


class _Literals(ast.NodeTransformer):
    """Replaces `array([...], dtype=object)` by its list, and every other object by the text that stands for it."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "array":
            return node.args[0]
        return ast.copy_location(ast.Constant(ast.unparse(node)), node)


def _value(node: ast.expr) -> object:
    """Return the recorded value as lists, dicts and texts."""
    return ast.literal_eval(_Literals().visit(node))
