"""The flow of a tool call: intent before, bounded repetition, receipt after, and a look at the store in between."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from handoffwatch.errors import (
    HandoffwatchError,
    LedgerUnavailable,
    NeedsHuman,
    RegistrationError,
    ToolDown,
    ToolFailed,
    ToolRejected,
)
from handoffwatch.events import CheckBypassed
from handoffwatch.outcomes.intent import intent_of_call
from handoffwatch.runtime.call import Call
from handoffwatch.runtime.drivers import Flow, Invoke, LeftRunning, NeedsAsyncDriver, Wait, Write
from handoffwatch.runtime.lost_answers import ended_late, settled, write_receipt
from handoffwatch.runtime.step import GO_ON, Step
from handoffwatch.runtime.wanted_calls import Opened, Wanted
from handoffwatch.threads import ThreadsExhausted
from handoffwatch.tools.control_flow import asks_the_model
from handoffwatch.vocabulary import (
    Action,
    BypassCause,
    Check,
    Criticality,
    Effect,
    FailureClass,
    Safety,
    ToolCode,
    ToolOutcome,
    WhenFailed,
)

if TYPE_CHECKING:
    from handoffwatch.outcomes.kind import OperationKind
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.watch import Watch


_TELL: Final = 'give the model error.text, or let it be returned with when_failed="text"'


def call(wanted: Wanted) -> Flow[Any]:
    """Make one logical call; returns what the tool returned, or the fixed text where it failed and is to say so."""
    if is_watched_already(wanted):
        return (yield Invoke(wanted.function, wanted.arguments.args, wanted.arguments.kwargs))
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


def is_watched_already(wanted: Wanted) -> bool:
    """Return whether an outer layer watches this very call."""
    outer = wanted.watch.current_call()
    return outer is not None and outer.is_same_call(wanted.tool, wanted.watch.current(), wanted.arguments)


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
            wanted.arguments.bound(),
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


def concluded(wanted: Wanted, opened: Opened, value: Any, step: Step, cause: BaseException | None) -> Flow[Any]:
    """Return the value of a call that worked, with its receipt written.

    Raises:
        ToolFailed: It did not work, or its answer was lost.
    """
    try:
        yield from _close_call(opened, step, value)
        if step.action is Action.NEEDS_HUMAN:
            step = yield from settled(wanted, opened, step, cause)
    except BaseException:
        if step.action is Action.NEEDS_HUMAN:
            opened.call.read_back(Effect.UNKNOWN)  # interrupted before anybody knew
        raise
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
        wanted.arguments.args,
        wanted.arguments.kwargs,
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
                call.nested(error)
                raise
            except NeedsAsyncDriver as error:
                is_unknown = error.has_begun and wanted.tool.safety is Safety.UNSAFE
                failure_class = FailureClass.AMBIGUOUS if is_unknown else FailureClass.FATAL
                step, cause = call.classified(failure_class, ToolCode.EXCEPTION), error
            except ThreadsExhausted as error:  # nothing was sent
                step, cause = call.classified(FailureClass.RETRYABLE, ToolCode.CONNECTION), error
            except Exception as error:
                step, cause = call.raised(error), error
                if isinstance(error, LeftRunning):
                    error.when_done(functools.partial(ended_late, wanted.watch, opened))
                if asks_the_model(error) or _is_let_go(step):
                    raise
            else:
                step = told(value)
                step = GO_ON if _is_let_go(step) else step
            finally:
                wanted.watch.calls.reset(current)
            if step.action is not Action.RETRY:
                return value, step, cause
            yield Wait(step.wait_s)
    except BaseException:
        call.cancelled()
        raise


def _is_let_go(step: Step) -> bool:
    """Return whether a call needs nothing more: it worked, was put off, or somebody else has ended it; what its
    function returns or raises goes on unchanged."""
    return step.failure_class is None and step.action is not Action.RETRY


def _close_call(opened: Opened, step: Step, value: Any) -> Flow[None]:
    """Write how a call ended. It has happened, so a ledger that is down is counted and nothing is undone."""
    if opened.kind is None or opened.operation_id is None:
        return
    outcome = ToolOutcome.OK if step.action is Action.OK else ToolOutcome.FAILED
    yield from write_receipt(opened.call.watch, opened.kind, opened.operation_id, outcome, value)


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
        return ToolRejected(
            f"tool {tool}: the tool refused these arguments", text=step.text, hint=f"{_TELL}; it may correct them"
        )
    hint = f"its service asks to wait {step.wait_s:.0f} s before the next call" if step.wait_s else _TELL
    return ToolDown(f"tool {tool}: the call failed", text=step.text, hint=hint)


def refuse_or_bypass(watch: Watch, kind: OperationKind, error: LedgerUnavailable) -> None:
    """Refuse a critical operation before its call; count a routine one as bypassed."""
    if kind.criticality is Criticality.CRITICAL:
        raise error
    watch.recorder.emit(CheckBypassed(Check.LEDGER, kind.name, BypassCause.LEDGER_DOWN))


def _begun(wanted: Wanted, run: Run | None) -> Call:
    """Return the call that an outer layer has begun for this tool, else a new one."""
    outer = None if run is None else run.tools.join(wanted.tool.name, wanted.arguments)
    if outer is not None:
        outer.given(wanted.arguments)
        return outer
    return Call(wanted.tool, watch=wanted.watch, run=run, arguments=wanted.arguments)
