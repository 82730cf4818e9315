"""Rendering the rule files."""

from __future__ import annotations

import yaml

from handoffwatch.mixin.rules import render_rules
from handoffwatch.mixin.values import Values

ALERTS = "handoffwatch-alerts.yaml"


def _alert(text: str, name: str) -> dict[str, object]:
    groups = yaml.safe_load(text)["groups"]
    return next(rule for group in groups for rule in group["rules"] if rule.get("alert") == name)


def test_render_rules_gives_every_template_when_called() -> None:
    """There is one file for each template."""
    assert list(render_rules(Values(), overview_uid="u")) == [ALERTS, "handoffwatch-recording.yaml"]


def test_render_rules_gives_the_page_of_the_design_when_the_values_are_the_defaults() -> None:
    """The page reads as the design says, to the character."""
    page = _alert(render_rules(Values(), overview_uid="u")[ALERTS], "HandoffwatchFalseSuccess")
    assert page["expr"] == (
        "time() - max by (ledger, workflow, operation) "
        '(max_over_time(handoffwatch_ledger_false_success_last_timestamp_seconds{criticality="critical"}[30m])) < 1800'
    )
    assert "for" not in page


def test_render_rules_changes_the_window_in_both_places_when_it_is_set() -> None:
    """Range and threshold of the page cannot drift apart."""
    committed = render_rules(Values(), overview_uid="u")[ALERTS]
    short = render_rules(Values(false_success_window="10s"), overview_uid="u")[ALERTS]
    assert short == committed.replace("[30m]", "[10s]").replace("< 1800", "< 10")


def test_render_rules_keeps_the_templates_of_prometheus_when_rendered() -> None:
    """The double braces belong to Prometheus."""
    page = _alert(render_rules(Values(), overview_uid="u")[ALERTS], "HandoffwatchFalseSuccess")
    assert page["annotations"] == {
        "summary": "{{ $labels.operation }} in {{ $labels.workflow }}: claimed done, and it did not happen",
        "description": (
            "A run of the workflow {{ $labels.workflow }} claimed the operation {{ $labels.operation }} as done, and "
            "the read-back found that its effect is not there (ledger {{ $labels.ledger }}). It was settled "
            "{{ $value | humanizeDuration }} ago. Somebody has been told something that is not true."
        ),
        "runbook_url": "https://runbooks.example.com/handoffwatch/HandoffwatchFalseSuccess.md",
        "dashboard_url": "https://grafana.example.com/d/u?var-workflow={{ $labels.workflow | urlquery }}",
    }


def test_render_rules_uses_the_links_and_the_job_when_they_are_set() -> None:
    """Links and selectors are the operator's."""
    values = Values(
        exporter_job="watch", exporter_down_for="15m",
        runbook_url="https://wiki.example.org/{alert}", dashboard_url="https://g.example.org/d/{uid}/x",
    )  # fmt: skip
    alert = _alert(render_rules(values, overview_uid="u")[ALERTS], "HandoffwatchExporterDown")
    assert alert["expr"] == 'absent(up{job="watch"} == 1)'
    assert alert["for"] == "15m"
    assert alert["labels"] == {"severity": "critical", "job": "watch"}
    annotations = alert["annotations"]
    assert isinstance(annotations, dict)
    assert annotations["runbook_url"] == "https://wiki.example.org/HandoffwatchExporterDown"
    assert annotations["dashboard_url"] == "https://g.example.org/d/u/x"
