"""Blocking work beside the event loop, bounded in number and time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from handoffwatch.exporter.off_loop import Busy, OffLoop


def test_off_loop_returns_what_the_work_returns_when_it_ends_in_time() -> None:
    """The work runs in another thread, and its result comes back."""
    off_loop = OffLoop(slots=1, wait_s_max=10)

    ran_in = asyncio.run(off_loop.run(threading.current_thread))

    assert ran_in is not threading.current_thread()
    assert ran_in.daemon


def test_off_loop_raises_what_the_work_raises_when_it_fails() -> None:
    """A fault reaches the caller, and the slot is free again."""
    off_loop = OffLoop(slots=1, wait_s_max=10)

    with pytest.raises(KeyError, match="gone"):
        asyncio.run(off_loop.run(lambda: {}["gone"]))


def test_off_loop_refuses_when_no_slot_is_free() -> None:
    """Work beyond the slots is refused at once, and accepted again when a slot is free."""

    async def main() -> int:
        off_loop = OffLoop(slots=1, wait_s_max=10)
        started, release = threading.Event(), threading.Event()

        def wait() -> bool:
            started.set()
            return release.wait(10)

        first = asyncio.create_task(off_loop.run(wait))
        assert await asyncio.to_thread(started.wait, 10)
        with pytest.raises(Busy, match="too many requests at the same time"):
            await off_loop.run(lambda: 2)
        release.set()
        assert await first
        while True:
            try:
                return await off_loop.run(lambda: 3)
            except Busy:
                await asyncio.sleep(0)

    assert asyncio.run(main()) == 3


def test_off_loop_keeps_the_slot_when_the_work_takes_too_long() -> None:
    """The caller is told in time, and hanging work cannot pile up."""

    async def main(release: threading.Event) -> None:
        off_loop = OffLoop(slots=1, wait_s_max=0.01)
        with pytest.raises(Busy, match=r"no answer within 0\.01 s"):
            await off_loop.run(lambda: release.wait(10))
        with pytest.raises(Busy, match="too many requests at the same time"):
            await off_loop.run(lambda: True)

    release = threading.Event()
    try:
        asyncio.run(main(release))
    finally:
        release.set()
