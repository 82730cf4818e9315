"""What the orchestrator knows and the payload does not."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple


class TaskFacts(NamedTuple):
    """What the handoffs of a task before this one come to.

    Attributes:
        hops: Handoffs of the task that were let through.
        repeats: How often one with the same content came to this route, with the task on another route in between.
        is_open: Whether a handoff of this id is being processed on this route.
        is_consumed: Whether a handoff of this id was accepted before on this route.
        is_stopped: Whether a handoff was stopped on this route for good.
        replaced_version: The newest version of the state that an accepted handoff has replaced.
    """

    hops: int = 0
    repeats: int = 0
    is_open: bool = False
    is_consumed: bool = False
    is_stopped: bool = False
    replaced_version: int | None = None


class HandoffContext(NamedTuple):
    """Facts that a handoff is judged against; a rule without its fact is skipped and listed in the decision.

    Attributes:
        run_id: The active run.
        task_id: The active task.
        context_version: The version of the state that the next step must rest on; larger is newer.
        handoff_id: The id to use when the envelope has none.
        attempt: 1-based number of this try.
        finished_operations: Ids of the operations that are known to have been done; None when nobody kept them.
        consumed: Ids of the handoffs that were accepted before; None when nobody kept them.
        task: What the task's handoffs before this one come to; None when nobody counted them.
    """

    run_id: str | None = None
    task_id: str | None = None
    context_version: int | None = None
    handoff_id: str | None = None
    attempt: int = 1
    finished_operations: Container[str] | None = None
    consumed: Container[str] | None = None
    task: TaskFacts | None = None


NO_CONTEXT = HandoffContext()
