"""What the orchestrator knows and the payload does not."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple


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
    """

    run_id: str | None = None
    task_id: str | None = None
    context_version: int | None = None
    handoff_id: str | None = None
    attempt: int = 1
    finished_operations: Container[str] | None = None
    consumed: Container[str] | None = None


NO_CONTEXT = HandoffContext()
