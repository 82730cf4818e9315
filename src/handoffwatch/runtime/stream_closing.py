"""Closing the streams of tools: what a tool's own clean-up raises changes nothing that is known of its call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from handoffwatch.events import InternalErrorCaught
from handoffwatch.runtime.drivers import leave
from handoffwatch.runtime.step import Step
from handoffwatch.runtime.wanted_calls import Opened
from handoffwatch.vocabulary import Action, Component, Effect

if TYPE_CHECKING:
    from handoffwatch.runtime.watch import Watch


@contextmanager
def clean_up(watch: Watch) -> Iterator[None]:
    """Count what closing a stream raises: one of its pieces has said already how the call ended."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the tool's own clean-up may raise anything
        watch.recorder.emit(InternalErrorCaught(Component.TOOLS, type(error).__name__))


@contextmanager
def clean_up_after(opened: Opened, step: Step | None) -> Iterator[None]:
    """Close the stream of a call before the call is concluded, which an interruption of the closing leaves out.

    Args:
        opened: The call.
        step: How a refused piece ended it; None where the stream's reader did, who gets what the closing raises.
    """
    if step is None:
        yield
        return
    try:
        with clean_up(opened.call.watch):
            yield
    except BaseException:
        if step.action is Action.NEEDS_HUMAN:
            opened.call.read_back(Effect.UNKNOWN)  # nobody will look any more
        raise


def close_late(watch: Watch, pieces: Generator[Any, Any, Any] | AsyncGenerator[Any, Any]) -> None:
    """Close a stream that nobody reads and nobody waits for: at once, or in the loop that runs here."""
    if isinstance(pieces, AsyncGenerator):
        leave(asyncio.ensure_future(_close_async(watch, pieces)))
        return
    with clean_up(watch):
        pieces.close()


async def _close_async(watch: Watch, pieces: AsyncGenerator[Any, Any]) -> None:
    with clean_up(watch):
        await pieces.aclose()
