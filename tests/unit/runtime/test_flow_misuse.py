"""Handoff flows that are misused or interrupted: each handoff ends once, its id is let go, and the host goes on."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from handoffwatch import (
    Action,
    Contract,
    CriticAnswer,
    CriticPolicy,
    CriticRequest,
    HandoffBlocked,
    HandoffHeld,
    LedgerUnavailable,
    RiskLimits,
)
from handoffwatch.ledger import Case
from handoffwatch.recording.logs import LOGGER
from handoffwatch.runtime.crossings import Crossing
from handoffwatch.runtime.evidence import LEFT_OUT
from handoffwatch.runtime.tasks import SEEN_MAX
from handoffwatch.vocabulary import CaseKind, RiskSignal, Ruling, Verdict
from support.flows import ROUTE, FlowDesk, answers, bad_plan, plan
from support.telemetry import counted

_H = 'route="planner->executor",schema_version="1",source_agent="planner",target_agent="executor"'


def _outcomes(desk: FlowDesk) -> dict[str, float]:
    """Return how many handoffs ended in which way."""
    series = counted(desk.watch.registry, "handoffs_total").items()
    return {name.split('outcome="')[1].split('"')[0]: value for name, value in series}


def _reasons(error: pytest.ExceptionInfo[HandoffBlocked]) -> list[str]:
    assert error.value.decision is not None
    return error.value.decision.reasons


@pytest.mark.parametrize("number", [2**64, -(2**64), 10**600], ids=["above 64 bits", "below 64 bits", "600 digits"])
def test_handoff_is_blocked_with_its_reason_and_case_when_an_integer_is_beyond_64_bits(number: int) -> None:
    """The evidence keeps it; nothing of our own raises, with the answers compared too."""
    desk = FlowDesk(stop_identical=True).route()
    wrong = bad_plan(amount=number)

    wrong = bad_plan(amount=number)
    with pytest.raises(HandoffBlocked) as blocked, desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", wrong, receiver=desk.receive, repair=answers(wrong))

    assert _reasons(blocked) == ["unsafe_integer", "repair_exhausted"]
    assert [case.facts["attempts"] for case in desk.cases()] == [2]
    assert counted(desk.watch.registry, "internal_errors_total") == {}


def test_receiver_is_started_when_an_integer_is_beyond_64_bits_in_shadow() -> None:
    """What is kept of the handoff is no reason to raise after the receiver has returned."""
    desk = FlowDesk().route(mode="shadow")

    with desk.watch.run("refunds", task_id="t-1") as run:
        assert run.transfer("planner", "executor", bad_plan(amount=10**30), receiver=desk.receive) == "received"

    assert len(desk.cases()) == 1


@pytest.mark.parametrize("repairs_max", [0, 2])
@pytest.mark.parametrize(
    "options", [{}, {"fallback": "human_desk"}, {"when_blocked": "hold"}], ids=["stop", "divert", "hold"]
)
def test_handoff_counts_once_when_its_id_is_sent_again_meanwhile(options: dict[str, Any], repairs_max: int) -> None:
    """The second is not repaired into another delivery, not given to the fallback, and no person is asked about it."""
    desk = FlowDesk(repairs_max=repairs_max).route(**options)
    others: list[object] = []

    with desk.watch.run("refunds", task_id="t-1") as run:

        def receive(handoff: Any) -> str:
            with pytest.raises(HandoffBlocked) as blocked:
                run.transfer(
                    "planner", "executor", plan(), receiver=others.append, repair=answers(plan("h-2")),
                    fallback=others.append,
                )  # fmt: skip
            assert _reasons(blocked) == ["duplicate_handoff"]
            return desk.receive(handoff)

        assert run.transfer("planner", "executor", plan(), receiver=receive) == "received"
        assert run.transfer("planner", "executor", plan("h-3"), receiver=desk.receive) == "received"

    assert (len(desk.received), others) == (2, [])
    assert _outcomes(desk) == {"delivered": 2}
    assert desk.cases() == []


def test_handoff_is_repaired_and_counts_once_when_its_first_text_could_not_be_read() -> None:
    """What tells the handoff from others cannot be read in it; the flow knows that its repair belongs to it."""
    desk = FlowDesk().route()

    with desk.watch.run("refunds") as run:
        run.transfer("planner", "executor", "Here you go:", receiver=desk.receive, repair=answers(plan()))

    assert _outcomes(desk) == {"delivered": 1}
    assert counted(desk.watch.registry, "handoff_repairs_total", "handoff_attempts_sum") == {
        f'handoff_repairs_total{{result="repaired",{_H}}}': 1,
        'handoff_attempts_sum{route="planner->executor"}': 2,
    }


def test_sender_is_stopped_at_the_limit_when_each_answer_names_another_task() -> None:
    """Another task in the envelope does not begin the count of the repairs anew."""
    desk = FlowDesk().route()
    wrong = [bad_plan(f"h-{number}", task_id=f"t-{number}") for number in range(5)]

    with pytest.raises(HandoffBlocked) as blocked, desk.watch.run("refunds") as run:
        run.transfer("planner", "executor", wrong[0], receiver=desk.receive, repair=answers(*wrong[1:]))

    assert _reasons(blocked) == ["type_mismatch", "repair_exhausted"]
    assert counted(desk.watch.registry, "handoffs_total", "handoff_attempts_sum") == {
        f'handoffs_total{{outcome="stopped",{_H}}}': 1,
        'handoff_attempts_sum{route="planner->executor"}': 3,
    }


def test_repair_belongs_to_the_task_it_names_when_the_first_text_could_not_be_read() -> None:
    """A latch of that task and the ids that it has seen are not passed by with a text that nobody can read."""
    desk = FlowDesk().route()

    def send(*handoffs: object) -> list[str]:
        with pytest.raises(HandoffBlocked) as blocked, desk.watch.run("refunds") as run:
            run.transfer("planner", "executor", handoffs[0], receiver=desk.receive, repair=answers(*handoffs[1:]))
        return _reasons(blocked)

    with desk.watch.run("refunds") as run:
        run.transfer("planner", "executor", plan(), receiver=desk.receive)
    assert send("Here you go:", plan()) == ["consumed_handoff"]
    assert send(bad_plan("h-2"), bad_plan("h-2"), bad_plan("h-2")) == ["type_mismatch", "repair_exhausted"]
    assert send("Here you go:", plan("h-3")) == ["route_stopped"]
    assert len(desk.received) == 1


@pytest.mark.parametrize("options", [{"when_blocked": "hold"}, {"approval": "required"}], ids=["blocked", "allowed"])
def test_person_has_a_case_to_decide_about_when_a_handoff_is_held(options: dict[str, str]) -> None:
    """A block that could have been repaired and is not waits for a person as any other, and so does a primitive's."""
    desk = FlowDesk().route(hold_s=0, **options)
    raw = bad_plan() if "when_blocked" in options else plan()

    with pytest.raises(HandoffHeld) as held, desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", raw, receiver=desk.receive)
    assert [case.case_id for case in desk.watch.ledger.cases()] == [held.value.case_id]

    with desk.watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", raw)
        step = run.abandoned(step) if step.action is Action.REPAIR else step
        step = run.approval(step)
        assert (step.action, step.case_id) == (Action.HOLD, held.value.case_id)
        assert desk.watch.ledger.rule_case(step.case_id, Ruling.APPROVED, "seen")
        assert run.approval(step).action is Action.DELIVER


@pytest.mark.parametrize("name", ["handoff_id", "payload", "metadata"])
@pytest.mark.parametrize("kind", ["allowed", "blocked", "unchecked"])
def test_approval_is_for_that_handoff_alone_when_another_differs(kind: str, name: str) -> None:
    """Whatever the receiver would get is what a person approved: the id, the payload and what stands beside it."""
    desk = FlowDesk(repairs_max=0)
    if kind == "unchecked":
        desk.watch.route(ROUTE, unchecked=True, approval="required", hold_s=0)
    else:
        desk.route(hold_s=0, **({"when_blocked": "hold"} if kind == "blocked" else {"approval": "required"}))
    raw = bad_plan() if kind == "blocked" else plan()
    other = {"handoff_id": "h-2", "payload": {**raw["payload"], "order_id": "4418"}, "metadata": {"to": "another"}}

    def send(handoff: dict[str, Any]) -> object:
        with desk.watch.run("refunds", task_id="t-1") as run:
            return run.transfer("planner", "executor", handoff, receiver=desk.receive)

    with pytest.raises(HandoffHeld) as held:
        send(raw)
    assert desk.watch.ledger.rule_case(held.value.case_id, Ruling.APPROVED, "seen")
    with pytest.raises(HandoffHeld) as again:
        send(raw | {name: other[name]})
    assert again.value.case_id != held.value.case_id
    assert send(raw) == "received"
    assert len(desk.received) == 1


class Interrupted(BaseException):
    """What stops a thread in the middle, as an interrupt from the keyboard does."""


@pytest.mark.parametrize("error", [Interrupted(), LedgerUnavailable("down")], ids=["interrupted", "ledger down"])
@pytest.mark.parametrize(
    ("step", "options", "outcome"),
    [
        ("open_handoff", {"criticality": "critical"}, "not_delivered"),
        ("open_handoff", {"criticality": "critical", "fallback": "human_desk"}, "not_delivered"),
        ("open_handoff", {"criticality": "critical", "when_blocked": "hold"}, "not_delivered"),
        ("store_case", {"approval": "required"}, "stopped"),
        ("case_of", {"approval": "required", "hold_then": "deliver"}, "stopped"),
    ],
)
def test_handoff_ends_once_and_may_be_sent_again_when_its_flow_breaks_off_at_the_ledger(
    step: str, options: dict[str, Any], outcome: str, error: BaseException
) -> None:
    """It is counted and its id is let go, so that the next attempt in the same run is no duplicate of it."""
    desk = FlowDesk(hold_poll_s=1).route(hold_s=1, **options)
    ledger = desk.watch.ledger
    working = getattr(ledger, step)

    def breaks(*args: object, **named: object) -> object:
        if step == "case_of" and desk.time.waits_s == []:
            return working(*args, **named)
        raise error

    with desk.watch.run("refunds", task_id="t-1") as run:
        setattr(ledger, step, breaks)
        with pytest.raises(type(error)):
            run.transfer("planner", "executor", plan(), receiver=desk.receive)
        setattr(ledger, step, working)
        assert (desk.received, len(_outcomes(desk))) == ([], 1)
        if "approval" in options:
            desk.decide_while_waiting(Ruling.APPROVED)
        assert run.transfer("planner", "executor", plan(), receiver=desk.receive) == "received"

    if isinstance(error, LedgerUnavailable):
        outcome = "stopped"
    assert _outcomes(desk) == {outcome: 1, "delivered": 1}
    assert counted(desk.watch.registry, "handoff_attempts_sum") == {
        'handoff_attempts_sum{route="planner->executor"}': 2
    }
    assert sum(counted(desk.watch.registry, "handoff_inspections_total").values()) == 2


def test_handoff_ends_once_and_may_be_sent_again_when_its_critic_is_interrupted() -> None:
    """An attempt that nobody concluded is counted as one that was not delivered."""
    desk = FlowDesk()
    asked: list[object] = []

    def critic(request: CriticRequest) -> CriticAnswer:
        asked.append(request)
        if len(asked) == 1:
            raise Interrupted
        return CriticAnswer()

    desk.route(critic=critic, critique=CriticPolicy(signals=frozenset({RiskSignal.LARGE_PAYLOAD}),
                                                    limits=RiskLimits(payload_bytes_max=1)))  # fmt: skip

    with desk.watch.run("refunds", task_id="t-1") as run:
        with pytest.raises(Interrupted):
            run.transfer("planner", "executor", plan(), receiver=desk.receive)
        assert run.transfer("planner", "executor", plan(), receiver=desk.receive) == "received"

    assert _outcomes(desk) == {"not_delivered": 1, "delivered": 1}


def test_handoff_is_delivered_in_the_same_run_when_it_was_held_and_is_sent_again() -> None:
    """The one that was held has ended, so that this one is no duplicate of it."""
    desk = FlowDesk().route(approval="required", hold_s=0, durable=True)

    with desk.watch.run("refunds", task_id="t-1") as run:
        with pytest.raises(HandoffHeld) as held:
            run.transfer("planner", "executor", plan(), receiver=desk.receive)
        assert desk.watch.ledger.rule_case(held.value.case_id, Ruling.APPROVED, "seen")
        assert run.transfer("planner", "executor", plan(), receiver=desk.receive) == "received"
        with pytest.raises(HandoffBlocked) as again:
            run.transfer("planner", "executor", plan(), receiver=desk.receive)

    assert _reasons(again) == ["consumed_handoff"]
    assert _outcomes(desk) == {"stopped": 2, "delivered": 1}


def _durable_desks(folder: Path, **options: Any) -> tuple[FlowDesk, FlowDesk]:
    """Return two processes on one ledger."""
    here, there = (FlowDesk(folder).route(durable=True, **options) for _ in range(2))
    return here, there


def _sent(desk: FlowDesk, handoff: dict[str, Any]) -> list[str]:
    """Return for what reasons a handoff is blocked in a run of its own, or that it is delivered."""
    try:
        with desk.watch.run("refunds", task_id="t-1") as run:
            run.transfer("planner", "executor", handoff, receiver=desk.receive)
    except HandoffBlocked as blocked:
        return [] if blocked.decision is None else blocked.decision.reasons
    return ["delivered"]


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_handoff_is_consumed_for_all_processes_at_once_when_its_receiver_raises(tmp_path: Path, is_async: bool) -> None:
    """It is not only written at the end of a long run, by when another process may have taken it over."""
    here, there = _durable_desks(tmp_path)
    run = here.watch.run("refunds", task_id="t-1")

    def fail(_: object) -> None:
        raise ValueError("full")

    def send() -> None:
        if is_async:
            asyncio.run(run.transfer_async("planner", "executor", plan(), receiver=fail))
        else:
            run.transfer("planner", "executor", plan(), receiver=fail)

    with pytest.raises(ValueError, match="full"):
        send()
    there.time.now_s += 1_000
    assert _sent(there, plan()) == ["consumed_handoff"]
    run.finish()


def test_handoff_is_consumed_when_its_flow_is_cancelled_before_that_could_be_written(tmp_path: Path) -> None:
    """What has ended waits until it is written, also when every thread of the loop was busy."""
    here, there = _durable_desks(tmp_path)
    busy = threading.Event()

    async def act() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        started = asyncio.Event()

        async def receive(_: object) -> None:
            loop.run_in_executor(None, busy.wait)
            started.set()

        async with here.watch.run("refunds", task_id="t-1") as run:
            sending = asyncio.create_task(run.transfer_async("planner", "executor", plan(), receiver=receive))
            await started.wait()
            await asyncio.sleep(0)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            busy.set()

    asyncio.run(act())
    assert _sent(there, plan()) == ["consumed_handoff"]


def test_lease_of_a_handoff_lasts_as_long_as_its_wait_for_a_person(tmp_path: Path) -> None:
    """No other process takes it while one may still deliver it."""
    here, there = _durable_desks(tmp_path, approval="required", hold_s=3_600)

    with here.watch.run("refunds", task_id="t-1") as run:
        held = run.submit("planner", "executor", plan())
        there.time.now_s += 3_600
        assert _sent(there, plan()) == ["duplicate_handoff"]
        assert here.watch.ledger.rule_case(held.case_id, Ruling.APPROVED, "seen")
        assert run.approval(held).action is Action.DELIVER


def test_ledger_holds_no_id_that_was_given_up_when_the_repair_came_with_another(tmp_path: Path) -> None:
    """Another run may send what this one has repaired under a new id, and it counts as no hop."""

    class Export(Contract, replaces_state=True):
        """A contract whose accepted handoff makes a new version."""

        order_id: str
        amount_cents: int

    here, there = _durable_desks(tmp_path, contract=Export)
    assert _sent(there, plan("h-0", context_version=7)) == ["delivered"]

    with here.watch.run("refunds", task_id="t-1") as run:
        repair = answers(plan("h-2", context_version=8))
        run.transfer("planner", "executor", plan("h-1", context_version=7), receiver=here.receive, repair=repair)
        assert _sent(there, plan("h-1", context_version=9)) == ["delivered"]


def test_host_goes_on_when_an_ending_cannot_be_written_for_a_fault_of_our_own() -> None:
    """The receiver has run; the fault is counted, and what waits behind it is written."""
    desk = FlowDesk(repairs_max=0).route().route("executor->reviewer")
    ledger = desk.watch.ledger
    working = ledger.store_case

    def fail(*_: object) -> str:
        ledger.store_case = working  # type: ignore[method-assign]
        raise OverflowError

    ledger.store_case = fail  # type: ignore[method-assign]
    with desk.watch.run("refunds", task_id="t-1") as run:
        for route in (ROUTE, "executor->reviewer"):
            run.handoff(*route.split("->"), bad_plan(route=route))

    assert [case.route for case in desk.cases()] == ["executor->reviewer"]
    assert counted(desk.watch.registry, "internal_errors_total") == {'internal_errors_total{component="ledger"}': 1}


@pytest.mark.parametrize(("options", "outcome"), [({}, "delivered"), ({"fallback": "human_desk"}, "diverted")])
def test_handoff_counts_as_taken_when_its_run_ends_while_its_receiver_works(
    tmp_path: Path, options: dict[str, Any], outcome: str
) -> None:
    """Its receiver was started and may have acted, so that no process may start it again."""
    here, there = (FlowDesk(tmp_path, repairs_max=0).route(durable=True, **options) for _ in range(2))
    run = here.watch.run("refunds", task_id="t-1")

    def receive(_: object) -> str:
        run.finish()
        return "done"

    raw = bad_plan() if options else plan()
    assert run.transfer("planner", "executor", raw, receiver=receive, fallback=receive) == "done"

    assert _outcomes(here) == {outcome: 1}
    assert _sent(there, plan()) == ["delivered" if options else "consumed_handoff"]


@pytest.mark.parametrize("durable", [False, True], ids=["in memory", "in the ledger"])
def test_limit_is_reacted_to_as_its_route_says_wherever_it_is_counted(durable: bool) -> None:
    """A route that only warns of loops warns of hops and of repeats, those of the ledger too."""
    desk = FlowDesk(repeats_max=1, hops_max=3)
    desk.route(durable=durable, reactions={"loop_limit": "warn"}).route("executor->planner", durable=durable)
    steps = []

    with desk.watch.run("refunds", task_id="t-1") as run:
        for number, route in enumerate((ROUTE, "executor->planner", ROUTE, ROUTE)):
            source, target = route.split("->")
            steps.append(run.submit(source, target, plan(f"h-{number}", route=route)))
            run.ended(steps[-1])
            run.store()

    assert [step.action for step in steps] == [Action.DELIVER] * 4
    assert [step.decision.reasons for step in steps if step.decision][2:] == [["loop_limit"], ["loop_limit"]]


class Raising(Mapping[str, Any]):
    """A foreign mapping that raises whatever is asked of it."""

    def __getitem__(self, name: str) -> Any:
        raise RuntimeError

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError

    def __len__(self) -> int:
        return 1


class Unhashable(str):
    """A text that raises when it is looked up."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "raw",
    [
        Raising(),
        plan(payload=Raising()),
        plan(task_id=Unhashable("t-1")),
        plan(Unhashable("h-1")),
        {**plan(), "x": open},
    ],
    ids=["mapping", "payload", "task", "id", "function"],
)
@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_handoff_is_inspected_and_ends_once_when_it_raises_as_it_is_read(mode: str, raw: Any) -> None:
    """It is blocked with a decision that says why, and in shadow mode it passes: the flow reads no more than that."""
    desk = FlowDesk(repairs_max=0).route(mode=mode)

    with desk.watch.run("refunds") as run:
        step = run.handoff("planner", "executor", raw)
        run.ended(step)

    assert step.decision is not None
    assert step.action is (
        Action.DELIVER if mode == "shadow" or step.decision.verdict is Verdict.ALLOWED else Action.STOP
    )
    assert sum(counted(desk.watch.registry, "handoff_inspections_total").values()) == 1
    assert sum(_outcomes(desk).values()) == 1


SECRET = "ghp_Zx81Kq02Lm73Np64Rs55"


@pytest.mark.parametrize(
    "raw",
    [
        bad_plan(SECRET),
        bad_plan(task_id=SECRET),
        plan(payload={"order_id": "4417", "amount_cents": 3800, SECRET: 1}),
        plan(payload={"order_id": SECRET, "amount_cents": None}),
    ],
    ids=["id", "task", "key", "value"],
)
def test_case_holds_no_secret_wherever_the_sender_put_it(raw: dict[str, Any]) -> None:
    """Ids, names and paths are a sender's words too."""
    desk = FlowDesk(repairs_max=0).route()

    with desk.watch.run("refunds") as run:
        run.handoff("planner", "executor", raw)

    (case,) = desk.cases()
    assert SECRET not in json.dumps([case.subject, case.facts, case.record])
    assert case.facts["route"] == ROUTE


def test_case_is_small_enough_when_what_was_sent_and_said_of_it_is_large() -> None:
    """What was sent goes first, and of the decisions the last one stays."""
    desk = FlowDesk(evidence_bytes_max=4_096, repairs_max=6).route()
    wrong = [bad_plan("h" * 100_000, amount={"é" * 100: [SECRET] * 50_000}) for _ in range(7)]

    with desk.watch.run("refunds", task_id="t-1") as run:
        for raw in wrong:
            run.handoff("planner", "executor", raw)

    (case,) = desk.cases()
    assert len(json.dumps(case.facts)) < 4_096
    assert len(json.dumps(case.record)) <= 4_096
    assert case.record is not None
    sent, said = zip(*((kept["sent"], kept["decision"]) for kept in case.record["attempts"]), strict=True)  # type: ignore[attr-defined]
    assert set(sent) == {LEFT_OUT}
    assert said[-1]["reasons"] == ["type_mismatch", "repair_exhausted"]


def test_copy_for_evidence_has_no_more_values_than_evidence_has_room_for() -> None:
    """A value that shares its parts is small, and endless as text: a million parts would take seconds of each block."""
    shared: list[Any] = [1] * 10
    for _ in range(30):
        shared = [shared] * 10

    copied = FlowDesk(evidence_bytes_max=4_096).watch.evidence.copy(shared)

    assert 2_000 < len(json.dumps(copied)) < 40_000


def test_critic_leaves_no_case_when_it_was_not_asked() -> None:
    """A critic that is asked about one handoff in a hundred does not make a case of each."""
    desk = FlowDesk()
    limits = RiskLimits(payload_bytes_max=1)
    policy = CriticPolicy(signals=frozenset({RiskSignal.LARGE_PAYLOAD}), sample=0.01, limits=limits)
    desk.route(critic=lambda request: CriticAnswer("look"), critique=policy)

    with desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", plan(), receiver=desk.receive)
        desk.time.chance = 0.001
        run.transfer("planner", "executor", plan("h-2"), receiver=desk.receive)

    assert [case.facts["handoff_id"] for case in desk.cases()] == ["h-2"]


def test_task_forgets_the_oldest_ids_and_contents_when_nothing_ends_it() -> None:
    """In shadow mode, and where nothing is checked, no limit stops a task; its memory has a bound of its own."""
    tasks = FlowDesk().watch.tasks

    def crossing(number: int) -> Crossing:
        made = Crossing((("a", "b", ""), ("b", "a", ""))[number % 2], "t-1")
        made.sent_id, made.fingerprint = f"h-{number}", number + 1
        return made

    last = 2 * SEEN_MAX + 1
    for number in range(last + 1):
        sent = crossing(number)
        tasks.enter(sent, is_new=True)
        tasks.let_through(sent)
        tasks.leave(sent, consumed=True, stops=False)

    known = [(tasks.enter(crossing(number), is_new=True).is_consumed, tasks.repeats(crossing(number)))
             for number in (0, 2, last)]  # fmt: skip
    assert known == [(False, 0), (True, 0), (True, 1)]


def test_handoff_is_delivered_once_when_its_id_comes_again_while_the_block_is_being_recorded() -> None:
    """What is sent before the request for a repair is out is a duplicate; what is sent after it is the repair."""
    desk = FlowDesk().route()
    run = desk.watch.run("refunds", task_id="t-1")
    steps = []

    class Sends(logging.Handler):
        """A log handler of the host that sends the handoff again."""

        def emit(self, record: logging.LogRecord) -> None:
            LOGGER.removeHandler(self)
            steps.append(run.handoff("planner", "executor", plan()))

    LOGGER.addHandler(Sends())
    steps.insert(0, run.handoff("planner", "executor", bad_plan()))
    steps.append(run.handoff("planner", "executor", plan()))
    run.finish()

    assert [step.action for step in steps] == [Action.REPAIR, Action.STOP, Action.DELIVER]
    assert _outcomes(desk) == {"not_delivered": 1}


@pytest.mark.parametrize("durable", [False, True], ids=["in memory", "in the ledger"])
def test_route_stays_open_when_what_was_stopped_is_a_repeat_with_other_faults(tmp_path: Path, durable: bool) -> None:
    """The first answer of a sender that comes again after its repair was accepted is no reason to stop the task."""
    desk = FlowDesk(tmp_path, repairs_max=0).route(durable=durable)

    assert _sent(desk, plan()) == ["delivered"]
    assert _sent(desk, bad_plan()) == ["consumed_handoff", "type_mismatch"]
    assert _sent(desk, plan("h-2")) == ["delivered"]


def test_ledger_holds_a_handoff_in_progress_when_a_repeat_of_it_in_the_same_run_ends(tmp_path: Path) -> None:
    """Each handoff holds its id for itself, so that the end of one does not let go of another's."""
    here, there = _durable_desks(tmp_path)

    with here.watch.run("refunds", task_id="t-1") as run:

        def receive(_: object) -> None:
            with pytest.raises(HandoffBlocked):
                run.transfer(
                    "planner", "executor", bad_plan("h-2"), receiver=here.receive, repair=answers(plan(), plan())
                )
            assert _sent(there, plan()) == ["duplicate_handoff"]

        run.transfer("planner", "executor", plan(), receiver=receive)
    assert _sent(there, plan()) == ["consumed_handoff"]


def test_wait_for_a_person_goes_on_when_the_ledger_cannot_say_for_a_moment() -> None:
    """A lock that another program holds once does not end a wait of a quarter of an hour."""
    desk = FlowDesk().route(approval="required")
    desk.decide_while_waiting(Ruling.APPROVED, after_waits=3)
    working = desk.watch.ledger.case_of

    def case_of(kind: CaseKind, subject: str) -> Case | None:
        if len(desk.time.waits_s) in (1, 2):
            raise LedgerUnavailable("locked")
        return working(kind, subject)

    desk.watch.ledger.case_of = case_of  # type: ignore[method-assign]
    with desk.watch.run("refunds", task_id="t-1") as run:
        assert run.transfer("planner", "executor", plan(), receiver=desk.receive) == "received"
    assert len(desk.time.waits_s) == 3


def test_approved_handoff_is_stopped_when_its_sender_changed_it_since_it_was_held() -> None:
    """A blocked handoff goes to its receiver as it came, and that must be what the person saw."""
    desk = FlowDesk(repairs_max=0).route(when_blocked="hold")
    raw = bad_plan()

    with desk.watch.run("refunds", task_id="t-1") as run:
        held = run.submit("planner", "executor", raw)
        assert desk.watch.ledger.rule_case(held.case_id, Ruling.APPROVED, "seen")
        raw["payload"]["amount_cents"] = "9900"
        assert run.approval(held).action is Action.STOP

    assert _outcomes(desk) == {"stopped": 1}


@pytest.mark.parametrize(
    "agents", [(None, None), (None, "executor"), ("planner", None), ([], "executor"), ("", "executor")]
)
def test_handoff_is_stopped_when_the_host_does_not_say_between_whom(agents: tuple[Any, Any]) -> None:
    """The envelope alone does not choose a route: what that asks for, such as an approval, would be passed by."""
    desk = FlowDesk().route(approval="required")

    with desk.watch.run("refunds", task_id="t-1") as run:
        step = run.submit(*agents, plan())
        assert not run.said_handed_over(*agents)

    assert step.action is Action.STOP
    assert step.decision is not None
    assert "route_mismatch" in step.decision.reasons


@pytest.mark.parametrize("durable", [False, True], ids=["in memory", "in the ledger"])
def test_handoff_is_consumed_once_when_its_ids_are_too_long_to_be_stored(tmp_path: Path, durable: bool) -> None:
    """Three hundred characters before its number do not make a replay pass."""
    desks = [FlowDesk(tmp_path).route(durable=durable) for _ in range(2)]
    raw = plan("h" * 300, task_id="t" * 300)

    def send(desk: FlowDesk) -> str:
        with desk.watch.run("refunds") as run:
            step = run.submit("planner", "executor", raw)
            run.ended(step)
        assert step.decision is not None
        return ",".join(step.decision.reasons)

    assert [send(desks[0]), send(desks[0]), send(desks[durable])] == ["", "consumed_handoff", "consumed_handoff"]
