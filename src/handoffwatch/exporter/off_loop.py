"""Blocking work beside the event loop: bounded in number and in time, and never a reason for a process to stay."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class Busy(Exception):
    """As much work is going on as is allowed, or this piece took too long."""


class OffLoop:
    """Runs blocking functions in daemon threads.

    A thread that outlives its time keeps its slot until it ends, so that a hanging ledger cannot pile up threads; it
    is a daemon, so that it cannot hold the end of the process either.

    Args:
        slots: Most functions at the same time.
        wait_s_max: Seconds after which the caller is told that it took too long.
    """

    def __init__(self, *, slots: int, wait_s_max: float) -> None:
        self._slots = threading.BoundedSemaphore(slots)
        self._wait_s_max = wait_s_max

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, or raise what it raises.

        Raises:
            Busy: No slot is free, or it took longer than allowed.
        """
        if not self._slots.acquire(blocking=False):
            raise Busy("too many requests at the same time")
        done: Future[T] = Future()
        done.set_running_or_notify_cancel()

        def body() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
                done.set_exception(error)
            finally:
                self._slots.release()

        threading.Thread(target=body, name="handoffwatch-exporter-work", daemon=True).start()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(done), self._wait_s_max)
        except TimeoutError:
            raise Busy(f"no answer within {self._wait_s_max:g} s") from None
