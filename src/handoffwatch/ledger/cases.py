"""Cases: stored evidence of bad crossings, open until a person resolves or rules on it."""

from __future__ import annotations

import json
from typing import Any, Final

import sqlalchemy as sa

from handoffwatch.ledger.facts import Case
from handoffwatch.ledger.schema import CASES
from handoffwatch.ledger.statement import Statement
from handoffwatch.ledger.waits import add_wait
from handoffwatch.vocabulary import CaseKind, Criticality, Mode, ReviewKind, Ruling

_TIMED: Final = {CaseKind.AMBIGUOUS: ReviewKind.AMBIGUOUS, CaseKind.HELD: ReviewKind.HELD}
"""The kinds of case that somebody waits for, and how that wait is called."""

_C = CASES.c
LISTED: Final = tuple(column for column in _C if column is not _C.record)
"""What a list shows of a case: every column but the large one."""

_LIST = sa.select(*LISTED).order_by(_C.opened_unix_s, _C.case_id)
_FIND = sa.select(CASES).where(_C.case_id == sa.bindparam("id"))
_FIND_SAME = Statement(
    sa.select(*LISTED).where(_C.kind == sa.bindparam("of_kind"), _C.subject == sa.bindparam("about"))
)
_LOCK = (
    sa.select(_C.kind, _C.facts, _C.opened_unix_s)
    .where(_C.case_id == sa.bindparam("id"), _C.resolved_unix_s.is_(None))
    .with_for_update()
)
_RESOLVE = (
    sa.update(CASES)
    .where(_C.case_id == sa.bindparam("id"))
    .values(resolved_unix_s=sa.bindparam("now"), note=sa.bindparam("text"))
)
_RULE = _RESOLVE.values(ruling=sa.bindparam("decided"), ruled_unix_s=sa.bindparam("now"))


def list_cases(connection: sa.Connection, *, kind: CaseKind | None, open_only: bool) -> list[Case]:
    """Return the cases without their records, the oldest first."""
    statement = _LIST if kind is None else _LIST.where(_C.kind == kind)
    if open_only:
        statement = statement.where(_C.resolved_unix_s.is_(None))
    return [read_case(row) for row in connection.execute(statement)]


def find_case(connection: sa.Connection, case_id: str) -> Case | None:
    """Return one case with its record."""
    row = connection.execute(_FIND, {"id": case_id}).one_or_none()
    return None if row is None else read_case(row, record=row.record)


def case_of(connection: sa.Connection, kind: CaseKind, subject: str) -> Case | None:
    """Return the case of a subject without its record."""
    row = _FIND_SAME.row(connection, {"of_kind": kind, "about": subject})
    return None if row is None else read_case(row)


def resolve_case(connection: sa.Connection, case_id: str, *, note: str, now_unix_s: float) -> bool:
    """Resolve an open case and return whether there was one; what was resolved before keeps its time and note."""
    row = connection.execute(_LOCK, {"id": case_id}).one_or_none()
    if row is None:
        return False
    connection.execute(_RESOLVE, {"id": case_id, "now": now_unix_s, "text": note})
    timed = _TIMED.get(CaseKind(row.kind))
    if timed is not None:
        add_wait(connection, timed, since_unix_s=row.opened_unix_s, now_unix_s=now_unix_s)
    return True


def rule_case(connection: sa.Connection, case_id: str, ruling: Ruling, *, note: str, now_unix_s: float) -> bool:
    """Decide an open held case, which resolves it, and return whether there was one."""
    row = connection.execute(_LOCK, {"id": case_id}).one_or_none()
    if row is None or row.kind != CaseKind.HELD:
        return False
    connection.execute(_RULE, {"id": case_id, "now": now_unix_s, "text": note, "decided": ruling})
    timed = ReviewKind.APPROVAL if json.loads(row.facts).get("approval") is True else ReviewKind.HELD
    add_wait(connection, timed, since_unix_s=row.opened_unix_s, now_unix_s=now_unix_s)
    return True


def read_case(row: Any, *, record: str | None = None) -> Case:
    """Return the case of a row that has the listed columns.

    Args:
        row: A row with what a list shows.
        record: The large column's text, when it was read.
    """
    return Case(
        case_id=row.case_id,
        kind=CaseKind(row.kind),
        subject=row.subject,
        criticality=Criticality(row.criticality),
        run_id=row.run_id,
        facts=json.loads(row.facts),
        opened_unix_s=row.opened_unix_s,
        resolved_unix_s=row.resolved_unix_s,
        note=row.note,
        workflow=row.workflow,
        route=row.route,
        schema_version=row.schema_version,
        mode=None if row.mode is None else Mode(row.mode),
        ruling=None if row.ruling is None else Ruling(row.ruling),
        ruled_unix_s=row.ruled_unix_s,
        expires_unix_s=row.expires_unix_s,
        record=None if record is None else json.loads(record),
    )
