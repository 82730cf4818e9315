"""Reviews: cases that were drawn for a person's verdict on the check itself, each counted once."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from handoffwatch import catalogue
from handoffwatch.ledger.cases import LISTED, read_case
from handoffwatch.ledger.facts import Review
from handoffwatch.ledger.schema import CASES, REVIEWS
from handoffwatch.ledger.statement import Statement, insert_new
from handoffwatch.ledger.tally import Tally
from handoffwatch.ledger.waits import add_wait
from handoffwatch.vocabulary import ReviewKind, ReviewSelection, ReviewVerdict

_R, _C = REVIEWS.c, CASES.c
_DRAW = Statement(insert_new(REVIEWS))
_REVIEW = (
    _R.selection,
    _R.drawn_unix_s,
    _R.verdict,
    _R.reviewed_unix_s,
    _R.note.label("review_note"),
)
_LIST = (
    sa.select(*LISTED, *_REVIEW)
    .join_from(REVIEWS, CASES, _R.case_id == _C.case_id)
    .order_by(_R.drawn_unix_s, _R.case_id)
    .limit(sa.bindparam("limit"))
)
_LIST_OPEN = _LIST.where(_R.verdict.is_(None))
_FIND = (
    sa.select(CASES, *_REVIEW)
    .join_from(REVIEWS, CASES, _R.case_id == _C.case_id)
    .where(_R.case_id == sa.bindparam("id"))
)
_LABEL = (
    sa.update(REVIEWS)
    .where(_R.case_id == sa.bindparam("id"), _R.verdict.is_(None))
    .values(verdict=sa.bindparam("judged"), reviewed_unix_s=sa.bindparam("now"), note=sa.bindparam("text"))
)
_LABELLED = (
    sa.select(_R.selection, _R.drawn_unix_s, _C.workflow, _C.route, _C.schema_version, _C.mode)
    .join_from(REVIEWS, CASES, _R.case_id == _C.case_id)
    .where(_R.case_id == sa.bindparam("id"))
)


def draw_review(connection: sa.Connection, case_id: str, selection: ReviewSelection, *, now_unix_s: float) -> None:
    """Ask for a verdict on a case; one that was drawn before stays as it was drawn."""
    row = {"case_id": case_id, "selection": selection, "drawn_unix_s": now_unix_s}
    _DRAW.change(connection, {**row, "verdict": None, "reviewed_unix_s": None, "note": None})


def list_reviews(connection: sa.Connection, *, open_only: bool, limit: int) -> list[Review]:
    """Return reviews, the first drawn first, with their cases but not the cases' records."""
    statement = _LIST_OPEN if open_only else _LIST
    return [_review(row) for row in connection.execute(statement, {"limit": limit})]


def find_review(connection: sa.Connection, case_id: str) -> Review | None:
    """Return the review of a case, with the case's record."""
    row = connection.execute(_FIND, {"id": case_id}).one_or_none()
    return None if row is None else _review(row, record=row.record)


def label_review(
    connection: sa.Connection, tally: Tally, case_id: str, verdict: ReviewVerdict, *, note: str, now_unix_s: float
) -> bool:
    """Write and count the verdict on an open review, and return whether there was one."""
    row = {"id": case_id, "judged": verdict, "now": now_unix_s, "text": note}
    if connection.execute(_LABEL, row).rowcount == 0:
        return False
    labelled = connection.execute(_LABELLED, {"id": case_id}).one()
    if labelled.route is None:
        tally.count(catalogue.LEDGER_GUARD_REVIEWS, labelled.workflow, labelled.selection, verdict)
    else:
        labels = (labelled.route, labelled.schema_version, labelled.mode)
        tally.count(catalogue.LEDGER_HANDOFF_REVIEWS, *labels, labelled.selection, verdict)
    add_wait(connection, ReviewKind.REVIEW, since_unix_s=labelled.drawn_unix_s, now_unix_s=now_unix_s)
    return True


def _review(row: Any, *, record: str | None = None) -> Review:
    return Review(
        case=read_case(row, record=record),
        selection=ReviewSelection(row.selection),
        drawn_unix_s=row.drawn_unix_s,
        verdict=None if row.verdict is None else ReviewVerdict(row.verdict),
        reviewed_unix_s=row.reviewed_unix_s,
        note=row.review_note,
    )
