"""The limits of a task: how often its state may change hands, and which handoffs it has seen before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from handoffwatch.decision import Finding
from handoffwatch.handoffs.context import TaskFacts
from handoffwatch.handoffs.contract import CompiledContract
from handoffwatch.handoffs.structure import finding


class TaskLimits(NamedTuple):
    """How often a task may be handed over.

    Attributes:
        hops_max: Handoffs of one task that are let through.
        repeats_max: How often the same content may come to one route, with the task on another one in between.

    Source: DESIGN section 11.
    """

    hops_max: int = 25
    repeats_max: int = 3


def judge_limits(
    found: list[Finding],
    handoff: Mapping[str, Any],
    contract: CompiledContract,
    facts: TaskFacts,
    limits: TaskLimits,
) -> None:
    """Add to `found` where the handoff goes beyond what its task may do, or was seen before.

    Limits belong to the task, not to the run or the process: whoever knows its past states it in `facts`.
    """
    if facts.is_stopped:
        found.append(finding("route_stopped", "$", "no handoff may follow here: one was stopped for this task"))
    if facts.is_consumed:
        found.append(finding("consumed_handoff", "handoff_id", "handoff_id must not have been accepted before"))
    elif facts.is_open:
        found.append(finding("duplicate_handoff", "handoff_id", "handoff_id must not be that of a handoff in progress"))
    if facts.hops >= limits.hops_max:
        found.append(finding("loop_limit", "$", f"the task must be handed over at most {limits.hops_max} times"))
    judge_repeats(found, facts.repeats, limits)
    version = handoff.get("context_version")
    replaced = facts.replaced_version
    if contract.options.replaces_state and isinstance(version, int) and replaced is not None and version <= replaced:
        sentence = "context_version must be newer than the state that another handoff has replaced"
        found.append(finding("stale_state", "context_version", sentence))


def judge_repeats(found: list[Finding], repeats: int, limits: TaskLimits) -> None:
    """Add to `found` when the same content was handed over on this route too often before."""
    if repeats >= limits.repeats_max:
        sentence = (
            f"payload must not be the same again: it was handed over on this route {limits.repeats_max} times before"
        )
        found.append(finding("loop_limit", "payload", sentence))
