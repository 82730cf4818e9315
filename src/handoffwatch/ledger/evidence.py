"""Evidence: written as a case, once for each kind and subject, with what it is to the run and to reviewers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

import sqlalchemy as sa

from handoffwatch.ledger.facts import Evidence
from handoffwatch.ledger.reviews import draw_review
from handoffwatch.ledger.schema import CASES
from handoffwatch.ledger.statement import Statement, insert_new
from handoffwatch.ledger.violations import add_violations

_C = CASES.c
_WRITE = Statement(insert_new(CASES))
_FIND = Statement(
    sa.select(_C.case_id)
    .where(_C.kind == sa.bindparam("of_kind"), _C.subject == sa.bindparam("about"))
    .with_for_update()
)
_UPDATE = Statement(
    sa.update(CASES)
    .where(_C.case_id == sa.bindparam("id"))
    .values(facts=sa.bindparam("new_facts"), record=sa.bindparam("new_record"))
)


def store_case(connection: sa.Connection, evidence: Evidence, *, now_unix_s: float) -> str:
    """Write a new case, or the facts and the record of the one there is, and return its id.

    A new case is a violation of the run when the evidence says so. A review is drawn once. What a person has resolved
    stays resolved.
    """
    case_id = uuid.uuid4().hex
    if _WRITE.change(connection, _new_row(case_id, evidence, now_unix_s=now_unix_s)) == 0:
        case_id = _update(connection, evidence)
    elif evidence.violation is not None:
        counts = {evidence.violation: 1}
        add_violations(connection, evidence.run_id, evidence.workflow, counts, now_unix_s=now_unix_s)
    if evidence.selection is not None:
        draw_review(connection, case_id, evidence.selection, now_unix_s=now_unix_s)
    return case_id


def _update(connection: sa.Connection, evidence: Evidence) -> str:
    (found,) = _FIND.rows(connection, {"of_kind": evidence.kind, "about": evidence.subject})
    row = {"id": found.case_id, "new_facts": _json(evidence.facts), "new_record": _record(evidence)}
    _UPDATE.change(connection, row)
    return str(found.case_id)


def _new_row(case_id: str, evidence: Evidence, *, now_unix_s: float) -> dict[str, object]:
    return {
        "case_id": case_id,
        "kind": evidence.kind,
        "subject": evidence.subject,
        "criticality": evidence.criticality,
        "run_id": evidence.run_id,
        "facts": _json(evidence.facts),
        "opened_unix_s": now_unix_s,
        "resolved_unix_s": None if evidence.is_open else now_unix_s,
        "note": None if evidence.is_open else "",
        "workflow": evidence.workflow,
        "route": evidence.route or None,
        "schema_version": evidence.schema_version or None,
        "mode": evidence.mode,
        "ruling": None,
        "ruled_unix_s": None,
        "expires_unix_s": evidence.expires_unix_s,
        "record": _record(evidence),
    }


def _record(evidence: Evidence) -> str | None:
    return _json(evidence.record) if evidence.record else None


def _json(values: Mapping[str, object]) -> str:
    return json.dumps(dict(values))
