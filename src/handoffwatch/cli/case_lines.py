"""How a case is told in a line of a list and in the fields before its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handoffwatch.cli.terminal import NOTHING, listed, printable, time_text
from handoffwatch.vocabulary import CaseKind

if TYPE_CHECKING:
    from handoffwatch.ledger import Case

CASE_COLUMNS: Final = (
    "CASE", "KIND", "CRITICALITY", "OPENED", "WAITS UNTIL", "RESOLVED", "RULING", "ROUTE", "RUN", "FACTS"
)  # fmt: skip
_NOT_LISTED: Final = frozenset(
    {"handoff_id", "task_id", "source", "target", "route", "stage", "approval", "trace_id", "safety", "idempotency_key"}
)
"""Facts that a list has no room for; `show` has them all."""

_NONE: Final[tuple[object, ...]] = ([], "")
_UNIX_S: Final = "_unix_s"

_IN_THE_RECORD: Final = frozenset({"subject", "source", "target", "reasons", "paths", "stage", "approval"})
"""What the record of a case says in more words, or what only a program can use."""


def case_fields(case: Case) -> dict[str, object]:
    """Return what is shown of a case before its record, by name."""
    optional = {
        "workflow": case.workflow,
        "route": case.route,
        "schema_version": case.schema_version,
        "mode": case.mode,
    }
    shown = {
        "case": case.case_id,
        "kind": case.kind,
        "criticality": case.criticality,
        "run": case.run_id,
        "subject": case.subject,
        **{name: value for name, value in optional.items() if value is not None},
        **_told(case),
        "opened": time_text(case.opened_unix_s),
        **({"waits until": _waits_until(case), "ruling": case.ruling or NOTHING} if case.kind is CaseKind.HELD else {}),
        "resolved": time_text(case.resolved_unix_s),
        "note": case.note or NOTHING,
    }
    return {name: value for name, value in shown.items() if not (case.record and name in _IN_THE_RECORD)}


def case_row(case: Case) -> tuple[str, ...]:
    """Return a case as the cells of its line."""
    facts = {
        name: fact for name, fact in _told(case).items() if name not in _NOT_LISTED and fact not in (*_NONE, case.kind)
    }
    return (
        case.case_id,
        case.kind,
        case.criticality,
        time_text(case.opened_unix_s),
        _waits_until(case),
        time_text(case.resolved_unix_s),
        case.ruling or NOTHING,
        printable(case.facts.get("route") or case.route or NOTHING),
        printable(case.run_id),
        " ".join(f"{printable(name)}={listed(value)}" for name, value in facts.items()) or NOTHING,
    )


def _told(case: Case) -> dict[str, object]:
    """Return the facts of a case, with times as text."""
    return dict(_as_text(name, fact) for name, fact in case.facts.items())


def _as_text(name: str, fact: object) -> tuple[str, object]:
    if name.endswith(_UNIX_S) and isinstance(fact, int | float):
        return name.removesuffix(_UNIX_S), time_text(fact)
    return name, fact


def _waits_until(case: Case) -> str:
    """Return until when a run waits for a decision; some routes do not wait, and take the handoff again later."""
    waits = case.expires_unix_s is not None and case.expires_unix_s > case.opened_unix_s
    return time_text(case.expires_unix_s) if waits else NOTHING
