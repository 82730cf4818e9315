"""What a decision costs beside typed validation and a dump of the same handoff."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import Field

from handoffwatch import Clock, Contract, Watchdog
from handoffwatch.handoffs.routes import Routes
from handoffwatch.vocabulary import Criticality, Mode
from support.ratios import load_baselines, ratio, report

BYTES_MAX = 16 * 1024 * 1024


def _watchdog(baselines: ModuleType) -> Watchdog:
    """Return a watchdog whose contract asks for what the plain way asks for."""

    class Findings(Contract):
        result: str = Field(min_length=1)
        results: list[baselines.Hit] = Field(min_length=1)  # type: ignore[name-defined]

    routes = Routes()
    routes.add("executor->reviewer", contracts=[Findings], criticality=Criticality.ROUTINE, mode=Mode.ENFORCE)
    return Watchdog(routes, clock=Clock(), payload_bytes_max=BYTES_MAX)


def _damaged(raw: dict[str, Any]) -> dict[str, Any]:
    """Break fifteen values of ten items."""
    hits = raw["payload"]["results"]
    for hit in hits:
        hit["id"] = str(hit["id"])
    for hit in hits[:5]:
        hit["score"] = "0.5"
    return raw


@pytest.mark.bench
@pytest.mark.parametrize(("items", "calls", "limit"), [(10, 500, 1.4), (20_000, 1, 1.2)], ids=["small", "large"])
def test_inspect_stays_near_validation_when_the_handoff_is_allowed(
    shared_folder: Path, items: int, calls: int, limit: float
) -> None:
    """All rules together cost little more than typed validation and a dump."""
    baselines = load_baselines(shared_folder)
    watchdog, raw = _watchdog(baselines), baselines.handoff(items)
    assert watchdog.inspect(raw, expected_target="reviewer").reasons == []

    measured = ratio(
        lambda: watchdog.inspect(raw, expected_target="reviewer"),
        lambda: baselines.validate_and_dump(raw),
        calls=calls,
    )

    report(f"inspect, allowed, {items} items", measured, limit)
    assert measured <= limit


@pytest.mark.bench
def test_inspect_stays_near_validation_when_the_handoff_is_blocked(shared_folder: Path) -> None:
    """Naming fifteen findings costs at most three times validating the handoff without them."""
    baselines = load_baselines(shared_folder)
    watchdog, good, bad = _watchdog(baselines), baselines.handoff(10), _damaged(baselines.handoff(10))
    decision = watchdog.inspect(bad, expected_target="reviewer")
    assert (decision.reasons, len(decision.findings)) == (["type_mismatch"], 15)

    measured = ratio(
        lambda: watchdog.inspect(bad, expected_target="reviewer"), lambda: baselines.validate_and_dump(good)
    )

    report("inspect, blocked, 15 findings", measured, 3.0)
    assert measured <= 3.0
