"""The closed sets of words: every enumeration that becomes a label value, a span attribute or a field of a decision."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

OTHER: Final = "other"
"""What stands in a label for every name that nobody registered."""


class Severity(StrEnum):
    """How bad a finding is, from harmless to critical; the order of the members is the order of severity."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


SEVERITY_RANK: Final = {severity: rank for rank, severity in enumerate(Severity)}


class Reaction(StrEnum):
    """What a finding asks for: stop, wait for a person, go on and look later, or only say so."""

    BLOCK = "block"
    HOLD = "hold"
    FLAG = "flag"
    WARN = "warn"


class Verdict(StrEnum):
    """What the rules said about a handoff."""

    ALLOWED = "allowed"
    WARNED = "warned"
    HELD = "held"
    BLOCKED = "blocked"


class Mode(StrEnum):
    """Whether the program obeys a check, or only learns what it would have said."""

    ENFORCE = "enforce"
    SHADOW = "shadow"


class Criticality(StrEnum):
    """How much a wrong outcome costs: money and access rights are critical."""

    CRITICAL = "critical"
    ROUTINE = "routine"


class Status(StrEnum):
    """What the sender says about its own work."""

    READY = "ready"
    COMPLETED = "completed"
    FAILED = "failed"


class AttemptKind(StrEnum):
    """The first try of a handoff, or a repair of it."""

    FIRST = "first"
    REPAIR = "repair"


class Keep(StrEnum):
    """Which handoffs of a route leave evidence: those that were blocked, these and a sample of the others, or all."""

    BLOCKED = "blocked"
    SAMPLED = "sampled"
    ALL = "all"


class Approval(StrEnum):
    """Whether a person must approve what a contract allows."""

    NONE = "none"
    REQUIRED = "required"


class SnapshotStage(StrEnum):
    """On which side of a crossing a snapshot was taken."""

    BEFORE = "before"
    AFTER = "after"


class Stage(StrEnum):
    """The stages of a crossing, in their order."""

    CAPTURE_BEFORE = "capture_before"
    SERIALIZE = "serialize"
    DESERIALIZE = "deserialize"
    CAPTURE_AFTER = "capture_after"
    VALIDATE = "validate"
    START_RECEIVER = "start_receiver"


class DivergenceKind(StrEnum):
    """How a place differs on the far side: lost, new, another value, another type, or another order of a list."""

    MISSING = "missing"
    ADDED = "added"
    CHANGED = "changed"
    TYPE = "type"
    ORDER = "order"


class OnFailure(StrEnum):
    """What follows a divergence: the handoff stops, it stops and a case waits, or it passes and is counted."""

    STOP = "stop"
    QUARANTINE = "quarantine"
    PASS = "pass"


class HoldThen(StrEnum):
    """What follows when no person has decided on a held handoff in time."""

    STOP = "stop"
    DELIVER = "deliver"
    DIVERT = "divert"


class HandoffOutcome(StrEnum):
    """How a handoff ended."""

    DELIVERED = "delivered"
    STOPPED = "stopped"
    DIVERTED = "diverted"
    NOT_DELIVERED = "not_delivered"
    RECEIVER_FAILED = "receiver_failed"


class RepairResult(StrEnum):
    """What a repair attempt led to."""

    REPAIRED = "repaired"
    STILL_BAD = "still_bad"
    EXHAUSTED = "exhausted"


class Safety(StrEnum):
    """What repeating a call may do, in the words of RFC 9110 section 9.2."""

    SAFE = "safe"
    IDEMPOTENT = "idempotent"
    UNSAFE = "unsafe"


class FailureClass(StrEnum):
    """What may follow a failed tool call.

    retryable: nothing happened, later may work. fatal: credentials, rights or a missing resource; nobody may guess.
    rejected: a business refusal of these arguments. ambiguous: it may have happened; a person must look.
    """

    RETRYABLE = "retryable"
    FATAL = "fatal"
    REJECTED = "rejected"
    AMBIGUOUS = "ambiguous"


class ToolCode(StrEnum):
    """How a wire attempt failed, small enough to be a label."""

    HTTP_400 = "400"
    HTTP_401 = "401"
    HTTP_403 = "403"
    HTTP_404 = "404"
    HTTP_408 = "408"
    HTTP_409 = "409"
    HTTP_422 = "422"
    HTTP_429 = "429"
    HTTP_500 = "500"
    HTTP_502 = "502"
    HTTP_503 = "503"
    HTTP_504 = "504"
    OTHER_3XX = "other_3xx"
    OTHER_4XX = "other_4xx"
    OTHER_5XX = "other_5xx"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    DNS = "dns"
    TLS = "tls"
    RESULT = "result"
    EXCEPTION = "exception"


OK: Final = "ok"
"""The code of a wire attempt that did not fail."""


class ToolOutcome(StrEnum):
    """How a logical call ended."""

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"


class ToolsNeed(StrEnum):
    """Whether a workflow's answers must rest on a tool's success."""

    REQUIRED = "required"
    IF_CALLED = "if_called"
    NONE = "none"


class RunOutcome(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STOPPED = "stopped"


class ZeroSuccessCause(StrEnum):
    """Why a run had no successful tool call."""

    ALL_FAILED = "all_failed"
    NONE_CALLED = "none_called"


class WhenFailed(StrEnum):
    """What a watched function does when its call failed for good: raise, or return the text for the model."""

    RAISE = "raise"
    TEXT = "text"


class GuardReason(StrEnum):
    """Why the final-answer guard refused."""

    NO_TOOL_SUCCESS = "no_tool_success"
    AMBIGUOUS_OPEN = "ambiguous_open"
    TOOL_DISCOVERY_FAILED = "tool_discovery_failed"


class Action(StrEnum):
    """What the program must do next; each primitive uses a few of them."""

    DELIVER = "deliver"
    REPAIR = "repair"
    HOLD = "hold"
    DIVERT = "divert"
    STOP = "stop"
    OK = "ok"
    RETRY = "retry"
    GIVE_UP = "give_up"
    NEEDS_HUMAN = "needs_human"
    ANSWER = "answer"
    REFUSE = "refuse"


class Claimed(StrEnum):
    """What the agent said at the end; none: it said nothing, or ended without a word."""

    DONE = "done"
    PARTIAL = "partial"
    NOT_DONE = "not_done"
    NONE = "none"


class Effect(StrEnum):
    """What a read-back says about an operation."""

    LANDED = "landed"
    PENDING = "pending"
    UNKNOWN = "unknown"
    NOT_LANDED = "not_landed"


class Cause(StrEnum):
    """Why an effect is not_landed."""

    MISSING = "missing"
    FAILED = "failed"
    MISMATCH = "mismatch"
    REVERSED = "reversed"


class Origin(StrEnum):
    """Where the truth was lost.

    tool: the receipt says success, the store does not. wrapper: the call failed and the failure was hidden.
    model: no call was made. unknown: none of them can be shown.
    """

    TOOL = "tool"
    WRAPPER = "wrapper"
    MODEL = "model"
    UNKNOWN = "unknown"


class ClaimEffect(StrEnum):
    """How a run's claim was settled."""

    LANDED = "landed"
    NOT_LANDED = "not_landed"
    UNCHECKED = "unchecked"


class VerificationResult(StrEnum):
    """What one read-back gave; error and skipped leave the effect as it was."""

    LANDED = "landed"
    PENDING = "pending"
    UNKNOWN = "unknown"
    NOT_LANDED = "not_landed"
    ERROR = "error"
    SKIPPED = "skipped"


class UnaskedKind(StrEnum):
    """An effect beyond what was asked for."""

    DUPLICATE = "duplicate"
    UNASKED = "unasked"


class WebhookResult(StrEnum):
    """What became of a delivered webhook."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    UNMATCHED = "unmatched"
    EXPIRED = "expired"
    REFUSED = "refused"


class Check(StrEnum):
    """The checks that a handoff, answer or operation can pass without."""

    CONTRACT = "contract"
    BOUNDARY = "boundary"
    GUARD = "guard"
    VERIFIER = "verifier"
    LEDGER = "ledger"


class BypassCause(StrEnum):
    """Why something passed without a check."""

    UNCHECKED = "unchecked"
    ON_FAILURE_PASS = "on_failure_pass"
    LEDGER_DOWN = "ledger_down"
    INTERNAL_ERROR = "internal_error"


class CaseKind(StrEnum):
    """The kinds of stored evidence. Nobody waits for that of an allowed handoff."""

    ALLOWED = "allowed"
    BLOCKED = "blocked"
    HELD = "held"
    AMBIGUOUS = "ambiguous"
    QUARANTINED = "quarantined"
    FALSE_SUCCESS = "false_success"


class Ruling(StrEnum):
    """What a person decided about a held handoff: it may go on, or it may not."""

    APPROVED = "approved"
    REJECTED = "rejected"


class ViolationKind(StrEnum):
    """The ways in which a run breaks the rules of its crossings.

    blocked: a verdict. divergence: state that did not survive a crossing. guard: a refused answer. tool: a failure that
    no later call recovered. false_success: an operation claimed done that did not land.
    """

    BLOCKED = "blocked"
    DIVERGENCE = "divergence"
    GUARD = "guard"
    TOOL = "tool"
    FALSE_SUCCESS = "false_success"


class ReviewVerdict(StrEnum):
    """An operator's judgement of a case."""

    RIGHT_BLOCK = "right_block"
    FALSE_BLOCK = "false_block"


class ReviewSelection(StrEnum):
    """How a case came up for review."""

    RANDOM = "random"
    FORCED = "forced"


class EvalResult(StrEnum):
    """What a final eval said about a run."""

    PASSED = "passed"
    FAILED = "failed"


class Crossings(StrEnum):
    """Whether the crossings of an evaluated run kept their rules."""

    KEPT = "kept"
    VIOLATED = "violated"


class CheckPurpose(StrEnum):
    """What the tokens and the money of a model call were spent on."""

    CRITIC = "critic"
    REPAIR = "repair"


class RiskSignal(StrEnum):
    """What about a handoff asks for a critic, although the watchdog lets it pass."""

    NEW_SCHEMA_VERSION = "new_schema_version"
    LOW_CONFIDENCE = "low_confidence"
    AGENTS_IN_CONFLICT = "agents_in_conflict"
    SENSITIVE_OPERATION = "sensitive_operation"
    LARGE_PAYLOAD = "large_payload"


class CriticResult(StrEnum):
    """What a critic said, or that it could not."""

    NO_CONCERN = "no_concern"
    CONCERN = "concern"
    ERROR = "error"
    SKIPPED = "skipped"


class ReviewKind(StrEnum):
    """The waits for a person that are timed."""

    APPROVAL = "approval"
    HELD = "held"
    AMBIGUOUS = "ambiguous"
    REVIEW = "review"


class Signal(StrEnum):
    """The kinds of telemetry that can be dropped."""

    SPANS = "spans"
    METRICS = "metrics"
    EVENTS = "events"


class DropCause(StrEnum):
    """Why telemetry was dropped."""

    QUEUE_FULL = "queue_full"
    EXPORT_FAILED = "export_failed"
    SHUTDOWN = "shutdown"


class Component(StrEnum):
    """The rooms in which a fault of our own can be caught."""

    WATCHDOG = "watchdog"
    TOOLS = "tools"
    GUARD = "guard"
    RECORDING = "recording"
    LEDGER = "ledger"
    SETTLEMENT = "settlement"
    RUNTIME = "runtime"
    EXPORTER = "exporter"
