"""Registrations as rows: what an exporter without the program knows of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handoffwatch.ledger import Ledger, LedgerSettings
from handoffwatch.ledger.facts import Registration, RouteRegistration
from handoffwatch.outcomes import SettlementPolicy
from handoffwatch.vocabulary import Criticality, Mode
from support.evidence import DeclaredRoute
from support.outcomes import DeclaredWorkflow, StillClock, refund_kind

CRITICAL, ROUTINE = Criticality.CRITICAL, Criticality.ROUTINE


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger in which nothing is registered."""
    settings = LedgerSettings(url=f"sqlite:///{tmp_path / 'ledger.db'}")
    opened = Ledger(settings, policy=SettlementPolicy(), clock=StillClock().clock())
    yield opened
    opened.close()


def test_workflows_are_rows_when_they_have_operations_and_when_not(ledger: Ledger) -> None:
    """Evals and refused answers are counted for both, claims for those with operations."""
    ledger.register([DeclaredWorkflow("refunds", ("refund",)), DeclaredWorkflow("chat", ())], [refund_kind()])
    snapshot = ledger.snapshot()
    assert snapshot.workflows == ("chat", "refunds")
    assert snapshot.registrations == (Registration("refunds", "refund", CRITICAL),)
    assert snapshot.routes == ()


def test_routes_are_a_row_for_each_version_when_they_are_registered(ledger: Ledger) -> None:
    """A route without contracts has the version `other`."""
    ledger.register([], [], [DeclaredRoute(versions=("1", "2")), DeclaredRoute("a->b", (), Mode.SHADOW, ROUTINE)])
    assert ledger.snapshot().routes == (
        RouteRegistration("a->b", "other", Mode.SHADOW, ROUTINE),
        RouteRegistration("planner->executor", "1", Mode.ENFORCE, CRITICAL),
        RouteRegistration("planner->executor", "2", Mode.ENFORCE, CRITICAL),
    )


def test_route_keeps_the_rows_of_its_past_when_its_mode_changes(ledger: Ledger) -> None:
    """What was counted in shadow mode stays shown; the criticality is that of the last registration."""
    for mode, criticality in ((Mode.SHADOW, ROUTINE), (Mode.ENFORCE, ROUTINE), (Mode.ENFORCE, CRITICAL)):
        ledger.register([], [], [DeclaredRoute(mode=mode, criticality=criticality)])
    assert ledger.snapshot().routes == (
        RouteRegistration("planner->executor", "1", Mode.ENFORCE, CRITICAL),
        RouteRegistration("planner->executor", "1", Mode.SHADOW, ROUTINE),
    )


def test_registrations_are_written_with_the_next_step_when_the_ledger_was_replaced(
    tmp_path: Path, ledger: Ledger
) -> None:
    """A new file begins with what the program has registered."""
    ledger.register([DeclaredWorkflow("chat", ())], [], [DeclaredRoute()])
    before = ledger.snapshot()
    for file in tmp_path.iterdir():
        file.unlink()
    (tmp_path / "ledger.db").touch()
    ledger.record_violations("r-1", "chat", {})
    after = ledger.snapshot()
    assert after.ledger_id != before.ledger_id
    assert (after.workflows, after.routes) == (before.workflows, before.routes)
