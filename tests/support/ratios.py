"""Ratios against the frozen baselines: both ways in turn, in one process."""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

ROUNDS = 21


def load_baselines(shared_folder: Path) -> ModuleType:
    """Return the frozen module of plain ways."""
    spec = importlib.util.spec_from_file_location("frozen_baselines", shared_folder / "bench" / "baselines.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ratio(ours: Callable[[], object], plain: Callable[[], object], *, calls: int = 500) -> float:
    """Return how many times longer ours takes: the ratio of medians over 21 rounds of A B A B."""
    times: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(ROUNDS):
        times["plain"].append(_seconds(plain, calls))
        times["ours"].append(_seconds(ours, calls))
    return statistics.median(times["ours"]) / statistics.median(times["plain"])


def growth(longer: Callable[[], object], shorter: Callable[[], object]) -> float:
    """Return how many times more processor time the longer input takes: the ratio of the least of 21 rounds each."""
    times: dict[str, list[float]] = {"longer": [], "shorter": []}
    for _ in range(ROUNDS):
        times["shorter"].append(_processor_seconds(shorter))
        times["longer"].append(_processor_seconds(longer))
    return min(times["longer"]) / min(times["shorter"])


def report(what: str, measured: float, limit: float) -> None:
    """Print one line of the table of ratios."""
    print(f"\n{what:<58} {measured:5.2f} times the plain way (at most {limit})")


def _seconds(function: Callable[[], object], calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        function()
    return time.perf_counter() - started


def _processor_seconds(function: Callable[[], object]) -> float:
    started = time.thread_time()
    function()
    return time.thread_time() - started
