"""Reading `/metrics` pages, and holding them against Northwind's own record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

from handoffwatch import HandoffwatchError
from handoffwatch.demo.truth import Series, Truth, series

Page = dict[Series, float]
"""The samples of a page by their series."""

_PREFIX: Final = "handoffwatch_"
_LEDGER_PREFIX: Final = "handoffwatch_ledger_"
_STATE: Final = frozenset(
    {"handoffwatch_build_info", "handoffwatch_collector_success", "handoffwatch_config_last_reload_successful"}
)


class PageUnreadable(HandoffwatchError):
    """A process of the demo does not show its numbers."""


def read_page(url: str) -> Page:
    """Return what a process exposes at `/metrics`; series of other programs, such as `python_info`, are left out.

    Raises:
        PageUnreadable: The process is gone or answered with an error.
    """
    try:
        response = httpx.get(f"{url}/metrics", timeout=10.0, trust_env=False).raise_for_status()
    except httpx.HTTPError as error:
        raise PageUnreadable(f"demo: {url}/metrics: must be readable, got {type(error).__name__}") from error
    return parse_page(response.text)


def parse_page(text: str) -> Page:
    """Return the samples of an exposition in the text format, without the label `ledger`."""
    page: Page = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith(_PREFIX):
                labels = {name: value for name, value in sample.labels.items() if name != "ledger"}
                page[series(sample.name.removeprefix(_PREFIX), **labels)] = sample.value
    return page


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the product's numbers and the record compare.

    Attributes:
        compared: How many series were held against each other.
        above_zero: How many of them the record expects above 0.
        differences: Where they disagree, as sentences.
    """

    compared: int
    above_zero: int
    differences: tuple[str, ...]

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(
            self.compared + other.compared,
            self.above_zero + other.above_zero,
            self.differences + other.differences,
        )


def compare(truth: Truth, *, workload: Mapping[Series, float], settler: Mapping[Series, float]) -> Comparison:
    """Hold both pages against the record.

    Args:
        truth: Northwind's own record.
        workload: The page of the process that ran the agents.
        settler: The page of the exporter, with the series of the ledger.
    """
    return (
        compare_workload(truth, workload)
        + _compare("exporter", _process(settler), truth.settler)
        + compare_ledger(truth, settler)
    )


def compare_workload(truth: Truth, page: Mapping[Series, float]) -> Comparison:
    """Hold the series of the process that ran the agents against the record."""
    return _compare("workload", _process(page), truth.workload)


def compare_ledger(truth: Truth, page: Mapping[Series, float]) -> Comparison:
    """Hold the ledger's series on a page against the record."""
    own = {key: value for key, value in page.items() if key[0].startswith(_LEDGER_PREFIX)}
    return _compare("ledger", own, truth.ledger)


def total(page: Mapping[Series, float], name: str, /, **labels: str) -> float:
    """Return the sum of the series of this name that carry these labels."""
    wanted = set(labels.items())
    full_name = series(name)[0]
    return sum(value for (found, has), value in page.items() if found == full_name and wanted <= set(has))


def is_time(name: str) -> bool:
    """Return whether the values of a sample are seconds: they differ from run to run and are not in the record."""
    return "_seconds" in name and not name.endswith("_count")


def _process(page: Mapping[Series, float]) -> Page:
    return {key: value for key, value in page.items() if not key[0].startswith(_LEDGER_PREFIX)}


def _compare(page_name: str, page: Mapping[Series, float], record: Mapping[Series, float]) -> Comparison:
    keys = [key for key in sorted({*page, *record}) if not is_time(key[0]) and key[0] not in _STATE]
    different = []
    for name, labels in keys:
        told, right = page.get((name, labels)), record.get((name, labels), 0)
        if told != right:
            shown = f"{name}{{{', '.join(f'{label}={value}' for label, value in labels)}}}"
            seen = "absent" if told is None else f"{told:g}"
            different.append(f"{page_name}: {shown} is {seen}, Northwind's record says {right}")
    above_zero = sum(record.get(key, 0) > 0 for key in keys)
    return Comparison(len(keys), above_zero, tuple(different))
