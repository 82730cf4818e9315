"""A route's critic in the flow: asked where there is a risk, heard as a warning, and never in the handoff's way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import Field

from handoffwatch import Contract, CriticAnswer, CriticPolicy, CriticRequest, HandoffBlocked, RiskLimits
from handoffwatch.vocabulary import Action, RiskSignal, Severity, Verdict
from support.flows import ROUTE, FlowDesk, answers, plan
from support.telemetry import attributes, counted

DEADLINE_S = 60.0
LABELS = 'route="planner->executor",schema_version="1",source_agent="planner",target_agent="executor"'
DELIVERED = f'handoffs_total{{outcome="delivered",{LABELS}}}'


class Risky(Contract, version="1", merged="parts", confidence_min=0.5):
    """A contract under which each of the signals can be raised."""

    order_id: str
    amount_cents: int
    operation_id: str | None = None
    confidence: float = 1.0
    parts: list[dict[str, int]] = Field(default_factory=list)


RISKS: dict[RiskSignal, dict[str, Any]] = {
    RiskSignal.LOW_CONFIDENCE: {"confidence": 0.2},
    RiskSignal.AGENTS_IN_CONFLICT: {"parts": [{"price": 1}, {"price": 2}]},
    RiskSignal.SENSITIVE_OPERATION: {"operation_id": "op-1"},
    RiskSignal.LARGE_PAYLOAD: {"order_id": "4417" * 200},
}
"""By signal: what a payload says that raises this one and no other."""


def risky(signal: RiskSignal | None, handoff_id: str = "h-1", **changes: Any) -> dict[str, Any]:
    """Return a good handoff that raises a signal."""
    said = RISKS.get(signal, {}) if signal is not None else {}
    return plan(handoff_id, payload={"order_id": "4417", "amount_cents": 3800} | said, **changes)


def policy(*signals: RiskSignal, **more: Any) -> CriticPolicy:
    """Return a policy for these signals, or for all."""
    return CriticPolicy(signals=frozenset(signals or RiskSignal), limits=RiskLimits(payload_bytes_max=500), **more)


class Asked:
    """A critic that writes down what it was asked."""

    def __init__(self, answer: CriticAnswer | None = None) -> None:
        self.requests: list[CriticRequest] = []
        self.answer = answer or CriticAnswer()

    def __call__(self, request: CriticRequest) -> CriticAnswer:
        self.requests.append(request)
        return self.answer


def desk_of(critic: Any, *signals: RiskSignal, contract: type[Contract] = Risky, **more: Any) -> FlowDesk:
    """Return a desk whose route has this critic, and has seen its schema version before."""
    desk = FlowDesk().route(contract=contract, critic=critic, critique=policy(*signals, **more))
    assert desk.watch.is_new_version(ROUTE, "1")
    return desk


def deliver(desk: FlowDesk, raw: dict[str, Any], *, task_id: str = "t-1") -> None:
    """Send a handoff that is delivered, in a run of its own."""
    with desk.watch.run("refunds", run_id="r-1", task_id=task_id) as run:
        assert run.transfer("planner", "executor", raw, receiver=desk.receive) == "received"


@pytest.mark.parametrize("raised", [*RISKS, None], ids=str)
@pytest.mark.parametrize("asked_on", RISKS)
def test_critic_is_asked_when_the_handoff_raises_a_signal_of_its_policy(
    raised: RiskSignal | None, asked_on: RiskSignal
) -> None:
    """And on no other signal, and without one not at all."""
    critic = Asked()
    desk = desk_of(critic, asked_on)

    deliver(desk, risky(raised))

    assert [request.signals for request in critic.requests] == ([{raised}] if raised is asked_on else [])


def test_critic_is_asked_once_when_a_schema_version_is_new() -> None:
    """The first handoff of a version on a route is the one to look at."""

    class Later(Risky, version="2"):
        """The next version."""

    critic = Asked()
    desk = FlowDesk()
    desk.watch.route(ROUTE, contract=[Risky, Later], critic=critic, critique=policy(RiskSignal.NEW_SCHEMA_VERSION))

    for number, version in enumerate("11212"):
        deliver(desk, risky(None, f"h-{number}", schema_version=version))

    assert [request.handoff_id for request in critic.requests] == ["h-0", "h-2"]


def test_critic_is_told_all_of_the_handoff_when_it_is_asked() -> None:
    """The handoff as it will be delivered, where it goes, which try it is, and why it asks."""
    critic = Asked()
    desk = desk_of(critic)

    deliver(desk, risky(RiskSignal.LOW_CONFIDENCE))

    assert critic.requests == [
        CriticRequest(
            route=ROUTE,
            source="planner",
            target="executor",
            run_id="r-1",
            handoff_id="h-1",
            attempt=1,
            handoff=desk.received[0],
            signals=frozenset({RiskSignal.LOW_CONFIDENCE}),
            reasons=("low_confidence",),
        )
    ]


def test_critic_is_asked_about_what_may_pass_and_not_about_what_is_blocked() -> None:
    """A blocked attempt is not worth a model call; its repair is a second attempt."""
    critic = Asked()
    desk = desk_of(critic)
    wrong = plan(payload={"order_id": "4417", "amount_cents": "3800", "operation_id": "op-1"})

    with desk.watch.run("refunds", task_id="t-1") as run:
        repair = answers(risky(RiskSignal.SENSITIVE_OPERATION))
        run.transfer("planner", "executor", wrong, receiver=desk.receive, repair=repair)

    assert [request.attempt for request in critic.requests] == [2]


@pytest.mark.parametrize(
    ("reaction", "told"), [("flag", "flag"), ("warn", "warn"), ("block", "flag"), ("hold", "flag")]
)
@pytest.mark.parametrize("criticality", ["routine", "critical"])
def test_receiver_starts_and_the_verdict_is_warned_when_the_critic_has_a_concern(
    reaction: str, told: str, criticality: str
) -> None:
    """Its concern is a finding beside those of the contract; it cannot stop anything."""
    critic = Asked(CriticAnswer("Look at the amount.", reaction=reaction, tokens=900, cost_usd=0.25))  # type: ignore[arg-type]
    desk = FlowDesk().route(contract=Risky, critic=critic, critique=policy(), criticality=criticality)

    with desk.watch.run("refunds", run_id="r-1", task_id="t-1") as run:
        step = run.submit("planner", "executor", risky(RiskSignal.LOW_CONFIDENCE))
        assert run.arrived(step).action is Action.DELIVER
        run.ended(step)

    assert step.decision is not None
    assert (step.action, step.decision.allowed, step.decision.verdict) == (Action.DELIVER, True, Verdict.WARNED)
    assert step.decision.reasons == ["low_confidence", "critic_concern"]
    assert (step.decision.severity, step.decision.retryable) == (Severity.WARNING, False)
    concern = step.decision.findings[-1]
    assert (concern.reaction, concern.stage, concern.path) == (told, "critic", "$")
    assert counted(
        desk.watch.registry,
        "handoffs_total", "handoff_blocks_total", "critic_checks_total", "check_tokens_total", "check_cost_usd_total",
    ) == {
        DELIVERED: 1,
        'critic_checks_total{result="concern",route="planner->executor"}': 1,
        'check_tokens_total{purpose="critic",route="planner->executor"}': 900,
        'check_cost_usd_total{purpose="critic",route="planner->executor"}': 0.25,
    }  # fmt: skip
    findings = counted(desk.watch.registry, "handoff_findings_total")
    assert f'handoff_findings_total{{mode="enforce",reaction="{told}",reason="critic_concern",{LABELS}}}' in findings


def _raise(_: object) -> CriticAnswer:
    raise ConnectionError


def _answer_nonsense(_: object) -> Any:
    return "all is well"


async def _answer_later(_: object) -> CriticAnswer:
    await asyncio.sleep(0)
    return CriticAnswer("Look at the amount.")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a hanging critic waits for; it opens when the test is over."""
    opened = threading.Event()
    yield opened
    opened.set()
    for thread in threading.enumerate():
        if thread.name == "handoffwatch-limited":
            thread.join(DEADLINE_S)


@pytest.mark.parametrize(
    "critic",
    [_raise, _answer_nonsense, _answer_later, None],
    ids=["raises", "answers nonsense", "is a coroutine function", "hangs"],
)
@pytest.mark.parametrize("criticality", ["routine", "critical"])
def test_handoff_is_delivered_when_its_critic_fails(critic: Any, criticality: str, gate: threading.Event) -> None:
    """An error, no answer, a coroutine in plain code, and a model that does not come back in time."""
    hanging: Callable[[object], object] = lambda _: gate.wait(DEADLINE_S)  # noqa: E731 - a critic in one line
    limits = policy(time_s_max=0.05 if critic is None else DEADLINE_S)
    desk = FlowDesk().route(contract=Risky, critic=critic or hanging, critique=limits, criticality=criticality)

    deliver(desk, risky(RiskSignal.LOW_CONFIDENCE))

    assert counted(desk.watch.registry, "handoffs_total", "critic_checks_total", "internal_errors_total") == {
        DELIVERED: 1,
        'critic_checks_total{result="error",route="planner->executor"}': 1,
    }
    (case,) = desk.cases()
    assert case.record is not None
    (attempt,) = case.record["attempts"]  # type: ignore[attr-defined]
    assert (attempt["critic"]["result"], attempt["decision"]["verdict"]) == ("error", "warned")


def test_critics_time_is_no_overhead_of_the_handoff() -> None:
    """It is observed apart, as human time and repairs are."""
    desk = FlowDesk()

    def critic(_: object) -> CriticAnswer:
        desk.time.now_s += 2.5
        return CriticAnswer("Look at the amount.")

    desk.route(contract=Risky, critic=critic, critique=policy())
    deliver(desk, risky(RiskSignal.LOW_CONFIDENCE))

    observed = ("handoff_overhead_seconds", "critic_duration_seconds")
    assert counted(desk.watch.registry, *(f"{name}_{part}" for name in observed for part in ("sum", "count"))) == {
        'handoff_overhead_seconds_count{route="planner->executor"}': 1,
        'critic_duration_seconds_count{route="planner->executor"}': 1,
        'critic_duration_seconds_sum{route="planner->executor"}': 2.5,
    }
    assert attributes(desk.spans.one("handoff executor"))["handoffwatch.handoff.overhead"] == 0.0


def test_critic_may_be_a_coroutine_function_when_the_flow_is_async() -> None:
    """It is awaited on the loop, in `transfer_async` and in `submit_async`."""
    desk = desk_of(_answer_later)

    async def act() -> None:
        async with desk.watch.run("refunds", task_id="t-1") as run:
            raw = risky(RiskSignal.LOW_CONFIDENCE)
            assert await run.transfer_async("planner", "executor", raw, receiver=desk.receive) == "received"
            step = await run.submit_async("planner", "executor", risky(RiskSignal.LOW_CONFIDENCE, "h-2"))
            assert step.decision is not None
            assert step.decision.reasons == ["low_confidence", "critic_concern"]
            run.ended(step)

    asyncio.run(act())
    assert counted(desk.watch.registry, "handoffs_total", "critic_checks_total") == {
        DELIVERED: 2,
        'critic_checks_total{result="concern",route="planner->executor"}': 2,
    }


def test_critic_is_not_asked_by_the_primitive_that_touches_memory_only() -> None:
    """`handoff` never waits; `submit` is the one that asks."""
    critic = Asked()
    desk = desk_of(critic)

    with desk.watch.run("refunds", task_id="t-1") as run:
        run.ended(run.handoff("planner", "executor", risky(RiskSignal.LOW_CONFIDENCE)))
        assert critic.requests == []
        run.ended(run.submit("planner", "executor", risky(RiskSignal.LOW_CONFIDENCE, "h-2")))
    assert [request.handoff_id for request in critic.requests] == ["h-2"]


def test_critic_is_asked_no_more_when_the_budget_of_its_run_is_used_up() -> None:
    """The next run has a budget of its own; what is skipped is delivered and counted."""
    critic = Asked(CriticAnswer(tokens=600))
    desk = desk_of(critic, tokens_max_per_run=1_000)

    for run_number in range(2):
        with desk.watch.run("refunds", task_id=f"t-{run_number}") as run:
            for number in range(3):
                raw = risky(RiskSignal.LOW_CONFIDENCE, f"h-{number}", task_id=f"t-{run_number}")
                run.transfer("planner", "executor", raw, receiver=desk.receive)

    assert [request.handoff_id for request in critic.requests] == ["h-0", "h-1"] * 2
    assert counted(desk.watch.registry, "handoffs_total", "critic_checks_total", "check_tokens_total") == {
        DELIVERED: 6,
        'critic_checks_total{result="no_concern",route="planner->executor"}': 4,
        'critic_checks_total{result="skipped",route="planner->executor"}': 2,
        'check_tokens_total{purpose="critic",route="planner->executor"}': 2_400,
    }


def test_critic_is_not_asked_when_the_ledger_stops_the_handoff() -> None:
    """No model is paid for what the limits of a durable route refuse."""
    critic = Asked(CriticAnswer("Look at the amount."))
    desk = desk_of(critic)
    desk.route("executor->reviewer", contract=Risky, critic=critic, critique=policy(), durable=True)
    other = FlowDesk().route("executor->reviewer", contract=Risky, durable=True)
    raw = risky(RiskSignal.LOW_CONFIDENCE, route="executor->reviewer")
    with other.watch.run("refunds", task_id="t-1") as run:
        run.transfer("executor", "reviewer", raw, receiver=other.receive)

    begun = desk.watch.run("refunds", task_id="t-1")
    with pytest.raises(HandoffBlocked) as blocked, begun as run:
        run.transfer("executor", "reviewer", raw, receiver=desk.receive)

    assert blocked.value.decision is not None
    assert blocked.value.decision.reasons == ["low_confidence", "consumed_handoff"]
    assert critic.requests == []
    assert desk.received == []
