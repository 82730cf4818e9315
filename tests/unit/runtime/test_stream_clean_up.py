"""What the clean-up of a tool's own stream can do to its call: nothing; and what goes through two layers of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from handoffwatch import NeedsHuman, RecordVerifier, Settings, ToolDown, Watch
from handoffwatch.ledger.settings import LedgerSettings
from handoffwatch.tools.settings import ToolSettings
from support.telemetry import counted
from support.watched import new_watched
from unit.runtime.test_stream_ends import read
from unit.runtime.test_tool_runs import wait_for
from unit.runtime.test_tool_streams import ended

REFUSED = {"is_error": True}
both_ways = pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])


def stream(is_async: bool, pieces: list[Any], clean_up: Callable[[], object]) -> Any:
    """Return a generator function, or an async one, that gives pieces and then cleans up."""

    def plain() -> Generator[Any]:
        try:
            yield from pieces
        finally:
            clean_up()

    async def coroutine() -> AsyncGenerator[Any]:
        try:
            for piece in pieces:
                yield piece
        finally:
            clean_up()

    return coroutine if is_async else plain


def raising(error: BaseException, times: list[int] | None = None) -> Callable[[], object]:
    """Return a clean-up that raises, and counts how often it was called."""

    def clean_up() -> None:
        if times is not None:
            times.append(1)
        raise error

    return clean_up


def faults(watch: Watch) -> dict[str, float]:
    """Return the faults that were caught."""
    return {name: count for name, count in counted(watch.registry, "internal_errors_total").items() if count}


@both_ways
def test_unsafe_stream_is_not_repeated_when_its_clean_up_says_that_nothing_was_sent(is_async: bool) -> None:
    """Its first piece said that it failed, so that nobody knows; what the clean-up raises is counted alone."""
    watched = new_watched()
    times: list[int] = []

    (failed,) = read(
        watched, stream(is_async, [REFUSED], raising(ConnectionRefusedError(), times)), safety="unsafe"
    )  # fmt: skip

    assert (type(failed), times) == (NeedsHuman, [1])
    assert ended(watched) == {"failed": 1, "result": 1}
    assert sum(faults(watched.watch).values()) == 1


@both_ways
def test_refused_piece_is_what_its_reader_hears_of_when_the_clean_up_raises_too(is_async: bool) -> None:
    """A later piece failed; also a tool that says its text does so."""
    watched = new_watched()
    function = stream(is_async, [1, REFUSED], raising(ValueError("clean-up")))

    one, text = read(watched, function, when_failed="text")

    assert (one, text.startswith("TOOL_REJECTED: read ")) == (1, True)
    assert ended(watched) == {"failed": 1, "result": 1}
    assert sum(faults(watched.watch).values()) == 1


@both_ways
def test_call_that_would_be_read_back_has_a_case_when_its_clean_up_is_interrupted(is_async: bool) -> None:
    """Nobody looked into the store, so that a person must."""
    watch = Watch(settings=Settings(ledger=LedgerSettings(url=f"sqlite:///{Path.cwd() / 'ledger.db'}")))
    watch.operation("refund", key="order_id", verifier=RecordVerifier(lambda key: None))
    watch.workflow("refunds", operations=["refund"])
    inner = stream(is_async, [1, REFUSED], raising(KeyboardInterrupt()))

    def plain(order_id: str) -> Generator[Any]:
        yield from inner()

    async def coroutine(order_id: str) -> AsyncGenerator[Any]:
        pieces = inner()
        try:
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()

    tool: Any = watch.tool("issue", safety="unsafe", operation="refund")(coroutine if is_async else plain)

    async def main() -> None:
        async for _ in tool("4711"):
            pass

    with watch.run("refunds"), pytest.raises(KeyboardInterrupt):
        asyncio.run(main()) if is_async else list(tool("4711"))

    assert counted(watch.registry, "tool_calls_ended_total")['tool_calls_ended_total{outcome="failed",tool="issue"}']
    assert [case.kind for case in watch.ledger.cases()] == ["ambiguous"]


@both_ways
def test_call_is_cancelled_when_its_reader_goes_and_the_clean_up_raises(is_async: bool) -> None:
    """The reader gets the error, as from a stream that nobody watches."""
    watched = new_watched()
    error = ValueError("clean-up")
    tool: Any = watched.watch.tool("read", safety="safe")(stream(is_async, [1, 2], raising(error)))

    async def main() -> None:
        pieces = tool()
        await anext(pieces)
        await pieces.aclose()

    def main_plain() -> None:
        pieces = tool()
        next(pieces)
        pieces.close()

    with watched.watch.run("refunds"), pytest.raises(ValueError, match="clean-up") as raised:
        asyncio.run(main()) if is_async else main_plain()

    assert raised.value is error
    assert ended(watched) == {"cancelled": 1}


@both_ways
@pytest.mark.parametrize(("pieces", "count"), [([], 0), ([{"ok": True}], 1)], ids=["empty", "one piece"])
def test_late_stream_is_judged_once_and_its_clean_up_counted(pieces: list[Any], count: int, is_async: bool) -> None:
    """An empty one has no piece that could fail, late as well as in time."""
    may_go_on, closed = threading.Event(), threading.Event()
    watch = Watch(settings=Settings(tools=ToolSettings(grace_s=0.0)))
    watch.workflow("refunds")
    judged: list[Any] = []

    def clean_up() -> None:
        closed.set()
        if pieces:
            raise ValueError

    inner = stream(is_async, pieces, clean_up)

    def plain() -> Generator[Any]:
        may_go_on.wait(30)
        yield from inner()

    async def coroutine() -> AsyncGenerator[Any]:
        await asyncio.to_thread(may_go_on.wait, 30)
        given = inner()
        try:
            async for piece in given:
                yield piece
        finally:
            await given.aclose()

    def rule(piece: Any) -> bool:
        judged.append(piece)
        return bool(piece["ok"])

    tool: Any = watch.tool("read", safety="unsafe", limit_s=0.02, success=rule)(coroutine if is_async else plain)

    async def main() -> None:
        with pytest.raises(NeedsHuman):
            await anext(tool())
        may_go_on.set()
        assert await asyncio.to_thread(closed.wait, 30)
        await asyncio.to_thread(wait_for, lambda: sum(faults(watch).values()) == count)

    with watch.run("refunds") as run:
        if is_async:
            asyncio.run(main())
        else:
            with pytest.raises(NeedsHuman):
                next(tool())
            may_go_on.set()
            assert closed.wait(30)
        run.store()

    assert wait_for(lambda: watch.ledger.cases()[0].facts["late"]) == "ok"
    assert wait_for(lambda: sum(faults(watch).values()) == count)
    assert judged == pieces


def test_inner_layer_gets_what_the_reader_of_the_outer_one_sends_and_throws() -> None:
    """An async generator cannot hand itself over as `yield from` does, and does so all the same."""
    watched = new_watched()
    tool = watched.watch.tool("read", safety="safe")

    @tool
    async def listen() -> AsyncGenerator[str, str]:
        answer = "none"
        while answer != "heard end":
            try:
                answer = f"heard {(yield answer)}"
            except ValueError as error:
                answer = f"caught {error}"

    async def main() -> None:
        lines = tool(listen)()
        assert [await anext(lines), await lines.asend("a"), await lines.athrow(ValueError("b"))] == [
            "none", "heard a", "caught b",
        ]  # fmt: skip
        with pytest.raises(StopAsyncIteration):
            await lines.asend("end")

    with watched.watch.run("refunds"):
        asyncio.run(main())
    assert ended(watched) == {"ok": 1}


@both_ways
def test_failure_that_a_reader_throws_goes_back_when_the_tool_says_its_text(is_async: bool) -> None:
    """It is the reader's own, of another call."""
    watched = new_watched()
    tool: Any = watched.watch.tool("read", safety="safe", when_failed="text")(stream(is_async, [1, 2], lambda: None))
    thrown = ToolDown("tool look_up: the call failed", text="TOOL_FAILED: look_up returned 401.")

    async def main() -> None:
        pieces = tool()
        await anext(pieces)
        await pieces.athrow(thrown)

    def main_plain() -> None:
        pieces = tool()
        next(pieces)
        pieces.throw(thrown)

    with watched.watch.run("refunds"), pytest.raises(ToolDown) as raised:
        asyncio.run(main()) if is_async else main_plain()

    assert raised.value is thrown
    assert ended(watched) == {"cancelled": 1}
