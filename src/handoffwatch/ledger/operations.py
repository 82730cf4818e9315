"""Operations before their effect is known: expected, opened by a call, named by a claim."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from handoffwatch.ledger.registry import RegisteredKind
from handoffwatch.ledger.runs import RunRow
from handoffwatch.ledger.schema import OPERATIONS
from handoffwatch.ledger.statement import Statement
from handoffwatch.outcomes import Claim, Intent, Receipt
from handoffwatch.outcomes.intent import Scalar
from handoffwatch.vocabulary import Effect, ToolOutcome

_O = OPERATIONS.c
_INSERT = Statement(sa.insert(OPERATIONS))
_FIND = Statement(
    sa.select(_O.operation_id, _O.intent_values, _O.is_expected, _O.calls, _O.call_outcome, _O.written_unix_s).where(
        _O.run_id == sa.bindparam("run_id"), _O.kind == sa.bindparam("kind"), _O.business_key == sa.bindparam("key")
    )
)
_UPDATE_INTENT = Statement(
    sa.update(OPERATIONS)
    .where(_O.operation_id == sa.bindparam("id"))
    .values(
        intent_values=sa.bindparam("values"),
        is_expected=sa.bindparam("expected"),
        calls=sa.bindparam("called"),
        written_unix_s=sa.bindparam("written"),
    )
)
_UPDATE_RECEIPT = Statement(
    sa.update(OPERATIONS)
    .where(
        _O.operation_id == sa.bindparam("id"),
        _O.receipt.is_(None),
        sa.or_(
            _O.call_outcome.is_(None),
            _O.call_outcome != ToolOutcome.OK,
            sa.bindparam("outcome", type_=sa.String) == ToolOutcome.OK,
        ),
    )
    .values(
        call_outcome=sa.bindparam("outcome", type_=sa.String),
        receipt=sa.bindparam("fields"),
        receipt_id=sa.bindparam("name"),
        written_unix_s=sa.bindparam("now"),
    )
)


def expect(connection: sa.Connection, run: RunRow, kind: RegisteredKind, intent: Intent, *, now_unix_s: float) -> str:
    """Write what the host expects, and return the operation's id. What the host states outweighs what a call states."""
    found = _find(connection, run, intent)
    if found is None:
        return _insert(connection, run, kind, intent, now_unix_s=now_unix_s, is_expected=True, calls=0)
    values = {**json.loads(found.intent_values), **intent.values}
    _update(connection, found, values, is_expected=True, calls=found.calls, written_unix_s=found.written_unix_s)
    return str(found.operation_id)


def open_call(
    connection: sa.Connection, run: RunRow, kind: RegisteredKind, intent: Intent, *, now_unix_s: float
) -> str:
    """Write what a call is about to do, and return the operation's id.

    The same key called again in the same run stays one operation. Its intent is the host's when that was stated, else
    that of the call that worked, else that of the last call: a model may correct an amount that was refused.
    """
    found = _find(connection, run, intent)
    if found is None:
        return _insert(connection, run, kind, intent, now_unix_s=now_unix_s, is_expected=False, calls=1)
    stored = json.loads(found.intent_values)
    is_kept = found.is_expected or found.call_outcome == ToolOutcome.OK
    values = {**intent.values, **stored} if is_kept else {**stored, **intent.values}
    _update(
        connection,
        found,
        values,
        is_expected=found.is_expected,
        calls=found.calls + 1,
        written_unix_s=now_unix_s,
    )
    return str(found.operation_id)


def name_in_claim(
    connection: sa.Connection,
    run: RunRow,
    kind: RegisteredKind,
    key: str,
    claim: Claim,
    *,
    now_unix_s: float,
    traceparent: str,
) -> None:
    """Write an operation that a claim names and nobody opened; it is verified by its key, as the claim stated it."""
    named = (kind.name, key)
    values = {kind.key: claim.keys[named]} if named in claim.keys else {}
    intent = Intent(run.run_id, run.workflow, kind.name, key, values, traceparent)
    if _find(connection, run, intent) is None:
        _insert(connection, run, kind, intent, now_unix_s=now_unix_s, is_expected=False, calls=0)


def record_receipt(
    connection: sa.Connection, operation_id: str, outcome: ToolOutcome, receipt: Receipt | None, *, now_unix_s: float
) -> None:
    """Write how a call ended. A receipt stays, and a call that worked is not undone by one that failed after it."""
    row = {
        "id": operation_id,
        "outcome": outcome,
        "fields": None if receipt is None else json.dumps(dict(receipt.fields)),
        "name": None if receipt is None else receipt.receipt_id,
        "now": now_unix_s,
    }
    _UPDATE_RECEIPT.change(connection, row)


def _find(connection: sa.Connection, run: RunRow, intent: Intent) -> Any | None:
    if run.is_new:
        return None
    row = {"run_id": intent.run_id, "kind": intent.kind, "key": intent.key}
    return _FIND.row(connection, row)


def _insert(
    connection: sa.Connection,
    run: RunRow,
    kind: RegisteredKind,
    intent: Intent,
    *,
    now_unix_s: float,
    is_expected: bool,
    calls: int,
) -> str:
    operation_id = uuid.uuid4().hex
    is_polled = run.claim is not None
    row = {
        "operation_id": operation_id,
        "run_id": run.run_id,
        "workflow": run.workflow,
        "kind": kind.name,
        "business_key": intent.key,
        "criticality": kind.criticality,
        "intent_values": json.dumps(dict(intent.values)),
        "traceparent": intent.traceparent,
        "is_expected": is_expected,
        "calls": calls,
        "effect": Effect.UNKNOWN,
        "reads": 0,
        "opened_unix_s": now_unix_s,
        "written_unix_s": now_unix_s,
        "polled_since_unix_s": now_unix_s if is_polled else None,
        "next_poll_unix_s": now_unix_s + kind.policy.polls_s[0] if is_polled else None,
        "deadline_unix_s": now_unix_s + kind.policy.deadline_s,
    }
    _INSERT.change(connection, row)
    return operation_id


def _update(
    connection: sa.Connection,
    found: Any,
    values: Mapping[str, Scalar],
    *,
    is_expected: bool,
    calls: int,
    written_unix_s: float,
) -> None:
    row = {
        "id": found.operation_id,
        "values": json.dumps(values),
        "expected": is_expected,
        "called": calls,
        "written": written_unix_s,
    }
    _UPDATE_INTENT.change(connection, row)
