"""Contexts: one trace and right parents through receivers, tasks, threads and generators, and nothing in the log."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from handoffwatch import Run
from support.telemetry import attributes, counted
from support.watched import Watched, handoff, new_watched


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nobody but us may log anything here, above all no "different Context"."""
    caplog.set_level(logging.INFO)
    yield
    assert [
        record.getMessage()
        for record in caplog.get_records("call")
        if record.name != "handoffwatch" and not record.name.startswith("alembic")
    ] == []


def _watched() -> Watched:
    watched = new_watched()
    watched.watch.tool("find", safety="safe")
    return watched


def _in_pool(watched: Watched, name: str) -> Any:
    """Return a tool that does its work in a thread pool."""

    @watched.watch.tool(name, safety="safe")
    def find(number: int) -> int:
        with watched.spans.provider.get_tracer("host").start_as_current_span(f"query {number}"):
            return number

    return find


@pytest.mark.parametrize("repeat", range(10))
def test_trace_is_one_with_right_parents_when_five_handoffs_run_their_tools_in_a_thread_pool(repeat: int) -> None:
    """What a gather and a pool start stays in the run's trace, every time."""
    watched = new_watched()
    find = _in_pool(watched, "find")

    async def receiver(item: dict[str, Any]) -> int:
        return await asyncio.to_thread(find, int(item["handoff_id"]))

    async def main() -> list[int]:
        async with watched.watch.run("refunds", task_id="t-1") as run:
            return await asyncio.gather(
                *(
                    run.transfer_async(
                        "planner", "executor", handoff(handoff_id=f"{number}"), receiver=receiver, key=f"{number}"
                    )
                    for number in range(5)
                )
            )

    assert asyncio.run(main()) == [0, 1, 2, 3, 4]
    spans = watched.spans
    assert len(spans.traces) == 1
    assert [spans.parent(span) for span in spans.named("handoff executor")] == ["invoke_workflow refunds"] * 5
    assert [spans.parent(span) for span in spans.named("execute_tool find")] == ["invoke_workflow refunds"] * 5
    assert [spans.parent(spans.one(f"query {number}")) for number in range(5)] == ["execute_tool find"] * 5
    assert counted(watched.watch.registry, "runs_total", "runs_without_tool_success_total", "handoffs_total") == {
        'runs_total{outcome="completed",tools="required",workflow="refunds"}': 1,
        'handoffs_total{outcome="delivered",route="planner->executor",schema_version="1",source_agent="planner",'
        'target_agent="executor"}': 5,
    }


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_trace_is_one_when_receivers_and_repairs_start_spans(is_async: bool) -> None:
    """Whatever the host's functions do belongs to the run."""
    watched = _watched()
    tracer = watched.spans.provider.get_tracer("host")

    def work(name: str, result: Any = None) -> Any:
        with tracer.start_as_current_span(name):
            return result

    def act(run: Run) -> None:
        run.transfer(
            "planner",
            "executor",
            {},
            receiver=lambda _: work("receive"),
            repair=lambda _: work("repair", handoff()),
        )

    async def act_async(run: Run) -> None:
        await run.transfer_async(
            "planner",
            "executor",
            {},
            receiver=lambda _: work("receive"),
            repair=lambda _: work("repair", handoff()),
        )

    with watched.watch.run("refunds", task_id="t-1") as run:
        if is_async:
            context = contextvars.copy_context()
            context.run(asyncio.run, act_async(run))
        else:
            act(run)

    assert [watched.spans.parent(watched.spans.one(name)) for name in ("receive", "repair")] == [
        "invoke_workflow refunds"
    ] * 2
    assert len(watched.spans.traces) == 1


def test_trace_is_one_when_handoffs_nest_in_receivers() -> None:
    """A chain of agents is one story."""
    watched = _watched()

    def executor(_: dict[str, Any]) -> None:
        run.call("find").returned([])
        second = handoff("executor", "reviewer", handoff_id="h-2")
        run.transfer("executor", "reviewer", second, receiver=lambda _: run.call("find").returned([]))

    with watched.watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", handoff(), receiver=executor)

    assert len(watched.spans.traces) == 1


def test_trace_is_one_when_the_primitives_are_called_from_a_bare_thread() -> None:
    """Hooks lose their context; the run that they hold says where they belong."""
    watched = _watched()

    def hook(run: Run) -> None:
        run.ended(run.handoff("planner", "executor", handoff()))
        run.call("find").returned([])

    with watched.watch.run("refunds", task_id="t-1") as run:
        thread = threading.Thread(target=hook, args=(run,))
        thread.start()
        thread.join()

    for name in ("handoff executor", "execute_tool find"):
        assert watched.spans.parent(watched.spans.one(name)) == "invoke_workflow refunds"


def test_trace_is_one_when_a_run_is_used_without_a_block() -> None:
    """A framework that begins and finishes the run in different callbacks."""
    watched = _watched()

    run = watched.watch.run("refunds", task_id="t-1")
    run.ended(run.handoff("planner", "executor", handoff()))
    run.call("find").returned([])
    run.finish()

    for name in ("handoff executor", "execute_tool find"):
        assert watched.spans.parent(watched.spans.one(name)) == "invoke_workflow refunds"


def test_decorated_tool_belongs_to_the_run_when_its_thread_has_a_copy_of_the_context() -> None:
    """A pool that is handed the context keeps it."""
    watched = new_watched()
    find = _in_pool(watched, "find")

    with watched.watch.run("refunds", run_id="r-1"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(contextvars.copy_context().run, find, 1).result() == 1

    span = watched.spans.one("execute_tool find")
    assert watched.spans.parent(span) == "invoke_workflow refunds"
    assert attributes(span)["handoffwatch.run.id"] == "r-1"


def test_host_span_is_the_parent_when_the_host_has_one_open_in_the_run() -> None:
    """An agent's own span stands between the run and its handoff."""
    watched = _watched()
    tracer = watched.spans.provider.get_tracer("host")

    with watched.watch.run("refunds", task_id="t-1") as run:
        with tracer.start_as_current_span("invoke_agent planner"):
            run.handoff("planner", "executor", handoff())
        run.call("find").returned([])

    spans = watched.spans
    assert spans.parent(spans.one("handoff executor")) == "invoke_agent planner"
    assert spans.parent(spans.one("execute_tool find")) == "invoke_workflow refunds"


def _stream(watched: Watched) -> Iterator[int]:
    with watched.watch.run("refunds") as run:
        run.call("find").returned([])
        yield 1
        yield 2


async def _stream_async(watched: Watched) -> AsyncIterator[int]:
    async with watched.watch.run("refunds") as run:
        run.call("find").returned([])
        yield 1
        yield 2


def _cancelled_once(watched: Watched) -> None:
    assert counted(watched.watch.registry, "runs_total", "runs_in_progress") == {
        'runs_total{outcome="cancelled",tools="required",workflow="refunds"}': 1
    }
    assert watched.watch.current() is None


def test_run_ends_when_its_generator_is_closed_in_another_task() -> None:
    """A streaming response is closed by whoever notices that the client has gone."""
    watched = _watched()

    async def main() -> None:
        stream = _stream(watched)
        assert next(stream) == 1

        async def close() -> None:
            stream.close()

        await asyncio.create_task(close())

    asyncio.run(main())

    _cancelled_once(watched)


def test_no_run_is_current_when_the_run_of_a_stream_was_ended_elsewhere() -> None:
    """Where the stream began, what follows belongs to no run."""
    watched = _watched()

    async def main() -> None:
        stream = _stream(watched)
        next(stream)
        await asyncio.to_thread(contextvars.Context().run, stream.close)  # type: ignore[attr-defined]
        assert watched.watch.current() is None

    asyncio.run(main())

    _cancelled_once(watched)


def test_run_ends_when_its_generator_is_closed_in_a_bare_thread() -> None:
    """As in another task; the thread has no context of the run."""
    watched = _watched()

    def begin() -> Iterator[int]:
        stream = _stream(watched)
        next(stream)
        return stream

    stream = contextvars.copy_context().run(begin)
    thread = threading.Thread(target=stream.close)  # type: ignore[attr-defined]
    thread.start()
    thread.join()

    _cancelled_once(watched)


def test_run_ends_when_its_async_generator_is_closed_in_another_task() -> None:
    """As for a plain generator."""
    watched = _watched()

    async def main() -> None:
        stream = _stream_async(watched)
        assert await anext(stream) == 1

        async def close() -> None:
            await stream.aclose()  # type: ignore[attr-defined]

        await asyncio.create_task(close())

    asyncio.run(main())

    _cancelled_once(watched)


def test_run_ends_when_its_generator_is_dropped() -> None:
    """Nobody closes it; the garbage collector does."""
    watched = _watched()

    def begin() -> None:
        next(_stream(watched))

    contextvars.copy_context().run(begin)
    gc.collect()

    _cancelled_once(watched)


def test_outer_run_is_current_again_when_an_inner_generator_is_closed_elsewhere() -> None:
    """Closing a stream in another task leaves that task's own run alone."""
    watched = _watched()

    async def main() -> None:
        stream = _stream(watched)
        next(stream)

        async def close_within_a_run() -> None:
            with watched.watch.run("refunds", run_id="r-2") as run:
                stream.close()
                assert watched.watch.current() is run
                run.call("find").returned([])
            assert watched.watch.current() is not run

        await asyncio.create_task(close_within_a_run())

    asyncio.run(main())

    assert counted(watched.watch.registry, "runs_total", "runs_without_tool_success_total") == {
        'runs_total{outcome="cancelled",tools="required",workflow="refunds"}': 1,
        'runs_total{outcome="completed",tools="required",workflow="refunds"}': 1,
    }


def test_run_ends_when_its_block_is_left_in_another_context_by_an_exit_stack() -> None:
    """A framework that opens in one callback and closes in another."""
    watched = _watched()
    stack = contextlib.ExitStack()

    contextvars.copy_context().run(stack.enter_context, watched.watch.run("refunds"))
    contextvars.copy_context().run(stack.close)

    assert counted(watched.watch.registry, "runs_total", "runs_in_progress") == {
        'runs_total{outcome="completed",tools="required",workflow="refunds"}': 1
    }
