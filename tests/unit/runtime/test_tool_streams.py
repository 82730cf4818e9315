"""Tools that answer in pieces: repeated before the first, never after it, and never a success when they broke off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from handoffwatch import NeedsHuman, ToolDown, ToolFailed
from support.telemetry import counted
from support.watched import Watched, new_watched

Pieces = Callable[[], Iterator[Any]]
Collect = Callable[[Watched, Pieces], list[Any]]


def _plain(watched: Watched, pieces: Pieces, **options: Any) -> list[Any]:
    decorated = watched.watch.tool("read", **{"safety": "safe", **options})(pieces)
    got: list[Any] = []
    with watched.watch.run("refunds", run_id="r-1"):
        try:
            got.extend(decorated())
        except ToolFailed as error:
            got.append(error)
    return got


def _async(watched: Watched, pieces: Pieces, **options: Any) -> list[Any]:
    async def stream() -> Any:
        for piece in pieces():
            await asyncio.sleep(0)
            yield piece

    decorated: Any = watched.watch.tool("read", **{"safety": "safe", **options})(stream)
    got: list[Any] = []

    async def main() -> None:
        async with watched.watch.run("refunds", run_id="r-1"):
            try:
                async for piece in decorated():
                    got.append(piece)
            except ToolFailed as error:
                got.append(error)

    asyncio.run(main())
    return got


both_ways = pytest.mark.parametrize("collect", [_plain, _async], ids=["plain", "async"])


def ended(watched: Watched) -> dict[str, float]:
    """Return the outcomes of calls and the codes of wire attempts."""
    samples = counted(watched.watch.registry, "tool_calls_ended_total", "tool_attempts_total")
    return {name.split('"')[1]: count for name, count in samples.items() if count}


@both_ways
@pytest.mark.parametrize("pieces", [[1, 2, 3], [], [[]], [None, 0, ""]])
def test_stream_gives_its_pieces_unchanged(collect: Any, pieces: list[Any]) -> None:
    """One call, one attempt, and an empty stream is an answer."""
    watched = new_watched()

    assert collect(watched, lambda: iter(pieces) if False else (yield from pieces)) == pieces

    assert ended(watched) == {"ok": 1}


@both_ways
def test_stream_is_begun_again_when_it_failed_before_its_first_piece(collect: Any) -> None:
    """BR-069: nobody has seen anything yet, so that it is an attempt as any other."""
    watched = new_watched()
    failures = iter([ConnectionRefusedError(), ConnectionRefusedError()])

    def pieces() -> Iterator[int]:
        for error in failures:
            raise error
        yield 1
        yield 2

    assert collect(watched, pieces) == [1, 2]
    assert len(watched.time.waits_s) == 2
    assert ended(watched) == {"ok": 1, "connection": 2}


@both_ways
@pytest.mark.parametrize(
    ("safety", "kind", "code"),
    [("safe", ToolDown, "connection"), ("idempotent", ToolDown, "connection"), ("unsafe", NeedsHuman, "connection")],
)
def test_stream_is_never_begun_again_after_its_first_piece(
    collect: Any, safety: str, kind: type[ToolFailed], code: str
) -> None:
    """BR-069: what was given stays, nothing is repeated, and the call is no success."""
    watched = new_watched()
    begun: list[int] = []

    def pieces() -> Iterator[int]:
        begun.append(1)
        yield 1
        yield 2
        raise ConnectionResetError

    got = collect(watched, pieces, safety=safety)

    assert (got[:2], type(got[2]), begun, watched.time.waits_s) == ([1, 2], kind, [1], [])
    assert isinstance(got[2].__cause__, ConnectionResetError)
    assert ended(watched) == {"failed": 1, code: 1}


@both_ways
def test_unsafe_stream_that_broke_off_is_ambiguous_whatever_broke_it(collect: Any) -> None:
    """It had begun, so that something was sent, also when the next request was refused."""
    watched = new_watched()

    def pieces() -> Iterator[int]:
        yield 1
        raise ConnectionRefusedError

    got = collect(watched, pieces, safety="unsafe")

    assert (got[0], type(got[1])) == (1, NeedsHuman)


@both_ways
def test_piece_that_says_it_failed_is_not_given_out(collect: Any) -> None:
    """Each piece is judged by the success rule; the first one may be repeated by it as a result is."""
    watched = new_watched()

    got = collect(watched, lambda: (yield from [{"text": "a"}, {"is_error": True}, {"text": "b"}]))

    assert (got[0], isinstance(got[1], ToolFailed), len(got)) == ({"text": "a"}, True, 2)
    assert ended(watched) == {"failed": 1, "result": 1}


@both_ways
def test_stream_says_its_text_where_the_tool_is_to(collect: Any) -> None:
    """The last piece is the fixed text for the model."""
    watched = new_watched()

    def pieces() -> Iterator[Any]:
        yield "a"
        raise PermissionError

    got = collect(watched, pieces, when_failed="text")

    assert got == ["a", "TOOL_FAILED: read returned an error. Do not guess. Tell the user this lookup failed."]


def test_stream_that_nobody_reads_to_its_end_is_cancelled_and_closed() -> None:
    """The function's own clean-up runs."""
    watched = new_watched()
    closed: list[str] = []

    @watched.watch.tool("read", safety="safe")
    def read() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append("closed")

    with watched.watch.run("refunds"):
        pieces: Any = read()
        assert next(pieces) == 1
        pieces.close()

    assert closed == ["closed"]
    assert ended(watched) == {"cancelled": 1}


def test_async_stream_that_nobody_reads_to_its_end_is_cancelled_and_closed() -> None:
    """As above; the host's task may be cancelled as well."""
    watched = new_watched()
    closed: list[str] = []

    @watched.watch.tool("read", safety="safe")
    async def read() -> Any:
        try:
            yield 1
            await asyncio.sleep(3_600)
            yield 2
        finally:
            closed.append("closed")

    async def main() -> None:
        async with watched.watch.run("refunds"):
            async for _ in read():  # type: ignore[attr-defined]
                break
            pieces: Any = read()
            assert await anext(pieces) == 1
            waiting = asyncio.create_task(anext(pieces))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(main())
    assert closed == ["closed", "closed"]
    assert ended(watched) == {"cancelled": 2}


def test_stream_returns_what_its_generator_returns() -> None:
    """`yield from` a watched generator sees the value."""
    watched = new_watched()

    @watched.watch.tool("read", safety="safe")
    def read() -> Any:
        yield 1
        return "all"

    def outer() -> Any:
        return (yield from read())

    with watched.watch.run("refunds"):
        pieces = outer()
        assert next(pieces) == 1
        with pytest.raises(StopIteration) as stopped:
            next(pieces)
    assert stopped.value.value == "all"
