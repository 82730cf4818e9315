"""What a run knows of its tools: breakers, rejected arguments, two layers, threads, and what nobody knows."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from handoffwatch import (
    Action,
    HandoffBlocked,
    HandoffHeld,
    NeedsHuman,
    RecordVerifier,
    RegistrationError,
    Settings,
    ToolConfirmed,
    ToolDown,
    ToolFailed,
    ToolRejected,
    Watch,
)
from handoffwatch.ledger.settings import LedgerSettings
from handoffwatch.runtime.step import Step
from handoffwatch.settlement.settings import SettlementSettings
from handoffwatch.tools.settings import ToolSettings
from support.telemetry import counted
from support.watched import Watched, new_watched

DEADLINE_S = 30.0
FAILED = "TOOL_FAILED: {} returned {}. Do not guess. Tell the user this lookup failed."


class Status(Exception):
    """An HTTP client's error."""

    def __init__(self, status: int) -> None:
        super().__init__("the body")
        self.status_code = status


def watched_with_ledger(**tools: Any) -> Watched:
    """Return a watch whose ledger is in the working folder of the test."""
    ledger = LedgerSettings(url=f"sqlite:///{Path.cwd() / 'ledger.db'}")
    settlement = SettlementSettings(verifier_timeout_s=0.5)
    return new_watched(settings=Settings(ledger=ledger, tools=ToolSettings(**tools), settlement=settlement))


def outcomes(watched: Watched, *names: str) -> dict[str, float]:
    """Return the samples above 0 of metrics, by the first label's value and the rest."""
    return {name: count for name, count in counted(watched.watch.registry, *names).items() if count}


def wait_for(condition: Callable[[], Any]) -> Any:
    """Wait until something is so, and return it."""
    give_up_s = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < give_up_s, "it did not come true"
        time.sleep(0.005)
    return found


# breaker


def test_tool_is_called_no_more_after_three_fatal_answers_in_a_row() -> None:
    """The run goes on without a request; another run starts anew, and the gauge falls when the run ends."""
    watched = watched_with_ledger()
    sent: list[int] = []

    @watched.watch.tool("find", safety="safe")
    def find(number: int) -> None:
        sent.append(number)
        raise Status(401)

    def texts(numbers: range) -> set[str]:
        told = set()
        for number in numbers:
            with pytest.raises(ToolDown) as down:
                find(number)
            told.add(down.value.text)
        return told

    with watched.watch.run("refunds"):
        assert texts(range(5)) == {FAILED.format("find", 401)}
        assert sent == [0, 1, 2]
        assert outcomes(watched, "tool_breaker_open") == {'tool_breaker_open{tool="find"}': 1}
    assert outcomes(watched, "tool_breaker_open") == {}
    assert outcomes(watched, "tool_attempts_total") == {'tool_attempts_total{code="401",tool="find"}': 3}
    assert outcomes(watched, "tool_failures_total") == {
        'tool_failures_total{code="401",failure_class="fatal",tool="find"}': 5
    }
    with watched.watch.run("refunds"):
        texts(range(1))
    assert sent == [0, 1, 2, 0]


def test_breaker_opens_once_when_a_call_that_was_on_its_way_succeeds_after_it_opened() -> None:
    """Its row begins anew, and the gauge is back at 0 when the run has ended."""
    watched = watched_with_ledger()
    watched.watch.tool("find", safety="safe")
    with watched.watch.run("refunds") as run:
        on_its_way = run.call("find")
        on_its_way.attempt()
        for late in (False, True):
            for _ in range(4):
                call = run.call("find")
                if call.attempt().action is Action.OK:
                    call.raised(Status(401))
            if not late:
                on_its_way.returned([])
        assert outcomes(watched, "tool_breaker_open") == {'tool_breaker_open{tool="find"}': 1}
    assert outcomes(watched, "tool_breaker_open") == {}


def test_breaker_counts_fatal_answers_in_a_row_alone() -> None:
    """Another answer in between starts the row anew; 0 turns the breaker off."""
    for settings, answers, sent in (
        ({}, [401, 401, 422, 401, 401, 401, 401], 6),
        ({}, [401, 401, 0, 401, 401, 401, 401], 6),
        ({"breaker_after": 0}, [401] * 7, 7),
        ({"breaker_after": 1}, [401] * 7, 1),
    ):
        watched = watched_with_ledger(**settings)
        left = iter(answers)
        calls: list[int] = []

        @watched.watch.tool("find", safety="safe")
        def find(number: int) -> None:
            calls.append(number)  # noqa: B023 - called within this round
            status = next(left)  # noqa: B023
            if status:
                raise Status(status)

        with watched.watch.run("refunds"):
            for number in range(7):
                try:
                    find(number)
                except ToolFailed:
                    pass
        assert len(calls) == sent


# rejected


def test_same_arguments_are_refused_without_a_request_when_they_were_rejected() -> None:
    """Others pass; another run may try them again."""
    watched = watched_with_ledger()
    sent: list[Any] = []

    @watched.watch.tool("find", safety="safe")
    def find(order: str, *, limit: int = 1) -> str:
        sent.append(order)
        if order == "x":
            raise Status(422)
        return order

    for _ in range(2):
        with watched.watch.run("refunds"):
            for arguments in ({"order": "x"}, {"order": "x"}, {"order": "x", "limit": 2}, {"order": "y"}):
                with contextlib.suppress(ToolRejected):
                    find(**arguments)  # type: ignore[arg-type]
    assert sent == ["x", "x", "y"] * 2


def test_primitive_is_told_not_to_send_what_was_rejected() -> None:
    """`attempt` says so, for frameworks that make the request themselves."""
    watched = watched_with_ledger()
    watched.watch.tool("find", safety="safe")
    with watched.watch.run("refunds") as run:
        first = run.call("find", "c-1", {"order": "x"})
        assert first.attempt().action is Action.OK
        assert first.raised(Status(422)).action is Action.GIVE_UP
        again = run.call("find", "c-2", {"order": "x"})
        step = again.attempt()
        assert (step.action, step.text.split(":")[0]) == (Action.GIVE_UP, "TOOL_REJECTED")
        assert run.call("find", "c-3", {"order": "y"}).attempt().action is Action.OK


def test_arguments_that_cannot_be_compared_are_sent_again() -> None:
    """Nobody can say that they are the same."""
    watched = watched_with_ledger()
    sent: list[Any] = []

    @watched.watch.tool("find", safety="safe")
    def find(handle: object) -> None:
        sent.append(handle)
        raise Status(422)

    with watched.watch.run("refunds"):
        for _ in range(2):
            with pytest.raises(ToolRejected):
                find(object())
    assert len(sent) == 2


# idempotency


def test_every_attempt_of_a_call_has_one_idempotency_key() -> None:
    """BR-059: of run, tool and arguments; another tool, another argument or another run has another key."""
    watched = watched_with_ledger()
    keys: list[str] = []

    def attempt(order: str) -> str:
        call = watched.watch.current_call()
        assert call is not None
        keys.append(call.idempotency_key)
        if len(keys) % 3:
            raise ConnectionRefusedError
        return order

    put = watched.watch.tool("put", safety="idempotent")(attempt)
    post = watched.watch.tool("post", safety="idempotent")(lambda order: attempt(order))
    with watched.watch.run("refunds", run_id="r-1"):
        put("x")
        put("y")
        post("x")
        put("x")
    with watched.watch.run("refunds", run_id="r-2"):
        put("x")
    groups = [keys[start : start + 3] for start in range(0, 15, 3)]
    assert all(len(set(group)) == 1 for group in groups)
    assert groups[0] == groups[3]
    assert len({group[0] for group in groups}) == 4
    assert all(len(key) == 32 for key in keys)
    assert watched.watch.current_call() is None


# two layers, threads, ids


@pytest.mark.parametrize("is_told_first", [True, False], ids=["hook first", "decorated first"])
def test_two_layers_around_one_call_count_once(is_told_first: bool) -> None:
    """The outer hook knows the id, the inner function sees the real exception; either may tell the end first."""
    watched = watched_with_ledger()

    @watched.watch.tool("find", safety="safe")
    def find(order: str) -> str:
        return order

    with watched.watch.run("refunds") as run:
        call = run.call("find", "c-1", {"order": "x"})
        assert find("x") == "x"
        call.returned("x")
        if not is_told_first:
            call.returned("again")
    assert outcomes(watched, "tool_calls_total", "tool_attempts_total") == {
        'tool_calls_total{tool="find"}': 1,
        'tool_attempts_total{code="ok",tool="find"}': 1,
    }
    assert watched.spans.one("execute_tool find").attributes["gen_ai.tool.call.id"] == "c-1"  # type: ignore[index]


def test_two_decorations_of_one_function_count_once_and_repeat_once() -> None:
    """BR-067: three attempts, not nine."""
    watched = watched_with_ledger()
    sent: list[int] = []

    @watched.watch.tool("find", safety="safe")
    def find(order: str) -> str:
        sent.append(1)
        raise ConnectionRefusedError

    with watched.watch.run("refunds"), pytest.raises(ToolDown):
        watched.watch.call("find", find, "x")

    assert len(sent) == 3
    assert outcomes(watched, "tool_calls_total") == {'tool_calls_total{tool="find"}': 1}


def test_tool_that_calls_itself_makes_two_calls() -> None:
    """Other arguments are another call."""
    watched = watched_with_ledger()

    @watched.watch.tool("count", safety="safe")
    def count(number: int) -> int:
        result: int = count(number - 1) + 1 if number else 0
        return result

    with watched.watch.run("refunds"):
        assert count(3) == 3
    assert outcomes(watched, "tool_calls_total") == {'tool_calls_total{tool="count"}': 4}


def test_parallel_calls_with_one_provider_id_are_calls_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    """BR-068: four calls in, four results; the collision is noted."""
    watched = watched_with_ledger()
    watched.watch.tool("find", safety="safe")
    caplog.set_level(logging.INFO, "handoffwatch")
    with watched.watch.run("refunds") as run:
        calls = [run.call("find", "call_1") for _ in range(4)]
        for call in calls:
            call.attempt()
        assert [call.returned([]).action for call in calls] == [Action.OK] * 4
        run.call("find").returned([])
        run.call("find").returned([])
    assert outcomes(watched, "tool_calls_ended_total") == {'tool_calls_ended_total{outcome="ok",tool="find"}': 6}
    assert caplog.text.count("tool call id repeated") == 3


def test_tools_in_threads_belong_to_the_run_that_started_them() -> None:
    """A thread pool knows no context; a bound function brings its run along."""
    watched = watched_with_ledger()

    @watched.watch.tool("find", safety="safe")
    def find() -> list[int]:
        return []

    async def find_all(run: Any) -> None:
        await asyncio.gather(*(run.bound(_awaiting(find))() for _ in range(3)))

    def _awaiting(function: Any) -> Any:
        async def awaiting() -> Any:
            return await asyncio.to_thread(function)

        return awaiting

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = [watched.watch.run("refunds") for _ in range(10)]
        list(pool.map(lambda run: run.bound(find)(), runs * 3))
        asyncio.run(find_all(runs[0]))
        assert [run.tools.succeeded for run in runs] == [6, *[3] * 9]
        for run in runs:
            run.finish()


def test_call_takes_functions_of_every_kind() -> None:
    """Plain, coroutine, generator, method and partial; a tool that nobody registered is refused."""
    watched = watched_with_ledger()
    watched.watch.tool("find", safety="safe")

    class Service:
        def find(self, order: str) -> str:
            return order

        async def find_async(self, order: str) -> str:
            return order

        def pieces(self, order: str) -> Any:
            yield from order

        @watched.watch.tool("own", safety="safe")
        def own(self, order: str) -> str:
            return order

    service = Service()
    with watched.watch.run("refunds"):
        assert watched.watch.call("find", service.find, "4417") == "4417"
        assert asyncio.run(watched.watch.call("find", service.find_async, order="4417")) == "4417"
        assert list(watched.watch.call("find", service.pieces, "4417")) == list("4417")
        assert service.own("4417") == "4417"
        with pytest.raises(RegistrationError, match="is not registered"):
            watched.watch.call("nobody", service.find, "4417")
    assert sum(outcomes(watched, "tool_calls_ended_total").values()) == 4


# control flow of frameworks


def _raising(module: str, name: str) -> Exception:
    """Return an exception as a framework names it; the frameworks' own are met in their adapters' tests."""
    kind: type[Exception] = type(name, (Exception,), {"__module__": module})
    return kind("interrupt")


@pytest.mark.parametrize(
    ("module", "name", "outcome"),
    [
        ("langgraph.errors", "GraphBubbleUp", "suspended"),
        ("langgraph.errors", "ParentCommand", "suspended"),
        ("pydantic_ai.exceptions", "CallDeferred", "suspended"),
        ("pydantic_ai.exceptions", "ApprovalRequired", "suspended"),
        ("pydantic_ai.exceptions", "ModelRetry", "failed"),
    ],
)
def test_control_flow_of_a_framework_passes_unchanged(module: str, name: str, outcome: str) -> None:
    """It is no error, and never repeated; a request for other arguments counts as rejected."""
    watched = watched_with_ledger()
    error = _raising(module, name)
    sent: list[int] = []

    @watched.watch.tool("find", safety="unsafe", when_failed="text")
    def find() -> None:
        sent.append(1)
        raise error

    with watched.watch.run("refunds") as run:
        with pytest.raises(type(error)) as raised:
            find()
        assert run.tools.has_ambiguous is False
    assert raised.value is error
    assert sent == [1]
    assert outcomes(watched, "tool_calls_ended_total") == {
        f'tool_calls_ended_total{{outcome="{outcome}",tool="find"}}': 1
    }


# time-outs that leave work running


@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "task"])
def test_work_that_a_time_out_leaves_running_is_ambiguous_and_its_end_is_recorded(is_async: bool) -> None:
    """BR-060: not failed, not repeated; the late result stands in the log and in the case, and the run is not clean."""
    watched = watched_with_ledger(grace_s=0.01)
    gate, begun = threading.Event(), []

    def work() -> str:
        begun.append(1)
        assert gate.wait(DEADLINE_S)
        return "written"

    async def work_async() -> str:
        begun.append(1)
        await asyncio.to_thread(gate.wait, DEADLINE_S)
        return "written"

    write: Any = watched.watch.tool("write", safety="unsafe", limit_s=0.05)(work_async if is_async else work)

    async def main() -> None:
        async with watched.watch.run("refunds", run_id="r-1") as run:
            with pytest.raises(NeedsHuman):
                await write() if is_async else write()
            assert (run.is_clean, run.answer("It is written.").action) == (False, Action.REFUSE)
            gate.set()
            await asyncio.to_thread(wait_for, late)

    def late() -> bool:
        cases = watched.watch.ledger.cases()
        return bool(cases) and cases[0].facts["late"] == "ok"

    asyncio.run(main())
    assert begun == [1]
    (case,) = watched.watch.ledger.cases()
    assert (case.kind, case.facts["tool"], case.facts["status"], case.facts["attempts"]) == (
        "ambiguous", "write", "timeout", 1,
    )  # fmt: skip
    assert outcomes(watched, "runs_with_unrecovered_tool_failure_total")
    assert outcomes(watched, "guard_blocks_total") == {
        'guard_blocks_total{mode="enforce",reason="ambiguous_open",workflow="refunds"}': 1
    }


def test_result_within_the_grace_is_the_result() -> None:
    """Work that ends just after its limit is not thrown away."""
    watched = watched_with_ledger(grace_s=DEADLINE_S)

    @watched.watch.tool("write", safety="unsafe", limit_s=0.001)
    def write() -> str:
        time.sleep(0.02)
        return "written"

    with watched.watch.run("refunds"):
        assert write() == "written"


def test_safe_tool_is_repeated_after_its_limit() -> None:
    """Reading twice does no harm; a coroutine of it is cancelled at its limit."""
    watched = watched_with_ledger(grace_s=0.0)
    cancelled: list[int] = []

    @watched.watch.tool("read", safety="safe", limit_s=0.01)
    async def read() -> str:
        if len(cancelled) < 2:
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                cancelled.append(1)
                raise
        return "read"

    async def main() -> str:
        async with watched.watch.run("refunds"):
            return await read()  # type: ignore[no-any-return]

    assert asyncio.run(main()) == "read"
    assert cancelled == [1, 1]
    assert outcomes(watched, "tool_attempts_total") == {
        'tool_attempts_total{code="timeout",tool="read"}': 2,
        'tool_attempts_total{code="ok",tool="read"}': 1,
    }


def test_nested_call_of_a_tool_that_timed_out_has_its_own_record() -> None:
    """BR-062: the outer limit cancels the nested call midway; nobody knows of it either, and the run is not clean."""
    watched = watched_with_ledger(grace_s=0.0)

    @watched.watch.tool("write", safety="unsafe")
    async def write() -> None:
        await asyncio.sleep(3_600)

    @watched.watch.tool("plan", safety="idempotent", limit_s=0.02, attempts_max=1)
    async def plan() -> None:
        await write()

    async def main() -> None:
        async with watched.watch.run("refunds") as run:
            with pytest.raises(ToolDown):
                await plan()
            assert run.is_clean is False
            assert run.answer("Done.").action is Action.REFUSE

    asyncio.run(main())
    assert [case.facts["tool"] for case in watched.watch.ledger.cases()] == ["write"]


@pytest.mark.parametrize("safety", ["safe", "unsafe"])
def test_cancelled_call_of_an_unsafe_tool_may_have_happened(safety: str) -> None:
    """Cancellation passes through; what was sent is not undone by it."""
    watched = watched_with_ledger()

    @watched.watch.tool("write", safety=safety)
    async def write() -> None:
        await asyncio.sleep(3_600)

    async def main() -> None:
        async with watched.watch.run("refunds"):
            sending = asyncio.create_task(write())
            await asyncio.sleep(0.01)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending

    asyncio.run(main())
    assert len(watched.watch.ledger.cases()) == (safety == "unsafe")


# read back before a person is asked


class Receipt(BaseModel):
    """What the service returns."""

    refund_id: str


def refund_tool(watched: Watched, records: Any, *, error: Exception | None = None) -> Any:
    """Register the operation, and a tool whose answer is always lost."""
    watch = watched.watch
    watch.operation(
        "refund", key="order_id", compare=("amount_cents",), receipt=Receipt, receipt_id="refund_id",
        verifier=RecordVerifier(by_key=records) if records is not None else None,
    )  # fmt: skip
    watch.workflow("money", tools="required", operations=["refund"])

    @watch.tool("issue_refund", safety="unsafe", operation="refund")
    def issue_refund(order_id: str, amount_cents: int) -> None:
        raise error or TimeoutError

    return issue_refund


def test_lost_answer_is_confirmed_when_the_effect_is_in_the_store() -> None:
    """It happened: no case, no failure, and the model is told not to call it again."""
    watched = watched_with_ledger()
    stored = {"order_id": "4417", "amount_cents": 3800, "status": "succeeded"}
    refund = refund_tool(watched, lambda order_id: stored)

    with watched.watch.run("money") as run:
        with pytest.raises(ToolConfirmed) as confirmed:
            refund("4417", 3800)
        assert (run.tools.succeeded, run.is_clean) == (1, True)
        run.claim("done")

    assert confirmed.value.text.startswith("TOOL_CONFIRMED: issue_refund gave no answer")
    assert watched.watch.ledger.cases() == []
    assert outcomes(watched, "tool_attempts_total", "tool_calls_ended_total") == {
        'tool_attempts_total{code="timeout",tool="issue_refund"}': 1,
        'tool_calls_ended_total{outcome="ok",tool="issue_refund"}': 1,
    }


def test_lost_answer_is_a_failure_when_the_store_says_that_nothing_happened() -> None:
    """After the read-back window; nobody has to look, and the agent may call again."""
    watched = watched_with_ledger()
    refund = refund_tool(watched, lambda order_id: None)

    with watched.watch.run("money") as run:
        with pytest.raises(ToolDown):
            refund("4417", 3800)
        assert (run.tools.has_ambiguous, run.tools.failed) == (False, 1)

    assert sum(watched.time.waits_s) == 30
    assert watched.watch.ledger.cases() == []
    assert outcomes(watched, "verifications_total") == {
        'verifications_total{operation="refund",result="pending"}': 4,
        'verifications_total{operation="refund",result="not_landed"}': 1,
    }


def _down(order_id: str) -> None:
    raise ConnectionError


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(_down, id="the store cannot be read"),
        pytest.param(lambda _: {"order_id": "4417", "amount_cents": 3800, "status": "pending"}, id="pending"),
        pytest.param(None, id="no verifier"),
    ],
)
def test_person_is_asked_only_when_the_store_cannot_say(records: Any) -> None:
    """The case has what they need to find out, the arguments redacted, and stays open until it is resolved."""
    watched = watched_with_ledger()
    refund = refund_tool(watched, records)

    with watched.watch.run("money", run_id="r-1", task_id="t-1") as run:
        with pytest.raises(NeedsHuman) as needed:
            refund("4417", 3800)
        assert run.answer("It is refunded.").action is Action.REFUSE

    assert "handoffwatch case resolve" in needed.value.hint
    (case,) = watched.watch.ledger.cases()
    stored = watched.watch.ledger.case(case.case_id)
    assert stored is not None
    assert (case.kind, case.criticality, case.run_id) == ("ambiguous", "critical", "r-1")
    facts = {name: case.facts[name] for name in ("tool", "operation", "status", "attempts", "task_id")}
    assert facts == {
        "tool": "issue_refund", "operation": "refund", "status": "timeout", "attempts": 1, "task_id": "t-1",
    }  # fmt: skip
    assert len(str(case.facts["idempotency_key"])) == 32
    assert stored.record == {"arguments": {"order_id": "4417", "amount_cents": 3800}}


@pytest.mark.parametrize(("ends", "effect"), [("failed", "not_landed"), ("succeeded", "landed")])
def test_accepted_call_is_pending_until_the_store_says_how_it_ended(ends: str, effect: str) -> None:
    """BR-071: 202 is no end; reads that fail keep it pending, and only a terminal state settles it."""
    watched = watched_with_ledger()
    answers: list[Any] = [Status(522), TimeoutError(), "pending", ends]

    def by_receipt(refund_id: str) -> dict[str, Any]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"order_id": "4417", "amount_cents": 3800, "status": answer}

    watch = watched.watch
    watch.operation(
        "refund", key="order_id", compare=("amount_cents",), receipt=Receipt, receipt_id="refund_id",
        verifier=RecordVerifier(by_receipt),
    )  # fmt: skip
    watch.workflow("money", operations=["refund"])

    class Accepted(dict[str, Any]):
        status_code, headers = 202, {"location": "/refunds/r-1"}

    @watch.tool("issue_refund", safety="unsafe", operation="refund")
    def issue_refund(order_id: str, amount_cents: int) -> Accepted:
        return Accepted(refund_id="r-1")

    with watch.run("money") as run:
        issue_refund("4417", 3800)
        run.claim("done")
    settler = watch.settler()
    for left in (3, 2, 1, 0):
        assert outcomes(watched, "settlement_seconds_count") == {}
        watched.time.now_s += 7_200.0
        assert settler.run_once() == 1
        assert len(answers) == left
    (settled,) = [value for name, value in outcomes(watched, "ledger_effects_settled_total").items() if effect in name]
    assert settled == 1


def test_case_of_an_ambiguous_call_holds_no_secret() -> None:
    """Its arguments are redacted by name and by shape."""
    watched = watched_with_ledger()

    @watched.watch.tool("post", safety="unsafe")
    def post(*, password: str, note: str) -> None:
        raise TimeoutError("token=sk-live-9f8e7d6c5b4a39281706f5e4")

    with watched.watch.run("refunds"), pytest.raises(NeedsHuman):
        post(password="hunter2", note="Bearer sk-live-9f8e7d6c5b4a39281706f5e4")

    case = watched.watch.ledger.case(watched.watch.ledger.cases()[0].case_id)
    assert "hunter2" not in repr(case)
    assert "9f8e7d6c" not in repr(case)


def test_call_that_is_cancelled_while_its_effect_is_read_back_stays_ambiguous() -> None:
    """It has ended, its case is there, and the cancellation passes through."""
    watched = watched_with_ledger()
    waiting = asyncio.Event()

    class Slow:
        async def verify(self, question: object) -> Any:
            loop.call_soon_threadsafe(waiting.set)
            await asyncio.sleep(3_600)

    watched.watch.operation("refund", key="order_id", verifier=Slow())
    watched.watch.workflow("money", operations=["refund"])

    @watched.watch.tool("issue_refund", safety="unsafe", operation="refund")
    async def issue_refund(order_id: str) -> None:
        raise TimeoutError

    async def main() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        async with watched.watch.run("money") as run:
            calling = asyncio.create_task(issue_refund("4417"))
            await waiting.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            assert run.tools.has_ambiguous

    loop: Any = None
    asyncio.run(main())
    assert [case.kind for case in watched.watch.ledger.cases()] == ["ambiguous"]
    assert outcomes(watched, "tool_calls_ended_total") == {
        'tool_calls_ended_total{outcome="failed",tool="issue_refund"}': 1
    }


# as text


@pytest.mark.parametrize(
    ("safety", "error", "text"),
    [
        ("safe", Status(401), FAILED.format("find", 401)),
        (
            "unsafe",
            TimeoutError(),
            FAILED.format("find", "timeout"),
        ),
    ],
)
def test_tool_returns_its_text_where_the_host_wants_it(safety: str, error: Exception, text: str) -> None:
    """The model gets it as the tool's answer; everything is counted as when it raises."""
    watched = watched_with_ledger()

    @watched.watch.tool("find", safety=safety, when_failed="text", attempts_max=1)
    def find() -> str:
        raise error

    with watched.watch.run("refunds") as run:
        assert find() == text
        assert run.tools.failed == 1


# the guard


def test_guard_refuses_when_the_tools_could_not_be_listed() -> None:
    """BR-054: the failure to list them is a fatal failure of its own; a later listing recovers it."""
    watched = watched_with_ledger()
    watched.watch.tool("list_tools", safety="safe")
    with watched.watch.run("refunds") as run:
        run.discovery_failed("list_tools", Status(401))
        refused = run.answer("The tool says that all is well.")
        assert refused.action is Action.REFUSE
        run.call("list_tools").returned([])
        assert run.answer("No tool was needed.").action is Action.ANSWER
    assert outcomes(watched, "guard_blocks_total") == {
        'guard_blocks_total{mode="enforce",reason="tool_discovery_failed",workflow="refunds"}': 1
    }
    assert outcomes(watched, "tool_failures_total") == {
        'tool_failures_total{code="401",failure_class="fatal",tool="list_tools"}': 1
    }


def test_guard_lets_own_texts_and_answers_of_nested_agents_through() -> None:
    """A refusal, a stop and a hold claim nothing; a nested agent's answer goes to another agent."""
    watched = watched_with_ledger()
    with watched.watch.run("refunds") as run:
        refused = run.answer("All is well.")
        refusal = refused.text
        assert refused.for_user == refusal
        held = (HandoffHeld("", decision=None, case_id="c-1"), HandoffBlocked("", decision=None))
        assert run.answer(refusal).action is Action.ANSWER
        for own in (Step(Action.STOP), Step(Action.HOLD), Step(Action.NEEDS_HUMAN), NeedsHuman("", text=""), *held):
            assert run.answer(own.for_user) == (Action.ANSWER, own.for_user, *Step(Action.ANSWER)[2:])
            assert own.for_user
        assert run.answer("All is well.", final=False) == run.answer("All is well.", final=False)
        assert run.answer("All is well.", final=False).action is Action.ANSWER
    assert outcomes(watched, "guard_checks_total") == {'guard_checks_total{mode="enforce",workflow="refunds"}': 1}


@pytest.mark.parametrize(("guard", "count"), [("enforce", 1), ("shadow", 0)])
def test_refusal_of_what_was_shown_already_is_counted_as_late(guard: str, count: int) -> None:
    """Somebody has read text that rests on nothing; a guard in shadow mode refuses nothing."""
    watch = Watch(settings=Settings())
    watch.workflow("answers", tools="required", guard=guard)
    with watch.run("answers") as run:
        run.answer("All is well.", streamed=True)
        run.answer("All is well.")
    late = counted(watch.registry, "guard_late_refusals_total")
    assert late.get('guard_late_refusals_total{workflow="answers"}', 0) == count


# the story of the issue


def test_story_of_credentials_that_expire_halfway() -> None:
    """Four calls, two 401s: no repetition, the fixed text, an unrecovered failure; all four: the guard refuses."""
    for expired_after, is_refused in ((2, False), (0, True)):
        watched = watched_with_ledger()
        sent: list[int] = []

        def find(number: int, watched: Watched = watched, sent: list[int] = sent, after: int = expired_after) -> Any:
            sent.append(number)
            if len(sent) > after:
                raise Status(401)
            return []  # an empty list of invoices is an answer

        tool = watched.watch.tool("find_invoices", safety="safe")(find)
        texts: list[str] = []
        with watched.watch.run("refunds") as run:
            for number in range(4):
                try:
                    tool(number)
                except ToolDown as down:
                    texts.append(down.text)
            step = run.answer("You have no open invoices.")
            assert (step.action is Action.REFUSE, run.is_clean) == (is_refused, False)
        assert set(texts) == {FAILED.format("find_invoices", 401)}
        assert outcomes(watched, "runs_with_unrecovered_tool_failure_total") == {
            'runs_with_unrecovered_tool_failure_total{workflow="refunds"}': 1
        }
        assert outcomes(watched, "tool_failures_total") == {
            'tool_failures_total{code="401",failure_class="fatal",tool="find_invoices"}': 4 - expired_after
        }
        assert len(sent) == min(4, expired_after + 3)  # after three fatal answers in a row nothing is sent


def test_deadline_holds_when_the_wall_clock_is_set_while_a_call_waits() -> None:
    """BR-074: limits and durations are on the monotonic clock."""
    watched = watched_with_ledger()
    wall = watched.watch.clock.wall_s
    for shift_s in (-300.0, 300.0):
        object.__setattr__(watched.watch.clock, "wall_s", lambda shift_s=shift_s: wall() + shift_s)
        name = f"find{shift_s}"

        @watched.watch.tool(name, safety="safe")
        def find() -> None:
            raise ConnectionRefusedError

        with watched.watch.run("refunds"), pytest.raises(ToolDown):
            find()
        samples = counted(watched.watch.registry, "tool_duration_seconds_sum")
        (spent,) = [value for sample, value in samples.items() if name in sample]
        assert 0 <= spent <= 120
