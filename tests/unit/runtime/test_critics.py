"""Asking a critic: sampled, limited, counted, heard as a flag, and never in the handoff's way."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from handoffwatch import ToolDown
from handoffwatch.events import CriticAnswered, Event, UsageReported
from handoffwatch.handoffs.critique import Critic, CriticAnswer, CriticOutcome, CriticPolicy, CriticRequest
from handoffwatch.recording.logs import log
from handoffwatch.runtime.critics import CriticBudget, criticise
from handoffwatch.runtime.drivers import LIMITED_MAX, drive, drive_async
from handoffwatch.vocabulary import CheckPurpose, CriticResult, Reaction, RiskSignal
from support.hostile_values import EvilAttributes, EvilClass, EvilComparison, NamelessError
from support.telemetry import Spans
from support.watched import Time, handoff

WORDS = "The amount is ten times that of the order."
LONG_S = 60.0
SIGNALS = frozenset({RiskSignal.LARGE_PAYLOAD, RiskSignal.LOW_CONFIDENCE})
POLICY = CriticPolicy(signals=SIGNALS, time_s_max=LONG_S)
HASTY = CriticPolicy(signals=SIGNALS, time_s_max=0.01)
USER: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


class Asked:
    """One question to a critic in small: a request, a budget, and the events that it leaves."""

    def __init__(self, policy: CriticPolicy = POLICY, *, chance: float = 0.5) -> None:
        self.policy = policy
        self.time = Time(chance=chance)
        self.spent = CriticBudget()
        self.events: list[Event] = []
        self.request = CriticRequest(
            route="planner->executor",
            source="planner",
            target="executor",
            run_id="r-1",
            handoff_id="h-1",
            attempt=1,
            handoff=handoff(),
            signals=SIGNALS,
            reasons=("low_confidence",),
        )

    def flow(self, critic: Any) -> Any:
        """Return the flow that asks this critic."""
        return criticise(
            critic, self.policy, self.request, clock=self.time.clock(), spent=self.spent, emit=self.events.append
        )

    def plain(self, critic: Any) -> CriticOutcome:
        """Ask in plain code."""
        return drive(self.flow(critic), self.time.clock())  # type: ignore[no-any-return]

    def in_loop(self, critic: Any) -> CriticOutcome:
        """Ask in async code."""
        return asyncio.run(drive_async(self.flow(critic), self.time.clock()))  # type: ignore[no-any-return]

    @property
    def answered(self) -> CriticAnswered:
        """The only event of its kind."""
        (found,) = [event for event in self.events if isinstance(event, CriticAnswered)]
        return found


class Posing:
    """Says that it is an answer, and is none."""

    __class__ = CriticAnswer  # type: ignore[assignment]


Way = Callable[[Asked, Any], CriticOutcome]

both_ways = pytest.mark.parametrize("ask", [Asked.plain, Asked.in_loop], ids=["plain", "async"])


def _answering(answer: object) -> Critic:
    return lambda _: answer  # type: ignore[return-value]


def _raising(error: BaseException) -> Critic:
    def critic(_: CriticRequest) -> CriticAnswer:
        raise error

    return critic


def _never(_: CriticRequest) -> CriticAnswer:
    raise AssertionError("the critic was called")


def _until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so; a slow machine may take its time."""
    deadline_s = time.monotonic() + LONG_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hanging critics wait for; it opens when the test is over. No thread of another test is in the way."""
    opened = threading.Event()
    _until(_no_thread_is_left)
    yield opened
    opened.set()
    _until(_no_thread_is_left)


def _no_thread_is_left() -> bool:
    return all(thread.name != "handoffwatch-limited" for thread in threading.enumerate())


# the answer


@both_ways
@pytest.mark.parametrize("reaction", ["flag", "warn"])
def test_critic_is_heard_when_it_has_a_concern(ask: Way, reaction: Any) -> None:
    """One finding, the words for the case, one event of each kind."""
    asked = Asked()

    def critic(_: CriticRequest) -> CriticAnswer:
        asked.time.now_s += 2.5
        return CriticAnswer(WORDS, reaction=reaction, tokens=900, cost_usd=0.002)

    outcome = ask(asked, critic)

    assert outcome == CriticOutcome(CriticResult.CONCERN, WORDS, Reaction(reaction), 900, 0.002, 2.5)
    assert [(found.code, found.stage, found.reaction) for found in outcome.findings] == [
        ("critic_concern", "critic", reaction)
    ]
    signals = (RiskSignal.LOW_CONFIDENCE, RiskSignal.LARGE_PAYLOAD)
    assert asked.events == [
        CriticAnswered("r-1", "planner->executor", "h-1", CriticResult.CONCERN, 2.5, signals),
        UsageReported("r-1", "planner->executor", CheckPurpose.CRITIC, 900, 0.002),
    ]


@both_ways
def test_critic_leaves_no_finding_when_it_is_content(ask: Way) -> None:
    """Its usage is counted all the same."""
    asked = Asked()
    outcome = ask(asked, _answering(CriticAnswer(tokens=10)))
    assert outcome == CriticOutcome(CriticResult.NO_CONCERN, tokens=10)
    assert outcome.findings == ()
    assert asked.events[1:] == [UsageReported("r-1", "planner->executor", CheckPurpose.CRITIC, 10, 0.0)]


def test_critic_may_be_a_coroutine_function_when_the_code_is_async() -> None:
    """It is awaited on the loop."""

    async def critic(request: CriticRequest) -> CriticAnswer:
        await asyncio.sleep(0)
        return CriticAnswer(f"{request.source} and {threading.current_thread() is threading.main_thread()}")

    assert Asked().in_loop(critic).concern == "planner and True"


def test_critic_may_be_an_object_when_it_can_be_called() -> None:
    """An object with an async `__call__` is a coroutine function too."""

    class Model:
        async def __call__(self, request: CriticRequest) -> CriticAnswer:
            await asyncio.sleep(0)
            return CriticAnswer(f"attempt {request.attempt}")

    assert Asked().in_loop(Model()).concern == "attempt 1"


@both_ways
def test_critic_gets_a_copy_of_the_handoff_when_it_is_asked(ask: Way) -> None:
    """What it does to its copy, now or after its limit, does not reach the receiver."""
    asked = Asked()
    seen: list[CriticRequest] = []

    def critic(request: CriticRequest) -> CriticAnswer:
        seen.append(dataclasses.replace(request, handoff=dict(request.handoff)))
        request.handoff["payload"]["result"] = "changed"
        request.handoff.clear()
        return CriticAnswer()

    ask(asked, critic)

    assert asked.request.handoff == handoff()
    assert [request.handoff["task_id"] for request in seen] == ["t-1"]
    assert dataclasses.replace(seen[0], handoff={}) == dataclasses.replace(asked.request, handoff={})


@both_ways
@pytest.mark.parametrize("reaction", ["block", "hold"])
def test_critic_is_heard_as_a_flag_when_it_wants_to_stop_the_handoff(ask: Way, reaction: Any) -> None:
    """It decides nothing."""
    outcome = ask(Asked(), _answering(CriticAnswer(WORDS, reaction=reaction)))
    assert [found.reaction for found in outcome.findings] == [Reaction.FLAG]


# what goes wrong


@both_ways
@pytest.mark.parametrize(
    ("critic", "note"),
    [
        (_raising(ValueError("CANARY")), "ValueError"),
        (_raising(TimeoutError()), "TimeoutError"),
        (_raising(StopIteration("CANARY")), "RuntimeError"),
        (_raising(StopAsyncIteration()), "StopAsyncIteration"),
        (_raising(NamelessError()), "NamelessError"),
        (_raising(ToolDown("tool model: the call failed", text="CANARY")), "ToolDown"),
        (lambda _: CriticAnswer(WORDS, tokens=-1), "ValueError"),
        (lambda _: CriticAnswer(WORDS, cost_usd=math.nan), "ValueError"),
        (lambda _: CriticAnswer(WORDS, cost_usd=math.inf), "ValueError"),
        (lambda _: CriticAnswer(WORDS, tokens=10**30), "ValueError"),
        (lambda _: CriticAnswer(EvilComparison()), "ValueError"),  # type: ignore[arg-type]
        (lambda: CriticAnswer(), "TypeError"),
        (_answering(None), "the answer is null and no CriticAnswer"),
        (_answering("CANARY"), "the answer is text and no CriticAnswer"),
        (_answering({"concern": "CANARY"}), "the answer is an object and no CriticAnswer"),
        (_answering(Reaction.BLOCK), "the answer is Reaction and no CriticAnswer"),
        (_answering(Posing()), "the answer is Posing and no CriticAnswer"),
        (_answering(EvilComparison()), "the answer is EvilComparison and no CriticAnswer"),
        (_answering(EvilClass()), "RuntimeError"),
        (_answering(EvilAttributes()), "RuntimeError"),
        ("no function", "TypeError"),
    ],
)
def test_critic_is_an_error_when_it_gives_no_answer(ask: Way, critic: Any, note: str) -> None:
    """It is counted, the host hears nothing, and what was said goes no further."""
    asked = Asked()
    outcome = ask(asked, critic)
    assert outcome == CriticOutcome(CriticResult.ERROR, note=note)
    assert outcome.findings == ()
    assert asked.events == [asked.answered]
    assert (asked.answered.result, asked.answered.note) == (CriticResult.ERROR, note)


def test_critic_is_an_error_when_the_handoff_has_no_json_form() -> None:
    """A handoff that cannot be copied is not shown."""
    asked = Asked()
    asked.request.handoff["payload"] = object()
    assert asked.plain(_never) == CriticOutcome(CriticResult.ERROR, note="TypeError")


def test_critic_is_an_error_that_says_what_to_do_when_it_is_a_coroutine_function_in_plain_code(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log line names the way out, and no coroutine is left unawaited."""

    async def critic(_: CriticRequest) -> CriticAnswer:
        raise AssertionError("it was awaited")

    asked = Asked()
    assert asked.plain(critic).result is CriticResult.ERROR

    log(asked.answered)
    assert caplog.record_tuples == [
        (
            "handoffwatch",
            logging.WARNING,
            "critic failed: run_id=r-1 handoff_id=h-1 route=planner->executor signals=low_confidence,large_payload: "
            "the critic is a coroutine function, and this is plain code: use transfer_async",
        )
    ]


# chance and budget


@both_ways
@pytest.mark.parametrize(
    ("sample", "chance", "result"),
    [
        (1.0, 0.999, CriticResult.NO_CONCERN),
        (0.3, 0.299, CriticResult.NO_CONCERN),
        (0.3, 0.3, CriticResult.SKIPPED),
        (0.0, 0.0, CriticResult.SKIPPED),
    ],
)
def test_critic_is_asked_by_the_clocks_chance_when_a_share_is_named(
    ask: Way, sample: float, chance: float, result: CriticResult
) -> None:
    """What chance leaves out is counted as skipped, without a note."""
    asked = Asked(dataclasses.replace(POLICY, sample=sample), chance=chance)
    outcome = ask(asked, _answering(CriticAnswer()) if result is CriticResult.NO_CONCERN else _never)
    assert outcome == CriticOutcome(result)
    assert (asked.answered.result, asked.answered.note) == (result, "")


@both_ways
@pytest.mark.parametrize(
    "bounds", [{"tokens_max_per_run": 100}, {"cost_usd_max_per_run": 0.75}], ids=["tokens", "dollars"]
)
def test_critic_is_skipped_when_the_budget_of_the_run_is_used_up(ask: Way, bounds: dict[str, Any]) -> None:
    """The answer that passes the bound is the last; a run of its own has a budget of its own."""
    asked = Asked(dataclasses.replace(POLICY, **bounds))
    critic = _answering(CriticAnswer(tokens=50, cost_usd=0.375))
    results = [ask(asked, critic).result for _ in range(2)]
    assert results == [CriticResult.NO_CONCERN] * 2

    assert ask(asked, _never) == CriticOutcome(CriticResult.SKIPPED, note="the budget of the run is used up")
    assert [type(event) for event in asked.events[-2:]] == [UsageReported, CriticAnswered]
    assert ask(Asked(asked.policy), critic).result is CriticResult.NO_CONCERN


def test_budget_is_not_spent_when_the_critic_gives_no_answer() -> None:
    """Nobody knows what a failed call has cost."""
    asked = Asked(dataclasses.replace(POLICY, tokens_max_per_run=1))
    asked.plain(_raising(ValueError()))
    assert asked.plain(_answering(CriticAnswer())).result is CriticResult.NO_CONCERN


def test_budget_is_passed_by_at_most_the_calls_in_flight_when_50_threads_ask() -> None:
    """No answer is lost in the sum, and no call begins after the bound was reached."""
    asked = Asked(dataclasses.replace(POLICY, tokens_max_per_run=100))
    lock, start = threading.Lock(), threading.Barrier(50)
    calls: list[int] = []

    def critic(_: CriticRequest) -> CriticAnswer:
        with lock:
            calls.append(1)
        return CriticAnswer(tokens=1)

    def work() -> None:
        start.wait(LONG_S)
        for _ in range(5):
            asked.plain(critic)

    threads = [threading.Thread(target=work) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)

    reported = sum(event.tokens for event in asked.events if isinstance(event, UsageReported))
    results = [event.result for event in asked.events if isinstance(event, CriticAnswered)]
    assert reported == len(calls) == results.count(CriticResult.NO_CONCERN)
    assert 100 <= len(calls) < 100 + 50
    assert results.count(CriticResult.SKIPPED) == 250 - len(calls)


# time


@both_ways
def test_critic_is_left_behind_when_a_plain_one_takes_too_long(ask: Way, gate: threading.Event) -> None:
    """It is an error, and what it says afterwards is not counted."""
    asked = Asked(dataclasses.replace(HASTY, tokens_max_per_run=1))
    late: list[CriticAnswer] = []

    def hang(_: CriticRequest) -> CriticAnswer:
        gate.wait(LONG_S)
        late.append(CriticAnswer(WORDS, tokens=900))
        return late[0]

    assert ask(asked, hang) == CriticOutcome(CriticResult.ERROR, note="TimeoutError")
    gate.set()
    _until(lambda: bool(late))
    assert asked.events == [asked.answered]
    asked.policy = dataclasses.replace(asked.policy, time_s_max=LONG_S)
    assert ask(asked, _answering(CriticAnswer())).result is CriticResult.NO_CONCERN


def test_critic_is_cancelled_when_a_coroutine_takes_too_long() -> None:
    """It is an error, and nothing goes on."""
    seen: list[str] = []

    async def hang(_: CriticRequest) -> CriticAnswer:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")
        return CriticAnswer()

    assert Asked(HASTY).in_loop(hang) == CriticOutcome(CriticResult.ERROR, note="TimeoutError")
    assert seen == ["cancelled"]


def test_critic_is_skipped_when_too_many_hang(gate: threading.Event) -> None:
    """What is left behind is bounded in the process; when the threads end, critics are asked again."""

    def hang(_: CriticRequest) -> CriticAnswer:
        gate.wait(LONG_S)
        return CriticAnswer()

    for _ in range(LIMITED_MAX):
        assert Asked(HASTY).plain(hang).note == "TimeoutError"

    asked = Asked()
    assert asked.plain(_never) == CriticOutcome(CriticResult.SKIPPED, note="64 critics run or hang")
    assert asked.events == [asked.answered]
    gate.set()
    _until(lambda: Asked().plain(_answering(CriticAnswer())).result is CriticResult.NO_CONCERN)


@both_ways
def test_critic_sees_the_callers_span_and_context_when_it_runs_in_a_thread(ask: Way) -> None:
    """A model call inside the critic belongs to the run's trace."""
    spans = Spans()
    tracer = spans.provider.get_tracer("host")

    def critic(_: CriticRequest) -> CriticAnswer:
        with tracer.start_as_current_span("chat"):
            return CriticAnswer(USER.get())

    def act() -> CriticOutcome:
        USER.set("operator")
        with tracer.start_as_current_span("run"):
            return ask(Asked(), critic)

    assert contextvars.copy_context().run(act).concern == "operator"
    assert spans.parent(spans.one("chat")) == "run"


# what passes through


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), asyncio.CancelledError()], ids=repr)
def test_critic_does_not_hold_up_what_ends_a_program(error: BaseException) -> None:
    """It passes unchanged, and nothing is recorded."""
    asked = Asked()
    with pytest.raises(type(error)) as caught:
        asked.plain(_raising(error))
    assert caught.value is error
    assert asked.events == []


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_cancellation_passes_through_when_the_host_gives_up_while_a_critic_thinks(
    kind: str, gate: threading.Event
) -> None:
    """The host's time-out around a transfer is the host's."""
    asked = Asked()

    async def main() -> bool:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hang(_: CriticRequest) -> CriticAnswer:
            loop.call_soon_threadsafe(begun.set)
            gate.wait(LONG_S)
            return CriticAnswer()

        async def hang_async(_: CriticRequest) -> CriticAnswer:
            begun.set()
            await asyncio.Event().wait()
            return CriticAnswer()

        flow = asked.flow(hang if kind == "plain" else hang_async)
        task = asyncio.create_task(drive_async(flow, asked.time.clock()))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main())
    assert asked.events == []


def test_loop_serves_others_when_a_plain_critic_thinks_in_async_code(gate: threading.Event) -> None:
    """The critic waits for something that only the loop can do."""
    asked = Asked()

    def critic(_: CriticRequest) -> CriticAnswer:
        return CriticAnswer(f"opened: {gate.wait(LONG_S)}")

    async def main() -> CriticOutcome:
        thinking = asyncio.create_task(drive_async(asked.flow(critic), asked.time.clock()))
        await asyncio.sleep(0)
        gate.set()
        return await thinking  # type: ignore[no-any-return]

    assert asyncio.run(main()).concern == "opened: True"
