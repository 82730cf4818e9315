"""The ledger's series: exact, at 0 from the start, absent when the ledger is down."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy.dialects import sqlite

from handoffwatch import catalogue
from handoffwatch.ledger import FED, Ledger, LedgerCollector, LedgerSettings, cases, pruning, reviews, snapshot
from handoffwatch.outcomes import Claim, SettlementPolicy
from handoffwatch.vocabulary import Cause, Mode, ReviewSelection, ReviewVerdict, ToolOutcome, VerificationResult
from support.evidence import DeclaredRoute, drawn, refused_answer
from support.outcomes import DeclaredWorkflow, StillClock, open_ledger, refund_intent, refund_receipt

EXPOSITION = Path(__file__).parent / "exposition.txt"


@pytest.fixture
def time() -> StillClock:
    """Time that stands still."""
    return StillClock()


@pytest.fixture
def ledger(tmp_path: Path, time: StillClock) -> Iterator[Ledger]:
    """A ledger with the workflow `refunds`."""
    opened = open_ledger(tmp_path / "ledger.db", time)
    yield opened
    opened.close()


@pytest.fixture
def registry(ledger: Ledger) -> CollectorRegistry:
    """A registry with the ledger's collector."""
    made = CollectorRegistry()
    made.register(LedgerCollector(ledger))
    return made


def file_settings(path: Path) -> LedgerSettings:
    """Return the settings of a ledger in a file."""
    return LedgerSettings(url=f"sqlite:///{path}")


def exposed(registry: CollectorRegistry) -> str:
    """Return the exposition without its help lines."""
    lines = generate_latest(registry).decode().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("# HELP"))


def settle(ledger: Ledger, time: StillClock, key: str, result: VerificationResult) -> None:
    """Refund, claim and read back one order in a run of its own."""
    operation_id = ledger.open_operation(refund_intent(key, run_id=f"r-{key}"))
    ledger.record_receipt(operation_id, ToolOutcome.OK, refund_receipt(key))
    ledger.record_claim(f"r-{key}", "refunds", Claim.of("done"))
    (operation,) = ledger.due(time.now_s, limit=1, kinds=("refund",))
    cause = Cause.MISSING if result is VerificationResult.NOT_LANDED else None
    ledger.record_verification(operation, result, cause=cause, next_poll_unix_s=time.now_s + 30)


def test_collector_shows_the_exact_text_when_one_refund_is_false_and_one_pending(
    ledger: Ledger, time: StillClock, registry: CollectorRegistry
) -> None:
    """Every series of a small history, those at 0 included."""
    for key in ("1", "2"):
        operation_id = ledger.open_operation(refund_intent(key, run_id=f"r-{key}"))
        ledger.record_receipt(operation_id, ToolOutcome.OK, refund_receipt(key))
        ledger.record_claim(f"r-{key}", "refunds", Claim.of("done"))
    first, second = ledger.due(time.now_s, limit=10, kinds=("refund",))
    time.advance(30)
    ledger.record_verification(first, VerificationResult.NOT_LANDED, cause=Cause.MISSING)
    ledger.record_verification(second, VerificationResult.PENDING, next_poll_unix_s=time.now_s + 30)
    assert exposed(registry) == EXPOSITION.read_text().replace("LEDGER", ledger.snapshot().label)


def test_collector_shows_every_series_at_zero_when_nothing_happened(registry: CollectorRegistry) -> None:
    """A counter that is born at 1 never moves an increase; what has no oldest is absent."""
    lines = [line for line in exposed(registry).splitlines() if not line.startswith("#")]
    own = {'handoffwatch_collector_success{collector="ledger"} 1.0'}
    assert {line for line in lines if not line.endswith(" 0.0")} == own
    names = {line.split("{")[0].split(" ")[0] for line in lines}
    absent = {catalogue.LEDGER_EFFECTS_OLDEST.full_name, catalogue.LEDGER_CASES_OLDEST.full_name}
    assert names == {metric.full_name for metric in FED} - absent


def test_collector_uses_the_labels_and_help_of_the_catalogue_when_it_is_read(registry: CollectorRegistry) -> None:
    """Nothing about a metric is written a second time."""
    text = generate_latest(registry).decode()
    for metric in FED:
        assert f"# HELP {metric.full_name} {metric.help}\n" in text
    for family in registry.collect():
        for sample in family.samples:
            assert set(sample.labels) == set(catalogue.BY_NAME[sample.name.removeprefix("handoffwatch_")].label_names)


def test_collector_describes_without_reading_when_it_is_registered(tmp_path: Path, time: StillClock) -> None:
    """Registering must not open the ledger."""
    ledger = Ledger(file_settings(tmp_path / "absent" / "ledger.db"), policy=SettlementPolicy(), clock=time.clock())
    described = {family.name for family in LedgerCollector(ledger).describe()}
    assert {metric.full_name.removesuffix("_total") for metric in FED} == described
    assert not (tmp_path / "absent").exists()


def test_collector_leaves_the_series_out_when_the_ledger_is_down(tmp_path: Path, time: StillClock) -> None:
    """Absent is not 0: only the collector's own series stay, and the scrape works."""
    folder = tmp_path / "gone"
    registry = CollectorRegistry()
    ledger = Ledger(file_settings(folder / "ledger.db"), policy=SettlementPolicy(), clock=time.clock())
    registry.register(LedgerCollector(ledger))
    assert exposed(registry) == (
        "# TYPE handoffwatch_collector_success gauge\n"
        'handoffwatch_collector_success{collector="ledger"} 0.0\n'
        "# TYPE handoffwatch_collector_duration_seconds gauge\n"
        'handoffwatch_collector_duration_seconds{collector="ledger"} 0.0\n'
        "# TYPE handoffwatch_collector_regressions_total counter\n"
        'handoffwatch_collector_regressions_total{collector="ledger"} 0.0\n'
    )
    folder.mkdir()
    assert 'handoffwatch_collector_success{collector="ledger"} 1.0' in exposed(registry)
    ledger.close()


def test_collector_renews_the_ledger_id_when_an_older_copy_was_restored(
    tmp_path: Path, ledger: Ledger, time: StillClock, registry: CollectorRegistry
) -> None:
    """The series go on under a new id, so that no rate takes the fall for a reset; it is counted."""
    settle(ledger, time, "1", VerificationResult.LANDED)
    ledger.close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(tmp_path / "ledger.db", tmp_path / "backup.db")
    settle(ledger, time, "2", VerificationResult.LANDED)
    before = ledger.snapshot()
    assert 'regressions_total{collector="ledger"} 0.0' in exposed(registry)
    ledger.close()
    for side in ("ledger.db-wal", "ledger.db-shm"):
        (tmp_path / side).unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", tmp_path / "ledger.db")
    text = exposed(registry)
    after = ledger.snapshot()
    assert after.ledger_id != before.ledger_id
    assert f'ledger="{after.label}"' in text
    assert f'ledger="{before.label}"' not in text
    assert 'handoffwatch_collector_regressions_total{collector="ledger"} 1.0' in text
    assert 'handoffwatch_collector_regressions_total{collector="ledger"} 1.0' in exposed(registry)
    assert ledger.snapshot().ledger_id == after.ledger_id


def test_collector_leaves_the_series_out_when_the_file_was_taken_away_and_shows_them_when_it_is_back(
    tmp_path: Path, ledger: Ledger, time: StillClock, registry: CollectorRegistry
) -> None:
    """Connections that are still open do not go on showing a ledger that is not there."""
    settle(ledger, time, "1", VerificationResult.LANDED)
    before = exposed(registry)
    (tmp_path / "ledger.db").rename(tmp_path / "away.db")
    assert 'handoffwatch_collector_success{collector="ledger"} 0.0' in exposed(registry)
    assert "handoffwatch_ledger_" not in exposed(registry)
    (tmp_path / "away.db").rename(tmp_path / "ledger.db")
    assert exposed(registry) == before


def test_collector_shows_the_restored_values_when_a_backup_was_moved_into_place(
    tmp_path: Path, ledger: Ledger, time: StillClock, registry: CollectorRegistry
) -> None:
    """The process that had the old file open shows the new one under a new id, and counts the fall once."""
    settle(ledger, time, "1", VerificationResult.LANDED)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as source, closing(sqlite3.connect(tmp_path / "b.db")) as to:
        source.backup(to)
    settle(ledger, time, "2", VerificationResult.LANDED)
    before = ledger.snapshot()
    claims = 'handoffwatch_ledger_claims_total{claimed="done",ledger="LEDGER",workflow="refunds"}'
    assert f"{claims.replace('LEDGER', before.label)} 2.0" in exposed(registry)
    for side in ("ledger.db-wal", "ledger.db-shm"):
        (tmp_path / side).unlink()
    (tmp_path / "b.db").replace(tmp_path / "ledger.db")
    text = exposed(registry)
    after = ledger.snapshot()
    assert after.ledger_id != before.ledger_id
    assert f"{claims.replace('LEDGER', after.label)} 1.0" in text
    assert before.label not in text
    assert 'handoffwatch_collector_regressions_total{collector="ledger"} 1.0' in text
    settle(ledger, time, "3", VerificationResult.LANDED)
    assert f"{claims.replace('LEDGER', after.label)} 2.0" in exposed(registry)
    fresh = Ledger(file_settings(tmp_path / "ledger.db"), policy=SettlementPolicy(), clock=time.clock())
    assert fresh.snapshot() == ledger.snapshot()
    fresh.close()


def test_collector_shows_equal_series_when_two_exporters_read_one_ledger(
    tmp_path: Path, ledger: Ledger, time: StillClock, registry: CollectorRegistry
) -> None:
    """A second process without registrations of its own shows the same numbers."""
    settle(ledger, time, "1", VerificationResult.NOT_LANDED)
    other = Ledger(file_settings(tmp_path / "ledger.db"), policy=SettlementPolicy(), clock=time.clock())
    bare = CollectorRegistry()
    bare.register(LedgerCollector(other))
    assert exposed(bare) == exposed(registry)
    other.close()


def lines_of(registry: CollectorRegistry, metric: catalogue.Metric) -> dict[str, float]:
    """Return the value of each series of a metric by its labels, without the ledger's."""
    found = {}
    for line in exposed(registry).splitlines():
        if line.startswith(f"{metric.full_name}{{"):
            series, value = line.rsplit(" ", 1)
            found[re.sub(r'ledger="\w+",', "", series.removeprefix(metric.full_name))] = float(value)
    return found


def reviewed(route: str, version: str, mode: str) -> set[str]:
    """Return the series of the reviews of one contract."""
    return {
        f'{{mode="{mode}",route="{route}",schema_version="{version}",selection="{selection}",verdict="{verdict}"}}'
        for selection in ReviewSelection
        for verdict in ReviewVerdict
    }


def test_reviews_are_born_for_every_version_and_its_mode_when_routes_are_registered(
    ledger: Ledger, registry: CollectorRegistry
) -> None:
    """Unknown versions and unknown routes too, so that the first verdict moves a series that exists."""
    ledger.register([], [], [DeclaredRoute(versions=("1", "2")), DeclaredRoute("a->b", (), Mode.SHADOW)])
    expected = (
        reviewed("planner->executor", "1", "enforce")
        | reviewed("planner->executor", "2", "enforce")
        | reviewed("planner->executor", "other", "enforce")
        | reviewed("a->b", "other", "shadow")
        | reviewed("other", "other", "enforce")
    )
    assert lines_of(registry, catalogue.LEDGER_HANDOFF_REVIEWS) == dict.fromkeys(expected, 0.0)


def test_workflow_without_operations_bears_evals_and_reviews_and_no_claims_when_it_is_registered(
    ledger: Ledger, registry: CollectorRegistry
) -> None:
    """Its runs can be evaluated and its answers refused; it has nothing to claim."""
    ledger.register([DeclaredWorkflow("chat", ())], [])
    assert {series for series in lines_of(registry, catalogue.LEDGER_FINAL_EVALS) if 'workflow="chat"' in series} == {
        f'{{crossings="{crossings}",result="{result}",workflow="chat"}}'
        for crossings in ("kept", "violated")
        for result in ("passed", "failed")
    }
    for metric in (catalogue.LEDGER_VIOLATIONS_BEFORE_EVAL, catalogue.LEDGER_GUARD_REVIEWS):
        assert any('workflow="chat"' in series for series in lines_of(registry, metric))
    assert not any('workflow="chat"' in series for series in lines_of(registry, catalogue.LEDGER_CLAIMS))


def test_series_that_were_born_move_when_people_judge_and_runs_are_evaluated(
    ledger: Ledger, registry: CollectorRegistry
) -> None:
    """No series exists afterwards that did not exist before."""
    metrics = (
        catalogue.LEDGER_HANDOFF_REVIEWS,
        catalogue.LEDGER_GUARD_REVIEWS,
        catalogue.LEDGER_FINAL_EVALS,
        catalogue.LEDGER_VIOLATIONS_BEFORE_EVAL,
    )
    ledger.register([], [], [DeclaredRoute()])
    before = {metric.name: lines_of(registry, metric) for metric in metrics}
    for evidence in (drawn(), refused_answer(selection=ReviewSelection.FORCED)):
        ledger.label_review(ledger.store_case(evidence), ReviewVerdict.FALSE_BLOCK, "")
    ledger.record_eval("r-1", passed=True)
    after = {metric.name: lines_of(registry, metric) for metric in metrics}
    assert {name: series.keys() for name, series in after.items()} == {
        name: series.keys() for name, series in before.items()
    }
    moved = {name: sum(series.values()) for name, series in after.items()}
    assert moved == {
        "ledger_handoff_reviews_total": 1,
        "ledger_guard_reviews_total": 1,
        "ledger_final_evals_total": 1,
        "ledger_violations_before_eval_total": 2,
    }


def plan(ledger: Ledger, statement: sa.ClauseElement) -> list[str]:
    """Return how SQLite will run a statement."""
    text = str(statement.compile(dialect=sqlite.dialect(paramstyle="named")))
    values = {"now": 1.0, "before": 1.0, "limit": 1, "param_1": 1, "param_2": 0}
    with ledger._database.read() as connection:
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)]


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (snapshot._EFFECTS, "ix_ledger_operations_open"),
        (snapshot._CLAIMS, "ix_ledger_runs_open"),
        (snapshot._CASES, "ix_ledger_cases_open"),
    ],
)
def test_scrape_reads_open_rows_alone_when_many_are_settled(
    ledger: Ledger, statement: sa.Select[*tuple[object, ...]], index: str
) -> None:
    """The cost of a scrape does not grow with what was settled."""
    (step,) = plan(ledger, statement)
    assert index in step


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (cases._LIST.where(cases._C.resolved_unix_s.is_(None)), "ix_ledger_cases_open"),
        (reviews._LIST_OPEN, "ix_ledger_reviews_open"),
        (pruning._CASES, "ix_ledger_cases_resolved"),
        (pruning._DELETE_HANDOFFS, "ix_ledger_handoffs_expires"),
    ],
    ids=["open cases", "open reviews", "old cases", "old handoffs"],
)
def test_lists_and_pruning_begin_with_an_index_when_many_are_resolved(
    ledger: Ledger, statement: sa.ClauseElement, index: str
) -> None:
    """What is not asked for is not read."""
    steps = plan(ledger, statement)
    assert any(index in step for step in steps)
    assert not [step for step in steps if step.startswith("SCAN") and "USING" not in step]
