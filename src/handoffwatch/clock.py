"""Time and chance as one parameter, owned by `Watch`, so that every test can hold them still."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


async def _sleep_async(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Clock:
    """The only source of time, waiting and randomness in the product.

    Attributes:
        wall_s: Unix time in seconds. It may step backwards: only for times that are stored or shown.
        monotonic_s: Seconds from an arbitrary start. It never steps back: for durations and deadlines.
        sleep: Waits the given seconds, blocking the calling thread.
        sleep_async: Waits the given seconds without blocking the event loop.
        random: A float, 0.0 <= x < 1.0.
    """

    wall_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep
    sleep_async: Callable[[float], Awaitable[None]] = _sleep_async
    random: Callable[[], float] = random.random
