"""A handoff that goes on in another process: sealed where it leaves, opened and compared where it arrives."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from handoffwatch import Action, Contract, HandoffBlocked, HandoffDivergence, RegistrationError, Watch
from handoffwatch.boundary.migrations import Migrations
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.seal_keys import SealKey
from handoffwatch.reasons import REASONS
from support.flows import ROUTE, FlowDesk, Plan, bad_plan, plan
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
    assert stopped.value.hint.startswith(REASONS[code].advice)
    assert "export" not in stopped.value.hint


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


def unchecked(policy: BoundaryPolicy = POLICY, *routes: str, **options: Any) -> FlowDesk:
    """Return a process whose routes have no contract."""
    desk = FlowDesk()
    for route in routes or (ROUTE,):
        desk.watch.route(route, unchecked=True, boundary=policy, **options)
    desk.watch.seal_keys(KEY)
    return desk


def test_message_is_taken_once_on_a_route_without_a_contract() -> None:
    """Whatever task it is sent to again: the process remembers which sealed handoffs it accepted."""
    message = sent_by(desk_of(), plan())
    receiver = unchecked()
    assert received_by(receiver, message) == "received"

    for task_id in ("t-1", "t-2"):
        told = json.loads(message)
        with receiver.watch.run("refunds", task_id=task_id) as run, pytest.raises(HandoffDivergence) as stopped:
            run.transfer("planner", "executor", told["state"], receiver=receiver.receive, seal=told["seal"])
        assert "must be used once" in str(stopped.value.decision)
    assert len(receiver.received) == 1


def test_message_that_was_stopped_may_come_again() -> None:
    """Only what was accepted is used up."""
    message = sent_by(desk_of(), plan())
    receiver = unchecked()
    with pytest.raises(HandoffDivergence):
        received_by(receiver, message, payload={"order_id": "4417", "amount_cents": 1})
    receiver.watch.reopen("t-1")

    assert received_by(receiver, message) == "received"


def test_seal_is_good_for_one_route() -> None:
    """The same state at another agent's door is another handoff."""
    receiver = unchecked(POLICY, ROUTE, "planner->auditor")
    told = json.loads(sent_by(desk_of(), plan()))

    with receiver.watch.run("refunds", task_id="t-1") as run, pytest.raises(HandoffDivergence) as stopped:
        run.transfer("planner", "auditor", told["state"], receiver=receiver.receive, seal=told["seal"])

    assert "must be made for this route" in str(stopped.value.decision)


def test_only_a_handoff_that_leaves_is_sealed() -> None:
    """Not one that was diverted, nor one that has arrived here, nor one whose receiver could not know its id."""
    desk = desk_of(fallback="human")
    with desk.watch.run("refunds", task_id="t-1") as run:
        blocked = bad_plan("h-2")
        diverted = run.abandoned(run.handoff("planner", "executor", blocked, before=blocked))
        arrived = run.handoff("planner", "executor", plan("h-3"), before=plan("h-3"))
        run.arrived(arrived, after=plan("h-3"))
        nameless = plan()
        del nameless["handoff_id"]
        unnamed = run.handoff("planner", "executor", nameless, before=nameless)
        assert diverted.action is Action.DIVERT
        for step, rule in ((diverted, "has not arrived here"), (arrived, "has not arrived here"), (unnamed, "said by")):
            with pytest.raises(RegistrationError, match=rule):
                run.seal(step)
    assert sum(counted(desk.watch.registry, "handoffs_total").values()) == 3


def test_handoff_is_sealed_once_when_two_threads_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what has left is not counted when its run ends meanwhile."""
    monkeypatch.setenv("HANDOFFWATCH_HANDOFF__SNAPSHOT__ENABLED", "true")
    watch = Watch()
    watch.workflow("refunds", tools="none")
    watch.route(ROUTE, contract=Plan, boundary=POLICY)
    watch.seal_keys(KEY)
    left = 0
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for number in range(10):
            run = watch.run("refunds", task_id=f"t-{number}")
            raw = plan(f"h-{number}", task_id=f"t-{number}")
            step = run.handoff("planner", "executor", raw, before=raw)
            asked = [pool.submit(run.seal, step) for _ in range(8)]
            run.finish()
            seals = [each.result() for each in asked if each.exception() is None]
            left += len(seals)
            ended = sum(counted(watch.registry, "handoffs_total").values())
            assert left + ended == number + 1  # it left, or it ended here, and never both


def test_hop_of_a_handoff_that_leaves_is_counted_where_it_arrives() -> None:
    """A task of 25 hops has 25, also where both ends are in one process."""
    desk = desk_of()
    for number in range(25):
        raw = plan(f"h-{number}", payload={"order_id": "4417", "amount_cents": number})
        with desk.watch.run("refunds", task_id="t-1") as run:
            sent = run.seal(run.handoff("planner", "executor", raw, before=raw))
            run.transfer("planner", "executor", raw, receiver=desk.receive, seal=sent)
    assert len(desk.received) == 25


def test_json_text_is_sealed_and_opened_as_the_object_that_it_is() -> None:
    """As in transfers; a state that leaves as text may arrive as an object, and the other way round."""
    text: Any = json.dumps(plan())
    for left, arrives in ((text, plan()), (plan(), text), (text, text.encode())):
        sender, receiver = desk_of(), desk_of()
        with sender.watch.run("refunds", task_id="t-1") as run:
            sent = run.seal(run.handoff("planner", "executor", left, before=left))
        with receiver.watch.run("refunds", task_id="t-1") as run:
            assert run.submit("planner", "executor", arrives, seal=sent).action is Action.DELIVER
        with sender.watch.run("refunds", task_id="t-2") as run:
            step = run.handoff("planner", "executor", plan("h-2", task_id="t-2"), before=plan("h-2", task_id="t-2"))
            assert run.arrived(step, after=json.dumps(plan("h-2", task_id="t-2"))).action is Action.DELIVER


def test_old_state_that_arrives_as_text_is_migrated() -> None:
    """The step gets the object."""
    receiver = desk_of(NEW_POLICY, contract=Plan2, migrations=migrations_of())
    with receiver.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", json.dumps(plan()), receiver=receiver.receive, export=str, import_=str)
    assert [each["payload"]["currency"] for each in receiver.received] == ["EUR"]


SECRET_KEY: Final = "739214"


def test_path_ends_where_a_secret_begins_in_seals_and_migrations() -> None:
    """A key below a path that is redacted, and one of the shape of a secret, stay inside."""
    policy = BoundaryPolicy(exact_paths=("credentials.*.name",), redact=("credentials",))
    state = {"schema_version": "1", "handoff_id": "h-1", "credentials": {SECRET_KEY: {"name": "a"}}}
    sender, receiver = unchecked(policy), unchecked(policy)
    with sender.watch.run("refunds", task_id="t-1") as run:
        sent = run.seal(run.handoff("planner", "executor", state, before=state))
    with receiver.watch.run("refunds", task_id="t-1") as run, pytest.raises(HandoffDivergence) as lost:
        run.transfer(
            "planner", "executor", state | {"credentials": {SECRET_KEY: {}}}, receiver=receiver.receive, seal=sent
        )
    migrations = Migrations()
    migrations.add(
        "1", "2", lambda old: old | {"schema_version": "2"}, check=lambda _, __: [f"credentials.{SECRET_KEY}"]
    )
    third = unchecked(BoundaryPolicy(schema_version="2", redact=("credentials",)), migrations=migrations)
    with third.watch.run("refunds", task_id="t-1") as run, pytest.raises(HandoffDivergence) as failed:
        run.transfer("planner", "executor", state, receiver=third.receive, export=json.dumps, import_=json.loads)

    for stopped, desk in ((lost, receiver), (failed, third)):
        said = f"{stopped.value}{stopped.value.decision}" + "".join(span.to_json() for span in desk.spans.ended)
        assert SECRET_KEY not in said
        assert any(path.startswith("credentials") for path in stopped.value.paths)


class Held(BaseModel):
    """What a migration may return in place of a dict."""

    artifacts: list[Any]


def test_artefacts_are_looked_at_in_what_a_migration_made_of_the_state() -> None:
    """A model is looked into as well."""
    asked: list[object] = []
    migrations = Migrations()
    migrations.add("1", "2", lambda old: old | {"schema_version": "2", "task": Held(**old["task"])})
    policy = BoundaryPolicy(schema_version="2", artifacts=("task.artifacts",))
    desk = unchecked(policy, migrations=migrations, open_artifact=lambda *given: asked.append(given))
    state = {"schema_version": "1", "handoff_id": "h-1", "task": {"artifacts": [{"id": "a", "sha256": "0" * 64}]}}

    with desk.watch.run("refunds", task_id="t-1") as run, pytest.raises(HandoffDivergence) as stopped:
        run.transfer("planner", "executor", state, receiver=desk.receive, export=json.dumps, import_=json.loads)

    assert asked == [("a", None)]
    assert stopped.value.decision is not None
    assert stopped.value.decision.reasons == ["artifact_changed"]


@pytest.mark.parametrize("version", [None, 9.0, True, ["9"], {}, "", 9])
def test_state_whose_version_is_none_is_refused_where_the_policy_names_one(version: object) -> None:
    """On a route without a contract too."""
    desk = unchecked(BoundaryPolicy(schema_version="1"))
    state = {"schema_version": version, "handoff_id": "h-1"}
    with desk.watch.run("refunds", task_id="t-1") as run, pytest.raises(HandoffDivergence):
        run.transfer("planner", "executor", state, receiver=desk.receive, export=json.dumps, import_=json.loads)


def test_answer_to_a_repair_cannot_have_been_sealed() -> None:
    """The request goes to who sealed it."""
    desk = desk_of()
    with desk.watch.run("refunds", task_id="t-1") as run, pytest.raises(RegistrationError, match="without repair"):
        run.transfer("planner", "executor", plan(), receiver=desk.receive, seal="", repair=lambda _: plan())
