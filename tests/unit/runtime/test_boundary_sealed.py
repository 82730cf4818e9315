"""A handoff that goes on in another process: sealed where it leaves, opened and compared where it arrives."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from handoffwatch import Action, Contract, HandoffBlocked, HandoffDivergence, RegistrationError, Watch
from handoffwatch.boundary.migrations import Migrations
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.seal_keys import SealKey
from support.flows import ROUTE, FlowDesk, Plan, plan
from support.telemetry import attributes, counted, ids

KEY: Final = SealKey("2031-05", b"k" * 32)
POLICY: Final = BoundaryPolicy(exact_paths=("handoff_id", "payload.order_id", "payload.amount_cents"))


def desk_of(policy: BoundaryPolicy = POLICY, *keys: SealKey, folder: Path | None = None, **options: Any) -> FlowDesk:
    """Return one process: its desk, whose route has a boundary."""
    desk = FlowDesk(folder)
    desk.route(boundary=policy, **options)
    desk.watch.seal_keys(*(keys or (KEY,)))
    return desk


def sent_by(desk: FlowDesk, handoff: dict[str, Any]) -> str:
    """Return the message in which a handoff leaves its process."""
    with desk.watch.run("refunds", run_id="sender", task_id="t-1") as run:
        step = run.handoff("planner", "executor", handoff, before=handoff)
        return json.dumps({"state": handoff, "seal": run.seal(step)})


def received_by(desk: FlowDesk, message: str, *, is_async: bool = False, **changes: Any) -> Any:
    """Return what the receiver made of a message in its own process."""
    told = json.loads(message)
    state, seal = told["state"] | changes, told["seal"]

    async def receive() -> Any:
        async with desk.watch.run("refunds", run_id="receiver", task_id="t-1") as run:
            if is_async:
                return await run.transfer_async("planner", "executor", state, receiver=desk.receive, seal=seal)
            return run.transfer("planner", "executor", state, receiver=desk.receive, seal=seal)

    return asyncio.run(receive())


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_sealed_handoff_is_delivered_in_another_process_and_continues_its_trace(is_async: bool) -> None:
    """It ends once, where it was received; its span there is a child of the sender's run."""
    sender, receiver = desk_of(), desk_of()

    assert received_by(receiver, sent_by(sender, plan()), is_async=is_async) == "received"

    assert [handoff["payload"] for handoff in receiver.received] == [plan()["payload"]]
    assert counted(sender.watch.registry, "handoffs_total") == {}
    assert sum(counted(receiver.watch.registry, "handoffs_total").values()) == 1
    run, span = sender.spans.one("invoke_workflow refunds"), receiver.spans.one("handoff executor")
    assert ids(span)[0] == ids(run)[0]
    assert span.parent is not None
    assert span.parent.span_id == ids(run)[1]
    assert [link.context.trace_id for link in span.links] == [ids(receiver.spans.one("invoke_workflow refunds"))[0]]
    assert counted(sender.watch.registry, "checks_bypassed_total", "internal_errors_total") == {}


def test_changed_path_is_named_without_the_state_that_left() -> None:
    """The receiver never starts, and the error names the path and no value."""
    sender, receiver = desk_of(), desk_of()
    message = sent_by(sender, plan())

    with pytest.raises(HandoffDivergence) as diverged:
        received_by(receiver, message, payload={"order_id": "4417", "amount_cents": 990_000})

    assert diverged.value.paths == ("payload.amount_cents",)
    assert "990000" not in str(diverged.value)
    assert receiver.received == []
    assert counted(receiver.watch.registry, "handoff_divergences_total") == {
        'handoff_divergences_total{path="payload.amount_cents",route="planner->executor"}': 1
    }


@pytest.mark.parametrize(
    ("tamper", "code"),
    [
        pytest.param(lambda seal: None, "seal_missing", id="missing"),
        pytest.param(lambda seal: "", "seal_missing", id="empty"),
        pytest.param(lambda seal: seal.replace('"attempt":1', '"attempt":2'), "seal_invalid", id="forged"),
        pytest.param(lambda seal: "{}", "seal_invalid", id="no seal"),
        pytest.param(lambda seal: seal[:-1], "seal_invalid", id="cut off"),
    ],
)
def test_handoff_stops_when_its_seal_cannot_be_trusted(tamper: Any, code: str) -> None:
    """A seal that is asked for must be there, whole and genuine."""
    receiver = desk_of()
    told = json.loads(sent_by(desk_of(), plan()))
    told["seal"] = tamper(told["seal"])

    with pytest.raises(HandoffDivergence) as stopped:
        received_by(receiver, json.dumps(told))

    assert stopped.value.decision is not None
    assert stopped.value.decision.reasons == [code]
    assert receiver.received == []


def test_seal_expires() -> None:
    """After its time the message is refused, whatever it says."""
    receiver = desk_of()
    message = sent_by(desk_of(), plan())
    receiver.time.now_s += receiver.watch.settings.handoffs.seal_s

    with pytest.raises(HandoffDivergence) as stopped:
        received_by(receiver, message)

    assert "expired" in str(stopped.value.decision)


def test_message_is_taken_once_also_over_a_restart() -> None:
    """A durable route remembers in the ledger which handoffs were accepted."""
    message = sent_by(desk_of(), plan())
    assert received_by(desk_of(durable=True), message) == "received"
    again = desk_of(durable=True)

    with pytest.raises(HandoffBlocked) as stopped:
        received_by(again, message)

    assert stopped.value.decision is not None
    assert "consumed_handoff" in stopped.value.decision.reasons
    assert again.received == []


def test_sender_and_receiver_may_share_a_ledger_and_a_process() -> None:
    """A handoff that leaves is not one that was accepted, nor one in progress."""
    desk = desk_of(durable=True)
    with desk.watch.run("refunds", run_id="sender", task_id="t-1") as run:
        step = run.submit("planner", "executor", plan(), before=plan())
        message = json.dumps({"state": plan(), "seal": run.seal(step)})

    assert received_by(desk, message) == "received"


def test_old_key_opens_while_a_new_one_seals() -> None:
    """Receivers hold both during a rotation; without the right one nothing passes."""
    new = SealKey("2031-06", b"n" * 32)
    assert received_by(desk_of(POLICY, new, KEY), sent_by(desk_of(), plan())) == "received"

    with pytest.raises(HandoffDivergence):
        received_by(desk_of(POLICY, new), sent_by(desk_of(), plan()))


def test_seal_of_another_handoff_is_refused() -> None:
    """A seal that is right lies beside a message that it was not made for."""
    sender = desk_of()
    policy = BoundaryPolicy(exact_paths=("payload.order_id",), ignore_paths=("handoff_id",))
    sender = desk_of(policy)

    with pytest.raises(HandoffDivergence) as stopped:
        received_by(desk_of(policy), sent_by(sender, plan()), handoff_id="h-2")

    assert stopped.value.decision is not None
    assert stopped.value.decision.reasons == ["seal_invalid"]


def test_seal_is_refused_where_nothing_can_be_sealed() -> None:
    """Without a key, without the state, and after the handoff has left once."""
    desk = desk_of()
    with desk.watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", plan(), before=plan())
        run.seal(step)
        with pytest.raises(RegistrationError, match="must be one that was let through"):
            run.seal(step)
        with pytest.raises(RegistrationError, match="must be one that was let through"):
            run.seal(run.handoff("planner", "executor", plan("h-2")))
        desk.watch.seal_keys()
        with pytest.raises(RegistrationError, match="key: must be registered"):
            run.seal(run.handoff("planner", "executor", plan("h-3"), before=plan("h-3")))
        with pytest.raises(RegistrationError, match="without export and import_"):
            run.transfer("planner", "executor", plan(), receiver=desk.receive, export=str, import_=str, seal="")


def test_handoff_stops_when_it_cannot_be_sealed() -> None:
    """A state without a canonical form leaves no process."""
    desk = desk_of()
    with desk.watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", plan(), before=plan() | {"metadata": {"at": object()}})
        with pytest.raises(HandoffDivergence) as stopped:
            run.seal(step)

    assert stopped.value.stage == "serialize"
    assert sum(counted(desk.watch.registry, "handoffs_total").values()) == 1


def test_both_processes_leave_their_snapshot_under_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender's is `before`, the receiver's `after`; equal states are equal files."""
    monkeypatch.setenv("HANDOFFWATCH_HANDOFF__SNAPSHOT__ENABLED", "true")
    sender, receiver = (Watch(clock=FlowDesk().time.clock()) for _ in range(2))
    for watch in (sender, receiver):
        watch.workflow("refunds", tools="none")
        watch.route(ROUTE, contract=Plan, boundary=POLICY)
        watch.seal_keys(KEY)
    for number in (1, 2):
        with sender.run("refunds", task_id=f"t-{number}") as run:
            text = run.seal(run.handoff("planner", "executor", plan(task_id=f"t-{number}"), before=plan()))
        with receiver.run("refunds", task_id=f"t-{number}") as run:
            run.submit("planner", "executor", plan(), seal=text)

    files = sorted(path.name for path in Path("handoff-snapshots").iterdir() if "meta" not in path.name)
    assert files == ["h-1.2.after.json", "h-1.2.before.json", "h-1.after.json", "h-1.before.json"]


class Plan2(Contract, version="2"):
    """The plan of the next version, which says its currency."""

    order_id: str
    amount_cents: int
    currency: str


def says_currency(state: dict[str, Any]) -> dict[str, Any]:
    """Take a plan to the next version."""
    return state | {"schema_version": "2", "payload": state["payload"] | {"currency": "EUR"}}


def migrations_of(function: Any = says_currency) -> Migrations:
    """Return the one step."""
    migrations = Migrations()
    migrations.add("1", "2", function, keeps=("payload.order_id",), fills=("payload.currency",))
    return migrations


NEW_POLICY: Final = BoundaryPolicy(
    schema_version="2", exact_paths=("handoff_id", "payload.order_id", "payload.amount_cents")
)


@pytest.mark.parametrize("is_sealed", [True, False], ids=["another process", "one process"])
def test_old_state_is_migrated_before_it_is_judged(is_sealed: bool) -> None:
    """It is held against the seal as it left, then brought to the version that the receiver's contract knows."""
    receiver = desk_of(NEW_POLICY, contract=Plan2, migrations=migrations_of())

    if is_sealed:
        received_by(receiver, sent_by(desk_of(), plan()))
    else:
        with receiver.watch.run("refunds", task_id="t-1") as run:
            run.transfer(
                "planner", "executor", plan(), receiver=receiver.receive, export=json.dumps, import_=json.loads
            )

    assert [(each["schema_version"], each["payload"]["currency"]) for each in receiver.received] == [("2", "EUR")]


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda state: says_currency(state) | {"payload": {"order_id": "1"}}, id="loses"),
        pytest.param(lambda state: state, id="leaves the version"),
        pytest.param(lambda state: 1 / 0, id="raises"),
    ],
)
def test_handoff_stops_when_its_migration_fails(function: Any) -> None:
    """The receiver sees neither the old state nor half a new one."""
    receiver = desk_of(NEW_POLICY, contract=Plan2, migrations=migrations_of(function))

    with pytest.raises(HandoffDivergence) as stopped:
        received_by(receiver, sent_by(desk_of(), plan()))

    assert stopped.value.decision is not None
    assert "migration_failed" in stopped.value.decision.reasons
    assert receiver.received == []


def test_unknown_version_is_refused() -> None:
    """No step leads from it; and a route without migrations takes its own version only."""
    message = sent_by(desk_of(), plan())
    future = plan(schema_version="9")
    sender = FlowDesk()
    sender.watch.route(ROUTE, unchecked=True, boundary=POLICY)
    sender.watch.seal_keys(KEY)
    with sender.watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", future, before=future)
        assert step.action is Action.DELIVER
        from_future = json.dumps({"state": future, "seal": run.seal(step)})

    for wrong, options in ((from_future, {"migrations": migrations_of()}), (message, {})):
        receiver = desk_of(NEW_POLICY, contract=Plan2, **options)
        with pytest.raises(HandoffDivergence):
            received_by(receiver, wrong)
        assert receiver.received == []


def test_migrations_need_a_version_to_lead_to() -> None:
    """The policy says which."""
    with pytest.raises(RegistrationError, match="must lead to the schema version of the policy"):
        desk_of(POLICY, migrations=migrations_of())


def test_route_without_a_boundary_of_its_own_opens_seals_by_the_settings() -> None:
    """`submit` takes a seal as `transfer` does, and answers with a step."""
    desk = FlowDesk()
    desk.route()
    desk.watch.seal_keys(KEY)
    with desk.watch.run("refunds", task_id="t-1") as run:
        sent = run.seal(run.handoff("planner", "executor", plan(), before=plan()))
        step = run.submit("planner", "executor", plan(), seal=sent)
        assert step.action is Action.DELIVER
        lost = run.submit("planner", "executor", plan("h-2"), seal=sent)
        assert (lost.action, lost.decision.reasons if lost.decision else None) == (Action.STOP, ["seal_invalid"])
    assert "handoffwatch.handoff.digest_before" not in attributes(desk.spans.named("handoff executor")[0])
