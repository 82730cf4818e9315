"""The flows over the primitives: generators of steps that the drivers run in plain or in async code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from handoffwatch.errors import (
    ClaimRefused,
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
from handoffwatch.runtime.handoff_flows import store
from handoffwatch.runtime.step import Step
from handoffwatch.tools.tool import Tool
from handoffwatch.values.names import is_id
from handoffwatch.vocabulary import (
    Action,
    BypassCause,
    Check,
    Component,
    Criticality,
    FailureClass,
    RunOutcome,
    ToolCode,
    ToolOutcome,
    ViolationKind,
)

if TYPE_CHECKING:
    from handoffwatch.outcomes.kind import OperationKind
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.watch import Watch


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
    if not run.close(outcome):
        return
    yield from store(run)
    if run.has_unrecovered_tool_failure:
        yield from _write_violation(run)
    if not run.workflow.operations:
        return
    try:
        yield Write(lambda: run.watch.ledger.end_run(run.run_id, run.workflow.name))
    except LedgerUnavailable:
        run.watch.recorder.emit(CheckBypassed(Check.LEDGER, run.workflow.name, BypassCause.LEDGER_DOWN))


def record_eval(watch: Watch, run_id: str, workflow: str | None, passed: bool) -> Flow[bool]:
    """Write what a final eval said about a run; what the run still keeps for itself is written before."""
    if not is_id(run_id):
        raise RegistrationError(
            f"eval: run_id: must be a text of 1 to 255 characters that can be written, got {type(run_id).__name__}",
            hint="pass the run_id of the run that was evaluated",
        )
    if not isinstance(passed, bool):
        raise RegistrationError(f"eval: passed: must be True or False, got {type(passed).__name__}", hint="passed=True")
    if workflow is not None and workflow not in watch.registrations.workflows:
        raise RegistrationError(
            f"eval: workflow {workflow!r}: is not registered", hint=f"call watch.workflow({workflow!r}) at start"
        )
    run = watch.current(run_id)
    if run is not None:
        yield from store(run)
    known = workflow or watch.workflow_of(run_id)
    is_new: bool = yield Write(lambda: watch.ledger.record_eval(run_id, workflow=known, passed=passed))
    return is_new


def reopen(watch: Watch, task_id: str, route: str | None) -> Flow[int]:
    """Lift the latches of a task in this process, and in the ledger where a durable route may have one."""
    lifted = watch.tasks.reopen(task_id, route)
    if any(each.conduct.durable and route in (None, each.name) for each in watch.watchdog.routes):
        lifted = max(lifted, (yield Write(lambda: watch.ledger.reopen_route(task_id, route))))
    return lifted


def _write_violation(run: Run) -> Flow[None]:
    """Write that a tool failure was not recovered, for the final eval to be held against."""
    counts = {ViolationKind.TOOL: 1}
    try:
        yield Write(lambda: run.watch.ledger.record_violations(run.run_id, run.workflow.name, counts))
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


def _failed(tool: str, step: Step) -> ToolFailed:
    if step.action is Action.NEEDS_HUMAN:
        return NeedsHuman(f"tool {tool}: the call may have happened: a person must look", text=step.text)
    if step.failure_class is FailureClass.REJECTED:
        return ToolRejected(f"tool {tool}: the tool refused these arguments", text=step.text)
    return ToolDown(f"tool {tool}: the call failed", text=step.text)
