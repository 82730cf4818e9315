"""The rule files and the configuration of Prometheus and Alertmanager, judged by their own tools."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from support.requirements import ROOT, require_program

RULES = sorted((ROOT / "deploy/prometheus/rules").glob("*.yaml"))
UNIT_TESTS = sorted(Path(__file__).parent.glob("*.yaml"))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", UNIT_TESTS, ids=lambda file: file.stem)
def test_rules_behave_as_written_when_promtool_runs_their_unit_tests(file: Path) -> None:
    """Every alert is silent, not yet, firing with all labels and annotations, and clearing when it should be."""
    _run(require_program("promtool"), "test", "rules", str(file))


def test_rules_are_valid_when_promtool_checks_them() -> None:
    """promtool finds no fault and no duplicate in the rule files."""
    _run(require_program("promtool"), "check", "rules", "--lint-fatal", *map(str, RULES))


def test_prometheus_configuration_is_valid_when_promtool_checks_it() -> None:
    """promtool accepts the shipped configuration with the rule files that it names."""
    _run(require_program("promtool"), "check", "config", "--lint-fatal", str(ROOT / "deploy/prometheus/prometheus.yml"))


def test_alertmanager_configuration_is_valid_when_amtool_checks_it() -> None:
    """amtool accepts the shipped configuration."""
    _run(require_program("amtool"), "check-config", str(ROOT / "deploy/alertmanager/alertmanager.yml"))


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (["severity=critical", "alertname=HandoffwatchFalseSuccess"], "pager"),
        (["severity=warning", "alertname=SomethingElse"], "tickets"),
        (["alertname=NoSeverity"], "tickets"),
    ],
)
def test_alertmanager_route_leads_to_the_receiver_when_the_severity_is(labels: list[str], receiver: str) -> None:
    """Critical alerts go to the pager, all others to tickets."""
    config = f"--config.file={ROOT / 'deploy/alertmanager/alertmanager.yml'}"
    _run(require_program("amtool"), "config", "routes", "test", config, f"--verify.receivers={receiver}", *labels)


def test_every_alert_is_tested_when_the_unit_tests_are_read() -> None:
    """Each alert has a unit test in which it fires and one in which it is silent."""
    alerts = {rule["alert"] for file in RULES for group in _groups(file) for rule in group["rules"] if "alert" in rule}
    fires, silent = set(), set()
    for file in UNIT_TESTS:
        for case in yaml.safe_load(file.read_text())["tests"]:
            for test in case.get("alert_rule_test", []):
                (fires if test["exp_alerts"] else silent).add(test["alertname"])
    assert alerts == fires == silent


def _groups(file: Path) -> list[dict[str, list[dict[str, str]]]]:
    groups: list[dict[str, list[dict[str, str]]]] = yaml.safe_load(file.read_text())["groups"]
    return groups
