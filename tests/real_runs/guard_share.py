"""What the final-answer guard costs on recorded runs: how many it refuses, and how many of those were right.

Run it on its own to print the table: PYTHONPATH=tests python tests/real_runs/guard_share.py FOLDER
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from handoffwatch import Action, Settings, Watch
from real_runs import agentrx, workbench
from real_runs.recorded import DataSet, RecordedRun, declare, play

NEEDS: Final = ("required", "if_called", "none")


class Share(NamedTuple):
    """What a guard made of the runs of a data set.

    Attributes:
        runs: All of them; one that ended without an answer has nothing to refuse.
        refused: Those whose answer it refused.
        refused_right: Of these the ones that had ended in the right state by the labels.
    """

    runs: int
    refused: int
    refused_right: int


def share(data: DataSet, need: str, runs: Iterable[tuple[RecordedRun, bool]]) -> Share:
    """Return what the guard of a workflow with this need makes of recorded runs.

    Args:
        data: The data set.
        need: What the workflow declares: required, if_called or none.
        runs: Each run, and whether it ended in the right state.
    """
    watch = Watch(settings=Settings())
    declare(watch, data, need=need)
    made = refused = refused_right = 0
    for recorded, is_right in runs:
        with watch.run(data.WORKFLOW, task_id=recorded.task_id) as run:
            play(run, recorded)
            is_refused = recorded.answer is not None and run.answer(recorded.answer).action is Action.REFUSE
            run.unstored.write(lambda _: None)  # nobody reviews recorded answers
        made += 1
        refused += is_refused
        refused_right += is_refused and is_right
    return Share(made, refused, refused_right)


def labelled_workbench(folder: Path) -> Iterator[tuple[RecordedRun, bool]]:
    """Yield the runs of WorkBench with what the benchmark's own evaluator says of their end state."""
    labels: dict[str, list[dict[str, str]]] = {}
    for row in _rows(folder / "workbench" / "labels.csv.gz"):
        labels.setdefault(f"{row['domain']}-{row['model']}_{row['tools']}", []).append(row)
    for run in workbench.read_runs(folder / "workbench"):
        recorded_at, _, number = run.task_id.rpartition("-")
        label = labels[recorded_at.split("_202")[0]][int(number)]
        assert len(run.calls) == int(label["calls"]), "a label stands beside another run"
        yield run, label["end_state_correct"] == "True"


def labelled_agentrx(folder: Path) -> Iterator[tuple[RecordedRun, bool]]:
    """Yield the runs of the retail agent with whether they left the shop's records as the task wants them."""
    rows = _rows(folder / "agentrx" / "tau_retail_labels.csv.gz")
    is_right = {f"retail-{row['task']}": row["db_match"] == "True" for row in rows}
    for run in agentrx.read_runs(folder / "agentrx"):
        yield run, is_right[run.task_id]


def table(folder: Path) -> list[str]:
    """Return the lines of the table in the guide."""
    lines = ["| Runs | The workflow says | Refused | Of these right |", "| --- | --- | --- | --- |"]
    for name, data, labelled in (
        ("2,240 of office work", workbench, labelled_workbench),
        ("100 of retail support", agentrx, labelled_agentrx),
    ):
        runs = list(labelled(folder))
        for need in NEEDS:
            found = share(data, need, runs)
            refused = f"{found.refused:,} ({found.refused / found.runs:.1%})"
            lines.append(f"| {name} | `{need}` | {refused} | {found.refused_right:,} |")
    return lines


def _rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    print("\n".join(table(Path(sys.argv[1]) / "data")))
