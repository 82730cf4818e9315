"""Cases: stored evidence of bad crossings, one for each kind and subject, open until a person resolves it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from handoffwatch.ledger.facts import Case
from handoffwatch.ledger.schema import CASES
from handoffwatch.ledger.statement import Statement
from handoffwatch.vocabulary import CaseKind, Criticality

_C = CASES.c
_OPEN = Statement(sa.insert(CASES))
_FIND = sa.select(CASES).where(_C.case_id == sa.bindparam("id"))
_LIST = sa.select(CASES).order_by(_C.opened_unix_s, _C.case_id)
_RESOLVE = (
    sa.update(CASES)
    .where(_C.case_id == sa.bindparam("id"), _C.resolved_unix_s.is_(None))
    .values(resolved_unix_s=sa.bindparam("now"), note=sa.bindparam("text"))
)


def open_case(
    connection: sa.Connection,
    kind: CaseKind,
    subject: str,
    *,
    run_id: str,
    criticality: Criticality,
    facts: Mapping[str, object],
    now_unix_s: float,
) -> None:
    """Write a new case; `subject` is the id of what it is about."""
    row = {
        "case_id": uuid.uuid4().hex,
        "kind": kind,
        "subject": subject,
        "criticality": criticality,
        "run_id": run_id,
        "facts": json.dumps(facts),
        "opened_unix_s": now_unix_s,
    }
    _OPEN.change(connection, row)


def list_cases(connection: sa.Connection, *, kind: CaseKind | None, open_only: bool) -> list[Case]:
    """Return the cases, the oldest first."""
    statement = _LIST if kind is None else _LIST.where(_C.kind == kind)
    if open_only:
        statement = statement.where(_C.resolved_unix_s.is_(None))
    return [_case(row) for row in connection.execute(statement)]


def find_case(connection: sa.Connection, case_id: str) -> Case | None:
    """Return one case."""
    row = connection.execute(_FIND, {"id": case_id}).one_or_none()
    return None if row is None else _case(row)


def resolve_case(connection: sa.Connection, case_id: str, *, note: str, now_unix_s: float) -> bool:
    """Resolve an open case and return whether there was one; what was resolved before keeps its time and note."""
    return connection.execute(_RESOLVE, {"id": case_id, "now": now_unix_s, "text": note}).rowcount == 1


def _case(row: sa.Row[*tuple[Any, ...]]) -> Case:
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
    )
