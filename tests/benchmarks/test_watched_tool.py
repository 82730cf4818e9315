"""What a watched tool costs beside the same function in tenacity's own wrapper."""

from __future__ import annotations

import asyncio

import pytest
import tenacity
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from handoffwatch import Settings, Watch
from support.ratios import ratio, report

LIMIT = 1.6
_ORDER = {"order_id": "4417", "status": "sent", "items": [{"sku": "a", "count": 2}]}
_PLAIN = tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_random_exponential(multiplier=2))


def _watch() -> Watch:
    provider = TracerProvider(sampler=ALWAYS_OFF)
    watch = Watch(settings=Settings(), tracer_provider=provider)
    watch.workflow("bench")
    return watch


@pytest.mark.bench
def test_watched_function_stays_near_tenacity() -> None:
    """One call that works: judged, counted and timed, its span unsampled."""
    watch = _watch()

    def find_order(order_id: str) -> dict[str, object]:
        return _ORDER

    watched, plain = watch.tool("find_order", safety="safe")(find_order), _PLAIN(find_order)
    with watch.run("bench"):
        measured = ratio(lambda: watched("4417"), lambda: plain("4417"), calls=2_000)
    report("watched tool, success", measured, LIMIT)
    assert measured <= LIMIT


@pytest.mark.bench
def test_watched_coroutine_function_stays_near_tenacity() -> None:
    """The same in async code, a hundred calls in one loop each time."""
    watch = _watch()

    async def find_order(order_id: str) -> dict[str, object]:
        return _ORDER

    watched, plain = watch.tool("find_order", safety="safe")(find_order), _PLAIN(find_order)

    async def hundred(function: object) -> None:
        for _ in range(100):
            await function("4417")  # type: ignore[operator]

    with watch.run("bench"):
        measured = ratio(lambda: asyncio.run(hundred(watched)), lambda: asyncio.run(hundred(plain)), calls=20)
    report("watched async tool, success", measured, LIMIT)
    assert measured <= LIMIT
