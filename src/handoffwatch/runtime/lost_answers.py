"""What follows a call whose answer was lost: its effect is read back, its late end recorded, a person asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from handoffwatch.errors import LedgerUnavailable, ToolConfirmed
from handoffwatch.events import CheckBypassed, EffectVerified, InternalErrorCaught
from handoffwatch.outcomes.intent import Intent
from handoffwatch.outcomes.receipt import Receipt, receipt_of
from handoffwatch.outcomes.verification import ReadBack
from handoffwatch.runtime.call import Call
from handoffwatch.runtime.drivers import Flow, LeftRunning, Wait, Write
from handoffwatch.runtime.handoff_flows import store
from handoffwatch.runtime.step import Step
from handoffwatch.runtime.stream_closing import close_late
from handoffwatch.runtime.wanted_calls import Begun, Opened, Wanted
from handoffwatch.threads import DaemonThreads, ThreadsExhausted
from handoffwatch.tools.failure import confirmed_text
from handoffwatch.vocabulary import (
    Action,
    BypassCause,
    Check,
    Component,
    Effect,
    ToolOutcome,
    VerificationResult,
)

if TYPE_CHECKING:
    from handoffwatch.outcomes.kind import OperationKind
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.watch import Watch

LATE_MAX: Final = 64
"""How many late results of this process are written down at once; one more is told in the log alone."""

_LATE: Final = DaemonThreads("handoffwatch-late", threads_max=LATE_MAX)


def settled(wanted: Wanted, opened: Opened, step: Step, cause: BaseException | None) -> Flow[Step]:
    """Return what follows a call of which nobody knows: its effect is read back, else a person has its case.

    Args:
        wanted: The call.
        opened: As it was begun.
        step: What it was told last.
        cause: What its function raised.

    Raises:
        ToolConfirmed: The effect is in the store, so that only the answer was lost.
    """
    call, watch = opened.call, wanted.watch
    if call.is_read_back and opened.kind is not None and opened.intent is not None:
        step = call.read_back((yield from _effect(watch, call, opened.kind, opened.intent, cause)))
        if step.action is Action.OK:
            yield from write_receipt(watch, opened.kind, opened.operation_id or "", ToolOutcome.OK, None)
            raise ToolConfirmed(
                f"tool {wanted.tool.name}: the call got no answer, and its effect was found in the store",
                text=confirmed_text(wanted.tool.name),
                hint="give the model error.text; what the call returned is lost, and stands in the store",
            )
    if step.action is Action.NEEDS_HUMAN and call.run is not None:
        yield from store(call.run)
    return step


def _effect(watch: Watch, call: Call, kind: OperationKind, intent: Intent, cause: BaseException | None) -> Flow[Effect]:
    """Return what the store says of a call that got no answer, read as often as the operation's policy says.

    What is pending at the end is not known: the record may yet fail. Nor is what is absent while the work goes on that
    a time-out left running.
    """
    from handoffwatch.settlement.asking import Asker, VerifierFailed

    settings = watch.settings.settlement
    policy, asker = kind.policy(settings.policy()), Asker(timeout_s=settings.verifier_timeout_s)
    verifier = kind.verifier
    assert verifier is not None
    for poll_s in policy.polls_s:
        wait_s = poll_s - call.since_sent_s
        if call.elapsed_s + max(0.0, wait_s) > call.tool.policy.deadline_s:
            break
        if wait_s > 0:
            yield Wait(wait_s)
        may_yet_land = isinstance(cause, LeftRunning) and cause.goes_on
        question = ReadBack(kind, intent, None, age_s=call.since_sent_s, window_s=policy.read_back_window_s)
        started_s = watch.clock.monotonic_s()
        try:
            effect: Effect = (yield Write(lambda: asker.ask(verifier, question))).effect  # noqa: B023 - run before the next
            result = VerificationResult(effect)
        except VerifierFailed:
            effect, result = Effect.UNKNOWN, VerificationResult.ERROR
        watch.recorder.emit(
            EffectVerified(
                intent.run_id,
                intent.workflow,
                kind.name,
                intent.key,
                kind.criticality,
                result,
                watch.clock.monotonic_s() - started_s,
                intent.traceparent,
            )
        )
        if effect is Effect.LANDED or (effect is Effect.NOT_LANDED and not may_yet_land):
            return effect
    return Effect.UNKNOWN


def write_receipt(watch: Watch, kind: OperationKind, operation_id: str, outcome: ToolOutcome, value: Any) -> Flow[None]:
    """Write how the call of an operation ended, with the receipt that it returned; a ledger that is down is counted."""
    receipt = _receipt(watch, kind, value) if outcome is ToolOutcome.OK and value is not None else None
    try:
        yield Write(lambda: watch.ledger.record_receipt(operation_id, outcome, receipt))
    except LedgerUnavailable:
        watch.recorder.emit(CheckBypassed(Check.LEDGER, kind.name, BypassCause.LEDGER_DOWN))


def _receipt(watch: Watch, kind: OperationKind, value: Any) -> Receipt | None:
    try:
        return receipt_of(kind, value)
    except Exception as error:  # noqa: BLE001 - the receipt's own model may raise; the call has happened all the same
        watch.recorder.emit(InternalErrorCaught(Component.RUNTIME, type(error).__name__))
        return None


def ended_late(watch: Watch, opened: Opened, done: Any) -> None:
    """Record how the work ended that a time-out had left running, against its call, its operation and its case."""
    call = opened.call
    is_cancelled = done.cancelled()
    error = None if is_cancelled else done.exception()
    value = done.result() if error is None and not is_cancelled else None
    begun = value if isinstance(value, Begun) else None
    if begun is not None:
        value = begun.first
    if is_cancelled or isinstance(error, asyncio.CancelledError):
        outcome = ToolOutcome.CANCELLED
    else:
        is_ok = error is None and (call.judge(value) if begun is None else begun.failure) is None
        outcome = ToolOutcome.OK if is_ok else ToolOutcome.FAILED
    call.ended_late(outcome)
    receipt = None
    if outcome is ToolOutcome.OK and opened.kind is not None:
        receipt = _receipt(watch, opened.kind, value)
    if call.run is not None:
        _note_late_end(call.run, opened, outcome, receipt)
    if begun is not None:
        close_late(watch, begun.pieces)  # nobody reads the rest


def _note_late_end(run: Run, opened: Opened, outcome: ToolOutcome, receipt: Receipt | None) -> None:
    """Write a late end down in a thread of its own: it may come in an event loop."""

    def write() -> None:
        try:
            if outcome is ToolOutcome.OK and opened.operation_id is not None:
                run.watch.ledger.record_receipt(opened.operation_id, outcome, receipt)
            run.note_late_end(opened.call)
        except Exception as error:  # noqa: BLE001 - nobody waits for it: a recorder fails open
            run.recording_failed(error)

    try:
        _LATE.start(write)
    except ThreadsExhausted as error:
        run.recording_failed(error)
