"""The catalogue against the code that feeds it, and against the design's metric table, in both directions."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from handoffwatch import catalogue, events
from handoffwatch.catalogue import BY_NAME, CATALOGUE, Kind, Source
from handoffwatch.ledger import collector
from handoffwatch.recording import samples

ROOT = Path(__file__).resolve().parents[2]
UNFED = Path(__file__).with_name("unfed_metrics.txt")

FED = {metric.name for metric in (*samples.FED, *collector.FED)}


def _constants(feeder: object) -> set[str]:
    """The names of the catalogue's constants that a feeder's source mentions."""
    tree = ast.parse(inspect.getsource(feeder))  # type: ignore[arg-type]
    body = [node for function in tree.body for node in function.body]  # type: ignore[attr-defined]
    return {
        node.attr
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "c"
    }


def _name_of_constant(metric: catalogue.Metric) -> str:
    return next(name for name, value in vars(catalogue).items() if value is metric)


def test_catalogue_names_each_metric_once() -> None:
    """No two metrics share a name."""
    assert len(BY_NAME) == len(CATALOGUE)


@pytest.mark.parametrize("event", list(samples.FED_BY_EVENTS), ids=lambda event: event.__name__)
def test_feeder_raises_exactly_the_declared_metrics(event: type) -> None:
    """A feeder touches the metrics it declares and no others, save those that are the state of the process."""
    declared = {_name_of_constant(metric) for metric in samples.FED_BY_EVENTS[event]}
    process = {_name_of_constant(metric) for metric in samples.FED_BY_PROCESS}
    assert _constants(samples.FEEDERS[event]) - process == declared


@pytest.mark.parametrize("event", list(samples.FED_BY_EVENTS), ids=lambda event: event.__name__)
def test_catalogue_names_the_event_that_feeds_a_metric(event: type) -> None:
    """What a feeder raises is named in the catalogue as fed by that event."""
    assert {metric.fed_by for metric in samples.FED_BY_EVENTS[event]} <= {event.__name__}


def test_catalogue_names_the_process_or_the_ledger_as_source_of_the_rest() -> None:
    """Metrics of the process and of the ledger's collector say so."""
    assert {metric.fed_by for metric in samples.FED_BY_PROCESS} == {Source.PROCESS}
    assert {metric.fed_by for metric in collector.FED} == {Source.LEDGER, Source.PROCESS}


def test_every_event_is_recorded() -> None:
    """Each event class has a feeder: a fact that nobody counts is a defect."""
    assert set(events.Event.__args__) == set(samples.FEEDERS)


def test_unfed_metrics_are_listed_and_the_list_only_shrinks() -> None:
    """The catalogue's metrics that nothing feeds yet are exactly those of the list; a new one may not join it."""
    listed = set(UNFED.read_text().split())
    assert {metric.name for metric in CATALOGUE} - FED == listed
    assert len(listed) <= 7


def test_histograms_have_buckets_and_others_have_none() -> None:
    """Buckets stand with histograms only, ascending."""
    for metric in CATALOGUE:
        assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM), metric.name
        assert list(metric.buckets) == sorted(metric.buckets), metric.name


def test_names_follow_the_conventions() -> None:
    """Counters end in _total, info metrics in _info, and nothing else does."""
    for metric in CATALOGUE:
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER), metric.name
        assert metric.name.endswith("_info") == (metric.kind is Kind.INFO), metric.name
        assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name), metric.name


def test_sources_name_no_metric_outside_the_catalogue() -> None:
    """A metric's name is written in one module; the mixin and the demo read exposed pages and are held elsewhere."""
    places = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "src").rglob("*.py"))
        if not {"mixin", "demo"} & set(path.parts) and path.name != "catalogue.py"
        for name in re.findall(r"[\"'](?:handoffwatch_)?([a-z_]+)[\"']", path.read_text())
        if name in BY_NAME
    ]
    assert places == []


def _designed(text: str) -> dict[str, str]:
    """Name to kind, from the table of section 6."""
    section = text[text.index("## 6. Telemetry contract") : text.index("Identity, tested and checked")]
    rows = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if line.startswith("| ") and not line.startswith("| metric"):
            names = re.findall(r"[a-z][a-z0-9_]+", cells[1])
            kinds = re.findall(r"counter|histogram|gauge|info", cells[2])
            for index, name in enumerate(names):
                rows[name] = kinds[min(index, len(kinds) - 1)]
    return rows


def test_catalogue_and_design_name_the_same_metrics(shared_folder: Path) -> None:
    """Every designed family is in the catalogue with its kind, and the catalogue has no other."""
    designed = _designed((shared_folder / "DESIGN.md").read_text())
    assert designed == {metric.name: str(metric.kind) for metric in CATALOGUE}
