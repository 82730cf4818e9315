"""One logical tool call, told in steps: frameworks report what happens, and are told what to do next."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from handoffwatch.events import InternalErrorCaught, ToolAttempted, ToolCallEnded, ToolCallStarted
from handoffwatch.recording.recorder import Scope
from handoffwatch.recording.spans import EXECUTE_TOOL, OPERATION_NAME, TOOL_CALL_ID, TOOL_NAME, Attribute, clean
from handoffwatch.runtime.step import Step
from handoffwatch.tools.classification import classify_exception, without_code
from handoffwatch.tools.failure import Failure, text_for_model
from handoffwatch.tools.retry import wait_before_retry_s
from handoffwatch.tools.success import judge_result
from handoffwatch.tools.tool import Tool
from handoffwatch.vocabulary import OK, Action, Component, FailureClass, ToolCode, ToolOutcome

if TYPE_CHECKING:
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.watch import Watch


class Call:
    """A logical call of a tool; each wire attempt is begun by `attempt` and ended by one of the others.

    The methods may come from different threads and callbacks, never raise, and touch memory only. A call ends once:
    what is reported after its end changes nothing.
    """

    def __init__(self, tool: Tool, *, watch: Watch, run: Run | None, call_id: str | None = None) -> None:
        self.tool = tool
        self._run = run
        self._run_id = run.run_id if run is not None else ""
        self._recorder = watch.recorder
        self._clock = watch.clock
        self._lock = threading.Lock()
        self._attempts = 0
        self._is_open: bool | None = None
        self._last = Step(Action.GIVE_UP)
        self._wait_s = 0.0
        self._started_s = self._clock.monotonic_s()
        self._end: Step | None = None
        attributes: dict[str, Attribute] = {OPERATION_NAME: EXECUTE_TOOL, TOOL_NAME: tool.name}
        if call_id is not None:
            attributes[TOOL_CALL_ID] = clean(str(call_id))
        within = run.scope if run is not None else None
        self._scope = self._recorder.open(f"{EXECUTE_TOOL} {tool.name}", attributes, within=within)
        self._recorder.emit(ToolCallStarted(self._run_id, tool.name))

    @property
    def scope(self) -> Scope:
        """The open scope; its span is the parent of what the tool does."""
        return self._scope

    @property
    def attempts(self) -> int:
        """Wire attempts begun so far."""
        return self._attempts

    def attempt(self) -> None:
        """Begin a wire attempt. A host that never says so has each end counted as an attempt."""
        with self._lock:
            self._attempts += 1
            self._is_open = True

    def returned(self, value: object) -> Step:
        """End the attempt with a returned value; the tool's success rule decides whether it worked.

        Returns:
            ok; retry with `wait_s`; give_up or needs_human with the text for the model.
        """
        try:
            failure = judge_result(value, self.tool.safety, self.tool.success, now_s=self._clock.wall_s())
        except Exception as error:  # noqa: BLE001 - a tool's success rule may raise: nothing is proven, so it failed
            self._recorder.emit(InternalErrorCaught(Component.TOOLS, type(error).__name__))
            failure = without_code(self.tool.safety)
        return self._attempted(failure)

    def raised(self, error: BaseException) -> Step:
        """End the attempt with an exception. Cancellation ends the call as cancelled.

        Returns:
            As `returned`; give_up without text when the call was cancelled.
        """
        if isinstance(error, asyncio.CancelledError) or not isinstance(error, Exception):
            return self.cancelled()
        try:
            failure = classify_exception(error, self.tool.safety, now_s=self._clock.wall_s())
        except Exception as fault:  # noqa: BLE001 - a foreign exception may raise when it is read: it says nothing
            self._recorder.emit(InternalErrorCaught(Component.TOOLS, type(fault).__name__))
            failure = without_code(self.tool.safety)
        return self._attempted(failure)

    def classified(self, failure_class: FailureClass, code: ToolCode = ToolCode.RESULT) -> Step:
        """End the attempt with a failure that the framework's adapter has sorted itself; returns as `returned`."""
        return self._attempted(Failure(failure_class, code, code.value if code.value.isdigit() else "an error"))

    def cancelled(self) -> Step:
        """End the call because the host cancelled it."""
        return self._ended(ToolOutcome.CANCELLED, None, Step(Action.GIVE_UP))

    def suspended(self) -> Step:
        """End the call because the framework put it off, for instance to ask a person."""
        return self._ended(ToolOutcome.SUSPENDED, None, Step(Action.OK))

    def _attempted(self, failure: Failure | None) -> Step:
        with self._lock:
            if self._end is not None:
                return self._end
            if self._is_open is False:
                return self._last
            if self._is_open is None:
                self._attempts += 1
            else:
                self._is_open = False
            self._last = self._after(failure)
        self._recorder.emit(ToolAttempted(self.tool.name, OK if failure is None else failure.code))
        if self._last.action is Action.RETRY:
            return self._last
        return self._ended(ToolOutcome.OK if failure is None else ToolOutcome.FAILED, failure, self._last)

    def _after(self, failure: Failure | None) -> Step:
        """Return what follows an attempt."""
        if failure is None:
            return Step(Action.OK)
        wait_s = wait_before_retry_s(
            failure,
            attempt=self._attempts,
            elapsed_s=self._clock.monotonic_s() - self._started_s,
            policy=self.tool.policy,
            random=self._clock.random,
        )
        if wait_s is not None:
            self._wait_s += wait_s
            return Step(Action.RETRY, wait_s=wait_s)
        ambiguous = failure.failure_class is FailureClass.AMBIGUOUS
        action = Action.NEEDS_HUMAN if ambiguous else Action.GIVE_UP
        return Step(action, text_for_model(self.tool.name, failure), failure_class=failure.failure_class)

    def _ended(self, outcome: ToolOutcome, failure: Failure | None, step: Step) -> Step:
        with self._lock:
            if self._end is not None:
                return self._end
            self._end = step
        if self._run is not None:
            self._run.tool_ended(self.tool.name, outcome)
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
                duration_s=max(0.0, self._clock.monotonic_s() - self._started_s),
            )
        )
        return step
