"""Events to log lines: one line for each thing that went wrong, with names and ids and never a value."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from handoffwatch import events as e
from handoffwatch.vocabulary import Criticality, CriticResult, HandoffOutcome, ToolOutcome, Verdict

LOGGER: Final = logging.getLogger("handoffwatch")
LOGGER.addHandler(logging.NullHandler())


def log(event: e.Event) -> None:
    """Write the line of an event that is worth one; ordinary good events have none."""
    line = _LINES.get(type(event))
    if line is not None:
        line(event)


def log_unknown(label: str, name: str) -> None:
    """Write the line of a name that nobody registered."""
    LOGGER.info("unknown name: label=%s name=%s", label, _shown(name))


def _handoff_inspected(event: e.HandoffInspected) -> None:
    decision = event.decision
    if decision.verdict is not Verdict.BLOCKED:
        return
    LOGGER.warning(
        "handoff blocked: run_id=%s handoff_id=%s source=%s target=%s route=%s attempt=%d mode=%s stage=%s reasons=%s "
        "paths=%s",
        _shown(event.run_id), _shown(decision.handoff_id), _shown(event.source), _shown(event.target),
        decision.route, decision.attempt, decision.mode,
        decision.findings[0].stage, ",".join(decision.reasons), _shown(",".join(decision.paths)),
    )  # fmt: skip


def _critic_answered(event: e.CriticAnswered) -> None:
    told = _CRITIC_LINES.get(event.result)
    if told is None or (event.result is CriticResult.SKIPPED and not event.note):
        return
    level, begins = told
    LOGGER.log(
        level,
        "%s: run_id=%s handoff_id=%s route=%s signals=%s%s",
        begins, _shown(event.run_id), _shown(event.handoff_id), event.route, ",".join(event.signals),
        f": {_shown(event.note)}" if event.note else "",
    )  # fmt: skip


def _handoff_compared(event: e.HandoffCompared) -> None:
    if event.diverged:
        LOGGER.warning(
            "handoff diverged: run_id=%s handoff_id=%s route=%s attempt=%d paths=%s",
            _shown(event.run_id), _shown(event.handoff_id), _shown(event.route), event.attempt,
            _shown(",".join(event.paths)),
        )  # fmt: skip


def _handoff_ended(event: e.HandoffEnded) -> None:
    if event.outcome is HandoffOutcome.NOT_DELIVERED:
        LOGGER.warning(
            "handoff not delivered: run_id=%s handoff_id=%s route=%s",
            _shown(event.run_id), _shown(event.handoff_id), event.labels[0],
        )  # fmt: skip


def _tool_call_ended(event: e.ToolCallEnded) -> None:
    if event.outcome is ToolOutcome.FAILED:
        LOGGER.warning(
            "tool failed: run_id=%s tool=%s code=%s class=%s attempts=%d",
            _shown(event.run_id), _shown(event.tool), event.code, event.failure_class, event.attempts,
        )  # fmt: skip


def _tool_call_started(event: e.ToolCallStarted) -> None:
    if event.is_id_repeated:
        LOGGER.info("tool call id repeated: run_id=%s tool=%s", _shown(event.run_id), _shown(event.tool))


def _tool_attempted(event: e.ToolAttempted) -> None:
    if event.repeated:
        LOGGER.warning(
            "tool repeated by its client: tool=%s attempts=%d: they multiply with those of the policy; turn them off",
            _shown(event.tool), event.repeated,
        )  # fmt: skip


def _tool_breaker_moved(event: e.ToolBreakerMoved) -> None:
    if event.is_open:
        LOGGER.warning("tool breaker open: run_id=%s tool=%s", _shown(event.run_id), _shown(event.tool))


def _tool_ended_late(event: e.ToolEndedLate) -> None:
    LOGGER.warning(
        "tool ended late: run_id=%s tool=%s outcome=%s seconds=%.3f",
        _shown(event.run_id), _shown(event.tool), event.outcome, event.seconds,
    )  # fmt: skip


def _guard_checked(event: e.GuardChecked) -> None:
    if event.reason is not None:
        LOGGER.warning(
            "answer refused: run_id=%s workflow=%s reason=%s mode=%s",
            _shown(event.run_id), event.workflow, event.reason, event.mode,
        )  # fmt: skip


def _effect_settled(event: e.EffectSettled) -> None:
    level = logging.ERROR if event.false_success and event.criticality is Criticality.CRITICAL else logging.INFO
    LOGGER.log(
        level,
        "%s: run_id=%s operation=%s business_key=%s claimed=%s effect=%s cause=%s origin=%s",
        "false success" if event.false_success else "effect settled",
        _shown(event.run_id), event.operation, _shown(event.business_key),
        event.claimed, event.effect, event.cause, event.origin,
    )  # fmt: skip


def _check_bypassed(event: e.CheckBypassed) -> None:
    LOGGER.warning("check bypassed: check=%s name=%s cause=%s", event.check, event.name, event.cause)


def _internal_error_caught(event: e.InternalErrorCaught) -> None:
    LOGGER.error("internal error: component=%s error=%s", event.component, event.error)


def _shown(text: str) -> str:
    """Return a name or id as it may stand in one log line: bounded, printable, without line breaks."""
    return text if text.isprintable() and len(text) <= 200 else ascii(text[:200])[1:-1]


_CRITIC_LINES: Final = {
    CriticResult.CONCERN: (logging.INFO, "critic concern"),
    CriticResult.ERROR: (logging.WARNING, "critic failed"),
    CriticResult.SKIPPED: (logging.INFO, "critic skipped"),
}
"""By result: the level and the first words of its line; a critic that is content has none."""

_LINES: Final[dict[type, Callable[[Any], None]]] = {
    e.HandoffInspected: _handoff_inspected,
    e.HandoffCompared: _handoff_compared,
    e.HandoffEnded: _handoff_ended,
    e.CriticAnswered: _critic_answered,
    e.ToolCallStarted: _tool_call_started,
    e.ToolAttempted: _tool_attempted,
    e.ToolBreakerMoved: _tool_breaker_moved,
    e.ToolEndedLate: _tool_ended_late,
    e.ToolCallEnded: _tool_call_ended,
    e.GuardChecked: _guard_checked,
    e.EffectSettled: _effect_settled,
    e.CheckBypassed: _check_bypassed,
    e.InternalErrorCaught: _internal_error_caught,
}
