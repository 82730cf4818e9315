"""Recorded runs are driven through the public API as if live; a real Prometheus answers what their files hold."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from handoffwatch import Watch
from handoffwatch.vocabulary import OTHER
from real_runs import agentrx, workbench
from real_runs.recorded import DataSet, declare, drive
from support.prometheus_server import PrometheusServer, prometheus, wait_until

COUNTING_SCRIPT = Path(__file__).parents[1] / "real_runs" / "count_from_files.py"
DATA_SETS = [pytest.param(agentrx, id="agentrx"), pytest.param(workbench, id="workbench")]

COUNTED_AGENTRX = {"runs": 100, "tool_calls": 793, "failed_calls": 34, "none_called": 0, "all_failed": 0}
COUNTED_WORKBENCH = {"runs": 2240, "tool_calls": 6358, "failed_calls": 1059, "none_called": 455, "all_failed": 92}


@pytest.mark.parametrize("data", DATA_SETS)
def test_prometheus_answers_equal_the_files_when_recorded_runs_are_driven_live(
    data: DataSet,
    shared_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Runs, calls and failed calls by tool, and runs without tool success equal an independent count of the files."""
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.ERROR, logger="handoffwatch")
    folder = shared_folder / "data" / data.FOLDER
    counted = _count_from_files(data.FOLDER, folder)
    watch = Watch()
    declare(watch, data)
    endpoint = watch.serve_metrics()
    try:
        with prometheus(tmp_path / "prometheus", _scraping(endpoint.port)) as server:
            server.wait_for_targets(1)
            at_start = _label_values(server)
            drive(watch, data, data.read_runs(folder))
            _wait_for_a_scrape_after(server, time.time())
            assert _answered(server) == {name: counted[name] for name in _QUERIES}
            assert _label_values(server) - at_start <= _OVERFLOWED, "recorded text became a label"
            made_up = counted["tool_calls_by_tool"].get(OTHER, 0)
            assert (server.number("sum(handoffwatch_label_overflow_total)") or 0) == made_up
            assert server.number("sum(handoffwatch_internal_errors_total)") == 0
    finally:
        endpoint.close()
        watch.close()


@pytest.mark.parametrize(
    ("data_set", "expected"),
    [("agentrx", COUNTED_AGENTRX), ("workbench", COUNTED_WORKBENCH)],
    ids=["agentrx", "workbench"],
)
def test_counting_script_finds_the_labelled_numbers_when_it_reads_the_files(
    data_set: str, expected: dict[str, int], shared_folder: Path
) -> None:
    """The script finds known totals, and wherever the labels file states one of them, both are equal."""
    counted = _count_from_files(data_set, shared_folder / "data" / data_set)
    found = {name: counted[name] for name in ("runs", "tool_calls", "failed_calls")}
    found |= counted["runs_without_tool_success"]
    assert found == expected
    stated = {name: number for name, number in counted["stated"].items() if name in found}
    assert len(stated) == 3
    assert stated.items() <= found.items()


def _count_from_files(data_set: str, folder: Path) -> dict[str, Any]:
    """Return what the separate script prints; -I keeps the project off its path."""
    command = [sys.executable, "-I", str(COUNTING_SCRIPT), data_set, str(folder)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return cast("dict[str, Any]", json.loads(printed))


def _scraping(port: int) -> dict[str, Any]:
    targets = [{"targets": [f"127.0.0.1:{port}"]}]
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{"job_name": "handoffwatch", "static_configs": targets}],
    }


def _wait_for_a_scrape_after(server: PrometheusServer, finished_s: float) -> None:
    expr = "min(timestamp(handoffwatch_runs_total))"
    wait_until(lambda: server.number(expr), lambda value: value is not None and value > finished_s, what=expr)


_QUERIES = {
    "runs": "sum(handoffwatch_runs_total)",
    "tool_calls": "sum(handoffwatch_tool_calls_total)",
    "failed_calls": "sum(handoffwatch_tool_calls_ended_total{outcome='failed'})",
    "tool_calls_by_tool": "handoffwatch_tool_calls_total > 0",
    "failed_calls_by_tool": "handoffwatch_tool_calls_ended_total{outcome='failed'} > 0",
    "runs_without_tool_success": "sum by (cause) (handoffwatch_runs_without_tool_success_total)",
}
_OVERFLOWED = {("__name__", "handoffwatch_label_overflow_total"), ("metric", "tool_calls_total"), ("label", "tool")}
_BROKEN_DOWN = {"tool_calls_by_tool": "tool", "failed_calls_by_tool": "tool", "runs_without_tool_success": "cause"}


def _answered(server: PrometheusServer) -> dict[str, Any]:
    """Return what Prometheus answers, in the shape that the script prints."""
    return {
        name: _by_label(server, expr, _BROKEN_DOWN[name]) if name in _BROKEN_DOWN else server.number(expr)
        for name, expr in _QUERIES.items()
    }


def _by_label(server: PrometheusServer, expr: str, label: str) -> dict[str, float]:
    return {dict(labels)[label]: value for labels, value in server.query(expr).items()}


def _label_values(server: PrometheusServer) -> set[tuple[str, str]]:
    """Return every pair of label and value that the product's series have."""
    return {pair for labels in server.query("{__name__=~'handoffwatch_.+'}") for pair in labels}
