"""What a crossing leaves behind: numbered snapshots, old ones removed, artefacts looked at, an end for each handoff."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import hashlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from handoffwatch import Action, HandoffBlocked, HandoffDivergence, LedgerUnavailable, Settings, Watch
from handoffwatch.boundary.artifacts import Artifact
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.settings import BoundarySettings, SnapshotSettings, read_policy
from handoffwatch.clock import Clock
from handoffwatch.handoffs.critique import CriticAnswer
from handoffwatch.ledger.settings import LedgerSettings
from handoffwatch.vocabulary import OnFailure, Ruling
from support.flows import ROUTE, FlowDesk, bad_plan, plan
from support.requirements import missing
from support.telemetry import attributes, counted

POLICY: Final = BoundaryPolicy(exact_paths=("handoff_id", "payload.amount_cents"))
CARRIERS: Final[dict[str, Any]] = {"export": json.dumps, "import_": json.loads}
FOLDER: Final = Path("handoff-snapshots")


def kept_desk(directory: str = "./handoff-snapshots", *, clock: Clock | None = None, **snapshot: Any) -> FlowDesk:
    """Return a desk whose one route keeps snapshots; where threads wait for each other the clock is the real one."""
    desk = FlowDesk()
    desk.watch = Watch(
        settings=Settings(
            handoff=BoundarySettings(snapshot=SnapshotSettings(enabled=True, directory=directory, **snapshot)),
            ledger=LedgerSettings(url=f"sqlite:///{Path.cwd() / 'ledger.db'}"),
        ),
        clock=clock or desk.time.clock(),
        tracer_provider=desk.spans.provider,
    )
    desk.watch.workflow("refunds", tools="none")
    return desk.route(boundary=POLICY)


def states_in(folder: Path = FOLDER) -> list[str]:
    """Return the names of the states that lie in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.name.endswith((".before.json", ".after.json")))


def send(desk: FlowDesk, handoff: dict[str, Any], *, task_id: str = "t-1", **carriers: Any) -> Any:
    """Take a handoff over the boundary in a run of its own."""
    with desk.watch.run("refunds", task_id=task_id) as run:
        return run.transfer("planner", "executor", handoff, receiver=desk.receive, **(CARRIERS | carriers))


# repeats


def test_handoff_that_is_sent_again_leaves_the_first_files_as_they_were() -> None:
    """The repeat is refused, and what it would have changed lies under the next number."""
    desk = kept_desk()
    send(desk, plan())
    first = {name: (FOLDER / name).read_bytes() for name in states_in()}

    with pytest.raises(HandoffBlocked) as repeated:
        send(desk, plan(payload={"order_id": "4417", "amount_cents": 1}))

    assert repeated.value.decision is not None
    assert "consumed_handoff" in repeated.value.decision.reasons
    assert states_in() == ["h-1.2.after.json", "h-1.2.before.json", "h-1.after.json", "h-1.before.json"]
    assert {name: (FOLDER / name).read_bytes() for name in first} == first
    meta = json.loads((FOLDER / "h-1.2.before.meta.json").read_text(encoding="utf-8"))
    assert (meta["attempt"], meta["file"]) == (2, "h-1.2.before.json")


def test_equal_state_under_one_id_is_an_equal_file_in_another_run() -> None:
    """The same handoff repeated gives the same result, under its own number."""
    desk = kept_desk()
    for number in range(3):
        send(desk, plan(task_id=f"t-{number}"), task_id=f"t-{number}", import_=lambda text: json.loads(text))

    assert len(states_in()) == 6
    assert all((FOLDER / f"h-1{n}.before.json").read_bytes() == (FOLDER / f"h-1{n}.after.json").read_bytes()
               for n in ("", ".2", ".3"))  # fmt: skip


def test_what_left_never_takes_the_number_of_what_arrived_before() -> None:
    """A receiver's file of another crossing stays too."""
    desk = kept_desk()
    FOLDER.mkdir(mode=0o700)
    (FOLDER / "h-1.after.json").write_text("{}", encoding="utf-8")

    send(desk, plan())

    assert (FOLDER / "h-1.after.json").read_text(encoding="utf-8") == "{}"
    assert states_in() == ["h-1.2.after.json", "h-1.2.before.json", "h-1.after.json"]


def test_repair_is_the_next_attempt() -> None:
    """Of one handoff, as its decision counts them."""
    desk = kept_desk()
    with desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", bad_plan(), receiver=desk.receive, repair=lambda _: plan(), **CARRIERS)

    assert states_in() == ["h-1.2.after.json", "h-1.2.before.json", "h-1.after.json", "h-1.before.json"]


def test_no_number_is_given_twice_when_one_id_is_sent_at_once() -> None:
    """Twenty senders, twenty pairs of files, each pair of one sender."""
    desk = kept_desk(clock=Clock())

    def send_one(number: int) -> None:
        task = f"t-{number}"
        send(desk, plan(task_id=task, payload={"order_id": "4417", "amount_cents": number + 1}), task_id=task)

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        list(pool.map(send_one, range(20)))

    before = {name: (FOLDER / name).read_bytes() for name in states_in() if "before" in name}
    assert len(set(before.values())) == 20
    assert all((FOLDER / name.replace("before", "after")).read_bytes() == state for name, state in before.items())


def test_snapshots_of_ten_thousand_repeats_find_their_number_fast() -> None:
    """A name that is always the same, as in a test of the host, does not slow its handoffs down or stop them."""
    desk = kept_desk()
    send(desk, plan())
    for number in range(2, 10_001):
        (FOLDER / f"h-1.{number}.before.json").touch()

    send(desk, plan(task_id="t-2"), task_id="t-2")

    assert "h-1.10001.before.json" in states_in()


# the end of a handoff that was interrupted on its way


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt])
def test_handoff_that_is_interrupted_on_its_way_is_counted(error: type[BaseException]) -> None:
    """It left and never arrived: not delivered, and free to be sent again."""
    desk = kept_desk()

    def interrupted(_: object) -> str:
        raise error

    with desk.watch.run("refunds", task_id="t-1") as run:
        with pytest.raises(error):
            run.transfer("planner", "executor", plan(), receiver=desk.receive, **(CARRIERS | {"export": interrupted}))
        assert run.transfer("planner", "executor", plan(), receiver=desk.receive, **CARRIERS) == "received"

    ended = counted(desk.watch.registry, "handoffs_total")
    assert {sample.split('outcome="')[1].split('"')[0]: count for sample, count in ended.items()} == {
        "not_delivered": 1, "delivered": 1,
    }  # fmt: skip


def test_task_that_is_cancelled_on_its_way_is_counted() -> None:
    """Cancelled from outside, while its export waits."""
    desk = kept_desk()

    exporting = asyncio.Event()

    async def stalls(_: object) -> str:
        exporting.set()
        await asyncio.sleep(3_600)
        return ""

    async def main() -> None:
        async with desk.watch.run("refunds", task_id="t-1") as run:
            sending = asyncio.create_task(
                run.transfer_async("planner", "executor", plan(), receiver=desk.receive, export=stalls, import_=str)
            )
            await exporting.wait()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending

    asyncio.run(asyncio.wait_for(main(), 30))
    assert [count for sample, count in counted(desk.watch.registry, "handoffs_total").items()] == [1]
    assert states_in() == ["h-1.before.json"]


def test_task_that_is_cancelled_while_its_artefacts_are_opened_is_counted() -> None:
    """Whatever it waits for on its way: it was not delivered."""
    desk = FlowDesk()
    gate, waiting = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        waiting.set()
        gate.wait(30)

    desk.watch.route(ROUTE, unchecked=True, boundary=WITH_ARTIFACTS, open_artifact=slow)

    async def main() -> None:
        async with desk.watch.run("refunds", task_id="t-1") as run:
            sending = asyncio.create_task(
                run.transfer_async("planner", "executor", with_artifact(), receiver=desk.receive, **CARRIERS)
            )
            await asyncio.to_thread(waiting.wait, 30)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            gate.set()

    asyncio.run(main())
    ended = counted(desk.watch.registry, "handoffs_total")
    assert [sample.split('outcome="')[1].split('"')[0] for sample in ended] == ["not_delivered"]


# retention


def wait_until_gone(path: Path) -> None:
    """Wait until a file was removed, for at most 30 seconds."""
    give_up_s = time.monotonic() + 30
    while path.exists():
        assert time.monotonic() < give_up_s, f"{path} is still there"
        time.sleep(0.005)


def test_old_snapshots_are_removed_while_the_program_runs() -> None:
    """Looked for with the first snapshot, and then after a while."""
    desk = kept_desk(retention_days=1)
    send(desk, plan())
    desk.time.now_s += 2 * 86_400

    send(desk, plan("h-2", task_id="t-2"), task_id="t-2")

    wait_until_gone(FOLDER / "h-1.before.json")
    wait_until_gone(FOLDER / "h-1.after.meta.json")
    assert states_in() == ["h-2.after.json", "h-2.before.json"]


def test_snapshots_are_removed_when_they_grow_too_large() -> None:
    """Much that is written at once does not wait for the next look."""
    desk = kept_desk(clock=Clock(), max_bytes=1_048_576)
    for number in range(60):
        large = plan(f"h-{number}", task_id=f"t-{number}", metadata={"note": "x" * 20_000})
        send(desk, large, task_id=f"t-{number}")

    wait_until_gone(FOLDER / "h-0.before.json")
    assert "h-59.after.json" in states_in()


def test_failed_look_for_old_snapshots_is_counted_and_nothing_else() -> None:
    """The folder went away between a write and the look; the handoff goes on: a recorder fails open."""
    desk = kept_desk()
    folder = desk.watch.boundaries.snapshots_of(ROUTE)
    assert folder is not None
    FOLDER.write_text("no folder", encoding="utf-8")
    folder.prune()
    FOLDER.unlink()

    assert counted(desk.watch.registry, "internal_errors_total") == {'internal_errors_total{component="runtime"}': 1}
    assert send(desk, plan()) == "received"


# a disk that is full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a folder on a file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mount.returncode:
        missing("a small file system cannot be mounted: run the tests as root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_handoff_stops_when_the_disk_is_full(small_disk: Path) -> None:
    """Clear error, nothing half written, and the next one passes once there is room."""
    desk = kept_desk(str(small_disk / "snapshots"))
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(b"x" * 131_072)

    with pytest.raises(HandoffDivergence) as stopped:
        send(desk, plan())

    assert stopped.value.decision is not None
    assert stopped.value.decision.reasons == ["capture_failed"]
    assert desk.received == []
    filler.unlink()
    assert send(desk, plan("h-2", task_id="t-2"), task_id="t-2") == "received"
    left = os.listdir(small_disk / "snapshots")
    assert sorted(left) == ["h-2.after.json", "h-2.after.meta.json", "h-2.before.json", "h-2.before.meta.json"]


# artefacts

CONTENT: Final = b"the invoice"
ARTIFACT: Final = {"id": "a-1", "revision": 1, "size": 11, "sha256": hashlib.sha256(CONTENT).hexdigest()}
WITH_ARTIFACTS: Final = BoundaryPolicy(exact_paths=("artifacts",), artifacts=("artifacts",))


def artifact_desk(open_artifact: Any, policy: BoundaryPolicy = WITH_ARTIFACTS) -> FlowDesk:
    """Return a desk whose unchecked route looks at artefacts."""
    desk = FlowDesk()
    desk.watch.route(ROUTE, unchecked=True, boundary=policy, open_artifact=open_artifact)
    return desk


def with_artifact(**changes: Any) -> dict[str, Any]:
    """Return a state that names one artefact."""
    return {"schema_version": "1", "handoff_id": "h-1", "artifacts": [ARTIFACT | changes]}


def test_artefact_is_looked_at_on_the_far_side(tmp_path: Path) -> None:
    """In the revision, size and content that the state names."""
    (tmp_path / "a-1").write_bytes(CONTENT)
    desk = artifact_desk(lambda artifact_id, _revision: tmp_path / artifact_id)

    assert send(desk, with_artifact()) == "received"


@pytest.mark.parametrize(
    ("open_artifact", "code", "path"),
    [
        pytest.param(lambda *_: None, "artifact_changed", "artifacts.0", id="missing"),
        pytest.param(lambda *_: Artifact(__file__, 2), "artifact_changed", "artifacts.0.revision", id="old revision"),
        pytest.param(lambda *_: __file__, "artifact_changed", "artifacts.0.size", id="another content"),
        pytest.param(lambda *_: 1 / 0, "check_failed", "artifacts.0", id="store is down"),
        pytest.param(None, "check_failed", "$", id="nothing opens them"),
    ],
)
def test_handoff_stops_when_an_artefact_is_not_there(open_artifact: Any, code: str, path: str) -> None:
    """It is named, counted by the pattern of the policy, and the receiver does not start."""
    desk = artifact_desk(open_artifact)

    with pytest.raises(HandoffDivergence) as stopped:
        send(desk, with_artifact())

    assert stopped.value.decision is not None
    assert stopped.value.decision.reasons == [code]
    assert stopped.value.paths == (path,)
    assert desk.received == []
    assert counted(desk.watch.registry, "handoff_divergences_total") == {
        'handoff_divergences_total{path="artifacts",route="planner->executor"}': 1
    }


def test_artefacts_are_not_opened_when_the_state_did_not_survive() -> None:
    """What was changed on the way names nothing that we open."""
    asked: list[object] = []
    desk = artifact_desk(lambda *given: asked.append(given))

    with pytest.raises(HandoffDivergence):
        send(desk, with_artifact(), import_=lambda _: with_artifact(id="../../etc/passwd"))

    assert asked == []


def test_framework_that_owns_the_stages_passes_artefacts_unchecked_and_that_is_counted() -> None:
    """Looking at them may wait, and a primitive does not."""
    desk = artifact_desk(lambda *_: None)
    with desk.watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", with_artifact(), before=with_artifact())
        assert run.arrived(step, after=with_artifact()).action is Action.DELIVER

    bypassed = counted(desk.watch.registry, "checks_bypassed_total")
    assert bypassed['checks_bypassed_total{cause="unchecked",check="boundary",name="planner->executor"}'] == 1


# what a route does beside


def loses_the_amount(text: str) -> dict[str, Any]:
    """Import a plan with another amount."""
    arrived: dict[str, Any] = json.loads(text)
    arrived["payload"]["amount_cents"] += 1
    return arrived


def test_primitive_leaves_a_span_of_its_own_when_the_state_did_not_survive() -> None:
    """The attempt was concluded when it left; what was found on arrival is told apart, with both digests."""
    desk = FlowDesk().route(boundary=POLICY)
    with desk.watch.run("refunds", run_id="r-1", task_id="t-1") as run:
        step = run.handoff("planner", "executor", plan(), before=plan())
        assert run.arrived(step, after=loses_the_amount(json.dumps(plan()))).action is Action.STOP

    left, lost = (attributes(span) for span in desk.spans.named("handoff executor"))
    assert left["handoffwatch.handoff.action"] == "deliver"
    assert (lost["handoffwatch.handoff.action"], lost["handoffwatch.handoff.allowed"]) == ("stop", False)
    assert lost["handoffwatch.handoff.paths"] == ("payload.amount_cents",)
    assert lost["handoffwatch.handoff.stage"] == "validate"
    assert lost["handoffwatch.run.id"] == "r-1"
    assert lost["handoffwatch.handoff.digest_before"] != lost["handoffwatch.handoff.digest_after"]
    assert sum(counted(desk.watch.registry, "handoff_inspections_total").values()) == 1


def test_durable_route_compares_what_a_framework_carries() -> None:
    """`submit` takes the state that leaves, as `handoff` does."""
    desk = FlowDesk().route(boundary=POLICY, criticality="critical")
    with desk.watch.run("refunds", task_id="t-1") as run:
        step = run.submit("planner", "executor", plan(), before=plan())
        assert run.arrived(step, after=loses_the_amount(json.dumps(plan()))).action is Action.STOP
        step = asyncio.run(run.submit_async("planner", "executor", plan("h-2"), before=plan("h-2")))
        assert run.arrived(step, after=plan("h-2")).action is Action.STOP  # the first has latched the route


@pytest.mark.parametrize("as_bytes", [False, True])
def test_json_text_crosses_as_the_state_that_it_is(as_bytes: bool) -> None:
    """Compared as an object, whatever each side makes of it."""
    desk = FlowDesk().route(boundary=POLICY)
    text: Any = json.dumps(plan()).encode() if as_bytes else json.dumps(plan())
    unchanged: dict[str, Any] = {"export": lambda raw: raw, "import_": lambda raw: raw}

    with desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", text, receiver=desk.receive, **unchanged)
    with desk.watch.run("refunds", task_id="t-2") as run, pytest.raises(HandoffDivergence):
        run.transfer(
            "planner", "executor", text, receiver=desk.receive, export=lambda raw: raw, import_=loses_the_amount
        )

    assert [handoff["payload"] for handoff in desk.received] == [plan()["payload"]]


def test_divergence_is_judged_before_anybody_is_asked() -> None:
    """Neither a critic nor a person sees a handoff that did not survive; one that did goes to both."""
    asked: list[str] = []

    def critic(request: Any) -> CriticAnswer:
        asked.append(request.handoff_id)
        return CriticAnswer(concern=False)

    desk = FlowDesk().route(boundary=POLICY, approval="required", critic=critic, hold_s=60.0)
    with pytest.raises(HandoffDivergence):
        send(desk, plan(task_id="t-0"), task_id="t-0", import_=loses_the_amount)
    assert (asked, desk.watch.ledger.cases()) == ([], [])

    desk.decide_while_waiting(Ruling.APPROVED)
    assert send(desk, plan("h-2")) == "received"
    assert asked == ["h-2"]


def test_critical_handoff_stops_when_the_ledger_is_down_and_what_arrived_is_whole() -> None:
    """Nobody can say what was handed over before."""
    desk = FlowDesk().route(boundary=POLICY, criticality="critical")
    _ = desk.watch.ledger.cases()
    desk.take_ledger_away()
    blocker = Path("ledger.db")
    blocker.mkdir()

    with pytest.raises(LedgerUnavailable):
        send(desk, plan())

    assert desk.received == []
    blocker.rmdir()
    desk.bring_ledger_back()
    assert send(desk, plan()) == "received"


def test_case_of_a_quarantined_handoff_holds_no_secret_wherever_it_stands() -> None:
    """In a header, in bytes, below a named path, in a key, in a text."""
    secret = "sk-live-" + "9f8e7d6c5b4a39281706f5e4"
    policy = """
handoff:
  snapshot: {enabled: true, redact: [credentials]}
  validation: {exact_paths: [task.goal], on_failure: quarantine, secret: [pin]}
"""
    desk = FlowDesk()
    desk.watch = Watch(
        settings=Settings(
            handoff=read_policy(policy, name="policy.yaml"),
            ledger=LedgerSettings(url=f"sqlite:///{Path.cwd() / 'ledger.db'}"),
        ),
        clock=desk.time.clock(),
        tracer_provider=desk.spans.provider,
    )
    desk.watch.workflow("refunds", tools="none")
    desk.watch.route(ROUTE, unchecked=True)
    sent = {
        "schema_version": "1", "handoff_id": "h-1", "task": {"goal": "refund", "id": secret}, "pin": "482913",
        "headers": {"authorization": f"Bearer {secret}", "x": f"Authorization: Bearer {secret}"},
        "raw": secret.encode(),
        "credentials": {"deep": [{"er": secret}]}, secret: {"note": f"key={secret}"},
    }  # fmt: skip

    def loses(state: dict[str, Any]) -> dict[str, Any]:
        return copy.deepcopy(state) | {"task": {"goal": secret}, "pin": "482914", "headers": {}}

    with pytest.raises(HandoffDivergence) as stopped:
        send(desk, sent, export=loses, import_=lambda state: state)

    ledger = b"".join(path.read_bytes() for path in Path.cwd().glob("ledger.db*"))
    said = [str(stopped.value), repr(stopped.value), json.dumps(stopped.value.decision, default=str)]
    said += [span.to_json() for span in desk.spans.ended]
    said += [path.name + path.read_text(encoding="utf-8") for path in FOLDER.iterdir()]
    said += [repr(case) for case in desk.cases()]
    assert len(desk.cases()) == 1
    for text in (*said, ledger.decode("latin-1")):
        assert secret not in text
        assert "482913" not in text
        assert "482914" not in text
    assert "pin" in stopped.value.paths
    assert OnFailure.QUARANTINE.value in desk.cases()[0].kind
