"""The self-test of a watch: its gauge, its thread, its log lines, and what it leaves alone."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from handoffwatch import Clock, Contract, RegistrationError, Settings, Watch, rule
from handoffwatch.demo.desk import open_desk
from handoffwatch.handoffs.settings import HandoffSettings
from handoffwatch.runtime.selftest import SelfTester
from support.telemetry import counted, samples
from support.watched import Time, new_watched

GAUGE = "watchdog_selftest_last_success_timestamp_seconds"
WAIT_S = 30.0


class Moods:
    """What the rule of a contract answers."""

    def __init__(self) -> None:
        self.answer: object = True

    def contract(self) -> type[Contract]:
        """Return a contract whose one rule answers so."""
        moods = self

        class Moody(Contract):
            order_id: str

            @rule("moody", "the receiver needs luck")
            def lucky(self) -> Any:
                return moods.answer

        return Moody


def _gauge(watch: Watch) -> float:
    return samples(watch.registry)[f"handoffwatch_{GAUGE}"]


def _tester(watch: Watch) -> SelfTester:
    return SelfTester(watch.watchdog, watch.recorder, watch.clock)


def _lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_gauge_moves_when_all_contracts_come_out_right() -> None:
    """It is 0 until the first round, and then the time of the last good one; nothing else is counted."""
    watched = new_watched()
    watch, tester = watched.watch, _tester(watched.watch)
    before = {name: value for name, value in samples(watch.registry).items() if not name.endswith(GAUGE)}
    assert _gauge(watch) == 0

    assert tester.run_once()
    assert _gauge(watch) == 1_000_000
    watched.time.now_s += 60
    assert tester.run_once()
    assert _gauge(watch) == 1_000_060

    assert {name: value for name, value in samples(watch.registry).items() if not name.endswith(GAUGE)} == before
    assert watched.spans.ended == ()


def test_gauge_stays_when_a_rule_breaks(caplog: pytest.LogCaptureFixture) -> None:
    """One contract that fails is enough; it is told once when it begins, once when it changes, once when it ends."""
    caplog.set_level(logging.INFO, logger="handoffwatch")
    watched, moods = new_watched(), Moods()
    watch = watched.watch
    watch.route("reviewer->clerk", contract=moods.contract())
    tester = _tester(watch)
    told = []
    for answer in (True, False, False, "no answer", "no answer", True, True):
        moods.answer = answer
        watched.time.now_s += 60
        tester.run_once()
        told.append(_gauge(watch) - 1_000_000)

    assert told == [60, 60, 60, 60, 60, 360, 420]
    where = "route=reviewer->clerk schema_version=1"
    assert _lines(caplog) == [
        ("ERROR", f"self-test failed: {where}: the good handoff was stopped: moody at payload"),
        ("ERROR", f"self-test failed: {where}: the good handoff was stopped: check_failed at payload"),
        ("INFO", f"self-test right again: {where}"),
    ]
    assert counted(watch.registry, "internal_errors_total") == {}


def test_gauge_stays_when_no_good_handoff_can_be_derived(caplog: pytest.LogCaptureFixture) -> None:
    """The owner is told once what to give."""
    moods = Moods()
    moods.answer = False
    watch = Watch(settings=Settings(), clock=Time().clock())
    watch.route("reviewer->clerk", contract=moods.contract())
    tester = _tester(watch)

    assert [tester.run_once(), tester.run_once()] == [False, False]
    assert _gauge(watch) == 0
    assert _lines(caplog) == [
        (
            "WARNING",
            "self-test impossible: route=reviewer->clerk schema_version=1: no good handoff can be derived: "
            "the good handoff was stopped: moody at payload; give the contract a good_example",
        )
    ]


def test_gauge_stays_when_nothing_is_registered() -> None:
    """A round that tested nothing is no success; a route without a contract has nothing to test."""
    watch = Watch(settings=Settings(), clock=Time().clock())
    assert not _tester(watch).run_once()
    watch.route("planner->executor", unchecked=True)
    assert not _tester(watch).run_once()
    assert _gauge(watch) == 0


def test_fault_is_counted_once_when_a_type_of_a_contract_raises(caplog: pytest.LogCaptureFixture) -> None:
    """The host goes on, and the other contracts are tested all the same."""

    class Odd(BaseModel):
        @classmethod
        def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
            raise ZeroDivisionError("1234 is secret")

    class Holder(Contract):
        odd: Odd

    moods = Moods()
    watch = Watch(settings=Settings(), clock=Time().clock())
    watch.route("planner->executor", contract=Holder)
    watch.route("reviewer->clerk", contract=moods.contract())
    tester = _tester(watch)
    assert not tester.run_once()
    moods.answer = False
    assert not tester.run_once()

    assert counted(watch.registry, "internal_errors_total") == {'internal_errors_total{component="watchdog"}': 1}
    assert _lines(caplog) == [
        ("ERROR", "internal error: component=watchdog error=ZeroDivisionError"),
        (
            "WARNING",
            "self-test impossible: route=planner->executor schema_version=1: no good handoff can be derived: "
            "its fields raised ZeroDivisionError; give the contract a good_example",
        ),
        (
            "ERROR",
            "self-test failed: route=reviewer->clerk schema_version=1: the good handoff was stopped: moody at payload",
        ),
    ]


def test_fault_is_counted_when_the_clock_raises() -> None:
    """Whatever breaks in here stays in here."""

    def broken() -> float:
        raise OSError

    watched = new_watched()
    tester = SelfTester(watched.watch.watchdog, watched.watch.recorder, Clock(wall_s=broken))
    assert not tester.run_once()
    assert counted(watched.watch.registry, "internal_errors_total") == {
        'internal_errors_total{component="watchdog"}': 1
    }


def _counting(rounds: int) -> tuple[Clock, threading.Event]:
    """Return a clock that sets the event when a self-test has asked it for the time so often."""
    asked, reached = [0], threading.Event()

    def wall_s() -> float:
        if threading.current_thread().name == "handoffwatch-selftest":
            asked[0] += 1
            if asked[0] > rounds:
                reached.set()
        return time.time()

    return Clock(wall_s=wall_s), reached


Threads = Callable[[], list[threading.Thread]]


@pytest.fixture
def selftests() -> Threads:
    """Return a function that lists the self-tests that go on since the test began."""

    def running() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "handoffwatch-selftest"]

    before = running()
    return lambda: [thread for thread in running() if thread not in before]


def _watch(contract: type[Contract], *, clock: Clock | None = None, every_s: float = 60.0) -> Watch:
    watch = Watch(settings=Settings(handoffs=HandoffSettings(selftest_every_s=every_s)), clock=clock)
    watch.route("reviewer->clerk", contract=contract)
    return watch


def _start(watch: Watch) -> None:
    watch.start_selftest()


def _serve(watch: Watch) -> None:
    watch.serve_metrics().close()


@pytest.mark.parametrize("start", [_start, _serve])
def test_selftest_goes_round_when_it_is_started(start: Callable[[Watch], None], selftests: Threads) -> None:
    """The first round is now, the next come by themselves, and closing the watch ends them."""
    clock, reached = _counting(6)
    watch = _watch(Moods().contract(), clock=clock, every_s=0.001)
    start(watch)
    try:
        assert reached.wait(WAIT_S)
        assert _gauge(watch) > 0
    finally:
        watch.close()
    assert selftests() == []


def test_selftest_has_one_thread_when_it_is_started_often(selftests: Threads) -> None:
    """Serving metrics twice tests no more often; closing does not wait for the next round."""
    watch = _watch(Moods().contract(), every_s=3600)
    for _ in range(3):
        watch.start_selftest()
    assert len(selftests()) == 1
    assert selftests()[0].daemon
    started_s = time.monotonic()
    watch.close()
    watch.close()
    assert time.monotonic() - started_s < 1
    assert selftests() == []


def test_selftest_is_off_when_its_interval_is_0(selftests: Threads) -> None:
    """The gauge stays at 0, unless the program asks for rounds of its own."""
    watch = _watch(Moods().contract(), every_s=0)
    _serve(watch)
    watch.start_selftest()
    assert selftests() == []
    assert counted(watch.registry, "watchdog_selftest_last_success_timestamp_seconds") == {}
    watch.start_selftest(every_s=3600)
    assert len(selftests()) == 1
    watch.close()


def test_selftest_ends_when_its_watch_is_forgotten(selftests: Threads) -> None:
    """A watch that nobody closed leaves no thread behind."""
    watch = _watch(Moods().contract(), every_s=3600)
    watch.start_selftest()
    (thread,) = selftests()
    del watch
    gc.collect()
    thread.join(WAIT_S)
    assert not thread.is_alive()


@pytest.mark.parametrize("every_s", [-1.0, float("nan"), float("inf")])
def test_selftest_is_refused_when_its_interval_is_no_time(every_s: float) -> None:
    """A wrong number would be a thread that never rests or never works."""
    watch = _watch(Moods().contract())
    with pytest.raises(RegistrationError) as caught:
        watch.start_selftest(every_s=every_s)
    assert str(caught.value) == (
        f"self-test: every_s: must be 0 to 86400 seconds, got {every_s}\n"
        "hint: leave it out to use handoffs.selftest_every_s"
    )


def test_selftest_is_right_when_the_watch_is_northwinds(tmp_path: Any) -> None:
    """The demo's contracts need no examples."""
    config = tmp_path / "handoffwatch.yaml"
    config.write_text(f"ledger: {{url: 'sqlite:///{tmp_path / 'ledger.db'}'}}\n")
    desk = open_desk("http://127.0.0.1:9", config=config)
    try:
        assert _tester(desk.watch).run_once()
    finally:
        desk.close()
