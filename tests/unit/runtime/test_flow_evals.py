"""Final evals against the crossings of their runs: the blind spot of an eval as a number on `/metrics`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from handoffwatch import HandoffBlocked, RegistrationError, Run, ToolDown, Watch
from support.flows import FlowDesk, answers, bad_plan, plan
from support.outcomes import RefundReceipt, Store
from support.telemetry import counted


class EvalDesk(FlowDesk):
    """A desk with a route, a workflow that needs tools, and one whose runs refund orders in a store."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.route(**options)
        self.store = Store()
        self.watch.workflow("lookups")
        self.watch.operation(
            "refund", key="order_id", compare=("amount_cents",), receipt=RefundReceipt, receipt_id="refund_id",
            verifier=self.store.verifier(),
        )  # fmt: skip
        self.watch.workflow("payouts", operations=["refund"], tools="none")
        self.find_order = self.watch.tool("find_order", safety="safe", attempts_max=1)(self._find_order)
        self.issue_refund = self.watch.tool("issue_refund", safety="unsafe", operation="refund")(self._issue_refund)
        self.is_service_up = True

    def _find_order(self) -> dict[str, str]:
        if not self.is_service_up:
            raise ConnectionRefusedError
        return {"order_id": "4417"}

    def _issue_refund(self, order_id: str, amount_cents: int) -> dict[str, object]:
        return {
            "status": "succeeded",
            "refund_id": f"re_{order_id}",
            "order_id": order_id,
            "amount_cents": amount_cents,
        }

    def settle(self) -> None:
        """Read all claimed effects back once their windows are over."""
        settler = self.watch.settler()
        for _ in range(10):
            self.time.now_s += 60
            settler.run_once()

    def counted_evals(self) -> dict[str, float]:
        """Return the counted evals by workflow, result and crossings, and the violations before them by workflow."""
        found = counted(self.watch.registry, "ledger_final_evals_total", "ledger_violations_before_eval_total")
        short: dict[str, float] = {}
        for line, value in found.items():
            name, _, labels = line.removesuffix("}").partition("{")
            values = dict(label.split("=") for label in labels.replace('"', "").split(","))
            told = [values["workflow"], *(values[key] for key in ("result", "crossings") if key in values)]
            short[" ".join(told if "final_evals" in name else [*told, "violations"])] = value
        return short


def _deliver(desk: EvalDesk, run: Run) -> None:
    run.transfer("planner", "executor", plan(), receiver=desk.receive)


def _block(desk: EvalDesk, run: Run) -> None:
    with pytest.raises(HandoffBlocked):
        run.transfer("planner", "executor", bad_plan(), receiver=desk.receive)


def _repair(desk: EvalDesk, run: Run) -> None:
    run.transfer("planner", "executor", bad_plan(), receiver=desk.receive, repair=answers(plan()))


def _block_twice(desk: EvalDesk, run: Run) -> None:
    _block(desk, run)
    with pytest.raises(HandoffBlocked):
        run.transfer("planner", "executor", bad_plan("h-2", task_id="t-2"), receiver=desk.receive)


def _refuse(_: EvalDesk, run: Run) -> None:
    run.answer("The order is on its way.")


def _answer(desk: EvalDesk, run: Run) -> None:
    desk.find_order()
    run.answer("The order is on its way.")


def _fail(desk: EvalDesk, _: Run) -> None:
    desk.is_service_up = False
    with pytest.raises(ToolDown):
        desk.find_order()


def _recover(desk: EvalDesk, run: Run) -> None:
    _fail(desk, run)
    desk.is_service_up = True
    desk.find_order()


def _all_but_recovery(desk: EvalDesk, run: Run) -> None:
    _block(desk, run)
    _fail(desk, run)
    run.answer("The order is on its way.")


CLEAN = [("refunds", _deliver), ("lookups", _answer), ("lookups", _recover)]
VIOLATED = [
    ("refunds", _block, 1),
    ("refunds", _repair, 1),
    ("refunds", _block_twice, 2),
    ("lookups", _refuse, 1),
    ("lookups", _fail, 1),
    ("lookups", _all_but_recovery, 3),
]


@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize(("workflow", "act", "violations"), [*((*each, 0) for each in CLEAN), *VIOLATED])
def test_eval_is_counted_with_the_violations_of_its_run(
    workflow: str, act: Callable[[EvalDesk, Run], None], violations: int, passed: bool
) -> None:
    """A run that kept its rules, and one with a block, a refusal, a failure that stayed: the workflow is known."""
    desk = EvalDesk()
    with desk.watch.run(workflow, run_id="r-1") as run:
        act(desk, run)

    assert desk.watch.record_eval("r-1", passed=passed)

    result, crossings = "passed" if passed else "failed", "violated" if violations else "kept"
    expected = {f"{workflow} {result} {crossings}": 1}
    assert desk.counted_evals() == (expected | {f"{workflow} violations": violations} if violations else expected)


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_eval_is_held_against_what_would_have_been_blocked_when_the_route_is_in_shadow(mode: str) -> None:
    """The verdict is the violation, whether the program obeyed it or not."""
    desk = EvalDesk(mode=mode)
    with desk.watch.run("refunds", run_id="r-1") as run:
        run.submit("planner", "executor", bad_plan())
    desk.watch.record_eval("r-1", passed=True)
    assert desk.counted_evals() == {"refunds passed violated": 1, "refunds violations": 1}


def _claim_refund(desk: EvalDesk, *, run_id: str = "r-1") -> None:
    with desk.watch.run("payouts", run_id=run_id) as run:
        desk.issue_refund("4417", 3800)
        run.claim("done")


def test_eval_is_held_against_a_false_success_when_it_was_settled_before() -> None:
    """The agent said that it was done, the eval believed it, and the record is not there."""
    desk = EvalDesk()
    _claim_refund(desk)
    desk.settle()
    desk.watch.record_eval("r-1", passed=True)
    assert desk.counted_evals() == {"payouts passed violated": 1, "payouts violations": 1}


def test_eval_is_held_against_what_was_known_when_a_false_success_is_settled_after_it() -> None:
    """The counters say what was known before the eval; the false success is counted where it belongs."""
    desk = EvalDesk()
    _claim_refund(desk)
    desk.watch.record_eval("r-1", passed=True)
    desk.settle()
    assert desk.counted_evals() == {"payouts passed kept": 1}
    assert sum(counted(desk.watch.registry, "ledger_false_successes_total").values()) == 1


def test_eval_finds_the_crossings_kept_when_the_effect_landed() -> None:
    """A claim that is true is no violation."""
    desk = EvalDesk()
    desk.store.put("4417")
    _claim_refund(desk)
    desk.settle()
    desk.watch.record_eval("r-1", passed=True)
    assert desk.counted_evals() == {"payouts passed kept": 1}


def test_eval_is_counted_when_it_comes_from_another_process() -> None:
    """That process knows the run by its ledger alone; the workflow is named where the ledger has nothing of it."""
    desk, other = EvalDesk(), EvalDesk()
    with desk.watch.run("refunds", run_id="r-bad") as run:
        _block(desk, run)
    with desk.watch.run("refunds", run_id="r-good") as run:
        run.transfer("planner", "executor", plan("h-2", task_id="t-2"), receiver=desk.receive)
    _claim_refund(desk, run_id="r-paid")

    assert other.watch.record_eval("r-bad", passed=True)
    assert other.watch.record_eval("r-paid", passed=True)
    with pytest.raises(RegistrationError) as refused:
        other.watch.record_eval("r-good", passed=False)
    assert refused.value.message == "run r-good: workflow: must be known to the ledger, got a run that it never met"
    assert refused.value.hint == 'pass it: record_eval(run_id, workflow="...", passed=...)'
    assert other.watch.record_eval("r-good", passed=False, workflow="refunds")

    counted_evals = {
        "refunds passed violated": 1,
        "refunds violations": 1,
        "payouts passed kept": 1,
        "refunds failed kept": 1,
    }
    assert desk.counted_evals() == other.counted_evals() == counted_evals


def test_eval_is_counted_once_when_it_is_recorded_twice() -> None:
    """The first one stands, whoever comes again and whatever they say."""
    desk, other = EvalDesk(), EvalDesk()
    with desk.watch.run("refunds", run_id="r-1") as run:
        _block(desk, run)

    assert desk.watch.record_eval("r-1", passed=True)
    assert not desk.watch.record_eval("r-1", passed=True)
    assert not desk.watch.record_eval("r-1", passed=False)
    assert not other.watch.record_eval("r-1", passed=False, workflow="payouts")

    assert desk.counted_evals() == {"refunds passed violated": 1, "refunds violations": 1}


def test_eval_finds_what_a_run_still_keeps_for_itself_when_the_run_goes_on() -> None:
    """What primitives have left behind is written before the eval is held against it."""
    desk = EvalDesk()
    with desk.watch.run("refunds", run_id="r-1") as run:
        step = run.handoff("planner", "executor", bad_plan())
        run.abandoned(step)
        assert desk.watch.record_eval("r-1", passed=True)
    assert desk.counted_evals() == {"refunds passed violated": 1, "refunds violations": 1}


def test_eval_is_counted_in_async_code_too() -> None:
    """Off the loop, once."""
    desk = EvalDesk()

    async def act() -> list[bool]:
        async with desk.watch.run("refunds", run_id="r-1") as run:
            await run.transfer_async("planner", "executor", plan(), receiver=desk.receive)
        return [await desk.watch.record_eval_async("r-1", passed=True) for _ in range(2)]

    assert asyncio.run(act()) == [True, False]
    assert desk.counted_evals() == {"refunds passed kept": 1}


@pytest.mark.parametrize("record", [Watch.record_eval, Watch.record_eval_async])
def test_eval_is_refused_when_nobody_knows_its_workflow(record: Callable[..., Any]) -> None:
    """Nothing is counted under a made-up name."""
    desk = EvalDesk()

    async def act() -> None:
        made = record(desk.watch, "r-unknown", passed=True)
        if asyncio.iscoroutine(made):
            await made

    with pytest.raises(RegistrationError):
        asyncio.run(act())
    assert desk.counted_evals() == {}
    assert desk.watch.record_eval("r-unknown", passed=True, workflow="refunds")
    assert desk.counted_evals() == {"refunds passed kept": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"run_id": "r-\udca0"}, "eval: run_id: must be a text of 1 to 255 characters that can be written, got str"),
        ({"run_id": 7}, "eval: run_id: must be a text of 1 to 255 characters that can be written, got int"),
        ({"run_id": "r-1", "passed": "false"}, "eval: passed: must be True or False, got str"),
        ({"run_id": "r-1", "workflow": "nobody"}, "eval: workflow 'nobody': is not registered"),
    ],
)
def test_eval_is_refused_when_a_value_is_of_the_wrong_kind(arguments: dict[str, Any], message: str) -> None:
    """A text is no verdict, and a workflow that nobody registered has no series."""
    with pytest.raises(RegistrationError) as refused:
        FlowDesk().watch.record_eval(**{"passed": True} | arguments)
    assert refused.value.message == message
