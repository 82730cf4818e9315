"""One logical tool call, told in steps: frameworks report what happens, and are told what to do next."""

from __future__ import annotations

import asyncio
import functools
import threading
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from handoffwatch.errors import HandoffwatchError, NeedsHuman
from handoffwatch.events import (
    InternalErrorCaught,
    ToolAttempted,
    ToolCallEnded,
    ToolCallStarted,
    ToolEndedLate,
)
from handoffwatch.recording.recorder import Scope
from handoffwatch.recording.spans import EXECUTE_TOOL, OPERATION_NAME, TOOL_CALL_ID, TOOL_NAME, Attribute, clean
from handoffwatch.runtime.call_arguments import CallArguments, key_of
from handoffwatch.runtime.evidence import shown
from handoffwatch.runtime.step import GO_ON, Step
from handoffwatch.tools.classification import classify_exception, without_code
from handoffwatch.tools.client_retries import client_retries
from handoffwatch.tools.control_flow import asks_the_model, is_control_flow
from handoffwatch.tools.earlier_requests import sent_before
from handoffwatch.tools.failure import Failure, text_for_model
from handoffwatch.tools.quoting import quoted_reason
from handoffwatch.tools.retry import wait_before_retry_s
from handoffwatch.tools.success import judge_result
from handoffwatch.tools.tool import Tool
from handoffwatch.vocabulary import (
    OK,
    Action,
    Component,
    Effect,
    FailureClass,
    Safety,
    ToolCode,
    ToolOutcome,
)

if TYPE_CHECKING:
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.watch import Watch


class Call:
    """A logical call of a tool; each wire attempt is begun by `attempt` and ended by one of the others.

    The methods may come from different threads and callbacks, never raise, and touch memory only. A call ends once:
    what is reported after its end changes nothing.

    Attributes:
        tool: The tool.
        watch: The watch.
        run: The run it belongs to; None when it belongs to none.
        call_id: The framework's id of the call, as it may be written; empty when it gave none.
        unknown: How it failed, when nobody knows whether it happened.
        late: How its work ended that a time-out had left running; None while nobody knows.
        has_case: Whether a person is asked about it.
        is_read_back: Whether what nobody knows is looked up before the call ends; the flow says so.
        arguments: The arguments; None when nobody gave them.
        kept: What may be kept of the arguments of an unsafe tool, as they were before it could change them.
    """

    def __init__(
        self,
        tool: Tool,
        *,
        watch: Watch,
        run: Run | None,
        call_id: str | None = None,
        arguments: CallArguments | None = None,
    ) -> None:
        self.tool = tool
        self.run = run
        self.call_id = "" if call_id is None else clean(shown(str(call_id)))
        self.is_read_back = False
        self.watch = watch
        self.arguments: CallArguments | None = None
        self.kept: Any = None
        self._run_id = run.run_id if run is not None else ""
        self._recorder = watch.recorder
        self._clock = watch.clock
        self._lock = threading.Lock()
        self._attempts = 0
        self._is_open: bool | None = None
        self._last = Step(Action.GIVE_UP)
        self.unknown: Failure | None = None
        self.late: ToolOutcome | None = None
        self.has_case = False
        self._wait_s = 0.0
        self._started_s = self._clock.monotonic_s()
        self._sent_s = self._started_s
        self._end: Step | None = None
        if arguments is not None:
            self.given(arguments)
        attributes: dict[str, Attribute] = {OPERATION_NAME: EXECUTE_TOOL, TOOL_NAME: tool.name}
        if call_id is not None:
            attributes[TOOL_CALL_ID] = self.call_id
        within = run.scope if run is not None else None
        self._scope = self._recorder.open(f"{EXECUTE_TOOL} {tool.name}", attributes, within=within)
        self._recorder.emit(ToolCallStarted(self._run_id, tool.name, is_id_repeated=self._is_repeated(call_id)))

    @functools.cached_property
    def case_subject(self) -> str:
        """What the case of the call is known by, when it gets one."""
        return uuid.uuid4().hex

    @property
    def scope(self) -> Scope:
        """The open scope; its span is the parent of what the tool does."""
        return self._scope

    @property
    def attempts(self) -> int:
        """Wire attempts begun so far."""
        return self._attempts

    @property
    def elapsed_s(self) -> float:
        """Seconds since the call began, on the monotonic clock."""
        return max(0.0, self._clock.monotonic_s() - self._started_s)

    @property
    def since_sent_s(self) -> float:
        """Seconds since its last wire attempt began, on the monotonic clock."""
        return max(0.0, self._clock.monotonic_s() - self._sent_s)

    @property
    def is_untold(self) -> bool:
        """Whether nobody has told of an attempt yet, so that an inner layer may."""
        return self._attempts == 0 and self._end is None

    def given(self, arguments: CallArguments) -> None:
        """Take note of the arguments; those of the layer that makes the request are the ones that count."""
        self.arguments = arguments
        if arguments.may_change and self.tool.safety is Safety.UNSAFE:
            self.kept = self.watch.evidence.copy(arguments.named)

    def is_same_call(self, tool: Tool, run: Run | None, arguments: CallArguments) -> bool:
        """Return whether a call of a tool, made while this one runs, is this one: two layers watch one function."""
        return (
            tool.name == self.tool.name
            and run is self.run
            and self._end is None
            and self.arguments is not None
            and self.arguments.are_those_of(arguments)
        )

    @functools.cached_property
    def idempotency_key(self) -> str:
        """The key under which every attempt of this call is one request, for tools whose service takes such a key.

        It is made of the run, the tool's operation (else the tool) and the arguments, never of the framework's id: the
        same call made again in the same run has the same key. Arguments without a canonical form give a key that only
        the attempts of this call share.
        """
        said = self.digest()
        if not said:
            return uuid.uuid4().hex
        return key_of(self._run_id, self.tool.operation or self.tool.name, said)

    def digest(self) -> str:
        """Return the digest of the arguments, and of the object whose method is called, for this run alone.

        Empty when there are none, or they have no canonical form.
        """
        if self.arguments is None or self.run is None or not self.arguments.said:
            return ""
        receiver = self.arguments.receiver
        said = self.arguments.said
        return said if receiver is None else f"{said} of {self.run.tools.number_of(receiver)}"

    def attempt(self) -> Step:
        """Begin a wire attempt. A host that never says so has each end counted as an attempt.

        Returns:
            ok: go on. give_up with the text for the model: the tool's breaker is open, or it has rejected the same
            arguments in this run; nothing may be sent.
        """
        if self._end is not None:
            return self._end
        refused = self._refusal() if self._attempts == 0 else None
        if refused is not None:
            return self._ended(ToolOutcome.FAILED, refused, self._given_up(refused))
        with self._lock:
            self._attempts += 1
            self._is_open = True
            self._sent_s = self._clock.monotonic_s()
        return GO_ON

    def returned(self, value: object) -> Step:
        """End the attempt with a returned value; the tool's success rule decides whether it worked.

        Returns:
            ok; retry with `wait_s`; give_up or needs_human with the text for the model.
        """
        return self._attempted(self.judge(value), told=value)

    def began(self, failure: Failure | None) -> Step:
        """Say that a stream has given its first piece, which ends nothing when it is good; returns as `returned`.

        Args:
            failure: How the piece failed, as `judge` says; None for a good one, or none at all.
        """
        return GO_ON if failure is None else self._attempted(failure)

    def streamed(self) -> Step:
        """End the attempt because its stream has ended as it should; returns ok."""
        return self._attempted(None)

    def judge(self, value: object) -> Failure | None:
        """Return how a value failed by the tool's success rule, or None; it ends nothing."""
        try:
            failure = judge_result(value, self.tool.safety, self.tool.success, now_s=self._clock.wall_s())
            return failure if failure is None else self._detailed(failure, value)
        except Exception as error:  # noqa: BLE001 - a tool's success rule may raise: nothing is proven, so it failed
            self._recorder.emit(InternalErrorCaught(Component.TOOLS, type(error).__name__))
            return without_code(self.tool.safety)

    def raised(self, error: BaseException) -> Step:
        """End the attempt with an exception. Cancellation ends the call as cancelled, what a framework raises to put
        a call off ends it as suspended.

        Returns:
            As `returned`; give_up without text when the call was cancelled.
        """
        if isinstance(error, asyncio.CancelledError) or not isinstance(error, Exception):
            return self.cancelled()
        if is_control_flow(error):
            return self.suspended()
        return self._attempted(self._classified(error), told=error)

    def broke_off(self, error: Exception | None, failure: Failure | None = None) -> Step:
        """End the call because its stream failed after the first piece: it is never begun again.

        Args:
            error: What the stream raised; None when a piece of it failed by the success rule.
            failure: How the piece failed.
        """
        failed = failure if error is None else self._classified(error)
        if failed is None or (failed.failure_class is FailureClass.RETRYABLE and self.tool.safety is Safety.UNSAFE):
            failed = without_code(self.tool.safety)  # the stream had begun, so that something was sent
        return self._attempted(failed, may_repeat=False)

    def classified(self, failure_class: FailureClass, code: ToolCode = ToolCode.RESULT) -> Step:
        """End the attempt with a failure that the framework's adapter has sorted itself; returns as `returned`."""
        return self._attempted(Failure(failure_class, code, code.value if code.value.isdigit() else "an error"))

    def nested(self, error: HandoffwatchError) -> Step:
        """End the attempt with the failure of a call or a handoff within it, which goes on unchanged.

        What an unsafe tool did beside it nobody knows, nor what a call did that waits for a person; a tool's own class
        for such errors counts.
        """
        failure = without_code(Safety.UNSAFE if isinstance(error, NeedsHuman) else self.tool.safety)
        step = self._attempted(self.tool.overrides.sorted(failure, error), may_repeat=False)
        return self.read_back(Effect.UNKNOWN) if step.action is Action.NEEDS_HUMAN else step

    def read_back(self, effect: Effect) -> Step:
        """End an ambiguous call with what its verifier has found in the store.

        Returns:
            ok: it happened. give_up: it did not. needs_human: still nobody knows.
        """
        failure = self.unknown or without_code(self.tool.safety)
        if effect is Effect.LANDED:
            return self._ended(ToolOutcome.OK, None, GO_ON)
        if effect is Effect.NOT_LANDED:
            return self._ended(ToolOutcome.FAILED, failure, self._given_up(failure))
        return self._ended_ambiguous(failure)

    def cancelled(self) -> Step:
        """End the call because the host cancelled it; what an unsafe tool had begun may have happened.

        A host that never says when it begins an attempt is taken to have begun one.
        """
        has_begun = self._is_open is not False and self.tool.safety is Safety.UNSAFE
        unknown = without_code(self.tool.safety) if has_begun else None
        return self._ended(ToolOutcome.CANCELLED, None, Step(Action.GIVE_UP), unknown=unknown)

    def suspended(self) -> Step:
        """End the call because the framework put it off, for instance to ask a person."""
        return self._ended(ToolOutcome.SUSPENDED, None, GO_ON)

    def ended_late(self, outcome: ToolOutcome) -> None:
        """Record how the work ended that a time-out had left running."""
        self.late = outcome
        self._recorder.emit(ToolEndedLate(self._run_id, self.tool.name, outcome, self.elapsed_s))

    def code_of(self, error: BaseException) -> ToolCode:
        """Return the code of an exception, whatever may follow it."""
        return self._classified(error).code if isinstance(error, Exception) else ToolCode.EXCEPTION

    # inside

    def _refusal(self) -> Failure | None:
        return None if self.run is None else self.run.tools.refusal(self.tool.name, self.digest)

    def _is_repeated(self, call_id: str | None) -> bool:
        return self.run is not None and bool(call_id) and self.run.tools.note_id(str(call_id))

    def _classified(self, error: Exception) -> Failure:
        if asks_the_model(error):
            return Failure(FailureClass.REJECTED, ToolCode.RESULT, "a refusal", detail=quoted_reason(error))
        try:
            failure = classify_exception(error, self.tool.safety, now_s=self._clock.wall_s())
            return self._detailed(failure, error)
        except Exception as fault:  # noqa: BLE001 - a foreign exception may raise when it is read: it says nothing
            self._recorder.emit(InternalErrorCaught(Component.TOOLS, type(fault).__name__))
            return without_code(self.tool.safety)

    def _detailed(self, failure: Failure, told: object) -> Failure:
        """Return a failure with the tool's own class, and with what it said when it is one that the model may mend."""
        failure = self.tool.overrides.sorted(failure, told)
        if self.tool.safety is Safety.UNSAFE and (client_retries(told) or sent_before(told)):
            return without_code(self.tool.safety)  # the answer is to the last request; nobody knows of those before it
        if failure.failure_class is not FailureClass.REJECTED:
            return failure
        return replace(failure, detail=quoted_reason(told))

    def _attempted(self, failure: Failure | None, *, may_repeat: bool = True, told: object = None) -> Step:
        repeated = 0 if told is None else client_retries(told)
        with self._lock:
            if self._end is not None:
                return self._end
            if self._is_open is False:
                return self._last
            if self._is_open is None:
                self._attempts += 1
            else:
                self._is_open = False
            self._attempts += repeated
            self._last = self._after(failure, may_repeat=may_repeat)
        self._recorder.emit(ToolAttempted(self.tool.name, OK if failure is None else failure.code, repeated))
        if self._last.action is Action.RETRY:
            return self._last
        if failure is None:
            return self._ended(ToolOutcome.OK, None, self._last)
        if self._last.action is Action.GIVE_UP:
            return self._ended(ToolOutcome.FAILED, failure, self._last)
        if self.is_read_back:
            self.unknown = failure
            return self._last
        return self._ended_ambiguous(failure)

    def _after(self, failure: Failure | None, *, may_repeat: bool) -> Step:
        """Return what follows an attempt."""
        if failure is None:
            return GO_ON
        wait_s = None
        if may_repeat:
            wait_s = wait_before_retry_s(
                failure,
                attempt=self._attempts,
                elapsed_s=self.elapsed_s,
                policy=self.tool.policy,
                random=self._clock.random,
            )
        if wait_s is not None:
            self._wait_s += wait_s
            return Step(Action.RETRY, wait_s=wait_s)
        if failure.failure_class is FailureClass.AMBIGUOUS:
            return self._given_up(failure)._replace(action=Action.NEEDS_HUMAN)
        return self._given_up(failure)

    def _given_up(self, failure: Failure) -> Step:
        text = text_for_model(self.tool.name, failure)
        return Step(Action.GIVE_UP, text, failure.retry_after_s or 0.0, failure_class=failure.failure_class)

    def _ended_ambiguous(self, failure: Failure) -> Step:
        """End the call, of which nobody knows whether it happened, with a case for a person."""
        step = self._given_up(failure)._replace(action=Action.NEEDS_HUMAN)
        return self._ended(ToolOutcome.FAILED, failure, step, unknown=failure)

    def _ended(
        self, outcome: ToolOutcome, failure: Failure | None, step: Step, *, unknown: Failure | None = None
    ) -> Step:
        with self._lock:
            if self._end is not None:
                return self._end
            self._end = step
        if self.run is not None:
            if unknown is not None:
                self.unknown = unknown
                self.run.note_ambiguous(self)
            self.run.tools.ended(self.tool.name, outcome, failure, self.digest)
        self._scope.close(
            ToolCallEnded(
                run_id=self._run_id,
                tool=self.tool.name,
                safety=self.tool.safety,
                outcome=outcome,
                failure_class=failure.failure_class if failure else None,
                code=failure.code if failure else None,
                status=failure.status if failure else OK if outcome is ToolOutcome.OK else outcome.value,
                attempts=self._attempts,
                wait_s=self._wait_s,
                duration_s=self.elapsed_s,
            )
        )
        return step

    def facts(self) -> dict[str, Any]:
        """Return what a person needs to find the call in the logs of its service: ids and counts, no values."""
        return {
            "tool": self.tool.name,
            "safety": self.tool.safety.value,
            "operation": self.tool.operation or "",
            "call_id": self.call_id,
            "attempts": self._attempts,
            "sent_unix_s": self._clock.wall_s() - self.since_sent_s,
        }
