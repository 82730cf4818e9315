"""How a call ends when something else than its function ends it, or a call within it fails."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import Any

import pytest

from handoffwatch import (
    Action,
    LedgerUnavailable,
    NeedsHuman,
    RecordVerifier,
    Settings,
    ToolConfirmed,
    ToolDown,
    ToolRejected,
    Watch,
)
from handoffwatch.ledger.settings import LedgerSettings
from handoffwatch.settlement.settings import SettlementSettings
from handoffwatch.tools.settings import ToolSettings
from support.telemetry import counted
from support.watched import new_watched
from unit.runtime.test_tool_runs import Status, outcomes, wait_for, watched_with_ledger

# a call within a call


@pytest.mark.parametrize(
    ("safety", "failure_class"), [("safe", "fatal"), ("idempotent", "fatal"), ("unsafe", "ambiguous")]
)
def test_failure_of_an_inner_call_leaves_what_an_unsafe_outer_one_did_unknown(safety: str, failure_class: str) -> None:
    """The inner error goes on unchanged, and a person has the outer call's case."""
    watched = watched_with_ledger()

    @watched.watch.tool("look_up", safety="safe")
    def look_up() -> None:
        raise Status(401)

    @watched.watch.tool("book", safety=safety)
    def book() -> None:
        look_up()

    with watched.watch.run("refunds") as run, pytest.raises(ToolDown) as caught:
        book()
    assert "look_up" in caught.value.text
    failures = outcomes(watched, "tool_failures_total")
    assert failures[f'tool_failures_total{{code="exception",failure_class="{failure_class}",tool="book"}}'] == 1
    assert run.tools.has_ambiguous is (safety == "unsafe")
    assert [case.facts["tool"] for case in watched.watch.ledger.cases()] == (["book"] if safety == "unsafe" else [])


def test_tool_may_say_what_a_failed_call_within_it_means() -> None:
    """Its own class for an exception counts here too."""
    watched = watched_with_ledger()

    @watched.watch.tool("look_up", safety="safe")
    def look_up() -> None:
        raise Status(401)

    @watched.watch.tool("book", safety="unsafe", errors={ToolDown: "fatal"})
    def book() -> None:
        look_up()

    with watched.watch.run("refunds") as run, pytest.raises(ToolDown):
        book()
    assert run.tools.has_ambiguous is False


def test_person_is_asked_about_both_calls_when_the_inner_one_is_unknown() -> None:
    """Also where the outer one has a verifier: it is not taken for cancelled."""
    watched = watched_with_ledger()

    @watched.watch.tool("charge", safety="unsafe")
    def charge() -> None:
        raise TimeoutError

    def refunding(order_id: str, amount_cents: int) -> None:
        charge()

    watched.watch.operation(
        "refund", key="order_id", compare=("amount_cents",), verifier=RecordVerifier(by_key=lambda _: None)
    )
    watched.watch.workflow("money", operations=["refund"])
    refund = watched.watch.tool("issue_refund", safety="unsafe", operation="refund")(refunding)
    with watched.watch.run("money") as run:
        with pytest.raises(NeedsHuman, match="tool charge"):
            refund("4417", 3800)
        run.claim("not_done")
    assert {case.facts["tool"] for case in watched.watch.ledger.cases()} == {"charge", "issue_refund"}
    ended = outcomes(watched, "tool_calls_ended_total")
    assert ended == {
        'tool_calls_ended_total{outcome="failed",tool="charge"}': 1,
        'tool_calls_ended_total{outcome="failed",tool="issue_refund"}': 1,
    }


def test_refused_operation_within_a_tool_is_the_tools_own_failure() -> None:
    """A ledger that is down stops the inner call; what the outer one did before is not known."""
    watched = new_watched(settings=Settings(ledger=LedgerSettings(url="sqlite:////nowhere/at/all.db")))
    watched.watch.operation("refund", key="order_id")
    watched.watch.workflow("money", operations=["refund"])

    @watched.watch.tool("issue_refund", safety="unsafe", operation="refund")
    def issue_refund(order_id: str) -> None:
        raise AssertionError("it must not be called")

    @watched.watch.tool("settle", safety="safe")
    def settle() -> None:
        issue_refund("4417")

    run = watched.watch.run("money")
    with pytest.raises(LedgerUnavailable):
        run.bound(settle)()
    assert (run.tools.failed, run.tools.has_ambiguous) == (1, False)


# ended by somebody else


class Later(Exception):
    """Is raised by a host that has put the call off itself."""


def test_exception_goes_on_unchanged_after_the_call_was_put_off() -> None:
    """It is never turned into a success that returned nothing."""
    watched = new_watched()

    @watched.watch.tool("ask", safety="safe")
    def ask() -> str:
        watched.watch.current_call().suspended()  # type: ignore[union-attr]
        raise Later

    with watched.watch.run("refunds") as run:
        with pytest.raises(Later):
            ask()
        assert (run.tools.succeeded, run.tools.failed) == (0, 0)


def test_success_is_returned_after_the_call_was_told_as_cancelled() -> None:
    """What the function returned is never lost."""
    watched = new_watched()

    @watched.watch.tool("find", safety="safe")
    def find() -> list[str]:
        watched.watch.current_call().cancelled()  # type: ignore[union-attr]
        return ["4417"]

    with watched.watch.run("refunds"):
        assert find() == ["4417"]
    assert outcomes(watched, "tool_calls_ended_total") == {'tool_calls_ended_total{outcome="cancelled",tool="find"}': 1}


def test_tool_that_tells_its_own_failure_fails_with_the_fixed_text() -> None:
    """Whatever it returns or raises then."""
    watched = new_watched()

    @watched.watch.tool("find", safety="safe")
    def find(raises: bool) -> str:
        from handoffwatch.vocabulary import FailureClass

        watched.watch.current_call().classified(FailureClass.FATAL)  # type: ignore[union-attr]
        if raises:
            raise Later
        return "an error page"

    with watched.watch.run("refunds"):
        for raises in (False, True):
            with pytest.raises(ToolDown) as caught:
                find(raises)
            assert caught.value.text.startswith("TOOL_FAILED: find returned")


def test_cancelled_call_of_a_host_that_tells_no_attempts_has_a_case() -> None:
    """It may have been sent; one that is known to be between two attempts has not."""
    watched = watched_with_ledger()
    watched.watch.tool("pay", safety="unsafe")(lambda: None)
    with watched.watch.run("refunds") as run:
        run.call("pay", "c-1", {"amount": 1}).cancelled()
        assert run.answer("It is paid.").action is Action.REFUSE
        waiting = run.call("pay", "c-2", {"amount": 2})
        waiting.attempt()
        assert waiting.raised(ConnectionRefusedError()).action is Action.RETRY
        waiting.cancelled()
    assert [case.facts["call_id"] for case in watched.watch.ledger.cases()] == ["c-1"]


def test_call_ends_once_whoever_ends_it_first() -> None:
    """A hundred calls, each ended by two threads at once: there is a case exactly where it ended as unknown."""
    watch = Watch(settings=Settings())
    watch.workflow("refunds")
    watch.tool("pay", safety="unsafe")(lambda: None)
    with watch.run("refunds") as run:
        ended: list[bool] = []
        for number in range(100):
            call = run.call("pay", f"c-{number}")
            call.attempt()
            start = threading.Barrier(2)

            def cancel(call: Any = call, start: threading.Barrier = start) -> None:
                start.wait()
                call.cancelled()

            thread = threading.Thread(target=cancel)
            thread.start()
            start.wait()
            time.sleep(0.0005 * (number % 2))  # each of them is the faster one now and then
            call.returned("done")
            thread.join()
            ended.append(call.has_case)
    outcome = counted(watch.registry, "tool_calls_ended_total")
    assert outcome.get('tool_calls_ended_total{outcome="cancelled",tool="pay"}', 0) == ended.count(True)
    assert outcome.get('tool_calls_ended_total{outcome="ok",tool="pay"}', 0) == ended.count(False)
    assert run.tools.has_ambiguous is any(ended)


# work that goes on


def test_absence_proves_nothing_while_the_work_goes_on() -> None:
    """The store is asked again; only what is absent after the work has ended did not happen."""
    stored: dict[str, dict[str, Any]] = {}
    may_write = threading.Event()
    watch = Watch(
        settings=Settings(
            settlement=SettlementSettings(polls_s=(0.0, 0.05, 30.0), read_back_window_s=0.0),
            tools=ToolSettings(grace_s=0.0),
        )
    )

    def look(order_id: str) -> Any:
        if may_write.is_set():
            wait_for(lambda: stored)
        may_write.set()  # after it has been asked once
        return stored.get(order_id)

    watch.operation("refund", key="order_id", verifier=RecordVerifier(by_key=look))
    watch.workflow("money", operations=["refund"])

    @watch.tool("issue_refund", safety="unsafe", operation="refund", limit_s=0.05)
    def issue_refund(order_id: str) -> None:
        assert may_write.wait(30)
        stored[order_id] = {"order_id": order_id, "status": "succeeded"}
        time.sleep(0.3)  # it answers later still

    with watch.run("money") as run:
        with pytest.raises(ToolConfirmed):
            issue_refund("4417")
        run.claim("done")


def test_work_that_ends_as_its_limit_does_has_its_result() -> None:
    """A time-out of the wait is none of the work."""
    from concurrent.futures import Future

    from handoffwatch.runtime.drivers import Invoke, _limited

    class JustEnded(Future[str]):
        def result(self, timeout: float | None = None) -> str:
            if timeout is not None and not self.done():
                self.set_result("4417")
                raise TimeoutError
            return super().result(timeout)

    assert _limited(JustEnded(), Invoke(lambda: "", limit_s=1.0)) == "4417"


def test_exception_of_cancelled_work_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """A host that cancels a limited call finds no word of asyncio in its log about it."""
    watch = Watch(settings=Settings())
    watch.workflow("refunds")
    ended = threading.Event()

    @watch.tool("find", safety="safe", limit_s=30.0)
    def find() -> None:
        time.sleep(0.1)
        ended.set()
        raise Later

    async def main() -> None:
        from handoffwatch.runtime.drivers import Invoke, _limited_async

        task = asyncio.ensure_future(_limited_async(Invoke(find.__wrapped__, limit_s=30.0)))  # type: ignore[attr-defined]
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(ended.wait, 30)
        await asyncio.sleep(0.05)
        gc.collect()

    asyncio.run(main())
    gc.collect()
    assert "never retrieved" not in caplog.text


@pytest.mark.parametrize("safety", ["safe", "unsafe"])
def test_coroutine_that_was_never_begun_is_no_unknown_effect(safety: str) -> None:
    """A mistake in the program: nothing was sent. A task may run, so that of an unsafe tool nobody knows."""
    watched = watched_with_ledger()

    async def work() -> None:
        raise AssertionError("it must not run")

    async def nothing() -> None: ...

    lost = watched.watch.tool("lost", safety=safety)(lambda: work())
    begun = watched.watch.tool("begun", safety=safety)(lambda: asyncio.ensure_future(nothing()))

    async def main() -> None:
        with pytest.raises(ToolDown):
            lost()
        with pytest.raises(NeedsHuman if safety == "unsafe" else ToolDown):
            begun()

    with watched.watch.run("refunds"):
        asyncio.run(main())


# breakers, discovery, clients' own retries


def test_breaker_does_not_open_after_the_end_of_the_run() -> None:
    """Nobody would close it: the gauge would stay at 1."""
    watched = new_watched()
    watched.watch.tool("find", safety="safe")(lambda: None)
    with watched.watch.run("refunds") as run:
        calls = [run.call("find", f"c-{number}") for number in range(5)]
    for call in calls:
        call.raised(Status(401))
    assert outcomes(watched, "tool_breaker_open") == {}


def test_listing_the_tools_may_succeed_after_it_has_failed_often() -> None:
    """Failures to list open no breaker, for none could close it; their codes are born with the tool."""
    watched = new_watched()

    @watched.watch.tool("list_tools", safety="safe")
    def list_tools() -> list[str]:
        return []

    with watched.watch.run("refunds") as run:
        for error in (Status(401), TimeoutError(), Status(500), ConnectionError(), Status(403)):
            run.discovery_failed("list_tools", error)
        assert run.answer("x").action is Action.REFUSE
        assert list_tools() == []
        assert run.answer("x").action is Action.ANSWER
    failures = outcomes(watched, "tool_failures_total")
    assert failures == {
        'tool_failures_total{code="401",failure_class="fatal",tool="list_tools"}': 1,
        'tool_failures_total{code="403",failure_class="fatal",tool="list_tools"}': 1,
        'tool_failures_total{code="exception",failure_class="fatal",tool="list_tools"}': 3,
    }


@pytest.mark.parametrize("status", [401, 404, 422, 429, 500])
def test_unsafe_call_that_its_client_repeated_is_unknown_whatever_came_last(status: int) -> None:
    """The answer is to the last request; an earlier one may have done it."""
    watched = watched_with_ledger()

    class Answered(Exception):
        def __init__(self) -> None:
            super().__init__("no")
            self.response = {
                "Error": {"Code": "Refused"},
                "ResponseMetadata": {"HTTPStatusCode": status, "RetryAttempts": 2},
            }

    @watched.watch.tool("pay", safety="unsafe")
    def pay() -> None:
        raise Answered

    @watched.watch.tool("look", safety="safe", attempts_max=1)
    def look() -> None:
        raise Answered

    with watched.watch.run("refunds"):
        with pytest.raises(NeedsHuman):
            pay()
        with pytest.raises(ToolRejected if status == 422 else ToolDown):
            look()


# a run's own functions


def test_bound_generators_run_in_their_run() -> None:
    """Plain and async ones, as far as they are read, also from other threads."""
    watched = new_watched()

    @watched.watch.tool("pages", safety="safe")
    def pages() -> Any:
        yield from (1, 2)
        return 3

    @watched.watch.tool("lines", safety="safe")
    async def lines() -> Any:
        for line in "ab":
            yield line

    run = watched.watch.run("refunds")
    bound_pages, bound_lines = run.bound(pages), run.bound(lines)
    read: list[Any] = []

    def delegating() -> Any:
        read.append((yield from bound_pages()))

    async def main() -> None:
        read.extend([line async for line in bound_lines()])

    thread = threading.Thread(target=lambda: read.extend(delegating()))
    thread.start()
    thread.join()
    asyncio.run(main())
    assert read == [3, 1, 2, "a", "b"] or read == [1, 2, 3, "a", "b"]
    assert run.tools.succeeded == 2
    assert watched.watch.current() is None
    run.finish()
