"""A ledger of the first revision is brought to the newest one, and keeps what it holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from handoffwatch.ledger import Case, Ledger, LedgerSettings
from handoffwatch.outcomes import SettlementPolicy
from handoffwatch.vocabulary import CaseKind, Cause, Criticality, Ruling, VerificationResult
from support.evidence import blocked, held
from support.outcomes import StillClock, open_ledger, refund_intent

ROWS = {
    "ledger_meta": [(1, "0123456789abcdef0123456789abcdef", 999_000.0)],
    "ledger_registrations": [("refunds", "refund", "critical"), ("refunds", "note", "routine")],
    "ledger_runs": [
        ("r-1", "refunds", "done", "[]", 999_900.0, None, "not_landed", 999_930.0),
        ("r-2", "refunds", "done", "[]", 999_950.0, "done", None, None),
    ],
    "ledger_operations": [
        (
            *("op-1", "r-1", "refunds", "refund", "4417", "critical", '{"amount_cents": 3800}', "", 0, 1, "ok", None),
            *(None, "not_landed", "missing", "tool", 5, 999_890.0, 999_891.0, 999_900.0, None, 1_604_700.0),
            *(999_930.0, 999_930.0),
        ),
        (
            *("op-2", "r-2", "refunds", "refund", "4418", "critical", '{"amount_cents": 100}', "", 0, 1, "ok", None),
            *(None, "unknown", None, None, 0, 999_940.0, 999_941.0, 999_950.0, 999_950.0, 1_604_750.0, None, None),
        ),
    ],
    "ledger_cases": [
        ("c-1", "false_success", "op-1", "critical", "r-1", '{"business_key": "4417"}', 999_930.0, None, None),
        ("c-2", "false_success", "op-0", "critical", "r-0", "{}", 999_100.0, 999_200.0, "refunded by hand"),
    ],
    "ledger_counters": [
        ("ledger_claims_total", '["refunds","done"]', 0, 1),
        ("ledger_claims_total", '["refunds","done"]', 2, 1),
        ("ledger_claims_settled_total", '["refunds","done","not_landed"]', 0, 1),
    ],
    "ledger_timestamps": [
        ("ledger_false_success_last_timestamp_seconds", '["refunds","refund","critical"]', 999_930.0)
    ],
}
"""A row of each kind, in the order of the first revision's columns."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A ledger's file as the first revision left it."""
    path = tmp_path / "ledger.db"
    engine = sa.create_engine(f"sqlite:///{path}")
    config = Config()
    config.set_main_option("script_location", "handoffwatch.ledger:migrations")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    engine.dispose()
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, rows in ROWS.items():
            places = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
    return path


def test_ledger_keeps_every_row_when_it_is_upgraded(old: Path) -> None:
    """The columns of the first revision hold what they held; the new ones of a case hold nothing."""
    open_ledger(old, StillClock()).close()
    with closing(sqlite3.connect(old)) as connection:
        for table, rows in ROWS.items():
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")][: len(rows[0])]
            found = connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid").fetchall()
            assert found == rows, table
        assert connection.execute("SELECT version_num FROM ledger_revision").fetchall() == [("0002",)]


def test_ledger_goes_on_with_its_rows_when_it_was_upgraded(old: Path) -> None:
    """Old cases are shown and resolved, an open operation is settled, and the numbers go on under the same id."""
    time = StillClock()
    ledger = open_ledger(old, time)
    before = ledger.snapshot()
    assert before.ledger_id == ROWS["ledger_meta"][0][1]
    assert before.counters[("ledger_claims_total", ("refunds", "done"))] == 2
    assert ledger.case("c-1") == Case(
        case_id="c-1",
        kind=CaseKind.FALSE_SUCCESS,
        subject="op-1",
        criticality=Criticality.CRITICAL,
        run_id="r-1",
        facts={"business_key": "4417"},
        opened_unix_s=999_930.0,
        resolved_unix_s=None,
        note=None,
    )
    assert [case.case_id for case in ledger.cases(open_only=False)] == ["c-2", "c-1"]
    assert ledger.resolve_case("c-1", note="refunded by hand")
    (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
    assert ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING) is not None
    assert ledger.identity_violations() == []
    assert ledger.record_eval("r-2", passed=True)
    assert ledger.rule_case(ledger.store_case(held()), Ruling.APPROVED, "")
    ledger.store_case(blocked())
    ledger.open_operation(refund_intent("4419", run_id="r-3"))
    ledger.close()


def test_workflows_are_registered_when_the_ledger_knew_their_operations(old: Path) -> None:
    """An exporter without the program shows their new series at 0 from the upgrade on."""
    settings = LedgerSettings(url=f"sqlite:///{old}")
    ledger = Ledger(settings, policy=SettlementPolicy(), clock=StillClock().clock())
    assert ledger.snapshot().workflows == ("refunds",)
    ledger.close()
