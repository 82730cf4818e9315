"""One execution of a workflow: the primitives that frameworks call, and the plain-Python flows over them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace

from handoffwatch.catalogue import TOOL_CALLS
from handoffwatch.errors import Stopped
from handoffwatch.events import (
    CheckBypassed,
    GuardChecked,
    InternalErrorCaught,
    RunEnded,
    RunStarted,
)
from handoffwatch.outcomes.claim import Claim
from handoffwatch.recording.spans import INVOKE_WORKFLOW, OPERATION_NAME, RUN_ID, WORKFLOW_NAME, clean
from handoffwatch.recording.traceparent import traceparent_of
from handoffwatch.runtime import flows, handoff_flows
from handoffwatch.runtime.attempts import NOT_GIVEN, Attempt, way_of
from handoffwatch.runtime.call import Call
from handoffwatch.runtime.call_arguments import CallArguments
from handoffwatch.runtime.critics import CriticBudget
from handoffwatch.runtime.drivers import drive, drive_async
from handoffwatch.runtime.handoffs import Handoffs
from handoffwatch.runtime.registrations import Workflow
from handoffwatch.runtime.run_tools import RunTools
from handoffwatch.runtime.step import Step
from handoffwatch.runtime.tool_functions import F, bound
from handoffwatch.runtime.unstored import Closing, Unstored
from handoffwatch.tools.failure import OWN_TEXTS, REFUSAL_TEXT
from handoffwatch.tools.guard import refusal_reason
from handoffwatch.vocabulary import (
    Action,
    BypassCause,
    Check,
    Claimed,
    Component,
    FailureClass,
    Mode,
    RunOutcome,
    ToolCode,
    ZeroSuccessCause,
)

if TYPE_CHECKING:
    from handoffwatch.ledger.facts import Evidence
    from handoffwatch.runtime.watch import Watch


class Run:
    """One run of a workflow, made by `Watch.run`; use it in a `with` or `async with` block.

    The primitives (`handoff`, `arrived`, `ended`, `call`, `answer`, `finish`) touch memory only, never raise, and may
    come from any thread. The durable steps (`expect`, `claim`, and the end of a run with operations) may wait for one
    commit. The flows (`transfer`) run the user's functions.

    Attributes:
        run_id: The id of the run.
        workflow: The registered workflow.
        task_id: The task, or None.
        context_version: The version of the state that handoffs must rest on; the host may raise it.
        claimed: What the run has claimed, or None.
        watch: The Watch that made this run.
        scope: The run's scope: its span is the parent of what happens where no span is current.
        handoffs: Its handoffs.
        tools: What it knows of its tool calls.
        critic_budget: What the critics of its handoffs have spent.
        unstored: What has ended and waits for the ledger.
    """

    def __init__(
        self, watch: Watch, workflow: Workflow, *, run_id: str, task_id: str | None, context_version: int | None
    ) -> None:
        self.run_id = run_id
        self.workflow = workflow
        self.task_id = task_id
        self.context_version = context_version
        self.claimed: Claimed | None = None
        self.watch = watch
        self._recorder = watch.recorder
        self._clock = watch.clock
        self._lock = threading.Lock()
        self.tools = RunTools(self._recorder, run_id, breaker_after=watch.settings.tools.breaker_after)
        self._bypassed = False
        self._guard = "unchecked"
        self._finished = False
        self._started_s = self._clock.monotonic_s()
        self.scope = self._recorder.open(
            f"{INVOKE_WORKFLOW} {workflow.name}",
            {OPERATION_NAME: INVOKE_WORKFLOW, WORKFLOW_NAME: workflow.name, RUN_ID: clean(run_id)},
        )
        self.critic_budget = CriticBudget()
        self.unstored = Unstored(self._recorder.events_dropped)
        self.handoffs = Handoffs(self)
        self._run_token: Token[Run | None] | None = None
        self._span_token: Token[Any] | None = None
        self._outer: Run | None = None
        self._around = otel_context.get_current()
        self._recorder.emit(RunStarted(workflow.name, run_id))

    # handoffs

    def handoff(
        self, source: str, target: str, raw: object, *, key: str | None = None, before: object = NOT_GIVEN
    ) -> Step:
        """Judge one attempt of a handoff, in memory.

        The limits of the task are those that this process knows. A route that is durable, asks for approval or has a
        critic needs `submit`; here a durable one passes with its limits unproven, which is counted as a bypass.

        Args:
            source: The agent that sends, as registered.
            target: The agent that is to receive.
            raw: The handoff: a dict, a Pydantic model, or JSON text as the model wrote it.
            key: What the attempts of this handoff share on its route; None takes the contract's identity path.
            before: The state as it leaves, when it crosses a boundary that the framework owns; `arrived` compares.

        Returns:
            deliver, with the normalised handoff in `decision`; repair, with the request to the sender in `text`;
            hold; divert, with the agent to start instead in `target`; or stop. A fault of our own stops.
        """
        try:
            attempt = self.handoffs.judge(source, target, raw, key)
            if before is not NOT_GIVEN:
                self.handoffs.leave(attempt, before)
            return self.handoffs.conclude(attempt)
        except Exception as error:  # noqa: BLE001 - our own fault in a check fails closed, and is counted
            return self.failed_closed(error)

    def submit(
        self,
        source: str,
        target: str,
        raw: object,
        *,
        key: str | None = None,
        before: object = NOT_GIVEN,
        seal: str | None = NOT_GIVEN,
    ) -> Step:
        """Judge one attempt as `handoff` does, with what its route asks for beside: critic, durable limits, approval.

        Args:
            source: As in `handoff`.
            target: As in `handoff`.
            raw: As in `handoff`.
            key: As in `handoff`.
            before: As in `handoff`.
            seal: As in `transfer`.

        Returns:
            As `handoff`. A hold has its case in `case_id`; ask `approval` what a person has decided.

        Raises:
            LedgerUnavailable: The ledger cannot say, or a hold cannot be written, and the route needs it.
        """
        flow = handoff_flows.submit(self, source, target, raw, key, way_of(None, None, seal), before)
        return drive(flow, self._clock)

    async def submit_async(
        self,
        source: str,
        target: str,
        raw: object,
        *,
        key: str | None = None,
        before: object = NOT_GIVEN,
        seal: str | None = NOT_GIVEN,
    ) -> Step:
        """Do as `submit` does, without blocking the event loop; the critic may be a coroutine function."""
        flow = handoff_flows.submit(self, source, target, raw, key, way_of(None, None, seal), before)
        return await drive_async(flow, self._clock)

    def seal(self, handoff: Step) -> str:
        """Return the seal of a handoff that goes on in another process; it travels beside the state.

        The handoff leaves this run with that: it ends where it is received, with `transfer(seal=)`.

        Args:
            handoff: The step of `handoff` or `submit`, which was given the state in `before`.

        Raises:
            RegistrationError: The handoff was not let through with its state, or there is no key for seals.
            HandoffBlocked: The state cannot be sealed, or its snapshot not be written.
        """
        return drive(handoff_flows.seal(self, handoff), self._clock)

    async def seal_async(self, handoff: Step) -> str:
        """Do as `seal` does, without blocking the event loop."""
        return await drive_async(handoff_flows.seal(self, handoff), self._clock)

    def approval(self, held: Step) -> Step:
        """Return what a person has decided about a held handoff: deliver or stop; `held` itself while nobody has."""
        return drive(handoff_flows.approval(self, held), self._clock)

    async def approval_async(self, held: Step) -> Step:
        """Do as `approval` does, without blocking the event loop."""
        return await drive_async(handoff_flows.approval(self, held), self._clock)

    def arrived(self, handoff: Step | str, *, after: object = NOT_GIVEN) -> Step:
        """Say that the handoff stands before its receiver's first action.

        Args:
            handoff: The step that `handoff` returned; its handoff id or its target's name when only one such is open.
            after: The state as it arrived, for a handoff that was begun with `before`.

        Returns:
            deliver; or stop when no such handoff was let through, or its state did not survive the crossing, with what
            was found in `decision`.
        """
        try:
            return self.handoffs.arrived(handoff, after)
        except Exception as error:  # noqa: BLE001 - our own fault in a check fails closed, and is counted
            self.handoffs.refuse(handoff)
            return self.failed_closed(error)

    def ended(self, handoff: Step | str, *, error: BaseException | None = None) -> None:
        """Say that the receiver, or who took a diverted handoff, returned or raised; what is told twice counts once."""
        self.handoffs.ended(handoff, error)

    def abandoned(self, handoff: Step) -> Step:
        """Say that a blocked handoff will not be repaired.

        Returns:
            What its route does then: divert, hold or stop.
        """
        return self.handoffs.given_up(handoff)

    def said_handed_over(self, source: str, target: str) -> bool:
        """Return whether a handoff that the agent's text speaks of has reached its receiver in this run.

        One that has not is counted as not_delivered: the text says so, and nothing was handed over.
        """
        return self.handoffs.said_handed_over(source, target)

    def transfer(
        self,
        source: str,
        target: str,
        raw: object,
        *,
        receiver: Callable[[dict[str, Any]], Any],
        repair: Callable[[Step], object] | None = None,
        fallback: Callable[[Step], Any] | None = None,
        failure: Callable[[Step], Any] | None = None,
        export: Callable[[Any], Any] | None = None,
        import_: Callable[[Any], Any] | None = None,
        seal: str | None = NOT_GIVEN,
        key: str | None = None,
    ) -> Any:
        """Hand something over: judge it, let the sender repair it, start the receiver, and return its result.

        Args:
            source: The agent that sends.
            target: The agent that is to receive.
            raw: The handoff.
            receiver: Called with the normalised handoff (with the original in shadow mode), once, only when allowed.
            repair: Called with the step of a blocked attempt; returns a new handoff. It must not repeat tool calls.
                None: a block goes to the route's fallback, to a person, or stops, as the route says.
            fallback: Called with the step when the route diverts a block to its fallback agent.
            failure: Called with the step of a valid handoff of status failed, when the route has a failure path.
            export: Takes the handoff to the other side: called with it, returns what travels. With `import_` the
                handoff crosses a boundary: what arrived is compared with what left by the route's policy, is judged,
                and goes to the receiver.
            import_: Called with what travels; returns what arrived.
            seal: What came beside a handoff from another process, None when nothing came. Unless the seal
                is there and genuine, is no older than it may be, and the state is as it was sealed, the handoff ends as
                the policy of the route says for a divergence.
            key: As in `handoff`.

        A held handoff waits for a person, as long as its route says.

        Raises:
            HandoffBlocked: The handoff was stopped before the receiver's first action.
            HandoffDivergence: It did not survive the way over the boundary.
            HandoffHeld: The route does not wait; send the same handoff again once its case is approved.
            LedgerUnavailable: The ledger cannot say what was handed over before, and the route is critical.
            Exception: Whatever the receiver or another function raises, unchanged.
        """
        way = way_of(export, import_, seal, repair=repair)
        flow = handoff_flows.transfer(self, source, target, raw, receiver, repair, fallback, failure, key, way)
        return drive(flow, self._clock)

    async def transfer_async(
        self,
        source: str,
        target: str,
        raw: object,
        *,
        receiver: Callable[[dict[str, Any]], Any],
        repair: Callable[[Step], object] | None = None,
        fallback: Callable[[Step], Any] | None = None,
        failure: Callable[[Step], Any] | None = None,
        export: Callable[[Any], Any] | None = None,
        import_: Callable[[Any], Any] | None = None,
        seal: str | None = NOT_GIVEN,
        key: str | None = None,
    ) -> Any:
        """Do as `transfer` does; its functions may be coroutine functions."""
        way = way_of(export, import_, seal, repair=repair)
        flow = handoff_flows.transfer(self, source, target, raw, receiver, repair, fallback, failure, key, way)
        return await drive_async(flow, self._clock)

    def report_usage(self, route: str, *, purpose: str = "repair", tokens: int = 0, cost_usd: float = 0.0) -> None:
        """Count what a model call for a repair has cost, as the host knows it; a critic's answer brings its own.

        Args:
            route: The registered route.
            purpose: repair or critic.
            tokens: At least 0.
            cost_usd: Dollars, at least 0.

        Raises:
            RegistrationError: A value is outside its range, or the route is not registered.
        """
        self.handoffs.report_usage(route, purpose, tokens, cost_usd)

    def concluded(self, attempt: Attempt, *, approved: bool = False) -> Step:
        """Return what follows an attempt; a fault of our own stops."""
        try:
            return self.handoffs.conclude(attempt, approved=approved)
        except Exception as error:  # noqa: BLE001 - our own fault in a check fails closed, and is counted
            return self.failed_closed(error)

    def failed_closed(self, error: Exception) -> Step:
        """Count a fault of our own, and stop."""
        self.handoffs.stopped = True
        self._recorder.emit(InternalErrorCaught(Component.RUNTIME, type(error).__name__))
        return Step(Action.STOP)

    def recording_failed(self, error: Exception) -> None:
        """Count a fault of our own in writing something down; the host goes on."""
        self._recorder.emit(InternalErrorCaught(Component.LEDGER, type(error).__name__))

    def bypassed(self, check: Check, name: str, cause: BypassCause) -> None:
        """Count something that passed without a check."""
        self._bypassed = True
        self._recorder.emit(CheckBypassed(check, name, cause), within=self.scope)

    def store(self) -> None:
        """Write down what has ended and waits for the ledger; `transfer` and the end of the run do so themselves."""
        drive(handoff_flows.store(self), self._clock)

    async def store_async(self) -> None:
        """Do as `store` does, without blocking the event loop."""
        await drive_async(handoff_flows.store(self), self._clock)

    # tools and the answer

    def call(self, tool: str, call_id: str | None = None, args: Mapping[str, Any] | str | None = None) -> Call:
        """Begin a logical call of a tool.

        A decorated function of the same tool that is called next goes on with it, unless an attempt was told of before:
        the two layers count once.

        Args:
            tool: The registered name; another name is counted as `other` and treated as unsafe.
            call_id: The framework's id of the call; two calls with one id are two calls.
            args: The arguments by name, or as the JSON text that the model wrote. They tell a call that was rejected
                before, and stand redacted in the case of a call of which nobody knows whether it happened.
        """
        known = self.watch.registrations.tools.get(tool) if isinstance(tool, str) else None
        if known is None:
            self._recorder.unknown(TOOL_CALLS, "tool", tool)
        arguments = None if args is None else CallArguments.told(args)
        call = Call(known or self.watch.unknown_tool, watch=self.watch, run=self, call_id=call_id, arguments=arguments)
        self.tools.announce(call)
        return call

    def bound(self, function: F) -> F:
        """Return a function that runs in this run wherever it is called: in a thread pool, a callback, another task."""
        return bound(self.watch.current_run, self, function)

    def discovery_failed(self, tool: str, error: BaseException) -> None:
        """Say that the tools could not be listed: a fatal failure of its own, after which no answer is let through.

        Args:
            tool: The registered name of what lists them; a later success of it recovers the failure.
            error: What was raised.
        """
        call = self.call(tool)
        self.tools.note_undiscovered(call.tool.name)
        call.attempt()
        code = call.code_of(error)
        is_declared = (code, FailureClass.FATAL) in call.tool.codes
        call.classified(FailureClass.FATAL, code if is_declared else ToolCode.EXCEPTION)

    def note_ambiguous(self, call: Call) -> None:
        """Take note of a call of which nobody knows whether it happened; its case is written with the next `store`."""
        self.tools.has_ambiguous = call.has_case = True
        self.unstored.add(_kept(self.watch.evidence.of_call(call, self)))

    def note_late_end(self, call: Call) -> None:
        """Write into the case of a call how its work ended that a time-out had left running; it may wait."""
        if call.has_case:
            self.watch.ledger.store_case(self.watch.evidence.of_call(call, self))

    def answer(self, text: str, *, final: bool = True, streamed: bool = False) -> Step:
        """Check the final answer before the user sees it.

        Args:
            text: The answer. What the product itself tells a user, such as a refusal, passes.
            final: Whether it goes to the user; that of a nested agent, which goes to another agent, is not checked.
            streamed: Whether some of it has been shown already; a refusal is then too late, and counted as such.

        Returns:
            answer with `text`; or refuse with the fixed refusal when the workflow needs tools and none succeeded, the
            tools could not be listed, or a call is open of which nobody knows whether it happened.
        """
        if not final or text in OWN_TEXTS:
            return Step(Action.ANSWER, text)
        reason = refusal_reason(
            self.workflow.tools,
            calls=self.tools.succeeded + self.tools.failed,
            successes=self.tools.succeeded,
            has_ambiguous=self.tools.has_ambiguous,
            has_undiscovered=self.tools.has_undiscovered,
        )
        obeyed = reason is not None and self.workflow.guard is Mode.ENFORCE
        self._guard = "refused" if obeyed else "passed"
        is_late = obeyed and streamed
        checked = GuardChecked(self.workflow.name, self.run_id, self.workflow.guard, reason, is_late)
        self._recorder.emit(checked, within=self.scope)
        if reason is not None:
            self.unstored.add(_kept(self.watch.evidence.of_refusal(self, reason, text)))
        return Step(Action.REFUSE, REFUSAL_TEXT) if obeyed else Step(Action.ANSWER, text)

    # durable steps

    def expect(self, operation: str, **values: object) -> None:
        """Write down what the task calls for, from the host and never from the model: the key and compared fields.

        Raises:
            RegistrationError: The operation or a field is unknown.
            LedgerUnavailable: It cannot be written, and the operation is critical.
        """
        drive(flows.expect(self, operation, values), self._clock)

    async def expect_async(self, operation: str, **values: object) -> None:
        """Do as `expect` does, without blocking the event loop."""
        await drive_async(flows.expect(self, operation, values), self._clock)

    def claim(self, claimed: str, *, operations: Iterable[tuple[str, object]] = ()) -> None:
        """Write down what the agent says at the end; once, and final.

        Args:
            claimed: done (every operation of the run), partial (the named ones) or not_done.
            operations: Pairs of operation and business key.

        Raises:
            ClaimRefused: The words do not fit, the run has claimed something else, or its workflow has no operations.
            LedgerUnavailable: It cannot be written.
        """
        drive(flows.claim(self, Claim.of(claimed, operations=operations)), self._clock)

    async def claim_async(self, claimed: str, *, operations: Iterable[tuple[str, object]] = ()) -> None:
        """Do as `claim` does, without blocking the event loop."""
        await drive_async(flows.claim(self, Claim.of(claimed, operations=operations)), self._clock)

    # the end

    def finish(self, outcome: RunOutcome | None = None) -> None:
        """End the run: what is open was not delivered, and a run with operations that claimed nothing claims none.

        What has arrived and not ended counts as delivered: its receiver was started and may have acted.

        Args:
            outcome: How it ended; None is stopped when a check stopped a handoff, else completed.

        Calling it again does nothing.
        """
        drive(flows.finish(self, outcome), self._clock)

    async def finish_async(self, outcome: RunOutcome | None = None) -> None:
        """Do as `finish` does, without blocking the event loop."""
        await drive_async(flows.finish(self, outcome), self._clock)

    def close(self, outcome: RunOutcome | None) -> bool:
        """End what is in memory and record the end; False when the run had ended before."""
        with self._lock:
            if self._finished:
                return False
            self._finished = True
        self.handoffs.drain()
        self.watch.run_ended(self)
        self.tools.close_breakers()
        none_called = self.tools.succeeded + self.tools.failed == 0
        zero = ZeroSuccessCause.NONE_CALLED if none_called else ZeroSuccessCause.ALL_FAILED
        self.scope.close(
            RunEnded(
                workflow=self.workflow.name,
                run_id=self.run_id,
                tools=self.workflow.tools,
                outcome=outcome or (RunOutcome.STOPPED if self.handoffs.stopped else RunOutcome.COMPLETED),
                tools_succeeded=self.tools.succeeded,
                tools_failed=self.tools.failed,
                zero_success=None if self.tools.succeeded else zero,
                unrecovered_tool_failure=self.has_unrecovered_tool_failure,
                inspected=self.handoffs.inspected,
                guard=self._guard,
                claimed=self.claimed,
                duration_s=max(0.0, self._clock.monotonic_s() - self._started_s),
            )
        )
        return True

    def __enter__(self) -> Run:
        outer = self.watch.current_run.get()
        while outer is not None and outer.is_finished:
            outer = outer._outer
        self._outer, self._around = outer, otel_context.get_current()
        self._run_token = self.watch.current_run.set(self)
        self._span_token = otel_context.attach(trace.set_span_in_context(self.scope.span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._leave()
        self.finish(_outcome_of(error))

    async def __aenter__(self) -> Run:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._leave()
        await self.finish_async(_outcome_of(error))

    def _leave(self) -> None:
        """Give the context back; a block that is closed in another context has nothing to give back there.

        Blocks that stood around this one and have ended before it are left behind too.
        """
        run_token, span_token = self._run_token, self._span_token
        self._run_token = self._span_token = None
        if run_token is None or span_token is None:
            return
        try:
            self.watch.current_run.reset(run_token)
        except ValueError:
            return
        otel_context.detach(span_token)
        outer = self.watch.current_run.get()
        while outer is not None and outer.is_finished:
            otel_context.attach(outer._around)
            outer = outer._outer
            self.watch.current_run.set(outer)

    def traceparent(self) -> str:
        """Return the address of the run's span as W3C Trace Context writes it; empty when it has none."""
        return traceparent_of(self.scope.span)

    def trace_id(self) -> str:
        """Return the id of the run's trace as hex; empty when it has none."""
        context = self.scope.span.get_span_context()
        return trace.format_trace_id(context.trace_id) if context.is_valid else ""

    @property
    def has_unrecovered_tool_failure(self) -> bool:
        """Whether a tool failed and no later call of it succeeded, or nobody knows whether a call happened."""
        return self.tools.has_unrecovered_failure

    @property
    def is_clean(self) -> bool:
        """Whether the run has broken no rule, left no call open of which nobody knows, and passed no check unchecked.

        What is verified after its end, a false success, is not known here.
        """
        is_refused = self._guard == "refused"
        return not (self.handoffs.stopped or is_refused or self._bypassed or self.has_unrecovered_tool_failure)

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended."""
        return self._finished


def _kept(evidence: Evidence) -> Closing:
    """Return evidence that waits for the ledger, of something else than a handoff."""
    return Closing("", "", "", "", False, None, False, evidence)


def _outcome_of(error: BaseException | None) -> RunOutcome | None:
    if error is None:
        return None
    if isinstance(error, Stopped):
        return RunOutcome.STOPPED
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | GeneratorExit):
        return RunOutcome.CANCELLED
    return RunOutcome.FAILED
