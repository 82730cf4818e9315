"""Reading a page, and holding it against the record."""

from __future__ import annotations

import pytest

from handoffwatch.demo.pages import PageUnreadable, compare, is_time, parse_page, read_page, total
from handoffwatch.demo.truth import Truth, series

WORKLOAD = """\
# HELP python_info Python.
# TYPE python_info gauge
python_info{version="3.11"} 1.0
# HELP handoffwatch_runs_started_total Runs begun.
# TYPE handoffwatch_runs_started_total counter
handoffwatch_runs_started_total{workflow="refunds"} 3.0
# HELP handoffwatch_tool_duration_seconds Time.
# TYPE handoffwatch_tool_duration_seconds histogram
handoffwatch_tool_duration_seconds_bucket{tool="find_order",le="+Inf"} 2.0
handoffwatch_tool_duration_seconds_count{tool="find_order"} 2.0
handoffwatch_tool_duration_seconds_sum{tool="find_order"} 0.5
# HELP handoffwatch_guard_checks_total Answers.
# TYPE handoffwatch_guard_checks_total counter
handoffwatch_guard_checks_total{workflow="refunds",mode="shadow"} 0.0
"""
LEDGER = """\
# HELP handoffwatch_ledger_effects_settled_total Settled.
# TYPE handoffwatch_ledger_effects_settled_total counter
handoffwatch_ledger_effects_settled_total{ledger="1234abcd",operation="refund",effect="landed",cause=""} 2.0
"""


def _truth() -> Truth:
    truth = Truth()
    truth.workload[series("runs_started_total", workflow="refunds")] = 3
    truth.workload[series("tool_duration_seconds_count", tool="find_order")] = 2
    truth.ledger[series("ledger_effects_settled_total", operation="refund", effect="landed")] = 2
    return truth


def test_page_leaves_out_what_is_not_ours_when_it_is_read() -> None:
    """Other programs' series, the label of the ledger and empty labels are no part of the comparison."""
    assert series("runs_started_total", workflow="refunds") in parse_page(WORKLOAD)
    assert not any(name.startswith("python") for name, _ in parse_page(WORKLOAD))
    assert parse_page(LEDGER) == {series("ledger_effects_settled_total", operation="refund", effect="landed"): 2.0}


def test_comparison_is_equal_when_the_page_says_what_the_record_says() -> None:
    """Times are left out, counts of timed things are not, and what the record does not name is 0."""
    comparison = compare(_truth(), workload=parse_page(WORKLOAD), settler=parse_page(LEDGER))
    assert (comparison.compared, comparison.above_zero, comparison.differences) == (4, 3, ())


@pytest.mark.parametrize(
    ("page", "difference"),
    [
        (
            WORKLOAD.replace("3.0", "4.0"),
            "workload: handoffwatch_runs_started_total{workflow=refunds} is 4, Northwind's record says 3",
        ),
        (
            WORKLOAD.replace('mode="shadow"} 0.0', 'mode="shadow"} 1.0'),
            "workload: handoffwatch_guard_checks_total{mode=shadow, workflow=refunds} is 1, Northwind's record says 0",
        ),
        (
            WORKLOAD.replace("handoffwatch_runs_started_total{", "handoffwatch_runs_begun_total{"),
            "workload: handoffwatch_runs_started_total{workflow=refunds} is absent, Northwind's record says 3",
        ),
    ],
)
def test_comparison_names_the_series_when_a_number_differs(page: str, difference: str) -> None:
    """A wrong value, a value nobody expects, and a series that is not there are each a difference."""
    comparison = compare(_truth(), workload=parse_page(page), settler=parse_page(LEDGER))
    assert difference in comparison.differences


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("handoffwatch_tool_duration_seconds_sum", True),
        ("handoffwatch_tool_duration_seconds_bucket", True),
        ("handoffwatch_tool_retry_wait_seconds_total", True),
        ("handoffwatch_ledger_false_success_last_timestamp_seconds", True),
        ("handoffwatch_tool_duration_seconds_count", False),
        ("handoffwatch_handoff_attempts_bucket", False),
    ],
)
def test_series_is_a_time_when_its_values_are_seconds(name: str, expected: bool) -> None:
    """How often something was timed is a number like any other."""
    assert is_time(name) is expected


def test_total_sums_the_series_that_carry_the_labels() -> None:
    """Labels that are not asked for are summed over."""
    page = parse_page(WORKLOAD)
    assert total(page, "runs_started_total") == 3
    assert total(page, "runs_started_total", workflow="other") == 0


def test_page_is_refused_with_its_address_when_nobody_answers() -> None:
    """A process that is gone gives a sentence, not the client library's exception."""
    with pytest.raises(PageUnreadable, match=r"demo: http://127.0.0.1:1/metrics: must be readable, got ConnectError"):
        read_page("http://127.0.0.1:1")
