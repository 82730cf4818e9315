"""Handoffs of durable routes: what the ledger knows of a task, who may try, and when nobody may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handoffwatch.ledger import Admission, Ledger
from support.evidence import blocked
from support.outcomes import StillClock, open_ledger

ROUTE = "planner->executor"
FIRST = Admission(hops=0, repeats=0, is_stopped=False, is_consumed=False, is_taken=False, newest_base=None)


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


def reserve(
    ledger: Ledger, handoff_id: str = "h-1", *, task: str = "t-1", route: str = ROUTE, **more: Any
) -> Admission:
    """Open a handoff."""
    values = {"holder": "p-1", "digest": "d-1", "base": None, "lease_s": 60.0, **more}
    return ledger.open_handoff(task, route, handoff_id, **values)


def accept(ledger: Ledger, handoff_id: str = "h-1", *, task: str = "t-1", route: str = ROUTE, **more: Any) -> None:
    """Open a handoff and let its receiver take it."""
    reserve(ledger, handoff_id, task=task, route=route, **more)
    ledger.close_handoff(task, route, handoff_id, holder=more.get("holder", "p-1"), accepted=True)


def test_handoff_is_admitted_when_it_is_the_tasks_first(ledger: Ledger) -> None:
    """Nothing is known of the task yet."""
    assert reserve(ledger) == FIRST


def test_handoff_counts_the_hops_of_its_task_alone_when_there_are_several(ledger: Ledger) -> None:
    """Accepted ones and those in progress, on every route, and never itself."""
    accept(ledger, "h-1")
    accept(ledger, "h-2", route="executor->planner")
    reserve(ledger, "h-3", holder="p-2")
    accept(ledger, "h-4", task="t-2")
    assert reserve(ledger, "h-5").hops == 3
    assert reserve(ledger, "h-5").hops == 3


def test_handoff_counts_a_repeat_when_its_content_comes_back_to_the_route(ledger: Ledger) -> None:
    """Side by side, with another digest, on another route, or as its own earlier attempt it does not come back."""
    accept(ledger, "h-1", digest="same")
    reserve(ledger, "h-2", digest="same", holder="p-2")
    accept(ledger, "h-3", digest="other")
    accept(ledger, "h-4", digest="same", route="executor->planner")
    reserve(ledger, "h-5", digest="same")
    found = reserve(ledger, "h-5", digest="same")
    assert (found.hops, found.repeats) == (4, 1)

    accept(ledger, "h-6", digest="same", route="executor->planner")
    found = reserve(ledger, "h-7", digest="same")
    assert (found.hops, found.repeats) == (6, 2)


def test_handoff_leaves_no_hop_behind_when_it_was_not_accepted(ledger: Ledger) -> None:
    """What was stopped before its receiver is no hop, and its id is free again."""
    reserve(ledger, "h-1")
    ledger.close_handoff("t-1", ROUTE, "h-1", holder="p-1", accepted=False)
    assert reserve(ledger, "h-2").hops == 0
    assert not reserve(ledger, "h-1", holder="p-2").is_taken


def test_handoff_is_consumed_when_its_receiver_took_it(ledger: Ledger, time: StillClock) -> None:
    """Nobody can send it again, however long ago it was, not even who sent it."""
    accept(ledger)
    time.advance(1e6)
    for holder in ("p-1", "p-2"):
        found = reserve(ledger, holder=holder)
        assert (found.is_consumed, found.is_taken, found.hops) == (True, False, 0)


def test_handoff_stays_consumed_when_it_is_closed_again(ledger: Ledger) -> None:
    """A late word of its holder undoes nothing."""
    accept(ledger)
    ledger.close_handoff("t-1", ROUTE, "h-1", holder="p-1", accepted=False)
    assert reserve(ledger).is_consumed


def test_handoff_id_is_another_when_task_or_route_differ(ledger: Ledger) -> None:
    """A sender that counts from 1 in each task consumes nothing of the others."""
    accept(ledger)
    assert not reserve(ledger, task="t-2").is_consumed
    assert not reserve(ledger, route="executor->planner").is_consumed


def test_handoff_is_taken_when_another_holder_has_it(ledger: Ledger) -> None:
    """Who came second changes nothing: lease, digest and base are still the first one's."""
    reserve(ledger, holder="p-1", digest="first", base=7)
    assert reserve(ledger, holder="p-2", digest="second", base=9).is_taken
    assert not reserve(ledger, holder="p-1", digest="first", base=7).is_taken
    ledger.close_handoff("t-1", ROUTE, "h-1", holder="p-1", accepted=True)
    found = reserve(ledger, "h-2", digest="first")
    assert (found.repeats, found.newest_base) == (1, 7)


def test_handoff_is_taken_over_when_the_lease_has_run_out(ledger: Ledger, time: StillClock) -> None:
    """To the second; the holder whose lease ran out can then neither close it nor get it back."""
    reserve(ledger, holder="p-1", lease_s=60.0)
    time.advance(59.999)
    assert reserve(ledger, holder="p-2").is_taken
    time.advance(0.001)
    assert not reserve(ledger, holder="p-2").is_taken
    for accepted in (True, False):
        ledger.close_handoff("t-1", ROUTE, "h-1", holder="p-1", accepted=accepted)
        found = reserve(ledger, holder="p-1")
        assert (found.is_taken, found.is_consumed) == (True, False)
    ledger.close_handoff("t-1", ROUTE, "h-1", holder="p-2", accepted=True)
    assert reserve(ledger, holder="p-1").is_consumed


def test_handoff_has_a_new_lease_digest_and_base_when_its_holder_repairs_it(ledger: Ledger, time: StillClock) -> None:
    """A repair is the same handoff with another payload, and its time begins anew."""
    reserve(ledger, digest="bad", base=3, lease_s=60.0)
    time.advance(59)
    assert reserve(ledger, digest="good", base=4, lease_s=60.0) == FIRST
    time.advance(59)
    assert reserve(ledger, holder="p-2").is_taken
    found = reserve(ledger, "h-2", digest="good")
    assert (found.hops, found.repeats, found.newest_base) == (1, 1, 4)
    assert reserve(ledger, "h-2", digest="bad").repeats == 0


def test_handoff_of_a_dead_holder_is_a_hop_when_its_lease_has_run_out(ledger: Ledger, time: StillClock) -> None:
    """It may have been delivered, and a task that kills its process again and again meets the limit."""
    reserve(ledger, "h-1", lease_s=60.0)
    time.advance(3600)
    assert reserve(ledger, "h-2").hops == 1


@pytest.mark.parametrize(
    ("bases", "newest"),
    [((), None), ((None,), None), ((3,), 3), ((3, 5, 4), 5), ((None, 2), 2), ((0,), 0), ((2**53,), 2**53)],
)
def test_handoff_names_the_newest_base_when_others_carry_one(
    ledger: Ledger, bases: tuple[int | None, ...], newest: int | None
) -> None:
    """The largest of the task, its own left out."""
    for number, base in enumerate(bases):
        accept(ledger, f"h-{number}", base=base)
    assert reserve(ledger, "own", base=2**60).newest_base == newest
    assert reserve(ledger, "own", base=2**60).newest_base == newest


def test_route_is_stopped_for_its_task_when_a_handoff_was_closed_with_a_reason(ledger: Ledger) -> None:
    """Other routes and other tasks go on."""
    reserve(ledger)
    ledger.close_handoff("t-1", ROUTE, "h-1", holder="p-1", accepted=False, stop_reason="loop_limit")
    assert reserve(ledger, "h-2").is_stopped
    assert not reserve(ledger, "h-2", route="executor->planner").is_stopped
    assert not reserve(ledger, "h-2", task="t-2").is_stopped


def test_latch_keeps_its_first_reason_when_the_route_is_stopped_again(ledger: Ledger, time: StillClock) -> None:
    """What stopped it is what a person wants to know."""
    for reason in ("loop_limit", "repair_exhausted"):
        ledger.close_handoff("t-1", ROUTE, "h-1", holder="p-1", accepted=False, stop_reason=reason)
        time.advance(60)
    with ledger._database.read() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM ledger_latches").all()
    assert rows == [("t-1", ROUTE, 1_000_000.0, "loop_limit")]


def test_routes_go_on_when_a_person_reopens_them(ledger: Ledger) -> None:
    """One route, or all of the task; the number says how many were stopped."""
    for task, route in (("t-1", ROUTE), ("t-1", "executor->planner"), ("t-2", ROUTE)):
        ledger.close_handoff(task, route, "h-1", holder="p-1", accepted=False, stop_reason="loop_limit")
    assert ledger.reopen_route("t-1", ROUTE) == 1
    assert ledger.reopen_route("t-1", ROUTE) == 0
    assert not reserve(ledger, "h-2").is_stopped
    assert reserve(ledger, "h-2", route="executor->planner").is_stopped
    assert ledger.reopen_route("t-1") == 1
    assert reserve(ledger, "h-2", task="t-2").is_stopped


def test_evidence_is_a_case_when_a_handoff_is_closed_with_it(ledger: Ledger) -> None:
    """The close, the latch, the case and the violation are one transaction."""
    reserve(ledger)
    ledger.close_handoff(
        "t-1", ROUTE, "h-1", holder="p-1", accepted=False, stop_reason="repair_exhausted", evidence=blocked("h-1")
    )
    (case,) = ledger.cases(open_only=False)
    assert (case.subject, case.route) == ("h-1", ROUTE)
    assert reserve(ledger, "h-2").is_stopped
    assert ledger.record_eval("r-1", passed=True)
    assert ledger.snapshot().counters[("ledger_violations_before_eval_total", ("refunds",))] == 1


def test_nothing_is_closed_or_stopped_when_the_evidence_cannot_be_written(ledger: Ledger) -> None:
    """All of it or none of it."""
    reserve(ledger)
    bad = blocked(facts={"at": object()})
    with pytest.raises(TypeError):
        ledger.close_handoff("t-1", ROUTE, "h-1", holder="p-1", accepted=True, stop_reason="loop_limit", evidence=bad)
    found = reserve(ledger)
    assert (found.is_consumed, found.is_stopped) == (False, False)
