"""The flow of a tool call: intent before, bounded repetition, receipt after, and a look at the store in between."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from handoffwatch.errors import (
    HandoffwatchError,
    LedgerUnavailable,
    NeedsHuman,
    RegistrationError,
    ToolConfirmed,
    ToolDown,
    ToolFailed,
    ToolRejected,
)
from handoffwatch.events import CheckBypassed, EffectVerified, InternalErrorCaught
from handoffwatch.outcomes.intent import Intent, intent_of_call
from handoffwatch.outcomes.receipt import Receipt, receipt_of
from handoffwatch.outcomes.verification import ReadBack
from handoffwatch.runtime.call import Call
from handoffwatch.runtime.drivers import Flow, Invoke, LeftRunning, Wait, Write
from handoffwatch.runtime.handoff_flows import store
from handoffwatch.runtime.step import Step
from handoffwatch.threads import DaemonThreads, ThreadsExhausted
from handoffwatch.tools.control_flow import asks_the_model, is_control_flow
from handoffwatch.tools.failure import confirmed_text
from handoffwatch.tools.tool import Tool
from handoffwatch.vocabulary import (
    Action,
    BypassCause,
    Check,
    Component,
    Criticality,
    Effect,
    FailureClass,
    Safety,
    ToolCode,
    ToolOutcome,
    VerificationResult,
    WhenFailed,
)

if TYPE_CHECKING:
    from handoffwatch.outcomes.kind import OperationKind
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.watch import Watch

LATE_MAX = 64
"""How many late results of this process are written down at once; one more is told in the log alone."""

_LATE = DaemonThreads("handoffwatch-late", threads_max=LATE_MAX)


class Wanted(NamedTuple):
    """One wanted call of a tool.

    Attributes:
        watch: The watch.
        tool: The tool.
        function: What makes the call.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        bind: Gives the arguments by name, for a tool with an operation.
    """

    watch: Watch
    tool: Tool
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    bind: Callable[..., Mapping[str, object]]


class Opened(NamedTuple):
    """A call whose intent is written.

    Attributes:
        call: The call.
        kind: The operation that it opens; None when it opens none.
        intent: What it is to do.
        operation_id: The ledger's id; None when the ledger has none.
    """

    call: Call
    kind: OperationKind | None = None
    intent: Intent | None = None
    operation_id: str | None = None


def call(wanted: Wanted) -> Flow[Any]:
    """Make one logical call; returns what the tool returned, or the fixed text where it failed and is to say so."""
    outer = wanted.watch.current_call()
    if outer is not None and outer.is_same_call(wanted.tool, (wanted.args, wanted.kwargs)):
        return (yield Invoke(wanted.function, wanted.args, wanted.kwargs))  # an outer layer watches this very call
    try:
        is_plain = wanted.tool.operation is None
        opened = Opened(_begun(wanted, wanted.watch.current())) if is_plain else (yield from open_call(wanted))
        value, step, cause = yield from attempts(wanted, opened, told=opened.call.returned)
        if is_plain and step.action is Action.OK:
            return value  # nothing of it is written down
        return (yield from concluded(wanted, opened, value, step, cause))
    except ToolFailed as error:
        if wanted.tool.when_failed is WhenFailed.RAISE:
            raise
        return error.text


def open_call(wanted: Wanted) -> Flow[Opened]:
    """Begin a call, with its intent written where its tool has an operation."""
    watch, tool = wanted.watch, wanted.tool
    run = watch.current()
    kind = watch.registrations.operations[tool.operation] if tool.operation else None
    if kind is not None and run is None:
        watch.recorder.emit(CheckBypassed(Check.LEDGER, kind.name, BypassCause.UNCHECKED))
    if kind is None or run is None:
        return Opened(_begun(wanted, run), kind)
    try:
        intent = intent_of_call(
            kind,
            wanted.bind(*wanted.args, **wanted.kwargs),
            run_id=run.run_id,
            workflow=run.workflow.name,
            traceparent=run.traceparent(),
        )
    except (TypeError, RegistrationError) as error:
        refused = _begun(wanted, run)  # what names no operation is refused before anything is sent
        refused.attempt()
        raise failed(refused, refused.classified(FailureClass.REJECTED, ToolCode.EXCEPTION)) from error
    operation_id: str | None = None
    try:
        operation_id = yield Write(lambda: watch.ledger.open_operation(intent))
    except LedgerUnavailable as error:
        refuse_or_bypass(watch, kind, error)
    opened = Opened(_begun(wanted, run), kind, intent, operation_id)
    opened.call.is_read_back = kind.verifier is not None and operation_id is not None
    return opened


def concluded(wanted: Wanted, opened: Opened, value: Any, step: Step, cause: Exception | None) -> Flow[Any]:
    """Return the value of a call that worked, with its receipt written.

    Raises:
        ToolFailed: It did not work, or its answer was lost.
    """
    yield from _close_call(opened, step, value)
    if step.action is Action.NEEDS_HUMAN:
        step = yield from _settled(wanted, opened, step)
    if step.action is Action.OK:
        return value
    raise failed(opened.call, step) from cause


def attempts(
    wanted: Wanted, opened: Opened, *, told: Callable[[Any], Step]
) -> Flow[tuple[Any, Step, Exception | None]]:
    """Make wire attempts until one succeeds or none is left; returns the value, the last step, and what was raised.

    Args:
        wanted: The call.
        opened: As it was begun.
        told: Is told what the function returned, and says what follows.
    """
    call = opened.call
    invoke = Invoke(
        wanted.function,
        wanted.args,
        wanted.kwargs,
        call.scope.span,
        wanted.tool.limit_s,
        wanted.watch.settings.tools.grace_s,
        wanted.tool.safety is Safety.UNSAFE,
    )
    try:
        while True:
            step = call.attempt()
            if step.action is not Action.OK:
                return None, step, None
            value: Any = None
            cause: Exception | None = None
            current = wanted.watch.calls.set(call)
            try:
                value = yield invoke
            except HandoffwatchError as error:
                is_ambiguous = isinstance(error, NeedsHuman)
                call.classified(FailureClass.AMBIGUOUS if is_ambiguous else FailureClass.FATAL, ToolCode.EXCEPTION)
                raise
            except ThreadsExhausted as error:  # nothing was sent
                step, cause = call.classified(FailureClass.RETRYABLE, ToolCode.CONNECTION), error
            except Exception as error:
                step, cause = call.raised(error), error
                if isinstance(error, LeftRunning):
                    error.when_done(functools.partial(_ended_late, wanted.watch, opened))
                if is_control_flow(error) or asks_the_model(error):
                    raise
            else:
                step = told(value)
            finally:
                wanted.watch.calls.reset(current)
            if step.action is not Action.RETRY:
                return value, step, cause
            yield Wait(step.wait_s)
    except BaseException:
        call.cancelled()
        raise


def _close_call(opened: Opened, step: Step, value: Any) -> Flow[None]:
    """Write how a call ended. It has happened, so a ledger that is down is counted and nothing is undone."""
    if opened.kind is None or opened.operation_id is None:
        return
    outcome = ToolOutcome.OK if step.action is Action.OK else ToolOutcome.FAILED
    yield from _write_receipt(opened.call.watch, opened.kind, opened.operation_id, outcome, value)


def _settled(wanted: Wanted, opened: Opened, step: Step) -> Flow[Step]:
    """Return what follows a call of which nobody knows: its effect is read back, else a person has its case.

    Raises:
        ToolConfirmed: The effect is in the store, so that only the answer was lost.
    """
    call, watch = opened.call, wanted.watch
    if call.is_read_back and opened.kind is not None and opened.intent is not None:
        step = call.read_back((yield from _effect(watch, call, opened.kind, opened.intent)))
        if step.action is Action.OK:
            yield from _write_receipt(watch, opened.kind, opened.operation_id or "", ToolOutcome.OK, None)
            raise ToolConfirmed(
                f"tool {wanted.tool.name}: the call got no answer, and its effect was found in the store",
                text=confirmed_text(wanted.tool.name),
            )
    if step.action is Action.NEEDS_HUMAN and call.run is not None:
        yield from store(call.run)
    return step


def failed(call: Call, step: Step) -> ToolFailed:
    """Return the error that says how a call failed."""
    tool = call.tool.name
    if step.action is Action.NEEDS_HUMAN:
        hint = 'handoffwatch case list --kind ambiguous, then handoffwatch case resolve ID --note "…"'
        return NeedsHuman(
            f"tool {tool}: the call may have happened: a person must look",
            text=step.text,
            hint=hint if call.run else "",
        )
    if step.failure_class is FailureClass.REJECTED:
        return ToolRejected(f"tool {tool}: the tool refused these arguments", text=step.text)
    hint = f"its service asks to wait {step.wait_s:.0f} s before the next call" if step.wait_s else ""
    return ToolDown(f"tool {tool}: the call failed", text=step.text, hint=hint)


def refuse_or_bypass(watch: Watch, kind: OperationKind, error: LedgerUnavailable) -> None:
    """Refuse a critical operation before its call; count a routine one as bypassed."""
    if kind.criticality is Criticality.CRITICAL:
        raise error
    watch.recorder.emit(CheckBypassed(Check.LEDGER, kind.name, BypassCause.LEDGER_DOWN))


def _begun(wanted: Wanted, run: Run | None) -> Call:
    """Return the call that an outer layer has begun for this tool, else a new one."""
    args = (wanted.args, dict(wanted.kwargs))
    outer = None if run is None else run.tools.join(wanted.tool.name)
    if outer is not None:
        outer.given(args)
        return outer
    return Call(wanted.tool, watch=wanted.watch, run=run, args=args)


def _effect(watch: Watch, call: Call, kind: OperationKind, intent: Intent) -> Flow[Effect]:
    """Return what the store says of a call that got no answer, read as often as the operation's policy says.

    What is pending at the end is not known: the record may yet fail.
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
        if effect in (Effect.LANDED, Effect.NOT_LANDED):
            return effect
    return Effect.UNKNOWN


def _write_receipt(
    watch: Watch, kind: OperationKind, operation_id: str, outcome: ToolOutcome, value: Any
) -> Flow[None]:
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


def _ended_late(watch: Watch, opened: Opened, done: Any) -> None:
    """Record how the work ended that a time-out had left running, against its call, its operation and its case."""
    call = opened.call
    is_cancelled = done.cancelled()
    error = None if is_cancelled else done.exception()
    if is_cancelled or isinstance(error, asyncio.CancelledError):
        outcome = ToolOutcome.CANCELLED
    else:
        is_ok = error is None and call.judge(done.result()) is None
        outcome = ToolOutcome.OK if is_ok else ToolOutcome.FAILED
    call.ended_late(outcome)
    receipt = None
    if outcome is ToolOutcome.OK and opened.kind is not None:
        receipt = _receipt(watch, opened.kind, done.result())
    if call.run is None:
        return
    run = call.run

    def write() -> None:
        try:
            if outcome is ToolOutcome.OK and opened.operation_id is not None:
                watch.ledger.record_receipt(opened.operation_id, outcome, receipt)
            run.is_known_late(call, outcome)
        except Exception as error:  # noqa: BLE001 - nobody waits for it: a recorder fails open
            run.recording_failed(error)

    try:
        _LATE.start(write)
    except ThreadsExhausted as error:
        run.recording_failed(error)
