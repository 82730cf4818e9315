"""Births: every known label set exists at 0 from the first scrape, so that an alert sees the first event."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import pytest

from handoffwatch import Contract, Settings, Watch
from handoffwatch.events import CaseReviewed
from handoffwatch.reasons import REASONS
from handoffwatch.recording.samples import FED
from handoffwatch.vocabulary import (
    Component,
    DropCause,
    GuardReason,
    HandoffOutcome,
    Mode,
    RepairResult,
    ReviewKind,
    Signal,
)
from handoffwatch.vocabulary import FailureClass as Class
from support.telemetry import PREFIX, born, exposition, samples


class Plan(Contract, version="1"):
    """The first version."""

    result: str


class NextPlan(Contract, version="2"):
    """The second version."""

    result: str


def _at_zero(*labels: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """Return the product of each table of label values, as it stands in the exposition, at 0."""
    found = {}
    for table in labels:
        for values in itertools.product(*table.values()):
            pairs = sorted(zip(table, values, strict=True))
            listed = ",".join(f'{name}="{value}"' for name, value in pairs)
            found[f"{{{listed}}}" if listed else ""] = 0.0
    return found


def _h(versions: Iterable[str]) -> dict[str, Iterable[str]]:
    return {
        "route": ["planner->executor"],
        "source_agent": ["planner"],
        "target_agent": ["executor"],
        "schema_version": versions,
    }


_OTHER_H = {"route": ["other"], "source_agent": ["other"], "target_agent": ["other"], "schema_version": ["other"]}
_ATTEMPTS = {"mode": list(Mode), "attempt": ["first", "repair"]}


def test_process_exposes_what_has_no_registered_name_when_nothing_is_registered() -> None:
    """A drop of telemetry or a fault of our own is seen the first time it happens."""
    registry = Watch(settings=Settings()).registry

    assert born(registry, "telemetry_dropped_total") == _at_zero({"signal": list(Signal), "cause": list(DropCause)})
    assert born(registry, "internal_errors_total") == _at_zero({"component": list(Component)})
    assert born(registry, "build_info") == {'{semconv="gen-ai-dev/1106985",version="0.1.0"}': 1.0}
    assert born(registry, "handoffs_total") == _at_zero({**_OTHER_H, "outcome": list(HandoffOutcome)})
    assert born(registry, "tool_calls_total") == {'{tool="other"}': 0.0}
    assert born(registry, "review_wait_seconds_count") == _at_zero({"kind": list(ReviewKind)})


def test_route_is_born_at_0_with_full_label_sets_when_it_is_registered() -> None:
    """Each schema version has its series, an unknown version too."""
    watch = Watch(settings=Settings())
    watch.route("planner->executor", contract=[Plan, NextPlan], criticality="critical", mode="shadow")
    h, other = _h(["1", "2", "other"]), _OTHER_H

    for name in ("handoff_inspections_total", "handoff_blocks_total"):
        assert born(watch.registry, name) == _at_zero({**h, **_ATTEMPTS}, {**other, **_ATTEMPTS})
    outcomes = {"outcome": list(HandoffOutcome)}
    assert born(watch.registry, "handoffs_total") == _at_zero({**h, **outcomes}, {**other, **outcomes})
    results = {"result": list(RepairResult)}
    assert born(watch.registry, "handoff_repairs_total") == _at_zero({**h, **results}, {**other, **results})
    for name in ("handoff_attempts_count", "handoff_overhead_seconds_count"):
        assert born(watch.registry, name) == {'{route="other"}': 0.0, '{route="planner->executor"}': 0.0}
    assert born(watch.registry, "handoff_route_info") == {
        '{criticality="critical",mode="shadow",route="planner->executor",'
        'source_agent="planner",target_agent="executor"}': 1
    }


def test_findings_are_born_at_0_with_each_code_and_its_reaction_when_a_route_is_registered() -> None:
    """The first missing_result of a route moves a series that exists."""
    watch = Watch(settings=Settings())
    watch.route("planner->executor", contract=Plan)

    expected: dict[str, float] = {}
    for code, reason in REASONS.items():
        found = {"mode": ["enforce"], "reason": [code], "reaction": [reason.reaction]}
        expected |= _at_zero({**_h(["1", "other"]), **found}, {**_OTHER_H, **found})
    assert born(watch.registry, "handoff_findings_total") == expected


@pytest.mark.parametrize("tools", ["required", "if_called", "none"])
def test_workflow_is_born_at_0_with_full_label_sets_when_it_is_registered(tools: str) -> None:
    """Runs, the guard and what it refused are there before the first run."""
    watch = Watch(settings=Settings())
    watch.workflow("refunds", tools=tools)
    name = {"workflow": ["refunds"]}

    for metric in (
        "runs_started_total",
        "runs_in_progress",
        "runs_with_unrecovered_tool_failure_total",
        "runs_without_inspection_total",
    ):
        assert born(watch.registry, metric) == _at_zero(name)
    outcomes = {"outcome": ["completed", "failed", "cancelled", "stopped"]}
    assert born(watch.registry, "runs_total") == _at_zero({**name, "tools": [tools], **outcomes})
    causes = {"cause": ["all_failed", "none_called"]}
    expected = _at_zero({**name, "tools": [tools], **causes})
    assert born(watch.registry, "runs_without_tool_success_total") == expected
    assert born(watch.registry, "guard_checks_total") == _at_zero({**name, "mode": list(Mode)})
    blocks = {**name, "mode": list(Mode), "reason": list(GuardReason)}
    assert born(watch.registry, "guard_blocks_total") == _at_zero(blocks)


_UNSENT = [("timeout", "retryable"), ("connection", "retryable"), ("dns", "retryable"), ("tls", "retryable")]
_STATUSES = [
    *[(code, "rejected") for code in ("400", "409", "422")],
    *[(code, "fatal") for code in ("401", "403", "404")],
    ("429", "retryable"),
    ("other_3xx", "fatal"),
    *[("other_4xx", each) for each in ("fatal", "rejected", "retryable")],
    ("other_5xx", "fatal"),
    *[("result", each) for each in Class],
]


@pytest.mark.parametrize(("safety", "unanswered"), [("safe", "retryable"), ("unsafe", "ambiguous")])
def test_tool_is_born_at_0_with_the_codes_of_its_safety_when_it_is_registered(safety: str, unanswered: str) -> None:
    """A pair of code and class that the safety cannot yield has no series."""
    watch = Watch(settings=Settings())
    watch.tool("find", safety=safety)
    pairs = {*_STATUSES, *_UNSENT, *(("exception", each) for each in ("fatal", "rejected", "ambiguous"))}
    pairs |= {(code, unanswered) for code in ("408", "500", "502", "503", "504", "other_4xx", "other_5xx")}
    pairs |= {(code, unanswered) for code in ("timeout", "connection", "tls")}
    failures = {line for line in born(watch.registry, "tool_failures_total") if 'tool="find"' in line}
    attempts = {line for line in born(watch.registry, "tool_attempts_total") if 'tool="find"' in line}

    assert failures == {f'{{code="{code}",failure_class="{each}",tool="find"}}' for code, each in pairs}
    assert attempts == {f'{{code="{code}",tool="find"}}' for code in {"ok", *(code for code, _ in pairs)}}
    outcomes = {"tool": ["find", "other"], "outcome": ["ok", "failed", "cancelled", "suspended"]}
    assert born(watch.registry, "tool_calls_ended_total") == _at_zero(outcomes)
    for name in ("tool_calls_total", "tool_retry_wait_seconds_total", "tool_duration_seconds_count"):
        assert born(watch.registry, name) == _at_zero({"tool": ["find", "other"]})


def test_operation_is_born_at_0_when_it_is_registered() -> None:
    """A bypass of the ledger is seen the first time it happens."""
    watch = Watch(settings=Settings())
    watch.operation("refund", key="order_id")
    results = ["landed", "pending", "unknown", "not_landed", "error", "skipped"]

    assert born(watch.registry, "verifications_total") == _at_zero({"operation": ["refund"], "result": results})
    for name in ("verification_seconds_count", "settlement_seconds_count"):
        assert born(watch.registry, name) == _at_zero({"operation": ["refund"]})
    causes = ["ledger_down", "unchecked"]
    bypasses = {"cause": causes, "check": ["ledger"], "name": ["refund"]}
    assert born(watch.registry, "checks_bypassed_total") == _at_zero(bypasses)


def test_exposition_holds_the_fed_metrics_alone_when_a_watch_is_new() -> None:
    """A metric that nothing feeds would say that all is quiet; and no counter has a `_created` twin."""
    text = exposition(Watch(settings=Settings()).registry)
    helps = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP")]

    assert sorted(helps) == sorted(metric.full_name for metric in FED)
    assert "_created" not in text


def test_help_and_type_are_exact_when_a_metric_is_exposed() -> None:
    """The words of the catalogue are the words of the exposition."""
    watch = Watch(settings=Settings())
    watch.workflow("refunds")
    text = exposition(watch.registry)

    assert (
        "# HELP handoffwatch_runs_started_total Runs begun.\n"
        "# TYPE handoffwatch_runs_started_total counter\n"
        'handoffwatch_runs_started_total{workflow="refunds"} 0.0\n'
    ) in text
    assert (
        "# HELP handoffwatch_runs_in_progress Runs begun and not ended.\n"
        "# TYPE handoffwatch_runs_in_progress gauge\n"
        'handoffwatch_runs_in_progress{workflow="refunds"} 0.0\n'
    ) in text
    assert 'handoffwatch_handoff_attempts_bucket{le="8.0",route="other"} 0.0\n' in text


def test_first_event_moves_a_series_that_was_born_at_0_when_anything_happens() -> None:
    """After a block, a failed call and a refusal no series exists that did not exist before."""
    watch = Watch(settings=Settings())
    watch.workflow("refunds")
    watch.route("planner->executor", contract=Plan)
    watch.tool("find", safety="safe", attempts_max=1)
    watch.serve_metrics().close()
    before = set(samples(watch.registry))

    with watch.run("refunds") as run:
        run.handoff("planner", "executor", {})
        call = run.call("find")
        call.raised(TimeoutError())
        run.answer("done")

    assert set(samples(watch.registry)) == before
    assert all(line.startswith(PREFIX) for line in before)


def test_wait_moves_the_series_of_its_kind_when_a_person_has_done_something() -> None:
    """Human time stands apart from latency."""
    watch = Watch(settings=Settings())
    watch.recorder.emit(CaseReviewed(ReviewKind.APPROVAL, 400.0))
    counted = born(watch.registry, "review_wait_seconds_count")
    assert counted == {**dict.fromkeys(counted, 0.0), '{kind="approval"}': 1.0}
    assert born(watch.registry, "review_wait_seconds_sum")['{kind="approval"}'] == 400.0
