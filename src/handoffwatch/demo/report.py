"""What the demo reports: what agents said against what happened, as handoffwatch saw it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from handoffwatch.demo.contracts import PLAN_ROUTE, REVIEW_ROUTE, WORK_ROUTE
from handoffwatch.demo.pages import Comparison, Page, total
from handoffwatch.demo.truth import FalseSuccess


@dataclass(frozen=True, slots=True)
class RouteLine:
    """The attempts of handoffs on one route."""

    route: str
    attempts: int
    blocked: int
    repaired: int
    stopped: int

    @property
    def block_rate(self) -> float:
        """The share of attempts that were blocked, 0.0 without any."""
        return self.blocked / self.attempts if self.attempts else 0.0


@dataclass(frozen=True, slots=True)
class FailureLine:
    """How often a tool failed with one code."""

    tool: str
    code: str
    failure_class: str
    failures: int


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The numbers of one demo, read from the product's pages and its ledger.

    Attributes:
        seed: Seed of the fault plan.
        runs: Runs that ended.
        took_s: Seconds from the first run until everything was settled.
        claimed: Runs by what their agent said in the end.
        verified: Runs that claimed done and whose refund is there.
        open_claims: Claims of done that were not settled in time.
        unclaimed_effects: Refunds that are there although the agent said they were not.
        false_successes: Refunds claimed done that are not there.
        routes: Handoffs by route.
        failures: Failed tool calls by tool and code, most first.
        answers: Final answers that the guard checked.
        refusals: Those that it refused.
        compared: How many numbers were held against Northwind's own record.
        above_zero: How many of them the record expects above 0.
        differences: Where they disagree, as sentences; empty when all are equal.
    """

    seed: int
    runs: int
    took_s: float
    claimed: dict[str, int]
    verified: int
    open_claims: int
    unclaimed_effects: int
    false_successes: list[FalseSuccess]
    routes: list[RouteLine]
    failures: list[FailureLine]
    answers: int
    refusals: int
    compared: int
    above_zero: int
    differences: list[str]

    def to_json(self) -> str:
        """Return the report as one JSON object on one line."""
        report = asdict(self)
        for line, shown in zip(self.routes, report["routes"], strict=True):
            shown["block_rate"] = line.block_rate
        return json.dumps(report)


def read_report(
    *,
    seed: int,
    took_s: float,
    workload: Page,
    settler: Page,
    false_successes: list[FalseSuccess],
    comparison: Comparison,
) -> DemoReport:
    """Return the report that the two pages and the ledger give."""
    claims = {
        claimed: int(total(settler, "ledger_claims_total", claimed=claimed)) for claimed in ("done", "not_done", "none")
    }
    settled = total(settler, "ledger_claims_settled_total", claimed="done", effect="landed")
    return DemoReport(
        seed=seed,
        runs=int(total(workload, "runs_total")),
        took_s=took_s,
        claimed=claims,
        verified=int(settled),
        open_claims=int(total(settler, "ledger_claims_open")),
        unclaimed_effects=int(total(settler, "ledger_unclaimed_effects_total")),
        false_successes=false_successes,
        routes=[_route(workload, route) for route in (PLAN_ROUTE, WORK_ROUTE, REVIEW_ROUTE)],
        failures=_failures(workload),
        answers=int(total(workload, "guard_checks_total")),
        refusals=int(total(workload, "guard_blocks_total")),
        compared=comparison.compared,
        above_zero=comparison.above_zero,
        differences=list(comparison.differences),
    )


def _route(page: Page, route: str) -> RouteLine:
    return RouteLine(
        route=route,
        attempts=int(total(page, "handoff_inspections_total", route=route)),
        blocked=int(total(page, "handoff_blocks_total", route=route)),
        repaired=int(total(page, "handoff_repairs_total", route=route, result="repaired")),
        stopped=int(total(page, "handoffs_total", route=route, outcome="stopped")),
    )


def _failures(page: Page) -> list[FailureLine]:
    lines = []
    for (name, labels), value in page.items():
        if name == "handoffwatch_tool_failures_total" and value:
            lines.append(FailureLine(**dict(labels), failures=int(value)))
    return sorted(lines, key=lambda line: (-line.failures, line.tool, line.code))
