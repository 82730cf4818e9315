"""Events to samples: which event feeds which metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from opentelemetry.trace import SpanContext

from handoffwatch import catalogue as c
from handoffwatch import events as e
from handoffwatch.recording.book import Book
from handoffwatch.vocabulary import OTHER, AttemptKind, CriticResult, ToolCode, ToolOutcome, Verdict

_E = TypeVar("_E")
Feeder = Callable[[Book, Any, "SpanContext | None"], None]

FEEDERS: Final[dict[type, Feeder]] = {}
"""By the event's class: what raises its samples."""

_FEEDS: Final[dict[type, tuple[c.Metric, ...]]] = {}


def _feeds(event: type[_E], *metrics: c.Metric) -> Callable[[Callable[[Book, _E, SpanContext | None], None]], None]:
    def register(feeder: Callable[[Book, _E, SpanContext | None], None]) -> None:
        FEEDERS[event] = feeder
        _FEEDS[event] = metrics

    return register


@_feeds(e.RunStarted, c.RUNS_STARTED)
def _run_started(book: Book, event: e.RunStarted, sampled: SpanContext | None) -> None:
    book.add(c.RUNS_STARTED, (event.workflow,))
    book.move(c.RUNS_IN_PROGRESS, (event.workflow,), 1)


@_feeds(
    e.RunEnded,
    c.RUNS,
    c.RUNS_WITHOUT_TOOL_SUCCESS,
    c.RUNS_UNRECOVERED,
    c.RUNS_UNINSPECTED,
)
def _run_ended(book: Book, event: e.RunEnded, sampled: SpanContext | None) -> None:
    book.add(c.RUNS, (event.workflow, event.tools, event.outcome))
    book.move(c.RUNS_IN_PROGRESS, (event.workflow,), -1)
    if event.zero_success is not None:
        book.add(c.RUNS_WITHOUT_TOOL_SUCCESS, (event.workflow, event.tools, event.zero_success), sampled=sampled)
    if event.unrecovered_tool_failure:
        book.add(c.RUNS_UNRECOVERED, (event.workflow,), sampled=sampled)
    if not event.inspected:
        book.add(c.RUNS_UNINSPECTED, (event.workflow,))


@_feeds(
    e.HandoffInspected,
    c.HANDOFF_INSPECTIONS,
    c.HANDOFF_BLOCKS,
    c.HANDOFF_FINDINGS,
    c.HANDOFF_REPAIRS,
    c.HANDOFF_OVERHEAD,
    c.HANDOFF_DETECTION,
    c.CLOCK_SKEW,
)
def _handoff_inspected(book: Book, event: e.HandoffInspected, sampled: SpanContext | None) -> None:
    decision, labels = event.decision, event.labels
    kind = AttemptKind.FIRST if decision.attempt == 1 else AttemptKind.REPAIR
    tried = (*labels, decision.mode, kind)
    book.add(c.HANDOFF_INSPECTIONS, tried)
    book.observe(c.HANDOFF_OVERHEAD, (labels[0],), event.overhead_s, sampled)
    if decision.verdict is Verdict.BLOCKED:
        book.add(c.HANDOFF_BLOCKS, tried, sampled=sampled)
    if decision.findings:
        for code, reaction in {finding.code: finding.reaction for finding in decision.findings}.items():
            book.add(c.HANDOFF_FINDINGS, (*labels, decision.mode, code, reaction))
    if event.detection_s is not None:
        book.observe(c.HANDOFF_DETECTION, (labels[0],), max(0.0, event.detection_s), sampled)
        if event.detection_s < 0:
            book.add(c.CLOCK_SKEW, ())
    if event.repair is not None:
        book.add(c.HANDOFF_REPAIRS, (*labels, event.repair))
    if labels[0] == OTHER:
        book.overflow(c.HANDOFF_INSPECTIONS, "route")
    elif labels[3] == OTHER:
        book.overflow(c.HANDOFF_INSPECTIONS, "schema_version")


@_feeds(e.HandoffCompared, c.HANDOFF_DIVERGENCES)
def _handoff_compared(book: Book, event: e.HandoffCompared, sampled: SpanContext | None) -> None:
    for pattern in event.diverged:
        book.add(c.HANDOFF_DIVERGENCES, (event.route, pattern), sampled=sampled)


@_feeds(e.HandoffEnded, c.HANDOFFS, c.HANDOFF_ATTEMPTS)
def _handoff_ended(book: Book, event: e.HandoffEnded, sampled: SpanContext | None) -> None:
    book.add(c.HANDOFFS, (*event.labels, event.outcome))
    book.observe(c.HANDOFF_ATTEMPTS, (event.labels[0],), event.attempts)


@_feeds(e.CriticAnswered, c.CRITIC_CHECKS, c.CRITIC_DURATION)
def _critic_answered(book: Book, event: e.CriticAnswered, sampled: SpanContext | None) -> None:
    is_bad = event.result in (CriticResult.CONCERN, CriticResult.ERROR)
    book.add(c.CRITIC_CHECKS, (event.route, event.result), sampled=sampled if is_bad else None)
    if event.result is not CriticResult.SKIPPED:
        book.observe(c.CRITIC_DURATION, (event.route,), event.duration_s, sampled)


@_feeds(e.UsageReported, c.CHECK_TOKENS, c.CHECK_COST)
def _usage_reported(book: Book, event: e.UsageReported, sampled: SpanContext | None) -> None:
    book.add(c.CHECK_TOKENS, (event.route, event.purpose), event.tokens)
    book.add(c.CHECK_COST, (event.route, event.purpose), event.cost_usd)


@_feeds(e.ToolCallStarted, c.TOOL_CALLS)
def _tool_call_started(book: Book, event: e.ToolCallStarted, sampled: SpanContext | None) -> None:
    book.add(c.TOOL_CALLS, (event.tool,))


@_feeds(e.ToolAttempted, c.TOOL_ATTEMPTS)
def _tool_attempted(book: Book, event: e.ToolAttempted, sampled: SpanContext | None) -> None:
    book.add(c.TOOL_ATTEMPTS, (event.tool, event.code))
    if event.repeated:
        book.add(c.TOOL_ATTEMPTS, (event.tool, ToolCode.EXCEPTION), event.repeated)


@_feeds(e.ToolBreakerMoved)
def _tool_breaker_moved(book: Book, event: e.ToolBreakerMoved, sampled: SpanContext | None) -> None:
    book.move(c.TOOL_BREAKER_OPEN, (event.tool,), 1 if event.is_open else -1)


@_feeds(e.ToolEndedLate)
def _tool_ended_late(book: Book, event: e.ToolEndedLate, sampled: SpanContext | None) -> None:
    """It is told in the log and in the case: its call was counted when it ended."""


@_feeds(e.ToolCallEnded, c.TOOL_CALLS_ENDED, c.TOOL_FAILURES, c.TOOL_DURATION, c.TOOL_RETRY_WAIT)
def _tool_call_ended(book: Book, event: e.ToolCallEnded, sampled: SpanContext | None) -> None:
    book.add(c.TOOL_CALLS_ENDED, (event.tool, event.outcome))
    book.observe(c.TOOL_DURATION, (event.tool,), event.duration_s, sampled)
    if event.outcome is ToolOutcome.FAILED and event.code is not None and event.failure_class is not None:
        book.add(c.TOOL_FAILURES, (event.tool, event.code, event.failure_class), sampled=sampled)
    if event.wait_s:
        book.add(c.TOOL_RETRY_WAIT, (event.tool,), event.wait_s)


@_feeds(e.GuardChecked, c.GUARD_CHECKS, c.GUARD_BLOCKS, c.GUARD_LATE_REFUSALS)
def _guard_checked(book: Book, event: e.GuardChecked, sampled: SpanContext | None) -> None:
    book.add(c.GUARD_CHECKS, (event.workflow, event.mode))
    if event.reason is not None:
        book.add(c.GUARD_BLOCKS, (event.workflow, event.mode, event.reason), sampled=sampled)
        if event.is_late:
            book.add(c.GUARD_LATE_REFUSALS, (event.workflow,), sampled=sampled)


@_feeds(e.CheckBypassed, c.CHECKS_BYPASSED)
def _check_bypassed(book: Book, event: e.CheckBypassed, sampled: SpanContext | None) -> None:
    book.add(c.CHECKS_BYPASSED, (event.check, event.name, event.cause))


@_feeds(e.EffectVerified, c.VERIFICATIONS, c.VERIFICATION_SECONDS)
def _effect_verified(book: Book, event: e.EffectVerified, sampled: SpanContext | None) -> None:
    book.add(c.VERIFICATIONS, (event.operation, event.result))
    book.observe(c.VERIFICATION_SECONDS, (event.operation,), event.duration_s, sampled)


@_feeds(e.EffectSettled, c.SETTLEMENT_SECONDS)
def _effect_settled(book: Book, event: e.EffectSettled, sampled: SpanContext | None) -> None:
    book.observe(c.SETTLEMENT_SECONDS, (event.operation,), event.seconds, sampled)


@_feeds(e.CaseReviewed, c.REVIEW_WAIT)
def _case_reviewed(book: Book, event: e.CaseReviewed, sampled: SpanContext | None) -> None:
    book.observe(c.REVIEW_WAIT, (event.kind,), event.seconds, sampled)


@_feeds(e.InternalErrorCaught, c.INTERNAL_ERRORS)
def _internal_error_caught(book: Book, event: e.InternalErrorCaught, sampled: SpanContext | None) -> None:
    book.add(c.INTERNAL_ERRORS, (event.component,))


FED_BY_EVENTS: Final = {event: metrics for event, metrics in _FEEDS.items()}
"""By the event's class: the metrics it feeds."""

FED_BY_PROCESS: Final = (
    c.HANDOFF_ROUTE_INFO,
    c.RUNS_IN_PROGRESS,
    c.TOOL_BREAKER_OPEN,
    c.TELEMETRY_DROPPED,
    c.LABEL_OVERFLOW,
    c.SELFTEST_TIME,
    c.BUILD_INFO,
)
"""The metrics that the state of the process feeds."""

FED: Final = (*(metric for metrics in FED_BY_EVENTS.values() for metric in metrics), *FED_BY_PROCESS)
"""The metrics that a process exposes; the ledger's stand in `handoffwatch.ledger.collector.FED`."""
