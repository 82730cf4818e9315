"""The primitives of a handoff: judge, repair within bounds, arrive, end; never an exception, each handoff once."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from handoffwatch import Contract, Run, Settings, Step, Watch
from handoffwatch.vocabulary import Action
from support.telemetry import counted
from support.watched import Time, bad_handoff, handoff, new_watched, repairs

_H = 'route="%s->%s",schema_version="1",source_agent="%s",target_agent="%s"'


def _h(source: str = "planner", target: str = "executor") -> str:
    return _H % (source, target, source, target)


def _outcome(outcome: str, count: float = 1, *, h: str = _h()) -> dict[str, float]:
    return {f'handoffs_total{{outcome="{outcome}",{h}}}': count}


def _repaired(**results: float) -> dict[str, float]:
    return {f'handoff_repairs_total{{result="{result}",{_h()}}}': count for result, count in results.items()}


def test_handoff_is_delivered_when_it_is_good() -> None:
    """The step carries the normalised handoff with the run filled in."""
    watch = new_watched().watch

    with watch.run("refunds", run_id="r-1", task_id="t-1", context_version=3) as run:
        step = run.handoff("planner", "executor", handoff(context_version=3))
        assert run.arrived(step) == step
        run.ended(step)

    assert (step.action, step.text, step.handoff_id) == (Action.DELIVER, "", "h-1")
    assert step.decision is not None
    assert step.decision.normalized_payload == handoff(
        run_id="r-1", context_version=3, attempt=1, produced_at=None, finish_reason=None
    )
    assert counted(watch.registry, "handoffs_total", "handoff_repairs_total") == _outcome("delivered")
    assert counted(watch.registry, "handoff_attempts_count", "handoff_attempts_sum") == {
        'handoff_attempts_count{route="planner->executor"}': 1,
        'handoff_attempts_sum{route="planner->executor"}': 1,
    }


def test_repair_is_asked_for_in_exact_words_when_a_handoff_is_blocked() -> None:
    """Each field with its rule and what would be right; never a value, and nothing of earlier attempts."""
    with new_watched().watch.run("refunds", task_id="t-1") as run:
        texts = [run.handoff("planner", "executor", bad_handoff(status=status)).text for status in ("done", "gone")]

    first = [
        "The handoff planner->executor was not accepted (attempt 1 of 3).",
        "- unknown_status: status must be one of ready, completed, failed",
        "- type_mismatch: payload.amount_cents must be an integer, and is text",
        "Send the whole handoff again with these fields mended. Do not repeat any tool call.",
    ]
    second = ["The handoff planner->executor was not accepted (attempt 2 of 3).", *first[1:], "This is the last try."]
    assert texts == ["\n".join(first), "\n".join(second)]


def test_repair_text_is_bounded_when_a_handoff_has_many_faults() -> None:
    """Ten are named, the others counted."""
    unknown = {f"field_{number:02}": 1 for number in range(14)}

    with new_watched().watch.run("refunds", task_id="t-1") as run:
        text = run.handoff("planner", "executor", handoff(payload={"result": "x", **unknown})).text

    assert text.splitlines() == [
        "The handoff planner->executor was not accepted (attempt 1 of 3).",
        *(
            f"- unknown_field: payload.field_{number:02} is not a field of the contract: remove it or correct its name"
            for number in range(10)
        ),
        "- and 4 more of the kind",
        "Send the whole handoff again with these fields mended. Do not repeat any tool call.",
    ]


def test_handoff_is_delivered_as_one_of_two_attempts_when_it_is_repaired() -> None:
    """The second attempt is a repair of the first, whatever id it comes with."""
    watch = new_watched().watch

    with watch.run("refunds", task_id="t-1") as run:
        first = run.handoff("planner", "executor", bad_handoff(handoff_id="h-1"))
        second = run.handoff("planner", "executor", handoff(handoff_id="h-2"))
        run.ended(second)

    assert (first.action, second.action) == (Action.REPAIR, Action.DELIVER)
    assert second.decision is not None
    assert second.decision.attempt == 2
    assert counted(watch.registry, "handoffs_total", "handoff_repairs_total", "handoff_blocks_total") == {
        **_outcome("delivered"),
        **_repaired(repaired=1),
        f'handoff_blocks_total{{attempt="first",mode="enforce",{_h()}}}': 1,
    }
    assert counted(watch.registry, "handoff_inspections_total", "handoff_attempts_sum") == {
        f'handoff_inspections_total{{attempt="first",mode="enforce",{_h()}}}': 1,
        f'handoff_inspections_total{{attempt="repair",mode="enforce",{_h()}}}': 1,
        'handoff_attempts_sum{route="planner->executor"}': 2,
    }


def test_handoff_stops_when_its_repairs_are_used_up() -> None:
    """Two repairs are allowed; the third bad attempt stops, and nothing follows it on this route."""
    watch = new_watched().watch

    with watch.run("refunds", task_id="t-1") as run:
        actions = [run.handoff("planner", "executor", bad_handoff()).action for _ in range(4)]

    assert actions == ["repair", "repair", "stop", "stop"]
    assert counted(watch.registry, "handoffs_total", "handoff_repairs_total") == {
        **_outcome("stopped", 2),
        **_repaired(still_bad=1, exhausted=1),
    }


@pytest.mark.parametrize(("each", "run", "allowed"), [(0, 10, 0), (2, 0, 0), (2, 3, 3), (5, 4, 4), (1, 10, 4)])
def test_repairs_stay_within_both_bounds_when_four_handoffs_are_bad(each: int, run: int, allowed: int) -> None:
    """A handoff has its bound, and the run has one for all of its handoffs."""
    watch = new_watched(settings=repairs(each=each, run=run)).watch

    with watch.run("refunds") as current:
        asked = 0
        for task_id in ("t-1", "t-2", "t-3", "t-4"):
            while current.handoff("planner", "executor", bad_handoff(task_id=task_id)).action is Action.REPAIR:
                asked += 1

    assert asked == allowed


def test_handoff_stops_at_once_when_the_sender_cannot_repair_it() -> None:
    """A foreign task is critical: no second attempt is asked for."""
    watch = new_watched().watch

    with watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", handoff(task_id="t-2"))

    assert (step.action, step.text) == (Action.STOP, "")
    assert step.decision is not None
    assert step.decision.reasons == ["foreign_task"]
    assert counted(watch.registry, "handoffs_total", "handoff_repairs_total") == _outcome("stopped")


class _Sent(BaseModel):
    """A handoff as a Pydantic model."""

    task_id: str


@pytest.mark.parametrize(
    "raw",
    [lambda task: {"task_id": task}, lambda task: json.dumps({"task_id": task}), lambda task: _Sent(task_id=task)],
    ids=["dict", "JSON text", "model"],
)
def test_attempts_share_a_key_only_when_their_identity_is_one(raw: Any) -> None:
    """In a run of several tasks, another task's handoff is no repair, however it is written down."""
    with new_watched().watch.run("refunds") as run:
        steps = [run.handoff("planner", "executor", raw(task)) for task in ("t-1", "t-2", "t-1", "t-2")]

    assert [step.decision.attempt for step in steps if step.decision] == [1, 1, 2, 2]


class _Order(Contract, version="1", identity="payload.order_id"):
    """Handoffs of one task that are told apart by their order."""

    order_id: str
    amount_cents: int = 0


def _order(order_id: str, amount_cents: object = 3800) -> dict[str, Any]:
    return handoff(handoff_id=f"h-{order_id}", payload={"order_id": order_id, "amount_cents": amount_cents})


def _orders_watch() -> Watch:
    watch = Watch(settings=Settings(), clock=Time().clock())
    watch.workflow("refunds")
    watch.route("planner->executor", contract=_Order)
    return watch


def test_attempts_are_told_apart_by_the_contracts_identity_when_one_task_has_several_handoffs() -> None:
    """Parallel handoffs on one route do not use up each other's repairs."""
    watch = _orders_watch()

    with watch.run("refunds", task_id="t-1") as run:
        steps = [run.handoff("planner", "executor", _order(order, "3800")) for order in ("1", "2", "1", "2")]
        steps += [run.handoff("planner", "executor", _order(order)) for order in ("2", "1")]
        for step in steps[4:]:
            run.ended(step)

    assert [step.decision.attempt for step in steps if step.decision] == [1, 1, 2, 2, 3, 3]
    assert counted(watch.registry, "handoffs_total", "handoff_repairs_total") == {
        **_outcome("delivered", 2),
        **_repaired(still_bad=2, repaired=2),
    }


def test_attempts_share_the_given_key_when_the_host_names_one() -> None:
    """The key outweighs the contract's identity path."""
    with _orders_watch().run("refunds", task_id="t-1") as run:
        steps = [run.handoff("planner", "executor", _order(order, "3800"), key="k") for order in ("1", "2")]

    assert [step.decision.attempt for step in steps if step.decision] == [1, 2]


def test_handoffs_are_counted_one_by_one_when_several_are_open_at_once() -> None:
    """They end in any order, each with its own outcome."""
    watch = _orders_watch()

    with watch.run("refunds", task_id="t-1") as run:
        steps = [run.handoff("planner", "executor", _order(str(number))) for number in range(4)]
        run.ended(steps[2])
        run.ended(steps[0], error=ValueError())
        run.ended("h-3")

    assert counted(watch.registry, "handoffs_total") == {
        **_outcome("delivered", 2),
        **_outcome("receiver_failed"),
        **_outcome("not_delivered"),
    }


def test_handoffs_are_counted_one_by_one_when_two_threads_are_judged_at_the_same_moment() -> None:
    """Nothing was blocked before the second began, so it is no repair of the first."""
    together = threading.Barrier(2, timeout=10)

    class Slow(Contract, version="1"):
        """A contract whose validator waits for the other thread."""

        result: str

        @field_validator("result")
        @classmethod
        def wait(cls, value: str) -> str:
            together.wait()
            return value

    watch = Watch(settings=Settings())
    watch.workflow("refunds")
    watch.route("planner->executor", contract=Slow)

    with watch.run("refunds", task_id="t-1") as run, ThreadPoolExecutor(2) as pool:
        raws = [handoff(handoff_id=f"h-{number}", payload={"result": "x"}) for number in range(2)]
        steps = list(pool.map(lambda raw: run.handoff("planner", "executor", raw), raws))
        for step in steps:
            run.ended(step)

    assert [step.decision.attempt for step in steps if step.decision] == [1, 1]
    assert counted(watch.registry, "handoffs_total", "handoff_repairs_total") == _outcome("delivered", 2)


def test_handoffs_are_counted_one_by_one_when_they_carry_one_id() -> None:
    """A sender that passes its id on does not make the first handoff disappear."""
    watch = new_watched().watch

    with watch.run("refunds", task_id="t-1") as run:
        outer = run.handoff("planner", "executor", handoff())
        inner = run.handoff("executor", "reviewer", handoff("executor", "reviewer"))
        run.ended(inner)
        run.ended(outer)

    assert counted(watch.registry, "handoffs_total") == {
        **_outcome("delivered"),
        **_outcome("delivered", h=_h("executor", "reviewer")),
    }


def test_arrived_finds_the_handoff_when_its_id_or_its_only_target_is_given() -> None:
    """A framework's hook may know the target's name alone."""
    with new_watched().watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", handoff())
        found = [run.arrived(step), run.arrived("h-1"), run.arrived("executor")]

    assert [(item.action, item.handoff_id) for item in found] == [(Action.DELIVER, "h-1")] * 3


def test_arrived_says_stop_when_no_such_handoff_was_let_through() -> None:
    """Unknown, blocked, ended, or ambiguous between two open ones."""
    watch = new_watched().watch
    watch.route("critic->executor", contract=Contract)

    with watch.run("refunds", task_id="t-1") as run:
        assert run.arrived("executor") == Step(Action.STOP)
        blocked = run.handoff("planner", "executor", bad_handoff())
        assert run.arrived(blocked) == Step(Action.STOP)
        first = run.handoff("planner", "executor", handoff())
        run.handoff("critic", "executor", handoff("critic", handoff_id="h-2", payload={}))
        assert run.arrived("executor") == Step(Action.STOP)
        run.ended(first)
        assert run.arrived(first) == Step(Action.STOP)
        assert run.arrived("executor").handoff_id == "h-2"


def test_handoff_is_counted_once_when_its_end_is_told_twice() -> None:
    """The first report stands."""
    watch = new_watched().watch

    with watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", handoff())
        run.ended(step, error=ValueError())
        run.ended(step)
        run.ended("h-1")
        run.ended("nobody")

    assert counted(watch.registry, "handoffs_total") == _outcome("receiver_failed")


def test_handoff_is_not_delivered_when_the_run_ends_before_its_receiver_did() -> None:
    """Allowed is not delivered."""
    watch = new_watched().watch

    with watch.run("refunds", task_id="t-1") as run:
        run.handoff("planner", "executor", handoff())

    assert counted(watch.registry, "handoffs_total") == _outcome("not_delivered")


def test_handoff_passes_and_is_counted_when_its_route_is_in_shadow() -> None:
    """The program goes on; the verdict is counted as it would have been."""
    watch = new_watched(mode="shadow").watch

    with watch.run("refunds", task_id="t-1") as run:
        step = run.handoff("planner", "executor", handoff(task_id="t-2"))
        run.ended(step)

    assert step.action is Action.DELIVER
    assert step.decision is not None
    assert (step.decision.allowed, step.decision.verdict) == (True, "blocked")
    assert counted(watch.registry, "handoffs_total", "handoff_blocks_total", "runs_total") == {
        **_outcome("delivered"),
        f'handoff_blocks_total{{attempt="first",mode="shadow",{_h()}}}': 1,
        'runs_total{outcome="completed",tools="required",workflow="refunds"}': 1,
    }


class _Hostile(dict[str, Any]):
    """A mapping that raises when it is read."""

    def get(self, key: str, default: Any = None) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("source", "target", "raw"),
    [
        ("planner", "executor", _Hostile()),
        (["planner"], "executor", handoff()),
        (None, None, None),
        ("planner", "executor", object()),
    ],
    ids=["hostile mapping", "unhashable name", "nothing", "object"],
)
def test_handoff_stops_or_asks_again_when_it_cannot_be_read(source: Any, target: Any, raw: Any) -> None:
    """The primitives never raise, and what cannot be judged never passes."""
    with new_watched().watch.run("refunds") as run:
        step = run.handoff(source, target, raw)
        assert step.action in (Action.STOP, Action.REPAIR)
        assert run.arrived(step).action is Action.STOP
        run.ended(step)


def test_handoff_stops_when_the_host_does_not_name_its_sender() -> None:
    """A name that is no text is nobody's: it cannot be taken for the one that the handoff gives."""
    watch = new_watched().watch
    names: Any = ["planner"]

    with watch.run("refunds") as run:
        step = run.handoff(names, "executor", handoff())

    assert step.action is Action.STOP
    assert step.decision is not None
    assert "route_mismatch" in step.decision.reasons
    assert counted(watch.registry, "internal_errors_total", "runs_total") == {
        'runs_total{outcome="stopped",tools="required",workflow="refunds"}': 1,
    }


def test_fault_of_our_own_stops_and_is_counted_when_a_key_is_none() -> None:
    """Our own fault in a check fails closed."""
    watch = new_watched().watch
    key: Any = ["k"]

    with watch.run("refunds") as run:
        assert run.handoff("planner", "executor", handoff(), key=key) == Step(Action.STOP)

    assert counted(watch.registry, "internal_errors_total", "runs_total") == {
        'internal_errors_total{component="runtime"}': 1,
        'runs_total{outcome="stopped",tools="required",workflow="refunds"}': 1,
    }


def test_context_version_is_the_hosts_when_it_raises_it_within_a_run() -> None:
    """The next handoff must rest on the newer state."""

    def reasons(run: Run) -> list[str]:
        step = run.handoff("planner", "executor", handoff(handoff_id=f"h-{run.context_version}", context_version=1))
        assert step.decision is not None
        return step.decision.reasons

    with new_watched().watch.run("refunds", task_id="t-1", context_version=1) as run:
        assert reasons(run) == []
        run.context_version = 2
        assert reasons(run) == ["stale_context"]
