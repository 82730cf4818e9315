"""Adapter for the 126 recorded conversations of failed multi-agent runs (ag2ai/Agents_Failure_Attribution, MIT).

A run is a group chat: a list of messages with their speakers. Every change of speaker is a handoff: the last message
before it is what the sender hands over. Two readings of the same messages are driven:

- `as_text`: all that the recording says: someone said something, and another one speaks next.
- `with_exit_codes`: what the host knew and wrote into the text: `Computer_terminal` runs code, and an exit code other
  than 0 makes its handoff a failed one.

Agents are known per run: the runs do not share their speakers, and their names collide between runs.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from handoffwatch import Contract, Decision, Watch

FOLDER: Final = "who-and-when"
WORKFLOW: Final = "group_chat"
READINGS: Final = ("as_text", "with_exit_codes")

_EXIT_CODE: Final = re.compile(r"exitcode: (?P<code>[0-9]+) \(")


class Message(Contract, messages="history"):
    """What every speaker owes the next one: something said, and all that was said before."""

    content: Annotated[str, Field(pattern=r"\S")]
    history: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One run as it was recorded.

    Attributes:
        task_id: Names the run's task within its data set.
        messages: What was said, each with `name`, `role` and `content`.
        mistake_step: Which message people annotated as the decisive mistake.
    """

    task_id: str
    messages: tuple[dict[str, str], ...]
    mistake_step: int


@dataclass(frozen=True, slots=True)
class Judged:
    """The watchdog's decision about the handoff of one message."""

    conversation: Conversation
    step: int
    decision: Decision


def read_conversations(folder: Path) -> Iterator[Conversation]:
    """Yield the recorded runs in the order of the file."""
    with gzip.open(folder / "algorithm_generated.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            run = json.loads(line)
            yield Conversation(run["question_ID"], tuple(run["history"]), int(run["mistake_step"]))


def judge(conversation: Conversation, *, reading: str) -> list[Judged]:
    """Return the decisions about all handoffs of a run; all its routes are in shadow mode, so nothing stops it."""
    changes = [
        (step, before["name"], after["name"])
        for step, (before, after) in enumerate(pairwise(conversation.messages))
        if before["name"] != after["name"]
    ]
    watch = Watch()
    watch.workflow(WORKFLOW, tools="none")
    for source, target in dict.fromkeys((source, target) for _, source, target in changes):
        watch.route(f"{source}->{target}", contract=Message, mode="shadow")
    judged = []
    with watch.run(WORKFLOW, task_id=conversation.task_id) as run:
        for step, source, target in changes:
            handed = run.handoff(source, target, _handoff(conversation, step, source, target, reading))
            assert handed.decision is not None, "the watchdog failed"
            judged.append(Judged(conversation, step, handed.decision))
            run.arrived(handed)
            run.ended(handed)
    watch.close()
    return judged


def _handoff(conversation: Conversation, step: int, source: str, target: str, reading: str) -> dict[str, Any]:
    content = conversation.messages[step]["content"]
    failed = reading == "with_exit_codes" and source == "Computer_terminal" and _exit_code(content) != 0
    said = {"content": content, "history": [dict(message) for message in conversation.messages[: step + 1]]}
    return {
        "handoff_id": f"{conversation.task_id}-{step}",
        "task_id": conversation.task_id,
        "source_agent": source,
        "target_agent": target,
        "task_type": "message",
        "status": "failed" if failed else "ready",
        "schema_version": "1",
        "payload": {"error": content} if failed else said,
    }


def _exit_code(content: str) -> int:
    """Return the code of an execution; 0 where nothing was executed."""
    stated = _EXIT_CODE.match(content)
    return int(stated["code"]) if stated else 0
