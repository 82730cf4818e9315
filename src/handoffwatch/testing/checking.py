"""Checking a folder of cases in one call, and saying in words how it went."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from handoffwatch.testing.case_files import read_cases
from handoffwatch.testing.cases import CaseResult

if TYPE_CHECKING:
    from handoffwatch.testing.registry import Registry


def summary(results: Iterable[CaseResult]) -> str:
    """Return how many cases were judged as expected, in words."""
    counted = [(result.is_as_expected, result.case.expected is None) for result in results]
    total = len(counted)
    wrong = sum(not right and not new for right, new in counted)
    new = sum(new for _, new in counted)
    parts = [f"{wrong} changed"] * bool(wrong) + [f"{new} without an expectation"] * bool(new)
    noun = "case" if total == 1 else "cases"
    return f"{total} {noun}: " + (f"{total - wrong - new} as expected, {', '.join(parts)}" if parts else "as expected")


def check_cases(registry: Registry, folder: str | Path) -> None:
    """Do nothing when every case of a folder is judged as expected.

    For tests in any framework; with pytest, `handoffwatch.testing.fixtures` makes a test of each case.

    Args:
        registry: A Watch or a Watchdog.
        folder: A folder of case files, or one case file.

    Raises:
        AssertionError: Some are not; the text says what changed in each.
        ConfigError: The folder has no cases, or files cannot be read.
        TypeError: The registry is neither a Watch nor a Watchdog.
    """
    __tracebackhide__ = True
    results = [case.result(registry) for case in read_cases(folder)]
    wrong = [result for result in results if not result.is_as_expected]
    if wrong:
        raise AssertionError("\n".join([summary(results), *(line for result in wrong for line in result.lines())]))
