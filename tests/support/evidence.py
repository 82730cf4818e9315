"""Evidence of a blocked handoff, and a route as its owner declares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from handoffwatch.ledger import Evidence
from handoffwatch.vocabulary import CaseKind, Criticality, Mode, ReviewSelection, ViolationKind


@dataclass(frozen=True)
class DeclaredRoute:
    """A route with its schema versions."""

    name: str = "planner->executor"
    versions: tuple[str, ...] = ("1",)
    mode: Mode = Mode.ENFORCE
    criticality: Criticality = Criticality.CRITICAL


def blocked(subject: str = "h-1", **changes: Any) -> Evidence:
    """Return the evidence of a handoff that was blocked for good, resolved from its birth unless said."""
    values: dict[str, Any] = {
        "kind": CaseKind.BLOCKED,
        "subject": subject,
        "run_id": "r-1",
        "workflow": "refunds",
        "criticality": Criticality.CRITICAL,
        "route": "planner->executor",
        "schema_version": "1",
        "mode": Mode.ENFORCE,
        "facts": {"handoff_id": subject, "reasons": ["missing_result"], "attempts": 3},
        "record": {"original": {"result": None}, "repaired": [{"result": ""}]},
        "is_open": False,
        "selection": None,
        "violation": ViolationKind.BLOCKED,
    }
    return Evidence(**{**values, **changes})


def held(subject: str = "h-1", *, approval: bool = False, **changes: Any) -> Evidence:
    """Return the evidence of a handoff that waits for a person."""
    facts = {"handoff_id": subject, "approval": approval}
    return blocked(subject, **{"kind": CaseKind.HELD, "facts": facts, "is_open": True, "violation": None, **changes})


def drawn(subject: str = "h-1", selection: ReviewSelection = ReviewSelection.RANDOM, **changes: Any) -> Evidence:
    """Return the evidence of a blocked handoff that was drawn for review."""
    return blocked(subject, selection=selection, **changes)


def refused_answer(subject: str = "r-1", **changes: Any) -> Evidence:
    """Return the evidence of an answer that the guard refused."""
    values = {"route": "", "schema_version": "", "violation": ViolationKind.GUARD, "run_id": subject}
    return blocked(subject, **{**values, **changes})
