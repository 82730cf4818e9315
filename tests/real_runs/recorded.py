"""What both adapters share: the shape of a recorded run, and how it is driven through the public API as if live."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from handoffwatch import Action, FailureClass, Run, Watch

SuccessRule = Callable[[object], bool | FailureClass]
"""True when the result is what the tool returns when it worked, otherwise the class of the failure."""


@dataclass(frozen=True, slots=True)
class RecordedTool:
    """What an adapter declares about one tool.

    Attributes:
        safety: safe, idempotent or unsafe.
        success: The tool's own success rule.
    """

    safety: str
    success: SuccessRule


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call as it was recorded.

    Attributes:
        tool: The name that the model called.
        call_id: The framework's id of the call.
        args: The arguments.
        result: What was handed to the agent.
        exists: False when the host had no tool of that name and said so itself; nothing was called then.
    """

    tool: str
    call_id: str
    args: Mapping[str, Any]
    result: object
    exists: bool = True


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run as it was recorded.

    Attributes:
        task_id: Names the run's task within its data set.
        calls: The calls in the order in which they were made.
        answer: The last text for the user, or None when the run ended without one.
        crash: The error that ended the run, or an empty text.
    """

    task_id: str
    calls: tuple[RecordedCall, ...]
    answer: str | None
    crash: str = ""


class RecordedCrash(Exception):
    """The host's exception that ended a recorded run."""


class DataSet(Protocol):
    """What an adapter module holds: names, tools, and how its runs are read."""

    FOLDER: str
    WORKFLOW: str
    NEED: str
    TOOLS: Mapping[str, RecordedTool]

    @staticmethod
    def read_runs(folder: Path) -> Iterable[RecordedRun]:
        """Yield the recorded runs that lie in `folder`."""


def answers_with(works: Callable[[object], bool]) -> SuccessRule:
    """Return the rule of a tool whose every other answer is a refusal of the arguments it was given."""
    return lambda result: True if works(result) else FailureClass.REJECTED


def declare(watch: Watch, data: DataSet, *, need: str | None = None) -> None:
    """Register the data set's workflow, with its own need of tools or another one, and its tools."""
    watch.workflow(data.WORKFLOW, tools=need or data.NEED)
    for name, tool in data.TOOLS.items():
        watch.tool(name, safety=tool.safety, success=tool.success)


def drive(watch: Watch, data: DataSet, runs: Iterable[RecordedRun]) -> None:
    """Replay every run through the primitives, in the order in which its host would have called them.

    Every call has its recorded result and no other, so the watch must end it at once: no rule here asks to repeat it.
    """
    for recorded in runs:
        with contextlib.suppress(RecordedCrash), watch.run(data.WORKFLOW, task_id=recorded.task_id) as run:
            play(run, recorded)
            if recorded.crash:
                raise RecordedCrash(recorded.crash)
            if recorded.answer is not None:
                run.answer(recorded.answer)


def play(run: Run, recorded: RecordedRun) -> None:
    """Make the calls of a recorded run in a run."""
    for made in recorded.calls:
        call = run.call(made.tool, made.call_id, made.args)
        call.attempt()
        step = call.returned(made.result) if made.exists else call.classified(FailureClass.REJECTED)
        assert step.action in {Action.OK, Action.GIVE_UP}, f"a recorded call cannot be repeated: {step}"
