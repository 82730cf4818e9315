"""The flows over the primitives: generators of steps that the drivers run in plain or in async code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from handoffwatch.errors import (
    ClaimRefused,
    LedgerUnavailable,
    RegistrationError,
)
from handoffwatch.events import CheckBypassed
from handoffwatch.outcomes.claim import Claim
from handoffwatch.outcomes.intent import intent_of_expectation
from handoffwatch.runtime.drivers import Flow, Write
from handoffwatch.runtime.handoff_flows import store
from handoffwatch.runtime.tool_flows import refuse_or_bypass
from handoffwatch.values.names import is_id
from handoffwatch.vocabulary import (
    BypassCause,
    Check,
    RunOutcome,
    ViolationKind,
)

if TYPE_CHECKING:
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.watch import Watch


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
        refuse_or_bypass(run.watch, kind, error)


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
