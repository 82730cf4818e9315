"""Counts runs, tool calls and failed calls straight from the recorded files and prints them as JSON.

It imports the standard library only: nothing of handoffwatch and nothing of the adapters beside it, so that its numbers
can judge theirs. By hand: `python tests/real_runs/count_from_files.py workbench ../shared/data/workbench`.

What is counted:

- agentrx: a call is an entry of `tool_calls` in an assistant's message. It failed when the message that answers it
  begins with `Error`. The labels file states both numbers too: the benchmark's own tools were run again for it.
- workbench: a call is an entry of `function_calls`, the record that the benchmark judged and its labels file counts.
  `intermediate_steps` holds the answers in the same order. It is no record of the calls: it is absent where a run
  crashed, and in 16 runs it goes on after a step whose argument was a text, at which the recording of calls broke off
  (`recorded_steps`). A call failed when a text refuses it: the record it names does not exist, an argument is missing
  or not valid, or there is no such tool. A search without hits, in words or as an empty list, is an answer.

A tool that the environment did not have is counted under `other`.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

Calls = list[tuple[str, bool]]
"""The calls of one run in order: the tool's name, and whether the call failed."""

_NO_SUCH_TOOL = re.compile(r"\S+ is not a valid tool, try one of \[.*\]\.", re.DOTALL)
_REFUSALS = re.compile(
    r"(Event|Email|Task|Field) not found\."
    r"|.* not provided\.|No search parameters provided\.|Missing task details\."
    r"|(Assignee email|List|Board) not valid\. Please choose from.*"
    r"|Invalid recipient email address\."
)


def agentrx_runs(folder: Path) -> Iterator[Calls]:
    """Yield the calls of each recorded run of the retail agent."""
    with gzip.open(folder / "tau_retail_runs.json.gz", "rt", encoding="utf-8") as file:
        runs = json.load(file)
    for run in runs:
        answers = {m["tool_call_id"]: m["content"] for m in run["traj"] if m["role"] == "tool"}
        calls = [call for message in run["traj"] for call in message.get("tool_calls") or ()]
        yield [(call["function"]["name"], answers[call["id"]].startswith("Error")) for call in calls]


def workbench_runs(folder: Path) -> Iterator[Calls]:
    """Yield the calls of each recorded run on the e-mail, calendar and project tools."""
    for row in _workbench_rows(folder):
        names = [call.partition(".func(")[0] for call in ast.literal_eval(row["function_calls"])]
        answers = _answers(row["full_response"])[: len(names)]
        yield [_judged(name, answer) for name, answer in zip(names, answers, strict=True)]


def _workbench_rows(folder: Path) -> Iterator[dict[str, str]]:
    csv.field_size_limit(2**31 - 1)
    for path in sorted((folder / "results").glob("*/*.csv.gz")):
        yield from _rows(path)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rb") as file:
        yield from csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", newline=""))


def _judged(name: str, answer: object) -> tuple[str, bool]:
    if not isinstance(answer, str):
        return name, False
    if _NO_SUCH_TOOL.fullmatch(answer):
        return "other", True
    return name, _REFUSALS.fullmatch(answer) is not None


class _CallsAsText(ast.NodeTransformer):
    """Replaces every `Something(...)` in a recorded text by its source, so that the rest is a literal."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return ast.copy_location(ast.Constant(ast.unparse(node)), node)


def _answers(response: str) -> list[object]:
    """Return the second half of each recorded step; the text is parsed and never run."""
    if not response:
        return []
    tree = _CallsAsText().visit(ast.parse(response, mode="eval"))
    return [step[1] for step in ast.literal_eval(tree)["intermediate_steps"]]


def agentrx_stated(folder: Path) -> dict[str, int]:
    """Return the runs, calls and failed calls that the labels file states."""
    rows = list(_rows(folder / "tau_retail_labels.csv.gz"))
    return {
        "runs": len(rows),
        "tool_calls": sum(int(row["calls"]) for row in rows),
        "failed_calls": sum(int(row["tool_errors"]) for row in rows),
    }


def workbench_stated(folder: Path) -> dict[str, int]:
    """Return the runs, calls and runs without a call that the labels file states, and the steps in the responses."""
    rows = list(_rows(folder / "labels.csv.gz"))
    return {
        "runs": len(rows),
        "tool_calls": sum(int(row["calls"]) for row in rows),
        "none_called": sum(row["calls"] == "0" for row in rows),
        "recorded_steps": sum(len(_answers(row["full_response"])) for row in _workbench_rows(folder)),
    }


_SETS: dict[str, tuple[Callable[[Path], Iterator[Calls]], Callable[[Path], dict[str, int]]]] = {
    "agentrx": (agentrx_runs, agentrx_stated),
    "workbench": (workbench_runs, workbench_stated),
}


def count(data_set: str, folder: Path) -> dict[str, object]:
    """Return all counts of one data set, ready for JSON."""
    read_runs, read_stated = _SETS[data_set]
    runs = 0
    called: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    without_success = Counter(none_called=0, all_failed=0)
    for calls in read_runs(folder):
        runs += 1
        called.update(tool for tool, _ in calls)
        failed.update(tool for tool, was_failure in calls if was_failure)
        if all(was_failure for _, was_failure in calls):
            without_success["all_failed" if calls else "none_called"] += 1
    return {
        "runs": runs,
        "tool_calls": called.total(),
        "failed_calls": failed.total(),
        "tool_calls_by_tool": dict(sorted(called.items())),
        "failed_calls_by_tool": dict(sorted(failed.items())),
        "runs_without_tool_success": dict(without_success),
        "stated": read_stated(folder),
    }


def main() -> None:
    """Print the counts of the data set that the command line names."""
    parser = argparse.ArgumentParser(description="Count recorded runs straight from their files.")
    parser.add_argument("data_set", choices=sorted(_SETS))
    parser.add_argument("folder", type=Path, help="the data set's folder")
    arguments = parser.parse_args()
    print(json.dumps(count(arguments.data_set, arguments.folder), indent=2))


if __name__ == "__main__":
    main()
