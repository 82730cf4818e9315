"""The flows over the primitives: generators of steps that the drivers run in plain or in async code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from handoffwatch.errors import (
    ClaimRefused,
    HandoffBlocked,
    HandoffwatchError,
    LedgerUnavailable,
    NeedsHuman,
    RegistrationError,
    ToolDown,
    ToolFailed,
    ToolRejected,
)
from handoffwatch.events import CheckBypassed, InternalErrorCaught
from handoffwatch.outcomes.claim import Claim
from handoffwatch.outcomes.intent import Intent, intent_of_call, intent_of_expectation
from handoffwatch.outcomes.receipt import Receipt, receipt_of
from handoffwatch.runtime.call import Call
from handoffwatch.runtime.drivers import Flow, Invoke, Wait, Write
from handoffwatch.runtime.step import Step
from handoffwatch.tools.tool import Tool
from handoffwatch.vocabulary import (
    Action,
    BypassCause,
    Check,
    Component,
    Criticality,
    FailureClass,
    Reaction,
    RunOutcome,
    ToolCode,
    ToolOutcome,
)

if TYPE_CHECKING:
    from handoffwatch.outcomes.kind import OperationKind
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.watch import Watch


def transfer(
    run: Run,
    source: str,
    target: str,
    raw: object,
    receiver: Callable[[dict[str, Any]], Any],
    repair: Callable[[Step], object] | None,
    key: str | None,
) -> Flow[Any]:
    """Judge, repair and deliver one handoff; returns what the receiver returned."""
    step = run.handoff(source, target, raw, key=key)
    while step.action is Action.REPAIR and repair is not None:
        try:
            raw = yield Invoke(repair, (step,))
        except BaseException:
            run.abandoned(step)
            raise
        step = run.handoff(source, target, raw, key=key)
    if step.action is Action.REPAIR:
        run.abandoned(step)
    decision = step.decision
    if step.action is not Action.DELIVER or decision is None or run.arrived(step).action is not Action.DELIVER:
        raise _blocked(source, target, step)
    payload = decision.normalized_payload
    try:
        result = yield Invoke(receiver, (raw if payload is None else payload,))
    except BaseException as error:
        run.ended(step, error=error)
        raise
    run.ended(step)
    return result


def call(
    watch: Watch,
    tool: Tool,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    bind: Callable[..., Mapping[str, object]],
) -> Flow[Any]:
    """Call a tool: intent before, bounded repetition, receipt after; returns what the tool returned."""
    run = watch.current()
    kind = watch.registrations.operations[tool.operation] if tool.operation else None
    operation_id: str | None = None
    if kind is not None and run is None:
        watch.recorder.emit(CheckBypassed(Check.LEDGER, kind.name, BypassCause.UNCHECKED))
    elif kind is not None and run is not None:
        try:
            intent = _intent(kind, bind(*args, **kwargs), run)
        except (TypeError, RegistrationError) as error:
            raise _failed(tool.name, _refused_arguments(watch, run, tool)) from error
        operation_id = yield from _write_intent(watch, kind, intent)
    value, step, cause = yield from _attempts(Call(tool, watch=watch, run=run), function, args, kwargs)
    if kind is not None and operation_id is not None:
        yield from _write_receipt(watch, kind, operation_id, step, value)
    if step.action is Action.OK:
        return value
    raise _failed(tool.name, step) from cause


def _intent(kind: OperationKind, arguments: Mapping[str, object], run: Run) -> Intent:
    return intent_of_call(kind, arguments, run_id=run.run_id, workflow=run.workflow.name, traceparent=run.traceparent())


def _refused_arguments(watch: Watch, run: Run, tool: Tool) -> Step:
    """Count a call whose arguments name no operation: it is refused before anything is sent."""
    refused = Call(tool, watch=watch, run=run)
    refused.attempt()
    return refused.classified(FailureClass.REJECTED, ToolCode.EXCEPTION)


def _attempts(
    call: Call, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Flow[tuple[Any, Step, Exception | None]]:
    """Make wire attempts until one succeeds or none is left; returns the value, the last step, and what was raised."""
    try:
        while True:
            call.attempt()
            value, cause = None, None
            try:
                value = yield Invoke(function, args, kwargs, call.scope.span)
            except HandoffwatchError as error:
                ambiguous = isinstance(error, NeedsHuman)
                call.classified(FailureClass.AMBIGUOUS if ambiguous else FailureClass.FATAL, ToolCode.EXCEPTION)
                raise
            except Exception as error:  # noqa: BLE001 - classified here; the caller raises from it
                step, cause = call.raised(error), error
            else:
                step = call.returned(value)
            if step.action is not Action.RETRY:
                return value, step, cause
            yield Wait(step.wait_s)
    except BaseException:
        call.cancelled()
        raise


def expect(run: Run, operation: str, values: Mapping[str, object]) -> Flow[None]:
    """Write what the task calls for."""
    kind = run.watch.registrations.operations.get(operation)
    if kind is None:
        raise RegistrationError(
            f"operation {operation!r}: is not registered", hint=f"call watch.operation({operation!r}, …) at start"
        )
    intent = intent_of_expectation(
        kind, values, run_id=run.run_id, workflow=run.workflow.name, traceparent=run.traceparent()
    )
    try:
        yield Write(lambda: run.watch.ledger.expect(intent))
    except LedgerUnavailable as error:
        _refuse_or_bypass(run.watch, kind, error)


def claim(run: Run, said: Claim) -> Flow[None]:
    """Write what the agent says."""
    if not run.workflow.operations:
        raise ClaimRefused(
            f"workflow {run.workflow.name}: a claim needs operations to be checked against, got none",
            hint=f'watch.workflow("{run.workflow.name}", operations=["…"])',
        )
    traceparent = run.traceparent()
    yield Write(lambda: run.watch.ledger.record_claim(run.run_id, run.workflow.name, said, traceparent=traceparent))
    run.claimed = said.claimed


def finish(run: Run, outcome: RunOutcome | None) -> Flow[None]:
    """End the run in memory, then in the ledger."""
    if not run.close(outcome) or not run.workflow.operations:
        return
    try:
        yield Write(lambda: run.watch.ledger.end_run(run.run_id, run.workflow.name))
    except LedgerUnavailable:
        run.watch.recorder.emit(CheckBypassed(Check.LEDGER, run.workflow.name, BypassCause.LEDGER_DOWN))


def _write_intent(watch: Watch, kind: OperationKind, intent: Intent) -> Flow[str | None]:
    try:
        operation_id: str = yield Write(lambda: watch.ledger.open_operation(intent))
    except LedgerUnavailable as error:
        _refuse_or_bypass(watch, kind, error)
        return None
    return operation_id


def _write_receipt(watch: Watch, kind: OperationKind, operation_id: str, step: Step, value: Any) -> Flow[None]:
    """Write how the call ended. The call has happened, so a ledger that is down is counted and nothing is undone."""
    outcome = ToolOutcome.OK if step.action is Action.OK else ToolOutcome.FAILED
    receipt: Receipt | None = None
    try:
        receipt = receipt_of(kind, value) if outcome is ToolOutcome.OK else None
    except Exception as error:  # noqa: BLE001 - the receipt's own model may raise; the call has happened all the same
        watch.recorder.emit(InternalErrorCaught(Component.RUNTIME, type(error).__name__))
    try:
        yield Write(lambda: watch.ledger.record_receipt(operation_id, outcome, receipt))
    except LedgerUnavailable:
        watch.recorder.emit(CheckBypassed(Check.LEDGER, kind.name, BypassCause.LEDGER_DOWN))


def _refuse_or_bypass(watch: Watch, kind: OperationKind, error: LedgerUnavailable) -> None:
    """Refuse a critical operation before its call; count a routine one as bypassed."""
    if kind.criticality is Criticality.CRITICAL:
        raise error
    watch.recorder.emit(CheckBypassed(Check.LEDGER, kind.name, BypassCause.LEDGER_DOWN))


def _blocked(source: str, target: str, step: Step) -> HandoffBlocked:
    decision = step.decision
    found = decision.findings if decision is not None else ()
    stopping = dict.fromkeys(each.code for each in found if each.reaction in (Reaction.BLOCK, Reaction.HOLD))
    codes = ", ".join(stopping) or "check_failed"
    return HandoffBlocked(
        f"handoff {source}->{target}: blocked before the receiver's first action: {codes}",
        decision=decision,
        hint="read error.decision.findings for the fields and what would be right",
    )


def _failed(tool: str, step: Step) -> ToolFailed:
    if step.action is Action.NEEDS_HUMAN:
        return NeedsHuman(f"tool {tool}: the call may have happened: a person must look", text=step.text)
    if step.failure_class is FailureClass.REJECTED:
        return ToolRejected(f"tool {tool}: the tool refused these arguments", text=step.text)
    return ToolDown(f"tool {tool}: the call failed", text=step.text)
