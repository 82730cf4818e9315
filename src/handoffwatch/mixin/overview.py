"""The Overview: in ten seconds, are agents lying, blind, blocked or slow?

Ledger series come from the recorded rules, which take each ledger once; job and instance mean nothing for them. The
recorded counters of one ledger never fall, so the largest less the smallest value in the range is the exact count.
"""

from __future__ import annotations

from typing import Any, Final

from handoffwatch.mixin.dashboard import dashboard, filter_variable, filters
from handoffwatch.mixin.panels import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    About,
    Panel,
    Place,
    Query,
    bar_panel,
    stat_panel,
    table_panel,
    time_panel,
)
from handoffwatch.mixin.values import Values

UID: Final = "handoffwatch-overview"

_NO_LEDGER: Final = "no ledger"
_NO_TRAFFIC: Final = "no traffic"
_PROCESS: Final = 'job=~"$job", instance=~"$instance"'
_WORKFLOW: Final = f'workflow=~"$workflow", {_PROCESS}'
_ROUTE: Final = f'route=~"$route", {_PROCESS}'
_CLAIMS_SETTLED: Final = "ledger:handoffwatch_ledger_claims_settled_total:max5m"
_FALSE_SUCCESSES: Final = "ledger:handoffwatch_ledger_false_successes_total:max5m"


def overview(values: Values) -> dict[str, Any]:
    """Return the dashboard as classic JSON."""
    return dashboard(
        uid=UID,
        title="Overview",
        description="Are agents lying, blind, blocked or slow? The crossings of multi-agent systems at a glance.",
        variables=filters(
            values,
            filter_variable("workflow", "Workflow", "label_values(handoffwatch_runs_started_total, workflow)"),
            filter_variable("route", "Route", "label_values(handoffwatch_handoff_route_info, route)"),
        ),
        rows={
            "Claims: did what the agents said happen?": _claims(),
            "Answers: was there anything to base them on?": _answers(),
            "Handoffs: was the state fit for the next step, and what did the check cost?": _handoffs(),
            "The watch itself: does somebody look?": _watch(values),
        },
    )


def _claims() -> list[Panel]:
    settled = _increase(_CLAIMS_SETTLED, 'claimed="done", effect=~"landed|not_landed", workflow=~"$workflow"')
    false = _increase(_CLAIMS_SETTLED, 'claimed="done", effect="not_landed", workflow=~"$workflow"')
    return [
        stat_panel(
            Place(0, 1, 4, 4),
            About(
                "False successes",
                "Operations that were claimed done and whose effect is not there, settled in this time range. One is "
                "one too many: open the case of each.",
                "short", _NO_LEDGER, [(None, GREEN), (1, RED)], decimals=0,
            ),
            Query(_increase(_FALSE_SUCCESSES, 'workflow=~"$workflow"')),
        ),
        stat_panel(
            Place(4, 1, 4, 4),
            About(
                "False share of settled claims",
                "Of the runs that claimed done and were read back in this time range, the share that is not true. The "
                "objective is at most 0.1 % over 30 days. May be empty: no claim was settled.",
                "percentunit", _NO_TRAFFIC, [(None, GREEN), (0.001, RED)], decimals=2,
            ),
            Query(f"{false} / ({settled} > 0)"),
        ),
        stat_panel(
            Place(8, 1, 4, 4),
            About(
                "False successes to review",
                "Open cases of false success, over all workflows. Each waits for a person to put it right.",
                "short", _NO_LEDGER, [(None, GREEN), (1, RED)], decimals=0,
            ),
            Query('sum(ledger:handoffwatch_ledger_cases_open:max{kind="false_success"})'),
        ),
        stat_panel(
            Place(12, 1, 4, 4),
            About(
                "Claims open",
                "Runs that claimed done or partial and are not settled yet. Some are normal; a number that only grows "
                "says that nothing is read back.",
                "short", _NO_LEDGER, [(None, BLUE)], decimals=0,
            ),
            Query('sum(ledger:handoffwatch_ledger_claims_open:max{workflow=~"$workflow"})'),
        ),
        stat_panel(
            Place(16, 1, 4, 4),
            About(
                "Oldest open effect",
                "Age of the oldest operation without a final effect, over all workflows. Settlement has 7 days. May be "
                "empty: nothing is open.",
                "s", "none open", [(None, GREEN), (86400, ORANGE), (604800, RED)],
            ),
            Query("time() - min(ledger:handoffwatch_ledger_effects_oldest_open_timestamp_seconds:min)"),
        ),
        stat_panel(
            Place(20, 1, 4, 4),
            About(
                "Firing alerts",
                "Alerts of handoffwatch that fire now; the table at the bottom names them.",
                "short", "0", [(None, GREEN), (1, RED)], decimals=0,
            ),
            Query('count(ALERTS{alertname=~"Handoffwatch.+", alertstate="firing"}) or vector(0)'),
        ),
    ]  # fmt: skip


def _answers() -> list[Panel]:
    return [
        stat_panel(
            Place(0, 6, 6, 4),
            About(
                "Runs without tool success",
                "Runs of workflows that need tools, ended in this time range without one successful call. Their "
                "answers rest on nothing: look at the failing tools.",
                "short", _NO_TRAFFIC, [(None, GREEN), (1, ORANGE)], decimals=0,
            ),
            Query(
                'sum(increase(handoffwatch_runs_without_tool_success_total{tools="required", '
                f"{_WORKFLOW}}}[$__range]))"
            ),
        ),
        stat_panel(
            Place(0, 10, 6, 4),
            About(
                "Guard refusals",
                "Final answers that were refused in this time range, because there was nothing to base them on.",
                "short", _NO_TRAFFIC, [(None, GREEN), (1, ORANGE)], decimals=0,
            ),
            Query(f"sum(increase(handoffwatch_guard_blocks_total{{{_WORKFLOW}}}[$__range]))"),
        ),
        table_panel(
            Place(6, 6, 18, 8),
            About(
                "Top failing tools by code",
                "Logical tool calls that failed in this time range. 401 and 403 are lost credentials, 429 is "
                "throttling; ambiguous calls may have had their effect. May be empty: no call failed.",
                "short", "no call failed", [(None, GREEN), (1, ORANGE)], decimals=0,
            ),
            Query(
                "topk(8, sum by (tool, code, failure_class) "
                f"(increase(handoffwatch_tool_failures_total{{{_PROCESS}}}[$__range])) > 0)"
            ),
            columns={"tool": "Tool", "code": "Code", "failure_class": "Class", "Value": "Failed calls"},
            sort_by="Failed calls",
        ),
    ]  # fmt: skip


def _handoffs() -> list[Panel]:
    blocked = f"sum by (route) (increase(handoffwatch_handoff_blocks_total{{{_ROUTE}}}[$__range]))"
    inspected = f"sum by (route) (increase(handoffwatch_handoff_inspections_total{{{_ROUTE}}}[$__range]))"
    return [
        bar_panel(
            Place(0, 15, 8, 8),
            About(
                "Block rate by route",
                "Share of the inspected attempts of this time range whose verdict is blocked, in both modes. May be "
                "empty: nothing was inspected.",
                "percentunit", _NO_TRAFFIC, [(None, GREEN)], decimals=1,
            ),
            Query(f"sort_desc({blocked} / ({inspected} > 0))", "{{route}}"),
            top=1,
        ),
        time_panel(
            Place(8, 15, 8, 8),
            About(
                "Block rate over time",
                "The recorded share of blocked attempts over 5 minutes, over all jobs and instances. A gap is a time "
                "without traffic. May be empty: nothing was inspected.",
                "percentunit", _NO_TRAFFIC, [(None, GREEN)],
            ),
            [Query('route:handoffwatch_handoff_blocks_per_inspection:ratio_rate5m{route=~"$route"}', "{{route}}")],
        ),
        time_panel(
            Place(16, 15, 8, 8),
            About(
                "Added latency",
                "Time that a check adds to one attempt of a handoff, without repair and human time. May be empty: "
                "nothing was inspected.",
                "s", _NO_TRAFFIC, [(None, GREEN)],
            ),
            [Query(_added_latency(0.95), "p95"), Query(_added_latency(0.99), "p99")],
        ),
    ]  # fmt: skip


def _watch(values: Values) -> list[Panel]:
    return [
        stat_panel(
            Place(0, 24, 6, 6),
            About(
                "Targets up",
                "Share of the scrape targets of each job that answer. Below 100 %, somebody is not watched.",
                "percentunit", "no target", [(None, RED), (1, GREEN)], decimals=0,
            ),
            Query(f'avg by (job) (up{{job=~"{values.jobs}", {_PROCESS}}})', "{{job}}"),
        ),
        table_panel(
            Place(6, 24, 18, 6),
            About(
                "Alerts that fire",
                "The alerts of handoffwatch, with what they are about. May be empty: none fires.",
                "short", "none", [(None, RED)], decimals=0,
            ),
            Query(
                "count by (alertname, severity, workflow, operation, ledger) "
                '(ALERTS{alertname=~"Handoffwatch.+", alertstate="firing"})'
            ),
            columns={
                "alertname": "Alert", "severity": "Severity", "workflow": "Workflow", "operation": "Operation",
                "ledger": "Ledger",
            },
            sort_by="Severity", wide="Alert",
        ),
    ]  # fmt: skip


def _increase(recorded: str, matchers: str) -> str:
    """Return the expression of how much the recorded counters of all ledgers grew in the time range, exactly."""
    series = f"{recorded}{{{matchers}}}[$__range]"
    return f"sum(max_over_time({series}) - min_over_time({series}))"


def _added_latency(quantile: float) -> str:
    """Return the expression of a quantile; the comparison drops the NaN of a time without traffic."""
    buckets = f"sum by (le) (rate(handoffwatch_handoff_overhead_seconds_bucket{{{_ROUTE}}}[$__rate_interval]))"
    return f"histogram_quantile({quantile}, {buckets}) >= 0"
