"""Rules, dashboards and runbooks against the catalogue, against what is exposed, and against each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from handoffwatch.catalogue import CATALOGUE, Born, Metric
from handoffwatch.ledger.collector import FED as FED_BY_LEDGER
from handoffwatch.mixin import Values, drift, render
from handoffwatch.mixin.render import DASHBOARDS, RULES
from handoffwatch.recording.samples import FED as FED_BY_PROCESS
from support.promql import Usage, metric_of, problems, recorded_labels, usage
from support.refund_desk import open_desk
from support.requirements import ROOT

FILES = {str(path): text for path, text in render(Values()).items()}
FED = (*FED_BY_PROCESS, *FED_BY_LEDGER)
_LABEL_VALUES = re.compile(r"label_values\((?P<series>.+), (?P<label>\w+)\)")
_LEGEND_LABEL = re.compile(r"\{\{(\w+)\}\}")


def rules(files: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return every rule of the rendered rule files."""
    texts = [text for path, text in files.items() if path.startswith(str(RULES))]
    return [rule for text in texts for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def dashboards(files: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return every rendered dashboard."""
    return [json.loads(text) for path, text in files.items() if path.startswith(str(DASHBOARDS))]


def uses(files: Mapping[str, str]) -> Iterator[Usage]:
    """Yield what each rule, panel target and variable uses."""
    for rule in rules(files):
        yield usage(rule.get("alert") or rule["record"], rule["expr"])
    for board in dashboards(files):
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                found = _LABEL_VALUES.fullmatch(variable["query"]["query"])
                assert found, variable["query"]["query"]
                used = usage(f"variable {variable['name']}", found["series"])
                used.groupings.add(found["label"])
                yield used
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                used = usage(f"panel {panel['title']}", target["expr"])
                used.groupings |= set(_LEGEND_LABEL.findall(target["legendFormat"]))
                yield used


def recorded(files: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the labels of each recorded series."""
    return {rule["record"]: recorded_labels(rule["expr"]) for rule in rules(files) if "record" in rule}


def found_problems(files: Mapping[str, str], metrics: tuple[Metric, ...]) -> list[str]:
    """Return what the rendered files use and the metrics do not have."""
    return problems(uses(files), metrics, recorded(files))


def test_mixin_files_are_committed_as_rendered_when_compared() -> None:
    """The committed rules and dashboards are the render of the default values, no more and no less."""
    assert drift(render(Values(), docs=True), ROOT) == []


@pytest.mark.parametrize("metrics", [CATALOGUE, FED], ids=["catalogue", "fed"])
def test_mixin_uses_only_known_series_when_held_against(metrics: tuple[Metric, ...]) -> None:
    """Every series, label and label value in rules and dashboards is in the catalogue, and something feeds it."""
    assert found_problems(FILES, metrics) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "handoffwatch_ledger_cases_open{",
            "handoffwatch_ledger_open_cases{",
            "HandoffwatchFalseSuccessOpen: unknown series handoffwatch_ledger_open_cases",
        ),
        (
            "handoffwatch_guard_blocks_total",
            "handoffwatch_guard_refusals_total",
            "panel Guard refusals: unknown series handoffwatch_guard_refusals_total",
        ),
        (
            "{criticality=",
            "{weight=",
            "HandoffwatchFalseSuccess: handoffwatch_ledger_false_success_last_timestamp_seconds has no label weight",
        ),
        (
            'kind="false_success"',
            'kind="untrue"',
            "HandoffwatchFalseSuccessOpen: handoffwatch_ledger_cases_open has no kind untrue",
        ),
        (
            "by (tool, code, failure_class)",
            "by (tool, code, fault)",
            "panel Top failing tools by code: no series has the label fault",
        ),
        (
            "record: ledger:handoffwatch_ledger_claims_open:max",
            "record: ledger:handoffwatch_ledger_open_claims:max",
            "panel Claims open: unknown series ledger:handoffwatch_ledger_claims_open:max",
        ),
    ],
)
def test_mixin_check_names_the_series_when_a_rule_or_panel_is_renamed(old: str, new: str, problem: str) -> None:
    """A rename in the rendered text is reported with its place and its name."""
    assert any(old in text for text in FILES.values())
    renamed = {path: text.replace(old, new) for path, text in FILES.items()}
    assert problem in found_problems(renamed, CATALOGUE)


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        (
            "handoff_blocks_total",
            {"name": "handoff_refusals_total"},
            "route:handoffwatch_handoff_blocks_per_inspection:ratio_rate5m: "
            "unknown series handoffwatch_handoff_blocks_total",
        ),
        (
            "handoff_overhead_seconds",
            {"name": "handoff_added_seconds"},
            "panel Added latency: unknown series handoffwatch_handoff_overhead_seconds_bucket",
        ),
        (
            "ledger_cases_open",
            {"labels": ()},
            "HandoffwatchFalseSuccessOpen: handoffwatch_ledger_cases_open has no label kind",
        ),
    ],
)
def test_mixin_check_names_the_series_when_the_catalogue_is_renamed(
    name: str, change: dict[str, Any], problem: str
) -> None:
    """A rename in the catalogue is reported with the rule or panel that it breaks."""
    metrics = tuple(replace(metric, **change) if metric.name == name else metric for metric in CATALOGUE)
    assert problem in found_problems(FILES, metrics)


def test_mixin_series_are_exposed_when_the_product_runs(tmp_path: Path) -> None:
    """A process that has only registered things shows every series that rules and panels use, with all its labels."""
    desk = open_desk(tmp_path)
    try:
        desk.watch.ledger  # noqa: B018  its series are exposed once it is open
        families = list(text_string_to_metric_families(generate_latest(desk.watch.registry).decode()))
    finally:
        desk.watch.close()
    exposed = {sample.name: set(sample.labels) - {"le"} for family in families for sample in family.samples}
    wanted = {
        name: set(metric.label_names)
        for used in uses(FILES)
        for name in used.names
        if (metric := metric_of(name, CATALOGUE)) is not None and metric.born is not Born.FIRST_USE
    }
    assert len(wanted) >= 12
    assert {name: exposed.get(name) for name in wanted} == wanted


def test_alerts_use_no_first_use_series_when_read() -> None:
    """An alert on a series that is born with its first event cannot see that event."""
    first_use = {
        (rule["alert"], name)
        for rule in rules(FILES)
        if "alert" in rule
        for name in usage(rule["alert"], rule["expr"]).names
        if (metric := metric_of(name, CATALOGUE)) is not None and metric.born is Born.FIRST_USE
    }
    assert first_use == set()


def test_rules_never_divide_ledger_by_process_series_when_read() -> None:
    """A ledger series is equal on all replicas and survives restarts; a process series is neither."""
    for rule in rules(FILES):
        used = usage(rule.get("alert") or rule["record"], rule["expr"])
        from_ledger = {name.removeprefix("ledger:").startswith("handoffwatch_ledger_") for name in used.names}
        assert not (used.divides and from_ledger == {True, False}), used.where


def test_rules_take_each_ledger_once_when_they_read_its_series() -> None:
    """Replicas expose the same ledger: max (or min, of the oldest) by ledger comes before anything else."""
    for rule in rules(FILES):
        if any(name.startswith("handoffwatch_ledger_") for name in usage("", rule["expr"]).names):
            expected = "min" if "_oldest_" in rule["expr"] else "max"
            assert re.search(rf"\b{expected} by \(ledger\b", rule["expr"]), rule["expr"]


def test_ledger_panels_read_recorded_series_when_built() -> None:
    """No panel reads a ledger series past the rule that takes each ledger once."""
    direct = {
        (used.where, name)
        for used in uses(FILES)
        if used.where.startswith("panel ")
        for name in used.names
        if name.startswith("handoffwatch_ledger_")
    }
    assert direct == set()


def test_every_alert_is_complete_when_read() -> None:
    """Each alert has a severity, a summary, a description, its runbook and a dashboard that exists."""
    uids = {board["uid"] for board in dashboards(FILES)}
    for rule in rules(FILES):
        if "alert" not in rule:
            continue
        name, notes = rule["alert"], rule["annotations"]
        assert name.startswith("Handoffwatch")
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert not [label for label, value in rule["labels"].items() if "$value" in value], name
        assert notes["summary"]
        assert notes["description"]
        assert notes["runbook_url"] == f"https://runbooks.example.com/handoffwatch/{name}.md"
        assert any(notes["dashboard_url"].startswith(f"https://grafana.example.com/d/{uid}") for uid in uids)


def test_every_alert_has_a_runbook_when_the_folder_is_read() -> None:
    """Each alert has a runbook of its name with all headings, and no runbook is left without its alert."""
    alerts = {rule["alert"] for rule in rules(FILES) if "alert" in rule}
    found = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs/runbooks").glob("Handoffwatch*.md")}
    assert set(found) == alerts
    for name, text in found.items():
        headings = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
        assert headings == [name, "Meaning", "Impact", "First checks", "Fix", "When to silence"]


def test_runbook_queries_use_only_known_series_when_read() -> None:
    """Every query of a runbook uses series and labels that exist; a block that begins with a command is no query."""
    blocks = [
        (path.stem, block)
        for path in (ROOT / "docs/runbooks").glob("Handoffwatch*.md")
        for block in re.findall(r"(?:^    .+\n)+", path.read_text(encoding="utf-8"), re.MULTILINE)
        if not block.lstrip().startswith("handoffwatch ")
    ]
    assert len(blocks) >= 8
    assert problems((usage(name, block) for name, block in blocks), CATALOGUE, recorded(FILES)) == []


def test_scrape_jobs_are_those_of_the_values_when_read() -> None:
    """The shipped Prometheus configuration scrapes the jobs that rules and dashboards ask for."""
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    jobs = {job["job_name"] for job in config["scrape_configs"]}
    assert Values().exporter_job in jobs
    assert all(re.fullmatch(Values().jobs, job) for job in jobs)
