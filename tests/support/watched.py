"""A watched program in small: two routes, one workflow, and a clock that a test moves by hand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from handoffwatch import Clock, Contract, Settings, Watch
from handoffwatch.handoffs.settings import HandoffSettings
from support.telemetry import Spans


class Findings(Contract, version="1"):
    """What a receiver needs."""

    result: str
    amount_cents: int = 0


@dataclass
class Time:
    """Time that passes only by waiting; chance that always gives the same number.

    Attributes:
        now_s: The time of both clocks.
        chance: What the random source gives.
        waits_s: Every wait that was asked for.
    """

    now_s: float = 1_000_000.0
    chance: float = 0.5
    waits_s: list[float] = field(default_factory=list)

    def clock(self) -> Clock:
        """Return the product's clock on this time."""
        return Clock(
            wall_s=lambda: self.now_s,
            monotonic_s=lambda: self.now_s,
            sleep=self._wait,
            sleep_async=self._wait_async,
            random=lambda: self.chance,
        )

    def _wait(self, seconds: float) -> None:
        self.waits_s.append(seconds)
        self.now_s += seconds

    async def _wait_async(self, seconds: float) -> None:
        self._wait(seconds)
        await asyncio.sleep(0)


@dataclass
class Watched:
    """A watch with its time and its spans."""

    watch: Watch
    time: Time
    spans: Spans


def new_watched(*, spans: Spans | None = None, settings: Settings | None = None, mode: str = "enforce") -> Watched:
    """Return a watch of the workflow `refunds` with the routes planner->executor and executor->reviewer."""
    time, spans = Time(), spans or Spans()
    watch = Watch(settings=settings or Settings(), clock=time.clock(), tracer_provider=spans.provider)
    watch.workflow("refunds")
    watch.route("planner->executor", contract=Findings, criticality="critical", mode=mode)
    watch.route("executor->reviewer", contract=Findings, mode=mode)
    return Watched(watch, time, spans)


def repairs(*, each: int = 2, run: int = 10) -> Settings:
    """Return settings that allow this many repairs of one handoff, and of all of a run."""
    return Settings(handoffs=HandoffSettings(repairs_max=each, repairs_per_run_max=run))


def handoff(source: str = "planner", target: str = "executor", **changes: Any) -> dict[str, Any]:
    """Return a good handoff of task t-1, with `changes` to its envelope."""
    good = {
        "handoff_id": "h-1",
        "task_id": "t-1",
        "source_agent": source,
        "target_agent": target,
        "task_type": "refund",
        "status": "ready",
        "schema_version": "1",
        "payload": {"result": "refundable", "amount_cents": 3800},
        "metadata": {},
    }
    return good | changes


def bad_handoff(source: str = "planner", target: str = "executor", **changes: Any) -> dict[str, Any]:
    """Return a handoff whose amount is a text."""
    return handoff(source, target, **{"payload": {"result": "refundable", "amount_cents": "3800"}} | changes)
