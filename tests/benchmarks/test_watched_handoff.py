"""What a watched handoff costs beside the same work written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from prometheus_client import CollectorRegistry, Counter, Histogram
from pydantic import Field

from handoffwatch import Contract, Settings, Watch
from handoffwatch.handoffs.settings import HandoffSettings
from support.ratios import load_baselines, ratio, report


@pytest.mark.bench
@pytest.mark.parametrize(
    ("what", "sampler", "limit"),
    [("recorded span", ALWAYS_ON, 1.3), ("unsampled span", ALWAYS_OFF, 1.5)],
    ids=["recorded", "unsampled"],
)
def test_watched_handoff_stays_near_the_hand_written_one(
    shared_folder: Path, what: str, sampler: object, limit: float
) -> None:
    """Judging, recording and delivering a handoff of ten items costs little more than validating and recording it."""
    baselines = load_baselines(shared_folder)

    class Findings(Contract):
        result: str = Field(min_length=1)
        results: list[baselines.Hit] = Field(min_length=1)  # type: ignore[name-defined]

    provider = TracerProvider(sampler=sampler)  # type: ignore[arg-type]
    registry = CollectorRegistry()
    labels = ["route", "source_agent", "target_agent", "schema_version", "mode", "attempt"]
    plain = baselines.hand_written_handoff(
        provider.get_tracer("plain"),
        Counter("plain", "Plain.", labels, registry=registry),
        Histogram("plain_seconds", "Plain.", ["route"], registry=registry),
    )
    settings = Settings(handoffs=HandoffSettings(hops_max=1_000_000))
    watch = Watch(settings=settings, tracer_provider=provider)
    watch.workflow("bench", tools="none")
    watch.route("executor->reviewer", contract=Findings)
    run = watch.run("bench", task_id="t-1")
    raw = baselines.handoff(10)
    ids = iter([f"h-{number}" for number in range(20_000)])

    def ours() -> None:
        raw["handoff_id"] = next(ids)  # an id is accepted once
        step = run.handoff("executor", "reviewer", raw)
        run.arrived(step)
        run.ended(step)

    ours()
    measured = ratio(ours, lambda: plain(raw))
    report(f"watched handoff, {what}", measured, limit)
    assert measured <= limit
