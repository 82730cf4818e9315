"""The guide to shadow mode, tried: one sender before and after the one line, seen through the guide's own queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handoffwatch import Contract, HandoffBlocked, Settings, Watch
from handoffwatch.runtime.step import Step
from support.prometheus_server import PrometheusServer, prometheus
from support.requirements import ROOT

GUIDE = re.sub(r"^```.*?^```$", "", (ROOT / "docs/shadow-mode.md").read_text(), flags=re.DOTALL | re.MULTILINE)
QUERIES = [block.strip() for block in re.findall(r"(?:^    .+\n)+", GUIDE, re.MULTILINE)]
GOOD, REPAIRED, HOPELESS = 6, 3, 1
MODES = ("shadow", "enforce")


class Findings(Contract, version="1", confidence_min=0.5):
    """What the reviewer needs."""

    result: str
    confidence: float = 1.0


def open_watch(mode: str) -> Watch:
    """Return a watch whose code says shadow; the settings have the last word, as in the file."""
    lines = {"routes": {"executor->reviewer": {"mode": mode}}} if mode == "enforce" else {}
    watch = Watch(
        settings=Settings.model_validate({"handoffs": {"repairs_max": 1, "repairs_per_run_max": 100, **lines}})
    )
    watch.workflow("refunds", tools="none")
    watch.route("executor->reviewer", contract=Findings, mode="shadow")
    return watch


def send(watch: Watch) -> None:
    """Hand over the same work: good, to be repaired, hopeless, and one of low confidence."""

    def handoff(number: int, **payload: Any) -> dict[str, Any]:
        return {"handoff_id": f"h-{number}", "task_id": f"t-{number}", "source_agent": "executor",
                "target_agent": "reviewer", "task_type": "refund", "status": "completed", "schema_version": "1",
                "payload": payload}  # fmt: skip

    kinds = [*["good"] * GOOD, *["repaired"] * REPAIRED, *["hopeless"] * HOPELESS]
    with watch.run("refunds") as run:
        run.transfer("executor", "reviewer", handoff(99, result="done", confidence=0.2), receiver=dict)
        for number, kind in enumerate(kinds):

            def again(step: Step, number: int = number, kind: str = kind) -> dict[str, Any]:
                return handoff(number, result="done" if kind == "repaired" else " ")

            first = handoff(number, result="done" if kind == "good" else " ")
            try:
                run.transfer("executor", "reviewer", first, receiver=dict, repair=again)
            except HandoffBlocked:
                assert kind == "hopeless"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A Prometheus that has seen the same work in both modes, from before its first handoff on."""
    watches = {mode: open_watch(mode) for mode in MODES}
    servers = {mode: watch.serve_metrics() for mode, watch in watches.items()}
    jobs = [
        {"job_name": f"handoffwatch-{mode}", "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}]}
        for mode, server in servers.items()
    ]
    scraping = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    folder: Path = tmp_path_factory.mktemp("prometheus")
    try:
        with prometheus(folder, {"global": scraping, "scrape_configs": jobs}) as server:
            server.wait_for_targets(len(MODES))
            for watch in watches.values():
                send(watch)
            inspected = "sum(handoffwatch_handoff_inspections_total)"
            server.query_until(inspected, lambda value: value == 2 * (GOOD + REPAIRED + HOPELESS + 1) + REPAIRED + 1)
            yield server
    finally:
        for each in servers.values():
            each.close()
        for watch in watches.values():
            watch.close()


def ask(server: PrometheusServer, part: str, **labels: str) -> list[dict[str, str]]:
    """Return the label sets that the guide's one query with this part gives, those with these labels."""
    return [dict(found) for found in _samples(server, part) if labels.items() <= dict(found).items()]


def _samples(server: PrometheusServer, part: str) -> dict[tuple[tuple[str, str], ...], float]:
    (query,) = [query for query in QUERIES if part in query]
    return server.query(re.sub(r"\[\d+[dm]\]", "[1m]", query))


@pytest.mark.parametrize("query", QUERIES)
def test_guide_query_is_answered_when_asked(seen: PrometheusServer, query: str) -> None:
    """Prometheus takes every query of the guide."""
    seen.query(query)


def test_shadow_shows_the_blocked_share_when_work_was_inspected(seen: PrometheusServer) -> None:
    """Four of eleven would have been blocked."""
    samples = _samples(seen, 'handoff_blocks_total{mode="shadow"}')
    assert samples == {(("route", "executor->reviewer"),): pytest.approx(4 / 11)}


def test_shadow_names_reasons_and_reactions_when_work_was_inspected(seen: PrometheusServer) -> None:
    """What would block and what would only be said stand apart."""
    assert [found["reason"] for found in ask(seen, 'mode="shadow", reaction="block"')] == ["missing_result"]
    assert [(found["reason"], found["reaction"]) for found in ask(seen, "hold|flag|warn")] == [
        ("low_confidence", "flag")
    ]
    assert ask(seen, "check_failed") == []
    assert [found["route"] for found in ask(seen, "route_info")] == ["executor->reviewer"]


def test_share_of_first_attempts_stays_when_the_mode_changes(seen: PrometheusServer) -> None:
    """The comparison of the guide: the same work gives the same share before and after."""
    samples = _samples(seen, 'handoff_blocks_total{attempt="first"}')
    shares = {dict(found)["mode"]: share for found, share in samples.items()}
    assert shares == {mode: pytest.approx(4 / 11) for mode in MODES}


def test_enforce_shows_repairs_and_stops_when_the_mode_changed(seen: PrometheusServer) -> None:
    """Shadow repairs and stops nothing; enforce repairs what can be repaired and stops the rest."""
    results = {dict(found)["result"] for found in _samples(seen, "handoff_repairs_total")}
    assert results == {"repaired", "exhausted"}
    outcomes = {dict(found)["outcome"] for found in _samples(seen, "handoffs_total")}
    assert outcomes == {"delivered", "stopped"}
    assert ask(seen, 'handoff_findings_total{reaction="block"}', mode="enforce", reason="missing_result")
