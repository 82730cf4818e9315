"""The facts: one frozen event for each thing that happened, written when it ended (starts are events too).

Recording turns events into samples, span attributes and log lines; an event never holds a payload or a secret.
Named tuples, because they are made on the path of every handoff.
Durations are in seconds on the monotonic clock, times are Unix seconds.
"""

from __future__ import annotations

from typing import NamedTuple

from handoffwatch.decision import Decision
from handoffwatch.vocabulary import (
    Action,
    BypassCause,
    Cause,
    Check,
    CheckPurpose,
    Claimed,
    Component,
    Criticality,
    CriticResult,
    Effect,
    FailureClass,
    GuardReason,
    HandoffOutcome,
    Mode,
    Origin,
    RepairResult,
    ReviewKind,
    RiskSignal,
    RunOutcome,
    Safety,
    ToolCode,
    ToolOutcome,
    ToolsNeed,
    VerificationResult,
    ZeroSuccessCause,
)


class RunStarted(NamedTuple):
    """A run began."""

    workflow: str
    run_id: str


class RunEnded(NamedTuple):
    """A run ended. `zero_success` is None when a tool call succeeded."""

    workflow: str
    run_id: str
    tools: ToolsNeed
    outcome: RunOutcome
    tools_succeeded: int
    tools_failed: int
    zero_success: ZeroSuccessCause | None
    unrecovered_tool_failure: bool
    inspected: bool
    guard: str
    claimed: Claimed | None
    duration_s: float


HandoffLabels = tuple[str, str, str, str]
"""The labels H: route, source_agent, target_agent, schema_version, as registered; all `other` for an unknown route."""


class HandoffInspected(NamedTuple):
    """One attempt of a handoff was judged.

    `detection_s` is the time from producing it to naming what is wrong; None when nothing is, or nobody said when.
    `digests` are keyed, of the state as it left and as it arrived; empty when it crossed no boundary. `traceparent` is
    that of the span in another process from which it came; empty when it came from none.
    """

    workflow: str
    run_id: str
    task_id: str
    labels: HandoffLabels
    source: str
    target: str
    decision: Decision
    action: Action
    repair: RepairResult | None
    overhead_s: float
    detection_s: float | None = None
    digests: tuple[str, str] = ("", "")
    traceparent: str = ""


class HandoffCompared(NamedTuple):
    """A state crossed a boundary and was compared. `diverged` are the policy's patterns that broke, `paths` where.

    `lost` is the decision about a handoff that was let through before and stopped here; None elsewhere. `digests` are
    then those of both sides, keyed.
    """

    run_id: str
    route: str
    handoff_id: str
    attempt: int
    diverged: tuple[str, ...]
    paths: tuple[str, ...]
    lost: Decision | None = None
    digests: tuple[str, str] = ("", "")


class HandoffEnded(NamedTuple):
    """A handoff ended: delivered, stopped, or lost on the way."""

    run_id: str
    handoff_id: str
    labels: HandoffLabels
    outcome: HandoffOutcome
    attempts: int


class CriticAnswered(NamedTuple):
    """A critic was asked about a handoff, or was to be asked and was not.

    `note` says in words of ours why there is no answer; it is empty when there is one, or when chance left it out.
    """

    run_id: str
    route: str
    handoff_id: str
    result: CriticResult
    duration_s: float
    signals: tuple[RiskSignal, ...]
    note: str = ""


class UsageReported(NamedTuple):
    """The host said what a model call for a check has cost; the numbers are checked before they come here."""

    run_id: str
    route: str
    purpose: CheckPurpose
    tokens: int
    cost_usd: float


class ToolCallStarted(NamedTuple):
    """A logical call of a tool began. The framework may give one id to two calls, which are two all the same."""

    run_id: str
    tool: str
    is_id_repeated: bool = False


class ToolAttempted(NamedTuple):
    """One wire attempt ended; `code` is ok or a tool code. Before it the client library made `repeated` of its own."""

    tool: str
    code: str
    repeated: int = 0


class ToolBreakerMoved(NamedTuple):
    """A run calls a tool no more after fatal answers in a row, or has ended, so that its breaker counts no more."""

    run_id: str
    tool: str
    is_open: bool


class ToolEndedLate(NamedTuple):
    """Work that a time-out had left running has ended, `seconds` after its call began."""

    run_id: str
    tool: str
    outcome: ToolOutcome
    seconds: float


class ToolCallEnded(NamedTuple):
    """A logical call ended. `status` is what the model is told: a status, `timeout`, `connection_error` or a word."""

    run_id: str
    tool: str
    safety: Safety
    outcome: ToolOutcome
    failure_class: FailureClass | None
    code: ToolCode | None
    status: str
    attempts: int
    wait_s: float
    duration_s: float


class GuardChecked(NamedTuple):
    """A final answer was checked. `reason` is None when it passed; `is_late` says that text had been streamed."""

    workflow: str
    run_id: str
    mode: Mode
    reason: GuardReason | None
    is_late: bool = False


class CheckBypassed(NamedTuple):
    """Something passed without a check; `name` is a route, a workflow or an operation."""

    check: Check
    name: str
    cause: BypassCause


class EffectVerified(NamedTuple):
    """One read-back of an operation ended. `traceparent` names the run's span; empty when it had none."""

    run_id: str
    workflow: str
    operation: str
    operation_id: str
    criticality: Criticality
    result: VerificationResult
    duration_s: float
    traceparent: str = ""


class EffectSettled(NamedTuple):
    """An operation has its final effect. It is a false success when it was claimed done and is not_landed."""

    run_id: str
    workflow: str
    operation: str
    operation_id: str
    business_key: str
    criticality: Criticality
    claimed: Claimed
    effect: Effect
    cause: Cause | None
    origin: Origin | None
    false_success: bool
    seconds: float


class CaseReviewed(NamedTuple):
    """A person did what something waited for; `seconds` is how long it waited."""

    kind: ReviewKind
    seconds: float


class InternalErrorCaught(NamedTuple):
    """A fault of the product itself was caught; `error` is the name of its class."""

    component: Component
    error: str


Event = (
    RunStarted
    | RunEnded
    | HandoffInspected
    | HandoffCompared
    | HandoffEnded
    | CriticAnswered
    | UsageReported
    | ToolCallStarted
    | ToolAttempted
    | ToolBreakerMoved
    | ToolEndedLate
    | ToolCallEnded
    | GuardChecked
    | CheckBypassed
    | EffectVerified
    | EffectSettled
    | CaseReviewed
    | InternalErrorCaught
)
