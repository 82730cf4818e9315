"""What follows a decision: repair, latch, failure path, fallback, a person, and limits that belong to the task."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handoffwatch import Action, Contract, HandoffBlocked, HandoffHeld, LedgerUnavailable, RegistrationError
from handoffwatch.vocabulary import Ruling
from support.flows import ROUTE, FlowDesk, answers, bad_plan, plan
from support.telemetry import counted

_H = 'route="planner->executor",schema_version="1",source_agent="planner",target_agent="executor"'


def _reasons(error: pytest.ExceptionInfo[HandoffBlocked]) -> list[str]:
    assert error.value.decision is not None
    return error.value.decision.reasons


def test_ten_handoffs_pass_when_each_needs_one_repair() -> None:
    """The budget of the run is ten; each request names only what is wrong now, and does not grow."""
    desk = FlowDesk().route()
    texts: list[str] = []

    with desk.watch.run("refunds") as run:
        for number in range(10):

            def repair(step: Any, task_id: str = f"t-{number}") -> dict[str, Any]:
                texts.append(step.text)
                return plan(task_id=task_id)

            raw = bad_plan(task_id=f"t-{number}")
            assert run.transfer("planner", "executor", raw, receiver=desk.receive, repair=repair) == "received"

    assert len(desk.received) == 10
    assert texts[0].splitlines()[0] == "The handoff planner->executor was not accepted (attempt 1 of 3)."
    assert {len(text) for text in texts[:9]} == {len(texts[0])}
    assert texts[9].endswith("This is the last try.")
    assert counted(desk.watch.registry, "handoff_attempts_sum", "handoffs_total") == {
        'handoff_attempts_sum{route="planner->executor"}': 20,
        f'handoffs_total{{outcome="delivered",{_H}}}': 10,
    }


@pytest.mark.parametrize("amounts", [("3800", "3800", "3800"), ("3800", None, "3800")], ids=["the same", "two in turn"])
def test_sender_is_stopped_at_the_limit_when_it_goes_on_being_wrong(amounts: tuple[object, ...]) -> None:
    """BR-024: one sender repeats itself, another alternates between two wrong answers; the attempts are reported."""
    desk = FlowDesk().route()
    first, *others = (bad_plan(amount=amount) for amount in amounts)

    with pytest.raises(HandoffBlocked) as blocked, desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", first, receiver=desk.receive, repair=answers(*others))

    assert _reasons(blocked)[-1] == "repair_exhausted"
    assert "after 3 attempts: " in str(blocked.value)
    assert desk.received == []
    (case,) = desk.cases()
    assert case.facts["attempts"] == 3
    assert case.record is not None
    assert [each["attempt"] for each in case.record["attempts"]] == [1, 2, 3]  # type: ignore[attr-defined]


def test_sender_is_stopped_sooner_when_identical_answers_end_the_repairs() -> None:
    """An answer that was blocked before is not worth a third model call, whatever id it comes with."""
    desk = FlowDesk(stop_identical=True).route()

    with pytest.raises(HandoffBlocked) as blocked, desk.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", bad_plan(), receiver=desk.receive, repair=answers(bad_plan("h-2")))

    assert blocked.value.decision is not None
    assert blocked.value.decision.findings[-1].sentence == "the answer must not be one that was blocked before"


def test_stop_is_a_latch_for_its_task_and_route_alone() -> None:
    """No new handoff opens there, in a later run either; other tasks and routes go on, and a person opens it again."""
    desk = FlowDesk(repairs_max=0).route().route("executor->reviewer")

    def goes_through(raw: dict[str, Any], *, task_id: str = "t-1", route: str = ROUTE) -> bool:
        source, target = route.split("->")
        with desk.watch.run("refunds", task_id=task_id) as run:
            step = run.handoff(source, target, raw)
            run.ended(step)
            return step.action is Action.DELIVER

    assert not goes_through(bad_plan())
    assert not goes_through(plan("h-2"))
    assert goes_through(plan("h-3", route="executor->reviewer"), route="executor->reviewer")
    assert goes_through(plan("h-4", task_id="t-2"), task_id="t-2")
    assert desk.watch.reopen("t-1") == 1
    assert desk.watch.reopen("t-1") == 0
    assert goes_through(plan("h-5"))
    assert counted(desk.watch.registry, "handoff_findings_total") == {
        f'handoff_findings_total{{mode="enforce",reaction="block",reason="{code}",{_H}}}': 1
        for code in ("type_mismatch", "route_stopped")
    }


def test_latch_holds_in_another_process_when_the_route_is_durable(tmp_path: Path) -> None:
    """A stop outlives the process, and so does its end."""
    first, second = (FlowDesk(tmp_path, repairs_max=0).route(criticality="critical") for _ in range(2))

    with pytest.raises(HandoffBlocked), first.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", bad_plan(), receiver=first.receive)
    with pytest.raises(HandoffBlocked) as blocked, second.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", plan("h-2"), receiver=second.receive)
    assert _reasons(blocked) == ["route_stopped"]

    assert second.watch.reopen("t-1", route=ROUTE) == 1
    with second.watch.run("refunds", task_id="t-1") as run:
        assert run.transfer("planner", "executor", plan("h-3"), receiver=second.receive) == "received"


class Done(Contract, accepts=("completed",)):
    """What a receiver of finished work needs."""

    result: str


def _failed(handoff_id: str = "h-1") -> dict[str, Any]:
    return plan(handoff_id, status="failed", payload={"error": "the order is locked"})


def test_valid_failed_handoff_goes_to_the_failure_path() -> None:
    """It is no receiver's input and needs no repair: the sender says honestly that its work failed."""
    desk = FlowDesk().route(contract=Done, failure="apologist", fallback="human_desk")

    with desk.watch.run("refunds", task_id="t-1") as run:
        told = run.transfer(
            "planner", "executor", _failed(), receiver=desk.receive, repair=answers(),
            failure=lambda step: (step.target, step.sent["payload"]["error"]),
        )  # fmt: skip
        again = run.handoff("planner", "executor", _failed("h-2"))

    assert told == ("apologist", "the order is locked")
    assert (again.action, again.target) == (Action.DIVERT, "apologist")
    assert desk.received == []
    assert counted(desk.watch.registry, "handoffs_total") == {
        f'handoffs_total{{outcome="diverted",{_H}}}': 1,
        f'handoffs_total{{outcome="not_delivered",{_H}}}': 1,
    }


def test_valid_failed_handoff_stops_and_leaves_the_route_open_when_there_is_no_failure_path() -> None:
    """Asking the sender to mend an honest failure would be asking for a lie."""
    desk = FlowDesk().route(contract=Done)

    with desk.watch.run("refunds", task_id="t-1") as run:
        with pytest.raises(HandoffBlocked) as blocked:
            run.transfer("planner", "executor", _failed(), receiver=desk.receive, repair=answers())
        good = plan("h-2", status="completed", payload={"result": "refunded"})
        assert run.transfer("planner", "executor", good, receiver=desk.receive) == "received"

    assert _reasons(blocked) == ["status_not_accepted"]


def test_block_goes_to_the_fallback_when_it_cannot_be_repaired() -> None:
    """The fallback gets the step with the handoff as it came; without one the flow stops, and says so."""
    desk = FlowDesk(repairs_max=1).route(fallback="human_desk")

    with desk.watch.run("refunds") as run:
        taken = run.transfer(
            "planner", "executor", bad_plan(), receiver=desk.receive, repair=answers(bad_plan()),
            fallback=lambda step: (step.target, step.decision.reasons, step.sent),
        )  # fmt: skip
        with pytest.raises(HandoffBlocked):
            run.transfer("planner", "executor", bad_plan(task_id="t-2"), receiver=desk.receive)

    assert taken == ("human_desk", ["type_mismatch", "repair_exhausted"], bad_plan())
    assert counted(desk.watch.registry, "handoffs_total") == {
        f'handoffs_total{{outcome="diverted",{_H}}}': 1,
        f'handoffs_total{{outcome="stopped",{_H}}}': 1,
    }


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_held_handoff_is_delivered_when_a_person_approves_it(is_async: bool) -> None:
    """The receiver starts after the decision and not before, with what the contract allowed."""
    desk = FlowDesk().route(approval="required")
    desk.decide_while_waiting(Ruling.APPROVED, after_waits=3)

    async def act() -> None:
        async with desk.watch.run("refunds", task_id="t-1") as run:
            if is_async:
                await run.transfer_async("planner", "executor", plan(), receiver=desk.receive)
            else:
                run.transfer("planner", "executor", plan(), receiver=desk.receive)

    asyncio.run(act())

    assert [each["payload"] for each in desk.received] == [{"order_id": "4417", "amount_cents": 3800}]
    assert desk.time.waits_s == [2.0, 2.0, 2.0]
    (case,) = desk.cases()
    assert (case.kind, case.ruling, case.facts["reasons"]) == ("held", "approved", ["approval_required"])
    assert counted(desk.watch.registry, "handoffs_total") == {f'handoffs_total{{outcome="delivered",{_H}}}': 1}


def test_held_handoff_stops_when_a_person_rejects_it() -> None:
    """The route stays open: the next handoff is asked about again."""
    desk = FlowDesk().route(approval="required")
    desk.decide_while_waiting(Ruling.REJECTED)

    with desk.watch.run("refunds", task_id="t-1") as run:
        with pytest.raises(HandoffBlocked) as blocked:
            run.transfer("planner", "executor", plan(), receiver=desk.receive)
        assert run.handoff("planner", "executor", plan("h-2")).action is Action.HOLD

    assert _reasons(blocked) == ["approval_required"]
    assert desk.received == []


@pytest.mark.parametrize(
    ("then", "received", "outcome"), [("stop", 0, "stopped"), ("deliver", 1, "delivered"), ("divert", 0, "diverted")]
)
def test_held_handoff_goes_as_the_route_says_when_nobody_decides_in_time(
    then: str, received: int, outcome: str
) -> None:
    """After the time limit it stops, goes on, or goes to the fallback."""
    desk = FlowDesk().route(approval="required", hold_s=5, hold_then=then, fallback="human_desk")

    with desk.watch.run("refunds", task_id="t-1") as run:
        try:
            run.transfer("planner", "executor", plan(), receiver=desk.receive, fallback=lambda step: step.target)
        except HandoffBlocked:
            assert then == "stop"

    assert len(desk.received) == received
    assert desk.time.waits_s == [2.0, 2.0, 1.0]
    assert counted(desk.watch.registry, "handoffs_total") == {f'handoffs_total{{outcome="{outcome}",{_H}}}': 1}


def test_held_handoff_is_delivered_later_when_the_route_does_not_wait() -> None:
    """It raises at once; sent again after the approval it passes, and with another content it does not."""
    desk = FlowDesk().route(approval="required", hold_s=0)

    def send(raw: dict[str, Any]) -> Any:
        with desk.watch.run("refunds", task_id="t-1") as run:
            return run.transfer("planner", "executor", raw, receiver=desk.receive)

    with pytest.raises(HandoffHeld) as held:
        send(plan())
    assert held.value.hint == (
        f'handoffwatch case approve {held.value.case_id} --note "…", then send the same handoff again'
    )
    with pytest.raises(HandoffHeld) as again:
        send(plan())
    assert again.value.case_id == held.value.case_id
    assert desk.watch.ledger.rule_case(held.value.case_id, Ruling.APPROVED, "seen")

    assert send(plan()) == "received"
    with pytest.raises(HandoffHeld):
        send(plan("h-2", payload={"order_id": "4417", "amount_cents": 9900}))
    assert len(desk.received) == 1


def test_primitives_hold_and_go_on_when_a_person_decides() -> None:
    """A framework that owns its loop asks when it likes."""
    desk = FlowDesk().route(approval="required")

    with desk.watch.run("refunds", task_id="t-1") as run:
        held = run.submit("planner", "executor", plan())
        assert (held.action, run.approval(held)) == (Action.HOLD, held)
        assert run.arrived(held).action is Action.STOP
        assert desk.watch.ledger.rule_case(held.case_id, Ruling.APPROVED, "seen")
        step = run.approval(held)
        assert (step.action, run.arrived(step).action) == (Action.DELIVER, Action.DELIVER)
        run.ended(step)

    assert counted(desk.watch.registry, "handoffs_total") == {f'handoffs_total{{outcome="delivered",{_H}}}': 1}


def test_handoff_is_not_taken_twice_when_its_id_was_accepted(tmp_path: Path) -> None:
    """BR-015: an old message that is replayed is refused, in this process and in the next."""
    first, second = (FlowDesk(tmp_path).route(durable=True) for _ in range(2))

    with first.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", plan(), receiver=first.receive)
        with pytest.raises(HandoffBlocked) as here:
            run.transfer("planner", "executor", plan(), receiver=first.receive)
    with pytest.raises(HandoffBlocked) as there, second.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", plan(), receiver=second.receive)
    assert _reasons(here) == _reasons(there) == ["consumed_handoff"]
    with second.watch.run("refunds", task_id="t-1") as run:
        assert run.transfer("planner", "executor", plan("h-2"), receiver=second.receive) == "received"


def test_hops_of_a_task_are_counted_over_processes_when_the_route_is_durable(tmp_path: Path) -> None:
    """BR-012: a process that starts anew for every request does not begin to count anew."""
    for hop in range(4):
        desk = FlowDesk(tmp_path, hops_max=3).route(durable=True)
        raw = plan(f"h-{hop}", payload={"order_id": f"{hop}", "amount_cents": 1})
        with desk.watch.run("refunds", task_id="t-1") as run:
            if hop < 3:
                run.transfer("planner", "executor", raw, receiver=desk.receive)
                continue
            with pytest.raises(HandoffBlocked) as blocked:
                run.transfer("planner", "executor", raw, receiver=desk.receive)
    assert _reasons(blocked) == ["loop_limit"]


def test_critical_route_stops_and_a_routine_one_passes_when_the_ledger_is_down(tmp_path: Path) -> None:
    """Nothing critical passes unproven; what passes is counted as a bypass."""
    folder = tmp_path / "gone"
    desk = FlowDesk(folder).route(criticality="critical").route("executor->reviewer", durable=True)

    with desk.watch.run("refunds", task_id="t-1") as run:
        with pytest.raises(LedgerUnavailable):
            run.transfer("planner", "executor", plan(), receiver=desk.receive)
        raw = plan("h-2", route="executor->reviewer")
        assert run.transfer("executor", "reviewer", raw, receiver=desk.receive) == "received"

    assert len(desk.received) == 1
    bypassed = counted(desk.watch.registry, "checks_bypassed_total")
    assert bypassed['checks_bypassed_total{cause="ledger_down",check="ledger",name="executor->reviewer"}'] >= 1


def test_second_export_of_one_version_is_stale_when_the_contract_replaces_the_state() -> None:
    """BR-027: two exports from base version 7; the second must read again, and its repair passes."""

    class Export(Contract, replaces_state=True):
        """A contract whose accepted handoff makes a new version."""

        order_id: str
        amount_cents: int

    desk = FlowDesk().route(contract=Export)

    with desk.watch.run("refunds", task_id="t-1", context_version=7) as run:
        first = run.handoff("planner", "executor", plan("h-1", context_version=7))
        second = run.handoff("planner", "executor", plan("h-2", context_version=7))
        assert (first.action, second.action) == (Action.DELIVER, Action.REPAIR)
        assert second.decision is not None
        assert second.decision.reasons == ["stale_state"]
        run.context_version = 8
        again = run.handoff("planner", "executor", plan("h-2", context_version=8))
        assert again.action is Action.DELIVER


def test_handoff_that_the_text_only_speaks_of_is_not_delivered() -> None:
    """BR-030: the agent wrote that it hands over, and handed nothing over."""
    desk = FlowDesk().route()

    with desk.watch.run("refunds", task_id="t-1") as run:
        assert not run.said_handed_over("planner", "executor")
        run.transfer("planner", "executor", plan(), receiver=desk.receive)
        assert run.said_handed_over("planner", "executor")

    assert counted(desk.watch.registry, "handoffs_total") == {
        f'handoffs_total{{outcome="not_delivered",{_H}}}': 1,
        f'handoffs_total{{outcome="delivered",{_H}}}': 1,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"when_blocked": "divert"}, "fallback: must name the agent to which handoffs are diverted"),
        ({"hold_then": "divert"}, "fallback: must name the agent to which handoffs are diverted"),
        ({"when_blocked": "repair"}, "when_blocked: must be one of stop, hold, divert"),
        ({"hold_s": -1}, "hold_s: must be 0 to 2592000 seconds, got -1"),
        ({"fallback": ""}, "fallback: must be an agent's name of 1 to 100 printable characters"),
        ({"keep": "some"}, "keep: must be one of blocked, sampled, all, got 'some'"),
    ],
)
def test_route_is_refused_when_its_conduct_does_not_fit_together(options: dict[str, Any], message: str) -> None:
    """The mistake is named where the route is registered."""
    with pytest.raises(RegistrationError) as refused:
        FlowDesk().route(**options)
    assert message in refused.value.message


def test_usage_is_counted_when_the_host_reports_it() -> None:
    """What repairs have cost stands beside what critics have."""
    desk = FlowDesk().route()

    with desk.watch.run("refunds") as run:
        run.report_usage(ROUTE, tokens=120, cost_usd=0.25)
        for wrong in ({"tokens": -1}, {"cost_usd": float("nan")}, {"purpose": "x"}):
            with pytest.raises(RegistrationError):
                run.report_usage(ROUTE, **wrong)  # type: ignore[arg-type]
        with pytest.raises(RegistrationError):
            run.report_usage("nobody->here")

    assert counted(desk.watch.registry, "check_tokens_total", "check_cost_usd_total") == {
        'check_tokens_total{purpose="repair",route="planner->executor"}': 120,
        'check_cost_usd_total{purpose="repair",route="planner->executor"}': 0.25,
    }


def test_approval_is_for_one_delivery_when_the_handoff_is_sent_again(tmp_path: Path) -> None:
    """Its id is consumed for all processes; the approval of one without an id is used up."""
    first, second = (FlowDesk(tmp_path).route(approval="required", hold_s=0) for _ in range(2))
    nameless = {name: value for name, value in plan().items() if name != "handoff_id"}

    def send(desk: FlowDesk, raw: dict[str, Any]) -> Any:
        with desk.watch.run("refunds", task_id="t-1") as run:
            return run.transfer("planner", "executor", raw, receiver=desk.receive)

    for raw in (plan(), nameless):
        with pytest.raises(HandoffHeld) as held:
            send(first, raw)
        assert first.watch.ledger.rule_case(held.value.case_id, Ruling.APPROVED, "seen")
        assert send(first, raw) == "received"

    for desk in (first, second):
        with pytest.raises(HandoffBlocked) as again:
            send(desk, plan())
        assert _reasons(again) == ["consumed_handoff"]
        with pytest.raises(HandoffHeld):
            send(desk, nameless)
