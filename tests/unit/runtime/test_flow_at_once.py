"""Handoffs at once, in threads and in tasks: none mixes with another, and of two that are the same one proceeds."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from handoffwatch import Contract, Decision, HandoffBlocked, Run
from handoffwatch.ledger import Case
from handoffwatch.vocabulary import Action
from support.flows import ROUTE, FlowDesk, answers, plan
from support.telemetry import counted

DEADLINE_S = 60.0
HANDOFFS = 200
BACK = "executor->reviewer"


class Cents(Contract, version="1"):
    """planner->executor in its first version."""

    number: int
    amount: int


class Text(Contract, version="1"):
    """executor->reviewer in its first version."""

    number: int
    amount: str


class TextLater(Contract, version="2"):
    """planner->executor in its second version."""

    number: int
    amount: str


class CentsLater(Contract, version="2"):
    """executor->reviewer in its second version."""

    number: int
    amount: int


RIGHT = {(ROUTE, "1"): 3800, (ROUTE, "2"): "38.00", (BACK, "1"): "38.00", (BACK, "2"): 3800}
"""What each contract takes as the amount; what one takes, the other of its route and of its version refuses."""

SENTENCE = {
    int: "payload.amount must be an integer, and is text",
    str: "payload.amount must be a text, and is an integer",
}


class OneOfMany:
    """One of the handoffs that are sent at once: a good one, one that is repaired, or one that stays wrong."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.route = (ROUTE, BACK)[number % 2]
        self.version = "12"[number // 2 % 2]
        self.kind = ("good", "repaired", "stopped")[number // 4 % 3]
        self.right = RIGHT[self.route, self.version]
        self.wrong = "38.00" if self.right == 3800 else 3800

    @property
    def labels(self) -> str:
        """The labels of its series."""
        source, target = self.route.split("->")
        return f'route="{self.route}",schema_version="{self.version}",source_agent="{source}",target_agent="{target}"'

    def raw(self, *, good: bool) -> dict[str, Any]:
        """Return what is sent."""
        return plan(
            f"h-{self.number}",
            route=self.route,
            task_id=f"t-{self.number}",
            schema_version=self.version,
            payload={"number": self.number, "amount": self.right if good else self.wrong},
        )

    def arguments(self) -> dict[str, Any]:
        """Return what a transfer needs of it beside its receiver."""
        source, target = self.route.split("->")
        sent = {"source": source, "target": target, "raw": self.raw(good=self.kind == "good")}
        return sent | ({"repair": lambda _: self.raw(good=True)} if self.kind == "repaired" else {})


ALL = [OneOfMany(number) for number in range(HANDOFFS)]


class Receivers:
    """The receivers of both routes: each writes down what it got."""

    def __init__(self) -> None:
        self.got: dict[str, list[tuple[int, str, object]]] = {ROUTE: [], BACK: []}

    def of(self, route: str) -> Callable[[dict[str, Any]], int]:
        """Return the receiver of a route."""

        def receive(handoff: dict[str, Any]) -> int:
            payload = handoff["payload"]
            self.got[route].append((payload["number"], handoff["schema_version"], payload["amount"]))
            return int(payload["number"])

        return receive


def desk_of_both() -> FlowDesk:
    """Return a desk with both routes in both versions."""
    desk = FlowDesk(repairs_per_run_max=HANDOFFS)
    desk.watch.route(ROUTE, contract=[Cents, TextLater])
    desk.watch.route(BACK, contract=[Text, CentsLater])
    return desk


def send_in_threads(desk: FlowDesk, receivers: Receivers, shared: Run | None) -> list[object]:
    """Send all from as many threads, which begin together."""
    together = threading.Barrier(HANDOFFS)

    def send(each: OneOfMany) -> object:
        together.wait(DEADLINE_S)
        run = shared or desk.watch.run("refunds", run_id=f"r-{each.number}")
        try:
            return run.transfer(**each.arguments(), receiver=receivers.of(each.route))
        except HandoffBlocked as blocked:
            return blocked.decision
        finally:
            if shared is None:
                run.finish()

    with ThreadPoolExecutor(HANDOFFS) as pool:
        return list(pool.map(send, ALL))


def send_in_tasks(desk: FlowDesk, receivers: Receivers, shared: Run | None) -> list[object]:
    """Send all from as many tasks of one loop, whose receivers begin together too."""

    async def send(each: OneOfMany, started: asyncio.Barrier) -> object:
        take = receivers.of(each.route)

        async def receive(handoff: dict[str, Any]) -> int:
            await started.wait()
            return take(handoff)

        run = shared or desk.watch.run("refunds", run_id=f"r-{each.number}")
        try:
            return await run.transfer_async(**each.arguments(), receiver=receive)
        except HandoffBlocked as blocked:
            return blocked.decision
        finally:
            if shared is None:
                await run.finish_async()

    async def send_all() -> list[object]:
        started = asyncio.Barrier(sum(each.kind != "stopped" for each in ALL))
        async with asyncio.timeout(DEADLINE_S):
            return await asyncio.gather(*(send(each, started) for each in ALL))

    return asyncio.run(send_all())


@pytest.mark.parametrize("is_shared", [False, True], ids=["a run for each", "one run"])
@pytest.mark.parametrize("send_all", [send_in_threads, send_in_tasks])
def test_handoffs_do_not_mix_when_200_are_sent_at_once(
    send_all: Callable[[FlowDesk, Receivers, Run | None], list[object]], is_shared: bool
) -> None:
    """BR-029: verdict, delivered payload, case and series are those of its own route and contract version."""
    desk, receivers = desk_of_both(), Receivers()
    shared = desk.watch.run("refunds", run_id="shared") if is_shared else None

    ended = send_all(desk, receivers, shared)
    if shared is not None:
        shared.finish()

    for each, result in zip(ALL, ended, strict=True):
        if each.kind == "stopped":
            assert isinstance(result, Decision)
            assert (result.handoff_id, result.route, result.schema_version) == (
                f"h-{each.number}",
                each.route,
                each.version,
            )
            assert [found.sentence for found in result.findings] == [SENTENCE[type(each.right)]]
        else:
            assert result == each.number
    delivered = [each for each in ALL if each.kind != "stopped"]
    for route, got in receivers.got.items():
        assert sorted(got) == [(each.number, each.version, each.right) for each in delivered if each.route == route]
    assert_cases(desk.cases(), is_shared=is_shared)
    assert counted(desk.watch.registry, "handoffs_total", "handoff_blocks_total", "handoff_repairs_total") == Counter(
        line for each in ALL for line in _lines(each)
    )
    desk.watch.close()


def _lines(each: OneOfMany) -> list[str]:
    """Return the series that one handoff raises by 1."""
    blocks = f'handoff_blocks_total{{attempt="first",mode="enforce",{each.labels}}}'
    if each.kind == "stopped":
        return [f'handoffs_total{{outcome="stopped",{each.labels}}}', blocks]
    delivered = f'handoffs_total{{outcome="delivered",{each.labels}}}'
    if each.kind == "good":
        return [delivered]
    return [delivered, blocks, f'handoff_repairs_total{{result="repaired",{each.labels}}}']


def assert_cases(cases: list[Case], *, is_shared: bool) -> None:
    """Assert that every handoff that was blocked has the case that is its own."""
    of = {str(case.facts["handoff_id"]): case for case in cases}
    blocked = [each for each in ALL if each.kind != "good"]
    assert len(cases) == len(of) == len(blocked)
    for each in blocked:
        case = of[f"h-{each.number}"]
        assert case.run_id == ("shared" if is_shared else f"r-{each.number}")
        assert (case.route, case.schema_version, case.facts["task_id"]) == (
            each.route,
            each.version,
            f"t-{each.number}",
        )
        assert case.record is not None
        tried: Any = case.record["attempts"]
        sent = [attempt["sent"]["payload"]["amount"] for attempt in tried]
        assert sent == ([each.wrong] if each.kind == "stopped" else [each.wrong, each.right])
        assert {attempt["decision"]["handoff_id"] for attempt in tried} == {f"h-{each.number}"}


# the same handoff at once

Send = Callable[["Twins"], None]


class Twins:
    """Pairs of identical handoffs. The receiver of the one that proceeds works until the other was refused."""

    def __init__(self, pairs: int, *, task: str | None = None, durable: bool = False, is_shared: bool = False) -> None:
        self.desk = FlowDesk(hops_max=2 * pairs).route(durable=durable)
        self.pairs = pairs
        self.task = task
        self.shared = self.desk.watch.run("refunds", task_id=task) if is_shared else None
        self.received: list[str] = []
        self.refused: list[tuple[str, list[str]]] = []

    def run(self, number: int) -> Run:
        """Return the run in which one of a pair is sent."""
        return self.shared or self.desk.watch.run("refunds", task_id=self.task)

    def raw(self, number: int) -> dict[str, Any]:
        """Return what both of a pair send."""
        return plan(
            f"h-{number}", task_id=self.task or f"t-{number}", payload={"order_id": str(number), "amount_cents": number}
        )

    def refuse(self, number: int, blocked: HandoffBlocked) -> None:
        """Write down that one was refused."""
        assert blocked.decision is not None
        self.refused.append((f"h-{number}", blocked.decision.reasons))


def twins_in_threads(twins: Twins) -> None:
    """Send each of all pairs from a thread of its own; all begin together."""
    together = threading.Barrier(2 * twins.pairs)
    is_refused = [threading.Event() for _ in range(twins.pairs)]

    def send(number: int) -> None:
        def receive(handoff: dict[str, Any]) -> None:
            twins.received.append(handoff["handoff_id"])
            assert is_refused[number].wait(DEADLINE_S)

        together.wait(DEADLINE_S)
        run = twins.run(number)
        try:
            run.transfer("planner", "executor", twins.raw(number), receiver=receive)
        except HandoffBlocked as blocked:
            twins.refuse(number, blocked)
            is_refused[number].set()

    with ThreadPoolExecutor(2 * twins.pairs) as pool:
        for sent in [pool.submit(send, number) for number in range(twins.pairs) for _ in range(2)]:
            sent.result()


def twins_in_tasks(twins: Twins) -> None:
    """Send each of all pairs from a task of its own."""

    async def send(number: int, is_refused: asyncio.Event) -> None:
        async def receive(handoff: dict[str, Any]) -> None:
            twins.received.append(handoff["handoff_id"])
            await is_refused.wait()

        run = twins.run(number)
        try:
            await run.transfer_async("planner", "executor", twins.raw(number), receiver=receive)
        except HandoffBlocked as blocked:
            twins.refuse(number, blocked)
            is_refused.set()

    async def send_all() -> None:
        is_refused = [asyncio.Event() for _ in range(twins.pairs)]
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*(send(n, is_refused[n]) for n in range(twins.pairs) for _ in range(2)))

    asyncio.run(send_all())


@pytest.mark.parametrize("is_shared", [False, True], ids=["a run for each", "one run"])
@pytest.mark.parametrize("durable", [False, True], ids=["in memory", "durable"])
@pytest.mark.parametrize("send", [twins_in_threads, twins_in_tasks])
@pytest.mark.parametrize(("pairs", "task"), [(50, None), (20, "t-1")], ids=["a task for each pair", "one task"])
def test_one_of_two_proceeds_and_counts_when_the_same_handoff_is_sent_twice_at_once(
    pairs: int, task: str | None, send: Send, durable: bool, is_shared: bool
) -> None:
    """As many deliveries as pairs, and as many handoffs counted; each other one is told why."""
    twins = Twins(pairs, task=task, durable=durable, is_shared=is_shared)

    send(twins)

    ids = sorted(f"h-{number}" for number in range(pairs))
    assert sorted(twins.received) == ids
    assert sorted(twins.refused) == [(handoff_id, ["duplicate_handoff"]) for handoff_id in ids]
    labels = 'route="planner->executor",schema_version="1",source_agent="planner",target_agent="executor"'
    assert counted(twins.desk.watch.registry, "handoffs_total", "handoff_repairs_total") == {
        f'handoffs_total{{outcome="delivered",{labels}}}': pairs
    }
    assert twins.desk.cases() == []
    twins.desk.watch.close()


def never(_: object) -> Any:
    """Fail: nobody may be asked."""
    raise AssertionError("it was called")


@pytest.mark.parametrize(
    "options", [{}, {"fallback": "human_desk"}, {"when_blocked": "hold"}, {"criticality": "critical"}], ids=str
)
def test_second_of_two_only_stops_when_its_route_does_other_things_with_blocks(options: dict[str, Any]) -> None:
    """It is neither repaired, nor diverted, nor held: the sender would make a new handoff of it, and work run twice."""
    desk = FlowDesk().route(**options)

    with desk.watch.run("refunds", task_id="t-1") as run:

        def receive(_: object) -> str:
            with pytest.raises(HandoffBlocked) as blocked:
                run.transfer("planner", "executor", plan(), receiver=never, repair=never, fallback=never)
            assert blocked.value.decision is not None
            assert blocked.value.decision.reasons == ["duplicate_handoff"]
            assert run.handoff("planner", "executor", plan()).action is Action.STOP
            return "received"

        assert run.transfer("planner", "executor", plan(), receiver=receive) == "received"
        other = plan("h-2", payload={"order_id": "4418", "amount_cents": 1})
        assert run.transfer("planner", "executor", other, receiver=desk.receive) == "received"

    labels = 'route="planner->executor",schema_version="1",source_agent="planner",target_agent="executor"'
    assert counted(desk.watch.registry, "handoffs_total") == {f'handoffs_total{{outcome="delivered",{labels}}}': 2}
    assert desk.cases() == []


def test_repair_counts_as_the_handoff_it_repairs_when_it_comes_under_an_id_in_progress() -> None:
    """The sender is told, and mends the id like any other field."""
    desk = FlowDesk().route(contract=Cents)

    def sent(handoff_id: str, amount: object, *, number: int = 2) -> dict[str, Any]:
        return plan(handoff_id, payload={"number": number, "amount": amount})

    with desk.watch.run("refunds", task_id="t-1") as run:

        def receive(_: object) -> Any:
            repair = answers(sent("h-1", 1), sent("h-2", 1))
            return run.transfer("planner", "executor", sent("h-2", "1"), receiver=desk.receive, repair=repair)

        assert run.transfer("planner", "executor", sent("h-1", 1, number=1), receiver=receive) == "received"

    assert counted(desk.watch.registry, "handoff_attempts_sum", "handoff_attempts_count") == {
        'handoff_attempts_count{route="planner->executor"}': 2,
        'handoff_attempts_sum{route="planner->executor"}': 4,
    }
    (case,) = desk.cases()
    assert case.record is not None
    tried: Any = case.record["attempts"]
    assert [attempt["decision"]["reasons"] for attempt in tried] == [["type_mismatch"], ["duplicate_handoff"], []]
