"""Counts the handoffs of the who-and-when runs straight from their file and prints them as JSON.

It imports the standard library only: nothing of handoffwatch and nothing of the adapter beside it, so that its numbers
can judge theirs. By hand: `python tests/real_runs/count_who_and_when.py ../shared/data/who-and-when`.

- A handoff is a message whose next message has another name. It is `blank` when it says nothing.
- An execution is a message of `Computer_terminal` that begins with `exitcode:`; it failed when the code is not 0.
- A mistake is the message that people annotated as the decisive one of its run.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any


def _failed(message: dict[str, str]) -> bool:
    return _is_execution(message) and message["content"].split()[1] != "0"


def _is_execution(message: dict[str, str]) -> bool:
    return message["name"] == "Computer_terminal" and message["content"].startswith("exitcode: ")


def count(folder: Path) -> dict[str, int]:
    """Return all counts, ready for JSON."""
    with gzip.open(folder / "algorithm_generated.jsonl.gz", "rt", encoding="utf-8") as file:
        runs = [json.loads(line) for line in file]
    handed = [[i for i, m in enumerate(run["history"][:-1]) if run["history"][i + 1]["name"] != m["name"]]
              for run in runs]  # fmt: skip
    failed = [[i for i in steps if _failed(run["history"][i])] for run, steps in zip(runs, handed, strict=True)]
    mistakes = [int(run["mistake_step"]) for run in runs]
    return {
        "runs": len(runs),
        "messages": sum(len(run["history"]) for run in runs),
        "handoffs": sum(map(len, handed)),
        "blank_messages": sum(not m["content"].strip() for run in runs for m in run["history"]),
        "blank_handoffs": sum(
            not run["history"][i]["content"].strip() for run, steps in zip(runs, handed, strict=True) for i in steps
        ),
        "executions": sum(_is_execution(m) for run in runs for m in run["history"]),
        "failed_executions": sum(_failed(m) for run in runs for m in run["history"]),
        "failed_executions_handed_on": sum(map(len, failed)),
        "runs_with_failed_execution_handed_on": sum(map(bool, failed)),
        "runs_without_successful_execution": sum(not any(map(_succeeded, run["history"])) for run in runs),
        "mistakes_handed_on": sum(step in steps for step, steps in zip(mistakes, handed, strict=True)),
        "mistakes_that_are_failed_executions": sum(step in steps for step, steps in zip(mistakes, failed, strict=True)),
    }


def _succeeded(message: dict[str, Any]) -> bool:
    return _is_execution(message) and not _failed(message)


def main() -> None:
    """Print the counts of the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Count the handoffs of recorded conversations.")
    parser.add_argument("folder", type=Path, help="the data set's folder")
    print(json.dumps(count(parser.parse_args().folder), indent=2))


if __name__ == "__main__":
    main()
