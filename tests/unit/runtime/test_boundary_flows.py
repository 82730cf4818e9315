"""A handoff that crosses a boundary: what is lost on the way stops it before the receiver's first action."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from handoffwatch import Action, HandoffBlocked, HandoffDivergence, RegistrationError, Settings, Watch
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.settings import read_policy
from handoffwatch.boundary.transforms import Transform
from handoffwatch.ledger.settings import LedgerSettings
from handoffwatch.vocabulary import OnFailure
from support.flows import FlowDesk, plan
from support.secrets import vendor_keys
from support.telemetry import attributes, counted

ROUTE = "planner->executor"

POLICY = """
handoff:
  snapshot: {enabled: true, directory: ./handoff-snapshots, redact: [credentials, headers.authorization]}
  validation:
    fail_closed: true
    schema_version: 1
    exact_paths: [handoff_id, task.id, task.goal, task.constraints, artifacts, decisions]
    ignore_paths: [created_at, runtime_metrics, local_cache]
"""


def state() -> dict[str, Any]:
    """Return the state of the guide."""
    return {
        "schema_version": 1,
        "handoff_id": "h-1",
        "task": {"id": "t-1", "goal": "refund order 4417", "constraints": ["only once"]},
        "artifacts": [{"id": "a-1", "revision": 1, "sha256": "0" * 64}],
        "decisions": [{"id": "d-1", "value": "refund"}],
    }


def drops_constraints(sent: dict[str, Any]) -> str:
    """Export a state without the constraints of its task."""
    left = copy.deepcopy(sent)
    del left["task"]["constraints"]
    return json.dumps(left)


def fills_in_nothing(text: str) -> dict[str, Any]:
    """Import a state, and put an empty list where the constraints were."""
    arrived: dict[str, Any] = json.loads(text)
    arrived["task"].setdefault("constraints", [])
    return arrived


def boundary_desk(policy: str = POLICY) -> FlowDesk:
    """Return a desk whose one route is unchecked, and whose boundary has this policy."""
    desk = FlowDesk()
    settings = Settings(
        handoff=read_policy(policy, name="policy.yaml"),
        ledger=LedgerSettings(url=f"sqlite:///{Path.cwd() / 'ledger.db'}"),
    )
    desk.watch = Watch(settings=settings, clock=desk.time.clock(), tracer_provider=desk.spans.provider)
    desk.watch.workflow("refunds", tools="none")
    desk.watch.route(ROUTE, unchecked=True)
    return desk


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_lost_constraints_stop_the_handoff_before_the_receiver_acts(is_async: bool) -> None:
    """The exporter drops them and the importer fills in []: the first diverging path is named."""
    desk = boundary_desk()
    carriers: dict[str, Any] = {"export": drops_constraints, "import_": fills_in_nothing}

    async def send() -> None:
        async with desk.watch.run("refunds", run_id="r-1", task_id="t-1") as run:
            if is_async:
                await run.transfer_async("planner", "executor", state(), receiver=desk.receive, **carriers)
            else:
                run.transfer("planner", "executor", state(), receiver=desk.receive, **carriers)

    with pytest.raises(HandoffDivergence) as diverged:
        asyncio.run(send())

    error = diverged.value
    assert (error.run_id, error.handoff_id, error.attempt, error.stage) == ("r-1", "h-1", 1, "validate")
    assert error.paths == ("task.constraints",)
    assert "only once" not in str(error)
    assert desk.received == []
    assert counted(desk.watch.registry, "handoff_divergences_total", "handoffs_total") == {
        'handoff_divergences_total{path="task.constraints",route="planner->executor"}': 1,
        'handoffs_total{outcome="stopped",route="planner->executor",schema_version="other",source_agent="planner",'
        'target_agent="executor"}': 1,
    }
    (span,) = desk.spans.named("handoff executor")
    told = attributes(span)
    assert told["handoffwatch.handoff.paths"] == ("task.constraints",)
    assert told["handoffwatch.handoff.digest_before"] != told["handoffwatch.handoff.digest_after"]


def test_corrected_export_delivers_and_leaves_two_equal_files() -> None:
    """What arrived goes to the receiver; equal states are equal files."""
    desk = boundary_desk()

    with desk.watch.run("refunds", task_id="t-1") as run:
        sent = state()
        run.transfer(
            "planner", "executor", sent, receiver=desk.receive, export=json.dumps, import_=json.loads
        )  # fmt: skip

    assert desk.received == [state()]
    folder = Path("handoff-snapshots")
    before, after = (folder / f"h-1.{stage}.json" for stage in ("before", "after"))
    assert before.read_bytes() == after.read_bytes()
    assert {path.stat().st_mode & 0o777 for path in (before, after)} == {0o600}


def test_divergence_waits_for_a_person_when_the_policy_quarantines() -> None:
    """It stops, and its case is open."""
    desk = boundary_desk(POLICY.replace("fail_closed: true", "on_failure: quarantine"))

    with pytest.raises(HandoffDivergence), desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer(
            "planner", "executor", state(), receiver=desk.receive, export=drops_constraints, import_=fills_in_nothing
        )

    (case,) = desk.watch.ledger.cases()
    assert (case.kind, case.facts["paths"]) == ("quarantined", ["task.constraints"])


def test_divergence_passes_and_is_counted_when_the_policy_says_so() -> None:
    """The receiver starts with what arrived."""
    desk = boundary_desk(POLICY.replace("fail_closed: true", "on_failure: pass"))

    with desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer(
            "planner", "executor", state(), receiver=desk.receive, export=drops_constraints, import_=fills_in_nothing
        )

    assert desk.received[0]["task"]["constraints"] == []
    bypassed = counted(desk.watch.registry, "checks_bypassed_total")
    assert bypassed['checks_bypassed_total{cause="on_failure_pass",check="boundary",name="planner->executor"}'] == 1


def test_handoff_stops_and_the_exception_goes_on_when_a_carrier_raises() -> None:
    """What the host's function raises is the host's; the receiver does not start."""
    desk = boundary_desk()

    def breaks(_: object) -> str:
        raise OSError("full")

    with desk.watch.run("refunds", task_id="t-1") as run, pytest.raises(OSError, match="full"):
        run.transfer("planner", "executor", state(), receiver=desk.receive, export=breaks, import_=json.loads)

    assert desk.received == []
    with desk.watch.run("refunds", task_id="t-2") as run, pytest.raises(RegistrationError):
        run.transfer("planner", "executor", state(), receiver=desk.receive, export=json.dumps)


def test_snapshot_that_cannot_be_written_stops_the_handoff() -> None:
    """Fail closed holds: what cannot be kept cannot be proven later."""
    desk = boundary_desk()
    Path("handoff-snapshots").write_text("no folder", encoding="utf-8")

    with pytest.raises(HandoffDivergence) as diverged, desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", state(), receiver=desk.receive, export=json.dumps, import_=json.loads)

    assert diverged.value.decision is not None
    assert "capture_failed" in diverged.value.decision.reasons
    assert desk.received == []


def test_primitives_compare_when_the_framework_owns_the_stages() -> None:
    """Captured before, compared before the receiver's first action; a state not given is a bypass."""
    desk = boundary_desk()

    with desk.watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", state(), before=state())
        lost = state()
        del lost["task"]["constraints"]
        arrived = run.arrived(step, after=lost)
        assert (arrived.action, arrived.decision.paths if arrived.decision else None) == (
            Action.STOP,
            ["task.constraints"],
        )
    with desk.watch.run("refunds", task_id="t-2") as run:
        second = state() | {"handoff_id": "h-2"}
        step = run.handoff("planner", "executor", second, before=second)
        assert run.arrived(step, after=copy.deepcopy(second)).action is Action.DELIVER
        run.ended(step)
        third = state() | {"handoff_id": "h-3"}
        step = run.handoff("planner", "executor", third, before=third)
        assert run.arrived(step).action is Action.DELIVER
    bypassed = counted(desk.watch.registry, "checks_bypassed_total")
    assert bypassed['checks_bypassed_total{cause="unchecked",check="boundary",name="planner->executor"}'] == 1


def test_two_hundred_transfers_never_mix_when_two_policies_contradict_each_other() -> None:
    """Each route is compared by its own policy, whatever runs beside it."""
    desk = FlowDesk()
    strict = BoundaryPolicy(exact_paths=("payload.amount_cents",))
    loose = BoundaryPolicy(ignore_paths=("payload.amount_cents",), on_failure=OnFailure.STOP)
    desk.route("planner->executor", boundary=strict).route("executor->reviewer", boundary=loose)

    def changes(sent: dict[str, Any]) -> dict[str, Any]:
        arrived = copy.deepcopy(sent)
        arrived["payload"]["amount_cents"] += 1
        return arrived

    async def send(number: int) -> str:
        route = ("planner->executor", "executor->reviewer")[number % 2]
        source, target = route.split("->")
        raw = plan(f"h-{number}", route=route, task_id=f"t-{number}")
        async with desk.watch.run("refunds", task_id=f"t-{number}") as run:
            try:
                await run.transfer_async(
                    source, target, raw, receiver=desk.receive, export=changes, import_=copy.deepcopy
                )  # fmt: skip
            except HandoffDivergence as error:
                return ",".join(error.paths)
        return "delivered"

    async def main() -> list[str]:
        return await asyncio.gather(*map(send, range(200)))

    ended = asyncio.run(main())
    assert ended[::2] == ["payload.amount_cents"] * 100
    assert ended[1::2] == ["delivered"] * 100


def test_no_secret_leaves_the_process_when_a_state_with_one_diverges(caplog: pytest.LogCaptureFixture) -> None:
    """Not by a value, not by a key, not where the policy names it: spans, logs, metrics, errors, cases, snapshots."""
    desk = boundary_desk(POLICY.replace("fail_closed: true", "on_failure: quarantine"))
    named, shaped = "correct-horse-battery", vendor_keys("Qz7Rk2Vb9Lm4Xt6Wp3Nc")[0]
    sent = state() | {"credentials": {"token": named}, "note": shaped, shaped: 1}

    def loses_all(_: object) -> dict[str, Any]:
        return {"schema_version": 1, "handoff_id": "h-1", "credentials": {"token": named[::-1]}}

    with pytest.raises(HandoffDivergence) as diverged, desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", sent, receiver=desk.receive, export=loses_all, import_=copy.deepcopy)

    (span,) = desk.spans.named("handoff executor")
    said = [
        str(diverged.value),
        repr(diverged.value.decision),
        span.to_json(),
        caplog.text,
        generate_latest(desk.watch.registry).decode(),
        *(repr(case) for case in desk.watch.ledger.cases()),
        *(
            path.name + path.read_text(encoding="utf-8")
            for path in Path("handoff-snapshots").iterdir()
            if path.is_file()
        ),
    ]
    assert "handoff diverged" in caplog.text
    assert len(said) >= 10
    assert [text for text in said if named in text or named[::-1] in text or shaped in text] == []


def test_fault_of_our_own_stops_and_is_counted_when_the_handoff_crosses() -> None:
    """It fails closed: the receiver does not start, and neither does the host see what only we can mend."""
    desk = boundary_desk()
    key: Any = ["k"]

    with pytest.raises(HandoffBlocked), desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer(
            "planner", "executor", state(), receiver=desk.receive, export=json.dumps, import_=json.loads, key=key
        )

    assert desk.received == []
    assert counted(desk.watch.registry, "internal_errors_total") == {'internal_errors_total{component="runtime"}': 1}


def test_state_that_arrives_alone_is_a_bypass() -> None:
    """Nobody said what left, so nothing was compared."""
    desk = boundary_desk()

    with desk.watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", state())
        assert run.arrived(step, after={}).action is Action.DELIVER

    bypassed = counted(desk.watch.registry, "checks_bypassed_total")
    assert bypassed['checks_bypassed_total{cause="unchecked",check="boundary",name="planner->executor"}'] == 1


def fails(_before: object, _after: object) -> list[str]:
    """Raise, as a post-condition with a bug does."""
    raise ZeroDivisionError


@pytest.mark.parametrize("on_failure", [OnFailure.STOP, OnFailure.QUARANTINE])
def test_post_condition_that_raises_stops_the_handoff(on_failure: OnFailure) -> None:
    """It proves nothing, so no receiver starts: neither in a transfer nor by the primitives."""
    desk = FlowDesk()
    policy = BoundaryPolicy(transforms={"payload": Transform("summary", fails)}, on_failure=on_failure)
    desk.route("planner->executor", boundary=policy)
    sent, other = plan("h-1", task_id="t-1"), plan("h-2", task_id="t-2")

    with pytest.raises(HandoffDivergence) as diverged, desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", sent, receiver=desk.receive, export=altered, import_=copy.deepcopy)
    assert diverged.value.paths == ("payload",)
    with desk.watch.run("refunds", task_id="t-2") as run:
        step = run.handoff("planner", "executor", other, before=other)
        assert run.arrived(step, after=altered(other)).action is Action.STOP
        assert run.arrived(step, after=other).action is Action.STOP
    assert desk.received == []
    ended = counted(desk.watch.registry, "handoffs_total")
    assert {key.split('"')[1]: value for key, value in ended.items()} == {"stopped": 2}


def altered(sent: dict[str, Any]) -> dict[str, Any]:
    """Return a plan that asks for another amount."""
    arrived = copy.deepcopy(sent)
    arrived["payload"]["amount_cents"] += 1
    return arrived


@pytest.mark.parametrize(
    ("on_failure", "options"),
    [
        (OnFailure.STOP, {"when_blocked": "divert", "fallback": "helper"}),
        (OnFailure.PASS, {}),
        (OnFailure.STOP, {"mode": "shadow"}),
    ],
    ids=["fallback", "pass", "shadow"],
)
def test_handoff_ends_stopped_when_its_export_raises_whatever_the_route_says(
    on_failure: OnFailure, options: dict[str, Any]
) -> None:
    """Nothing arrived, so nothing can be delivered; the same handoff may be sent again, as after any failed call."""
    desk = FlowDesk()
    desk.route("planner->executor", boundary=BoundaryPolicy(on_failure=on_failure), **options)
    sent = plan("h-1", task_id="t-1")

    def breaks(_: object) -> str:
        raise OSError("net")

    with desk.watch.run("refunds", task_id="t-1") as run:
        with pytest.raises(OSError, match="net"):
            run.transfer("planner", "executor", sent, receiver=desk.receive, export=breaks, import_=copy.deepcopy)
        assert run.arrived("executor").action is Action.STOP
        ended = counted(desk.watch.registry, "handoffs_total")
        assert {key.split('"')[1]: value for key, value in ended.items()} == {"stopped": 1}
        run.transfer("planner", "executor", sent, receiver=desk.receive, export=copy.copy, import_=copy.deepcopy)

    assert len(desk.received) == 1
    assert not any("on_failure_pass" in key for key in counted(desk.watch.registry, "checks_bypassed_total"))


def test_state_of_an_attempt_is_forgotten_when_the_next_one_says_none() -> None:
    """What left before a repair is not what left after it."""
    desk = FlowDesk()
    desk.route("planner->executor", boundary=BoundaryPolicy())
    wrong = plan("h-1", task_id="t-1") | {"payload": {"order_id": "", "amount_cents": "none"}}

    with desk.watch.run("refunds", task_id="t-1") as run:
        assert run.handoff("planner", "executor", wrong, before=wrong).action is Action.REPAIR
        mended = plan("h-1", task_id="t-1")
        step = run.handoff("planner", "executor", mended)
        assert run.arrived(step, after=mended).action is Action.DELIVER


def test_shadow_route_asks_nobody_when_its_policy_quarantines() -> None:
    """It only counts."""
    desk = FlowDesk()
    desk.route("planner->executor", boundary=BoundaryPolicy(on_failure=OnFailure.QUARANTINE), mode="shadow")

    with desk.watch.run("refunds", task_id="t-1") as run:
        sent = plan("h-1", task_id="t-1")
        run.transfer("planner", "executor", sent, receiver=desk.receive, export=altered, import_=copy.deepcopy)

    assert len(desk.received) == 1
    assert [case.kind for case in desk.watch.ledger.cases() if case.kind == "quarantined"] == []


def test_key_below_a_secret_path_stays_inside() -> None:
    """A path ends where the secret begins."""
    policy = BoundaryPolicy(secret=("sessions",), redact=("credentials",))

    assert policy.shown(("task", "sessions", "correct-horse", "token")) == "task.sessions"
    assert policy.shown(("credentials", "correct-horse")) == "credentials"
    assert policy.shown(("task", "goal")) == "task.goal"
