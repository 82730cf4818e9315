"""The settler: reads what is due, and never calls an operation not_landed without an answer."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from handoffwatch.errors import LedgerUnavailable
from handoffwatch.events import CaseReviewed, EffectSettled, EffectVerified, Event, InternalErrorCaught
from handoffwatch.ledger import Ledger, LedgerSettings
from handoffwatch.outcomes import Claim, OperationKind, ReadBack, SettlementPolicy, Verification, is_sampled
from handoffwatch.settlement import RecordVerifier
from handoffwatch.vocabulary import (
    Cause,
    Claimed,
    Component,
    Criticality,
    Effect,
    Origin,
    ReviewKind,
    Ruling,
    ToolOutcome,
    VerificationResult,
)
from support.evidence import blocked, held
from support.outcomes import (
    StillClock,
    Store,
    new_settler,
    open_ledger,
    refund_intent,
    refund_kind,
    refund_receipt,
)


@pytest.fixture
def time() -> StillClock:
    """Time that stands still."""
    return StillClock()


@pytest.fixture
def store() -> Store:
    """The payments service."""
    return Store()


@pytest.fixture
def ledger(tmp_path: Path, time: StillClock) -> Iterator[Ledger]:
    """A ledger with a critical and a routine operation."""
    note = OperationKind("note", key="order_id", criticality=Criticality.ROUTINE)
    opened = open_ledger(tmp_path / "ledger.db", time, refund_kind(), note)
    yield opened
    opened.close()


def refund(ledger: Ledger, key: str = "4417", run_id: str = "r-1") -> str:
    """Refund an order, claim it done, and return the operation's id."""
    operation_id = ledger.open_operation(refund_intent(key, run_id=run_id))
    ledger.record_receipt(operation_id, ToolOutcome.OK, refund_receipt(key))
    ledger.record_claim(run_id, "refunds", Claim.of("done"))
    return operation_id


def results(events: list[Event]) -> list[str]:
    """Return the results of the read-backs in order."""
    return [str(event.result) for event in events if isinstance(event, EffectVerified)]


def test_settler_waits_for_the_window_and_then_settles_when_the_refund_is_missing(
    ledger: Ledger, time: StillClock, store: Store
) -> None:
    """Agent says a refund of 38.00 is done, the payments database has none: not_landed, missing, by the tool."""
    events: list[Event] = []
    settler = new_settler(ledger, time, refund_kind(store.verifier()), emit=events.append)
    operation_id = refund(ledger)
    started = time.now_s
    polls = []
    while not any(isinstance(event, EffectSettled) for event in events):
        if settler.run_once():
            polls.append(time.now_s - started)
        time.advance(1)
    assert polls == [0, 1, 3, 10, 30]
    assert results(events) == ["pending"] * 4 + ["not_landed"]
    assert events[-1] == EffectSettled(
        run_id="r-1",
        workflow="refunds",
        operation="refund",
        operation_id=operation_id,
        business_key="4417",
        criticality=Criticality.CRITICAL,
        claimed=Claimed.DONE,
        effect=Effect.NOT_LANDED,
        cause=Cause.MISSING,
        origin=Origin.TOOL,
        false_success=True,
        seconds=30.0,
    )
    time.advance(1e6)
    assert settler.run_once() == 0


@pytest.mark.parametrize("key", [4417, "x" * 300])
def test_settler_finds_the_record_when_only_the_claim_names_its_key(
    ledger: Ledger, time: StillClock, key: int | str
) -> None:
    """A store keyed by numbers, or by long texts, is asked as the claim stated the key."""
    events: list[Event] = []
    records = {key: {"order_id": key, "amount_cents": 3800, "status": "succeeded"}}
    settler = new_settler(ledger, time, refund_kind(RecordVerifier(by_key=records.get)), emit=events.append)
    ledger.record_claim("r-1", "refunds", Claim.of("partial", operations=[("refund", key)]))
    assert settler.run_once() == 1
    assert results(events) == ["landed"]


def test_settler_settles_as_landed_when_a_replica_was_late(ledger: Ledger, time: StillClock, store: Store) -> None:
    """Absent at first, there after three seconds."""
    events: list[Event] = []
    settler = new_settler(ledger, time, refund_kind(store.verifier()), emit=events.append)
    refund(ledger)
    settler.run_once()
    store.put("4417")
    time.advance(3)
    settler.run_once()
    assert results(events) == ["pending", "landed"]
    assert ledger.snapshot().claims == {}


def test_settler_settles_as_failed_when_a_pending_refund_fails_later(
    ledger: Ledger, time: StillClock, store: Store
) -> None:
    """A good state goes bad: pending for days, then failed."""
    events: list[Event] = []
    settler = new_settler(ledger, time, refund_kind(store.verifier()), emit=events.append)
    store.put("4417", status="pending")
    refund(ledger)
    for _ in range(20):
        settler.run_once()
        time.advance(3600)
    assert set(results(events)) == {"pending"}
    store.put("4417", status="failed")
    settler.run_once()
    assert isinstance(events[-1], EffectSettled)
    assert (events[-1].effect, events[-1].cause) == (Effect.NOT_LANDED, Cause.FAILED)


def test_settler_says_unknown_when_the_service_errs(ledger: Ledger, time: StillClock, store: Store) -> None:
    """Never not_landed, however long it lasts."""
    events: list[Event] = []
    settler = new_settler(ledger, time, refund_kind(store.verifier()), emit=events.append)
    store.error = PermissionError("401")
    refund(ledger)
    for _ in range(200):
        settler.run_once()
        time.advance(3600)
    assert set(results(events)) == {"unknown"}
    assert ledger.snapshot().effects[("refund", "unknown")].overdue == 1


class Raising:
    """A verifier with a fault."""

    def verify(self, _: ReadBack, /) -> Verification:
        """Raise."""
        raise ZeroDivisionError


def test_settler_counts_an_error_when_the_verifier_raises(ledger: Ledger, time: StillClock) -> None:
    """The effect stays as it was, and the operation is read again."""
    events: list[Event] = []
    settler = new_settler(ledger, time, refund_kind(Raising()), emit=events.append)
    refund(ledger)
    settler.run_once()
    time.advance(1)
    settler.run_once()
    assert results(events) == ["error", "error"]
    assert ledger.snapshot().effects[("refund", "unknown")].count == 1


def test_settler_says_unknown_when_the_kind_has_no_verifier(ledger: Ledger, time: StillClock) -> None:
    """Nobody can read it, so nobody knows."""
    events: list[Event] = []
    settler = new_settler(ledger, time, refund_kind(), emit=events.append)
    refund(ledger)
    settler.run_once()
    assert results(events) == ["unknown"]


def test_settler_reads_the_others_when_one_operation_is_bad(
    tmp_path: Path, ledger: Ledger, time: StillClock, store: Store
) -> None:
    """A fault of our own is counted and stops nobody else."""
    events: list[Event] = []
    for n in range(3):
        store.put(str(n))
        refund(ledger, str(n), run_id=f"r-{n}")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("UPDATE ledger_runs SET claimed = 'nonsense' WHERE run_id = 'r-0'")
    settler = new_settler(ledger, time, refund_kind(store.verifier()), emit=events.append)
    assert settler.run_once() == 2
    assert [event for event in events if isinstance(event, InternalErrorCaught)] == [
        InternalErrorCaught(Component.SETTLEMENT, "ValueError")
    ]
    assert results(events) == ["landed", "landed"]


def spoil(folder: Path, *run_ids: str) -> None:
    """Make the stored claims of these runs unreadable, a fault that every pass meets again."""
    with closing(sqlite3.connect(folder / "ledger.db")) as connection, connection:
        rows = [(run_id,) for run_id in run_ids]
        connection.executemany("UPDATE ledger_runs SET claimed = 'nonsense' WHERE run_id = ?", rows)


def test_settler_reaches_the_others_when_more_than_a_batch_is_bad(
    tmp_path: Path, ledger: Ledger, time: StillClock, store: Store
) -> None:
    """What cannot be handled is pushed back, so that it does not stand first for ever."""
    events: list[Event] = []
    for n in range(4):
        store.put(str(n))
        refund(ledger, str(n), run_id=f"r-{n}")
        time.advance(0.001)
    spoil(tmp_path, "r-0", "r-1", "r-2")
    settler = new_settler(ledger, time, refund_kind(store.verifier()), emit=events.append, batch_max=2)
    assert [settler.run_once() for _ in range(3)] == [0, 1, 0]
    assert results(events) == ["landed"]
    assert len([event for event in events if isinstance(event, InternalErrorCaught)]) == 3


def test_settler_tries_a_bad_operation_again_when_its_next_poll_comes(
    tmp_path: Path, ledger: Ledger, time: StillClock, store: Store
) -> None:
    """It is read at the times of any other, and settled once the fault is gone."""
    events: list[Event] = []
    store.put("4417")
    refund(ledger)
    spoil(tmp_path, "r-1")
    settler = new_settler(ledger, time, refund_kind(store.verifier()), emit=events.append)
    faults = []
    for second in range(11):
        before = len(events)
        settler.run_once()
        faults += [second] if len(events) > before else []
        time.advance(1)
    assert faults == [0, 1, 3, 10]
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("UPDATE ledger_runs SET claimed = 'done'")
    time.advance(30)
    assert settler.run_once() == 1
    assert results(events) == ["landed"]


def test_settler_skips_a_run_when_it_is_not_in_the_sample(ledger: Ledger, time: StillClock) -> None:
    """A routine operation outside the sample is never read, and its claim is settled as unchecked."""
    events: list[Event] = []
    note = OperationKind("note", key="order_id", criticality=Criticality.ROUTINE, verifier=Raising())
    settler = new_settler(ledger, time, note, emit=events.append)
    run_id = next(
        f"r-{n}" for n in range(1000) if not is_sampled(f"r-{n}", criticality=Criticality.ROUTINE, routine_sample=0.1)
    )
    ledger.record_claim(run_id, "refunds", Claim.of("partial", operations=[("note", "1")]))
    assert settler.run_once() == 1
    assert results(events) == ["skipped"]
    snapshot = ledger.snapshot()
    assert snapshot.counters[("ledger_claims_settled_total", ("refunds", "partial", "unchecked"))] == 1
    assert (snapshot.effects, snapshot.claims) == ({}, {})


def test_settler_uses_the_kinds_own_times_when_it_has_them(ledger: Ledger, time: StillClock, store: Store) -> None:
    """A shorter window settles sooner."""
    events: list[Event] = []
    kind = refund_kind(store.verifier(), read_back_window_s=0.0)
    settler = new_settler(ledger, time, kind, emit=events.append)
    refund(ledger)
    settler.run_once()
    assert results(events) == ["not_landed"]


def test_settlers_settle_each_operation_once_when_two_share_a_file(
    tmp_path: Path, time: StillClock, store: Store
) -> None:
    """Two settlers at once: every false success counted once, every event emitted once."""
    ledgers = [open_ledger(tmp_path / "ledger.db", time) for _ in range(2)]
    for n in range(16):
        if n % 2:
            store.put(str(n))
        refund(ledgers[0], str(n), run_id=f"r-{n}")
    events: list[Event] = []
    together = threading.Barrier(2)

    def settle(ledger: Ledger) -> None:
        kind = refund_kind(store.verifier(), read_back_window_s=0.0)
        settler = new_settler(ledger, time, kind, emit=events.append)
        together.wait(timeout=30)
        settler.run_once()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(settle, ledgers))
    settled = [event for event in events if isinstance(event, EffectSettled)]
    assert len(settled) == 16
    assert sum(event.false_success for event in settled) == 8
    snapshot = ledgers[0].snapshot()
    labels = ("refunds", "refund", "critical", "missing", "tool")
    assert snapshot.counters[("ledger_false_successes_total", labels)] == 8
    assert snapshot.counters[("ledger_claims_settled_total", ("refunds", "done", "landed"))] == 8
    assert not [event for event in events if isinstance(event, InternalErrorCaught)]
    for each in ledgers:
        each.close()


def test_settler_raises_when_the_ledger_is_down(tmp_path: Path, time: StillClock) -> None:
    """One pass says so to its caller."""
    ledger = open_ledger(tmp_path / "ledger.db", time)
    ledger.close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("DROP TABLE ledger_operations")
    settler = new_settler(ledger, time, refund_kind(), emit=lambda event: None)
    with pytest.raises(LedgerUnavailable):
        settler.run_once()
    ledger.close()


def test_settler_serves_on_and_counts_when_the_ledger_is_down(tmp_path: Path, time: StillClock) -> None:
    """The loop outlives the outage, and ends when it is told to."""
    ledger = open_ledger(tmp_path / "ledger.db", time)
    ledger.close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("DROP TABLE ledger_operations")
    stop = threading.Event()
    events: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        if len(events) == 3:
            stop.set()

    new_settler(ledger, time, refund_kind(), emit=emit, tick_s=0.001).serve(stop)
    assert events == [InternalErrorCaught(Component.LEDGER, "LedgerUnavailable")] * 3
    ledger.close()


def test_settler_serves_without_waiting_when_there_is_a_backlog(ledger: Ledger, time: StillClock, store: Store) -> None:
    """It waits a tick only when nothing was due."""
    for n in range(5):
        store.put(str(n))
        refund(ledger, str(n), run_id=f"r-{n}")
    stop = threading.Event()
    settled: list[Event] = []

    def emit(event: Event) -> None:
        if isinstance(event, EffectSettled):
            settled.append(event)
        if len(settled) == 5:
            stop.set()

    new_settler(ledger, time, refund_kind(store.verifier()), emit=emit, batch_max=2, tick_s=60.0).serve(stop)
    assert len(settled) == 5


def test_settler_stops_between_two_operations_when_it_is_told_to(
    ledger: Ledger, time: StillClock, store: Store
) -> None:
    """A process that drains does not wait for the whole batch; the rest stays due."""
    for n in range(5):
        store.put(str(n))
        refund(ledger, str(n), run_id=f"r-{n}")
    stop = threading.Event()
    settled: list[Event] = []

    def emit(event: Event) -> None:
        if isinstance(event, EffectSettled):
            settled.append(event)
        if len(settled) == 2:
            stop.set()

    new_settler(ledger, time, refund_kind(store.verifier()), emit=emit).serve(stop)
    assert len(settled) == 2
    assert len(ledger.due(time.now_s, limit=10, kinds=("refund",))) == 3


def test_settler_names_the_runs_span_when_the_intent_did(ledger: Ledger, time: StillClock) -> None:
    """What was stored before the call comes back with the read."""
    events: list[Event] = []
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    ledger.open_operation(replace(refund_intent("4417"), traceparent=traceparent))
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    new_settler(ledger, time, refund_kind(), emit=events.append).run_once()
    (event,) = events
    assert isinstance(event, EffectVerified)
    assert event.traceparent == traceparent


def test_settler_emits_how_long_a_read_took_when_it_has_ended(ledger: Ledger, time: StillClock) -> None:
    """The duration is on the clock that never steps back."""

    class Slow:
        def verify(self, _: ReadBack, /) -> Verification:
            time.advance(2)
            return Verification(Effect.LANDED)

    events: list[Event] = []
    operation_id = refund(ledger)
    new_settler(ledger, time, refund_kind(Slow()), emit=events.append).run_once()
    assert events[0] == EffectVerified(
        run_id="r-1",
        workflow="refunds",
        operation="refund",
        operation_id=operation_id,
        criticality=Criticality.CRITICAL,
        result=VerificationResult.LANDED,
        duration_s=2.0,
        traceparent="",
    )


def test_settler_emits_each_wait_once_when_people_have_done_something(ledger: Ledger, time: StillClock) -> None:
    """What they did on the command line becomes a sample in the process that settles."""
    events: list[Event] = []
    case_ids = [ledger.store_case(held(f"h-{n}", approval=n == 0)) for n in range(3)]
    time.advance(300)
    for case_id in case_ids:
        ledger.rule_case(case_id, Ruling.APPROVED, "")
    settler = new_settler(ledger, time, refund_kind(), emit=events.append, batch_max=2)
    assert [settler.run_once() for _ in range(3)] == [0, 0, 0]
    assert sorted(events) == [
        CaseReviewed(ReviewKind.APPROVAL, 300.0),
        CaseReviewed(ReviewKind.HELD, 300.0),
        CaseReviewed(ReviewKind.HELD, 300.0),
    ]


def test_settler_removes_what_is_old_once_an_hour(ledger: Ledger, time: StillClock) -> None:
    """Thirty days after it was over, as the settings say; in between it does not look."""
    settler = new_settler(ledger, time, refund_kind(), emit=lambda event: None)
    ledger.store_case(blocked())
    time.advance(30 * 86_400.0)
    settler.run_once()
    assert len(ledger.cases(open_only=False)) == 1
    time.advance(3_599)
    settler.run_once()
    assert len(ledger.cases(open_only=False)) == 1
    time.advance(1)
    settler.run_once()
    assert ledger.cases(open_only=False) == []


def test_settler_keeps_cases_and_handoffs_as_long_as_the_settings_say(tmp_path: Path, time: StillClock) -> None:
    """Each for its own number of days."""
    settings = LedgerSettings(url=f"sqlite:///{tmp_path / 'kept.db'}", cases_kept_days=2, handoffs_kept_days=1)
    ledger = Ledger(settings, policy=SettlementPolicy(), clock=time.clock())
    ledger.store_case(blocked())
    ledger.close_handoff("t-1", "a->b", "h-1", holder="p-1", accepted=False, stop_reason="loop_limit")
    left = []
    for _ in range(3):
        time.advance(86_400.0)
        new_settler(ledger, time, emit=lambda event: None).run_once()
        stopped = ledger.open_handoff("t-1", "a->b", "h-2", holder="p", digest="", base=None, lease_s=1.0).is_stopped
        left.append((len(ledger.cases(open_only=False)), stopped))
    assert left == [(1, True), (1, False), (0, False)]
    ledger.close()


def test_settler_removes_a_batch_with_each_pass_when_much_is_old(
    tmp_path: Path, ledger: Ledger, time: StillClock
) -> None:
    """Read-backs do not wait for all of it, and what grows old meanwhile is left to the next hour."""
    young_unix_s = time.now_s - 30 * 86_400.0
    rows = [(f"c-{n}", f"h-{n}", young_unix_s - 1 if n < 1001 else young_unix_s) for n in range(1002)]
    ledger.snapshot()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.executemany(
            "INSERT INTO ledger_cases"
            " (case_id, kind, subject, criticality, run_id, facts, opened_unix_s, resolved_unix_s, note)"
            " VALUES (?, 'blocked', ?, 'routine', 'r-1', '{}', 0, ?, '')",
            rows,
        )
    settler = new_settler(ledger, time, emit=lambda event: None)
    left = []
    for _ in range(6):
        settler.run_once()
        left.append(len(ledger.cases(open_only=False)))
        time.advance(1)
    assert left == [502, 2, 1, 1, 1, 1]
    time.advance(3_600)
    settler.run_once()
    assert ledger.cases(open_only=False) == []


def test_settler_leaves_the_house_as_it_is_when_it_is_told_to_stop(ledger: Ledger, time: StillClock) -> None:
    """A process that drains begins nothing new."""
    ledger.rule_case(ledger.store_case(held()), Ruling.APPROVED, "")
    events: list[Event] = []
    stop = threading.Event()
    stop.set()
    settler = new_settler(ledger, time, refund_kind(), emit=events.append)
    settler.run_once(stop)
    assert events == []
    settler.run_once()
    assert events == [CaseReviewed(ReviewKind.HELD, 0.0)]
