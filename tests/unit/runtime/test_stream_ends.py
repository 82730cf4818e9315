"""How the stream of a tool ends that something else than its last piece ends, and what its reader says to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest

from handoffwatch import NeedsHuman, Settings, ToolDown, Watch
from handoffwatch.tools.settings import ToolSettings
from handoffwatch.vocabulary import FailureClass
from support.telemetry import counted
from support.watched import Watched, new_watched
from unit.runtime.test_tool_runs import Status, wait_for
from unit.runtime.test_tool_streams import ended


class GraphBubbleUp(Exception):
    """Stands for what a framework raises to put a call off; its package tells it apart."""


GraphBubbleUp.__module__ = "langgraph.errors"


class ModelRetry(Exception):
    """Stands for what a framework's tool raises to ask the model again."""


ModelRetry.__module__ = "pydantic_ai.exceptions"


def read(watched: Watched, function: Any, **options: Any) -> list[Any]:
    """Return the pieces of a decorated generator or async generator function, and what it raised at the end."""
    decorated = watched.watch.tool("read", **{"safety": "safe", **options})(function)
    got: list[Any] = []

    async def collected(pieces: Any) -> None:
        async for piece in pieces:
            got.append(piece)

    with watched.watch.run("refunds"):
        try:
            pieces = decorated()
            if hasattr(pieces, "__anext__"):
                asyncio.run(collected(pieces))
            else:
                for piece in pieces:
                    got.append(piece)
        except BaseException as error:  # noqa: BLE001 - it is what the test looks at
            got.append(error)
    return got


def plain_stream(error: BaseException, closed: list[str]) -> Any:
    """Return a generator function that gives one piece and raises."""

    def stream() -> Generator[int]:
        try:
            yield 1
            raise error
        finally:
            closed.append("closed")

    return stream


def async_stream(error: BaseException, closed: list[str]) -> Any:
    """Return an async generator function that gives one piece and raises."""

    async def stream() -> AsyncGenerator[int]:
        try:
            yield 1
            raise error
        finally:
            closed.append("closed")

    return stream


both = pytest.mark.parametrize("made", [plain_stream, async_stream], ids=["plain", "async"])


@both
@pytest.mark.parametrize(
    ("error", "outcome"),
    [(KeyboardInterrupt(), "cancelled"), (SystemExit(3), "cancelled"), (GraphBubbleUp("ask"), "suspended"),
     (ModelRetry("another"), "failed")],
    ids=["interrupt", "exit", "control flow", "asks the model"],
)  # fmt: skip
def test_what_is_raised_for_the_program_goes_on_unchanged(made: Any, error: BaseException, outcome: str) -> None:
    """It ends the call, is never turned into a failed tool, and the tool's own clean-up runs."""
    watched = new_watched()
    closed: list[str] = []
    assert read(watched, made(error, closed)) == [1, error]
    assert closed == ["closed"]
    assert ended(watched)[outcome] == 1


@both
@pytest.mark.parametrize(("safety", "failure_class"), [("safe", "fatal"), ("unsafe", "ambiguous")])
def test_failed_call_within_a_stream_goes_on_unchanged(made: Any, safety: str, failure_class: str) -> None:
    """As within any other tool: what an unsafe one did beside it is not known."""
    watched = new_watched()
    error = ToolDown("tool look_up: the call failed", text="TOOL_FAILED: look_up returned 401.")
    assert read(watched, made(error, []), safety=safety) == [1, error]
    (failed,) = [
        name for name, count in counted(watched.watch.registry, "tool_failures_total").items() if count
    ]  # fmt: skip
    assert f'failure_class="{failure_class}"' in failed


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_refused_pieces_leave_no_stream_open(is_async: bool) -> None:
    """Neither the stream whose first piece is repeated, nor the one that a later piece ends."""
    watched = new_watched()
    began: list[int] = []
    closed: list[int] = []

    def plain() -> Generator[str]:
        began.append(1)
        try:
            yield "busy" if len(began) == 1 else "good"
            yield "broken"
        finally:
            closed.append(1)

    async def coroutine() -> AsyncGenerator[str]:
        began.append(1)
        try:
            yield "busy" if len(began) == 1 else "good"
            yield "broken"
        finally:
            closed.append(1)

    def rule(piece: object) -> Any:
        return {"busy": FailureClass.RETRYABLE, "broken": FailureClass.FATAL}.get(str(piece), True)

    good, failure = read(watched, coroutine if is_async else plain, success=rule)
    assert good == "good"
    assert isinstance(failure, ToolDown)
    assert (len(began), len(closed)) == (2, 2)


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_two_layers_around_one_stream_count_once(is_async: bool) -> None:
    """The outer one watches; the pieces are the same."""
    watched = new_watched()
    tool = watched.watch.tool("read", safety="safe")

    @tool
    def plain() -> Generator[int, None, str]:
        yield from (1, 2)
        return "end"

    @tool
    async def coroutine() -> AsyncGenerator[int]:
        for number in (1, 2):
            yield number

    got: list[Any] = []

    def delegating() -> Generator[int]:
        got.append((yield from tool(plain)()))

    async def main() -> None:
        got.extend([piece async for piece in tool(coroutine)()])

    with watched.watch.run("refunds") as run:
        if is_async:
            asyncio.run(main())
        else:
            got.extend(delegating())
    assert sorted(map(str, got)) == (["1", "2"] if is_async else ["1", "2", "end"])
    assert (run.tools.succeeded, ended(watched)["ok"]) == (1, 1)
    assert counted(watched.watch.registry, "tool_calls_total")['tool_calls_total{tool="read"}'] == 1


def test_tool_gets_what_its_reader_sends_and_throws() -> None:
    """Its answers are what the reader gets; what it does not catch goes back, and the call is cancelled."""
    watched = new_watched()

    @watched.watch.tool("read", safety="safe")
    def plain() -> Generator[str, str]:
        answer = "none"
        while True:
            try:
                answer = f"heard {(yield answer)}"
            except ValueError as error:
                answer = f"caught {error}"

    @watched.watch.tool("listen", safety="safe")
    async def coroutine() -> AsyncGenerator[str, str]:
        answer = "none"
        while True:
            try:
                answer = f"heard {(yield answer)}"
            except ValueError as error:
                answer = f"caught {error}"

    with watched.watch.run("refunds"):
        stream = plain()
        assert [next(stream), stream.send("a"), stream.throw(ValueError("b")), stream.send("c")] == [
            "none", "heard a", "caught b", "heard c",
        ]  # fmt: skip
        thrown = KeyError("mine")
        with pytest.raises(KeyError) as back:
            stream.throw(thrown)
        assert back.value is thrown

        async def main() -> None:
            lines = coroutine()
            assert [await anext(lines), await lines.asend("a"), await lines.athrow(ValueError("b"))] == [
                "none", "heard a", "caught b",
            ]  # fmt: skip
            with pytest.raises(KeyError) as back:
                await lines.athrow(thrown)
            assert back.value is thrown

        asyncio.run(main())
    outcomes = counted(watched.watch.registry, "tool_calls_ended_total")
    assert {name: count for name, count in outcomes.items() if count} == {
        'tool_calls_ended_total{outcome="cancelled",tool="read"}': 1,
        'tool_calls_ended_total{outcome="cancelled",tool="listen"}': 1,
    }


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize(("first", "outcome"), [({"ok": True}, "ok"), ({"ok": False}, "failed")])
def test_late_stream_is_judged_by_its_first_piece_and_closed(first: Any, outcome: str, is_async: bool) -> None:
    """Nobody reads it any more."""
    may_go_on, closed = threading.Event(), threading.Event()
    watch = Watch(settings=Settings(tools=ToolSettings(grace_s=0.0)))
    watch.workflow("refunds")

    def plain() -> Generator[Any]:
        try:
            may_go_on.wait(30)
            yield first
        finally:
            closed.set()

    async def coroutine() -> AsyncGenerator[Any]:
        try:
            await asyncio.to_thread(may_go_on.wait, 30)
            yield first
        finally:
            closed.set()

    tool: Any = watch.tool("read", safety="unsafe", limit_s=0.02)(coroutine if is_async else plain)

    async def main() -> None:
        with pytest.raises(NeedsHuman):
            await anext(tool())
        may_go_on.set()
        assert await asyncio.to_thread(closed.wait, 30)

    with watch.run("refunds") as run:
        if is_async:
            asyncio.run(main())
        else:
            with pytest.raises(NeedsHuman):
                next(tool())
            may_go_on.set()
            assert closed.wait(30)
        run.store()
    assert wait_for(lambda: watch.ledger.cases()[0].facts["late"]) == outcome


def test_stream_that_failed_says_why_in_its_cause() -> None:
    """The raw error is for the log, the text for the model."""
    watched = new_watched()
    error = Status(401)
    got = read(watched, plain_stream(error, []))
    assert isinstance(got[-1], ToolDown)
    assert got[-1].__cause__ is error
