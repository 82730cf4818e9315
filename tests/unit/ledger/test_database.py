"""The ledger's file: made safely, migrated once, refused when it cannot be used."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql

import handoffwatch.ledger.migrations
from handoffwatch.errors import LedgerUnavailable
from handoffwatch.ledger import Ledger, LedgerSettings, OpenOperation
from handoffwatch.ledger.schema import METADATA, REVISION, VERSION_TABLE
from handoffwatch.ledger.statement import Statement
from handoffwatch.outcomes import Claim, SettlementPolicy
from support.outcomes import StillClock, open_ledger, refund_intent

_FIRST_USER = """
import sys
from pathlib import Path
from support.outcomes import StillClock, open_ledger, refund_intent
ledger = open_ledger(Path(sys.argv[1]), StillClock())
for n in range(10):
    ledger.open_operation(refund_intent(str(n), run_id=f"{sys.argv[2]}-{n}"))
print(ledger.snapshot().ledger_id)
"""

_FORK_DURING_WRITE = """
import os, sys, threading, time
from pathlib import Path
from handoffwatch.ledger.forks import GATE
from support.outcomes import StillClock, open_ledger, refund_intent
ledger = open_ledger(Path(sys.argv[1]), StillClock())
ledger.open_operation(refund_intent("1"))
writing = threading.Event()

def write():
    with ledger._database.write():
        writing.set()
        while not GATE._forks:
            time.sleep(0.001)
    ledger.open_operation(refund_intent("2"))

writer = threading.Thread(target=write)
writer.start()
writing.wait()
child = os.fork()
if child == 0:
    code = 1
    try:
        ledger.open_operation(refund_intent("3"))
        code = 0
    finally:
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
writer.join()
print(ledger.snapshot().effects[("refund", "unknown")].count)
"""


def test_ledger_file_belongs_to_its_owner_alone_when_it_is_made(tmp_path: Path) -> None:
    """The file and its side files have mode 0600 whatever the umask says."""
    old = os.umask(0)
    try:
        ledger = open_ledger(tmp_path / "ledger.db", StillClock())
        ledger.open_operation(refund_intent("4417"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(old)
    ledger.close()
    assert modes == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}


def test_ledger_file_keeps_a_full_synchronous_write_ahead_log_when_it_is_open(tmp_path: Path) -> None:
    """A commit is on the disk before it returns."""
    ledger = open_ledger(tmp_path / "ledger.db", StillClock())
    with ledger._database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
    ledger.close()


def test_ledger_is_one_ledger_when_processes_make_it_at_the_same_time(tmp_path: Path) -> None:
    """Four first users agree on the tables and on the id, and lose no operation."""
    path = tmp_path / "ledger.db"
    users = [
        subprocess.Popen(
            [sys.executable, "-c", _FIRST_USER, str(path), str(n)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    answers = [(user.communicate()[0], user.returncode) for user in users]
    assert {code for _, code in answers} == {0}
    assert len({ledger_id for ledger_id, _ in answers}) == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM ledger_operations").fetchone() == (40,)
        assert connection.execute("SELECT count(*) FROM ledger_meta").fetchone() == (1,)


def test_ledger_keeps_its_id_and_content_when_it_is_opened_again(tmp_path: Path) -> None:
    """The id is the file's, not the process's."""
    time = StillClock()
    first = open_ledger(tmp_path / "ledger.db", time)
    first.open_operation(refund_intent("4417"))
    before = first.snapshot()
    first.close()
    again = open_ledger(tmp_path / "ledger.db", time)
    assert again.snapshot() == before
    assert len(before.label) == 8
    again.close()


def test_ledger_is_unavailable_and_then_works_when_its_folder_appears(tmp_path: Path) -> None:
    """A failure is not remembered, and its message holds no path."""
    folder = tmp_path / "later"
    ledger = Ledger(
        LedgerSettings(url=f"sqlite:///{folder}/ledger.db"), policy=SettlementPolicy(), clock=StillClock().clock()
    )
    with pytest.raises(LedgerUnavailable) as caught:
        ledger.snapshot()
    assert str(caught.value) == (
        "ledger: database: must be read, got FileNotFoundError\n"
        "hint: check ledger.url, the rights of its directory, and the free space"
    )
    folder.mkdir()
    assert ledger.snapshot().counters == {}
    ledger.close()


def test_ledger_is_unavailable_and_makes_no_new_file_when_its_file_is_taken_away(tmp_path: Path) -> None:
    """What was written is missed, not begun anew; brought back, it is used again, also by a ledger that was closed."""
    path, away = tmp_path / "ledger.db", tmp_path / "away.db"
    ledger = open_ledger(path, StillClock())
    ledger.open_operation(refund_intent("1"))
    before = ledger.snapshot()
    for close in (False, True):
        if close:
            ledger.close()
        path.rename(away)
        for use in (ledger.snapshot, lambda: ledger.open_operation(refund_intent("2"))):
            with pytest.raises(LedgerUnavailable) as caught:
                use()
            assert str(caught.value) == (
                "ledger: database: must stay where it is, got no file\n"
                "hint: put the file back, or start the process again to begin a new ledger"
            )
        assert not path.exists()
        away.rename(path)
        assert ledger.snapshot() == before
    ledger.close()


def test_ledger_is_unavailable_when_its_folder_is_taken_away(tmp_path: Path) -> None:
    """Nothing goes on in a file that nobody can find any more, not even on connections that are open."""
    folder = tmp_path / "folder"
    folder.mkdir()
    ledger = open_ledger(folder / "ledger.db", StillClock())
    ledger.snapshot()
    folder.rename(tmp_path / "elsewhere")
    folder.touch()
    with pytest.raises(LedgerUnavailable, match="must be read, got NotADirectoryError"):
        ledger.snapshot()
    with pytest.raises(LedgerUnavailable, match="must be read, got NotADirectoryError"):
        ledger.open_operation(refund_intent("1"))
    ledger.close()


def test_ledger_goes_on_in_the_new_file_when_its_file_is_replaced(tmp_path: Path) -> None:
    """Old connections are given up, the tables are looked at again, and the registrations are written into it."""
    path, other = tmp_path / "ledger.db", tmp_path / "other.db"
    time = StillClock()
    ledger = open_ledger(path, time)
    ledger.open_operation(refund_intent("1"))
    before = ledger.snapshot()
    other.touch()
    for side in ("ledger.db-wal", "ledger.db-shm"):
        (tmp_path / side).unlink()
    other.replace(path)
    ledger.open_operation(refund_intent("2"))
    after = ledger.snapshot()
    assert after.ledger_id != before.ledger_id
    assert after.registrations == before.registrations
    assert after.effects[("refund", "unknown")].count == 1
    fresh = open_ledger(path, time)
    assert fresh.snapshot() == after
    fresh.close()
    ledger.close()


def test_ledger_is_unavailable_when_its_file_is_replaced_by_what_is_no_database(tmp_path: Path) -> None:
    """The replacement is looked at as a first file is, at every transaction until it can be used."""
    path, kept = tmp_path / "ledger.db", tmp_path / "kept"
    ledger = open_ledger(path, StillClock())
    before = ledger.snapshot()
    kept.mkdir()
    for file in list(tmp_path.glob("ledger.db*")):
        file.rename(kept / file.name)
    path.write_text("this is not a database, and long enough to be looked at\n" * 20)
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="must be read, got DatabaseError"):
            ledger.snapshot()
    for file in kept.iterdir():
        file.replace(tmp_path / file.name)
    assert ledger.snapshot() == before
    ledger.close()


def test_ledger_is_unavailable_when_its_file_is_replaced_and_the_old_log_lies_beside_it(tmp_path: Path) -> None:
    """What was written last would be mixed into the restored file; without the log that file is used."""
    path, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    ledger = open_ledger(path, StillClock())
    before = ledger.snapshot()
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(backup)) as to:
        source.backup(to)
    ledger.open_operation(refund_intent("1"))
    backup.replace(path)
    for _ in range(2):
        with pytest.raises(LedgerUnavailable) as caught:
            ledger.snapshot()
        assert str(caught.value) == (
            "ledger: database: must not lie beside the write-ahead log of another file\n"
            "hint: move the files ending in -wal and -shm away, which belong to the file before it"
        )
    for side in ("ledger.db-wal", "ledger.db-shm"):
        (tmp_path / side).unlink()
    assert ledger.snapshot() == before
    ledger.close()


def test_ledger_stays_with_its_file_when_the_working_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is that of the folder in which the ledger was made."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = Ledger(
        LedgerSettings(url="sqlite:///ledger #1.db"),
        policy=SettlementPolicy(),
        clock=StillClock().clock(),
    )
    monkeypatch.chdir(elsewhere)
    before = ledger.snapshot()
    ledger.close()
    assert ledger.snapshot() == before
    ledger.close()
    assert list(elsewhere.iterdir()) == []
    assert (tmp_path / "ledger #1.db").is_file()


def test_ledger_is_unavailable_when_another_process_holds_the_write_lock(tmp_path: Path) -> None:
    """A write waits no longer than the busy time-out; its message holds no value."""
    path = tmp_path / "ledger.db"
    open_ledger(path, StillClock()).close()
    settings = LedgerSettings(url=f"sqlite:///{path}", busy_timeout_s=0.0)
    ledger = Ledger(settings, policy=SettlementPolicy(), clock=StillClock().clock())
    ledger._registry.workflows = open_ledger(path, StillClock())._registry.workflows
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable) as caught:
            ledger.open_operation(refund_intent("secret-4417"))
        other.execute("ROLLBACK")
    assert caught.value.message == "ledger: database: must be written, got OperationalError"
    assert "4417" not in f"{caught.value.__cause__}"
    ledger.open_operation(refund_intent("secret-4417"))
    ledger.close()


def test_ledger_is_unavailable_when_the_file_is_no_database(tmp_path: Path) -> None:
    """A file of something else is not overwritten."""
    path = tmp_path / "ledger.db"
    path.write_text("this is not a database, and long enough to be looked at\n" * 20)
    ledger = Ledger(LedgerSettings(url=f"sqlite:///{path}"), policy=SettlementPolicy(), clock=StillClock().clock())
    with pytest.raises(LedgerUnavailable, match="must be read, got DatabaseError"):
        ledger.snapshot()
    ledger.close()
    assert path.read_text().startswith("this is not a database")


def test_ledger_is_unavailable_when_a_newer_version_has_written_it(tmp_path: Path) -> None:
    """An old program does not touch tables that it does not know."""
    path = tmp_path / "ledger.db"
    open_ledger(path, StillClock()).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    ledger = Ledger(LedgerSettings(url=f"sqlite:///{path}"), policy=SettlementPolicy(), clock=StillClock().clock())
    with pytest.raises(LedgerUnavailable) as caught:
        ledger.snapshot()
    assert caught.value.message == "ledger: schema: must be at revision 0002 or older, got an unknown revision"
    ledger.close()


def test_revisions_build_the_tables_when_they_are_run(tmp_path: Path) -> None:
    """The migrated database has the tables and indexes of the schema, and the head is the revision it names."""
    ledger = open_ledger(tmp_path / "ledger.db", StillClock())
    with ledger._database.read() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
        found = sorted(
            connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql NOT NULL").scalars()
        )
    ledger.close()
    scratch = sa.create_engine("sqlite://")
    with scratch.begin() as connection:
        METADATA.create_all(connection)
        wanted = sorted(
            connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql NOT NULL").scalars()
        )
    scratch.dispose()
    assert found == wanted
    scripts = ScriptDirectory(str(Path(handoffwatch.ledger.migrations.__file__).parent))
    assert scripts.get_current_head() == REVISION


@pytest.mark.parametrize(
    "module",
    [
        "cases",
        "claims",
        "evals",
        "evidence",
        "handoffs",
        "operations",
        "pruning",
        "registered",
        "reviews",
        "runs",
        "snapshot",
        "tally",
        "verifications",
        "violations",
        "waits",
    ],
)
def test_statements_compile_for_postgresql_when_they_are_built_once(module: str) -> None:
    """Nothing in the statements is SQLite's alone."""
    names = vars(sys.modules[f"handoffwatch.ledger.{module}"]).values()
    found = [value.clause if isinstance(value, Statement) else value for value in names]
    statements = [value for value in found if isinstance(value, sa.Executable | sa.TextClause)]
    assert statements
    for statement in statements:
        assert str(statement.compile(dialect=postgresql.dialect()))


def test_ledger_package_imports_no_database_library_when_nothing_is_used() -> None:
    """The cost comes with the first operation."""
    code = (
        "import sys, handoffwatch.ledger, handoffwatch.settlement, handoffwatch.outcomes\n"
        "from handoffwatch.settlement import RecordVerifier, Settler\n"
        "from handoffwatch.ledger.facts import OpenOperation\n"
        "assert not {'sqlalchemy', 'alembic'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ledger_imports_no_alembic_when_the_database_is_at_its_head(tmp_path: Path) -> None:
    """The second process to open a ledger pays nothing for migrations."""
    open_ledger(tmp_path / "ledger.db", StillClock()).close()
    code = _FIRST_USER + "assert 'alembic' not in sys.modules\n"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "ledger.db"), "a"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
        stdout=subprocess.DEVNULL,
    )


def test_ledger_works_in_a_child_when_the_process_forks(tmp_path: Path) -> None:
    """A connection is never shared between two processes."""
    time = StillClock()
    ledger = open_ledger(tmp_path / "ledger.db", time)
    ledger.open_operation(refund_intent("1", run_id="r-parent"))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ledger.open_operation(refund_intent("2", run_id="r-child"))
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    for run_id in ("r-parent", "r-child"):
        ledger.record_claim(run_id, "refunds", Claim.of("done"))
    due: list[OpenOperation] = ledger.due(time.now_s, limit=10, kinds=("refund",))
    assert {operation.intent.run_id for operation in due} == {"r-parent", "r-child"}
    ledger.close()


def test_ledger_works_in_a_child_when_another_thread_was_writing(tmp_path: Path) -> None:
    """The fork waits for the write: the child would take its lock for one that is never given back."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORK_DURING_WRITE, str(tmp_path / "ledger.db")],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "3\n", "")


def test_ledger_has_no_attribute_when_the_name_is_unknown() -> None:
    """The lazy package answers as any module does."""
    with pytest.raises(AttributeError, match=r"module 'handoffwatch.ledger' has no attribute 'Nothing'"):
        handoffwatch.ledger.Nothing  # noqa: B018
