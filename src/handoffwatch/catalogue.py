"""Every metric, named once: kind, labels with their closed sets, buckets, what feeds it, and how its series are born.

Source: DESIGN section 6. Code, rules, dashboards and docs are tested against this table in both directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from handoffwatch import vocabulary as v

PREFIX: Final = "handoffwatch_"


class Kind(StrEnum):
    """The kinds of metric; info is a gauge of value 1 whose labels carry the facts."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Born(StrEnum):
    """When the series of a metric first exist.

    product: every combination of the closed sets, at 0, with each registration.
    declared: the combinations that a registration can yield, at 0.
    first_use: with the first event; no alert may use such a series.
    """

    PRODUCT = "product"
    DECLARED = "declared"
    FIRST_USE = "first_use"


class Source(StrEnum):
    """What feeds a metric, beside the events: a query of the ledger, or the state of the process."""

    LEDGER = "ledger query"
    PROCESS = "process state"


class Registered(StrEnum):
    """A label whose values are the names that were registered; anything else is `other`."""

    ROUTE = "route"
    AGENT = "agent"
    SCHEMA_VERSION = "schema version"
    WORKFLOW = "workflow"
    TOOL = "tool"
    OPERATION = "operation"
    NAME = "route, workflow or operation"
    PATH = "policy pattern"
    REASON = "reason code"
    WEBHOOK_SOURCE = "webhook source"
    LEDGER = "ledger id"
    METRIC = "metric"
    TEXT = "text of the build"


@dataclass(frozen=True, slots=True)
class Label:
    """A label's name and the closed set of its values."""

    name: str
    values: tuple[str, ...] | Registered


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: The name without the common prefix, as it stands in the exposition.
        kind: counter, gauge, histogram or info.
        help: One line; for ledger series it says that equal values stand on every replica.
        labels: In the order of the exposition.
        fed_by: The one event class, or the `Source`, that feeds it.
        buckets: Upper bounds in the metric's unit; only for histograms.
        born: When its series first exist.
        series_max: The most label sets of one process; beyond it registered labels become `other` and are counted.
    """

    name: str
    kind: Kind
    help: str
    fed_by: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()
    born: Born = Born.PRODUCT
    series_max: int = 1000

    @property
    def full_name(self) -> str:
        """The name as Prometheus shows it."""
        return PREFIX + self.name

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the labels in order."""
        return tuple(label.name for label in self.labels)

    @property
    def from_ledger(self) -> bool:
        """Whether the series survive restarts and are equal on all replicas."""
        return self.name.startswith("ledger_")


def _closed(name: str, values: type[StrEnum]) -> Label:
    return Label(name, tuple(str(value) for value in values))


_ROUTE: Final = Label("route", Registered.ROUTE)
_H: Final = (
    _ROUTE,
    Label("source_agent", Registered.AGENT),
    Label("target_agent", Registered.AGENT),
    Label("schema_version", Registered.SCHEMA_VERSION),
)
_WORKFLOW: Final = Label("workflow", Registered.WORKFLOW)
_TOOL: Final = Label("tool", Registered.TOOL)
_OPERATION: Final = Label("operation", Registered.OPERATION)
_LEDGER: Final = Label("ledger", Registered.LEDGER)
_COLLECTOR: Final = Label("collector", (v.Component.LEDGER,))
_MODE: Final = _closed("mode", v.Mode)
_CRITICALITY: Final = _closed("criticality", v.Criticality)
_TOOLS_NEED: Final = _closed("tools", v.ToolsNeed)
_CLAIMED: Final = _closed("claimed", v.Claimed)
_CLAIMED_DONE: Final = Label("claimed", (v.Claimed.DONE, v.Claimed.PARTIAL))
_CAUSE: Final = _closed("cause", v.Cause)
_CASE_KIND: Final = Label("kind", tuple(kind for kind in v.CaseKind if kind is not v.CaseKind.ALLOWED))
_CODE: Final = _closed("code", v.ToolCode)

_OVERHEAD_BUCKETS: Final = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
)  # fmt: skip
_CALL_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_LATE_BUCKETS: Final = (
    0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0, 21600.0, 86400.0, 259200.0, 604800.0, 1209600.0,
)  # fmt: skip
_LEDGER_HELP: Final = " Read from the ledger: survives restarts and is equal on all replicas; never sum over instances."


def _metric(name: str, kind: Kind, help: str, fed_by: str, *labels: Label, **more: object) -> Metric:
    return Metric(name, kind, help, fed_by, labels, **more)  # type: ignore[arg-type]


def _ledger(name: str, kind: Kind, help: str, *labels: Label, born: Born = Born.PRODUCT) -> Metric:
    return Metric(name, kind, help + _LEDGER_HELP, Source.LEDGER, (_LEDGER, *labels), born=born)


_C, _G, _HG, _I = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM, Kind.INFO

# handoffs
HANDOFF_INSPECTIONS: Final = _metric(
    "handoff_inspections_total", _C, "Attempts of handoffs that were inspected.", "HandoffInspected",
    *_H, _MODE, _closed("attempt", v.AttemptKind),
)  # fmt: skip
HANDOFF_BLOCKS: Final = _metric(
    "handoff_blocks_total", _C, "Attempts of handoffs whose verdict is blocked.", "HandoffInspected",
    *_H, _MODE, _closed("attempt", v.AttemptKind),
)  # fmt: skip
HANDOFF_FINDINGS: Final = _metric(
    "handoff_findings_total", _C, "Attempts in which a reason code was found, each code once.", "HandoffInspected",
    *_H, _MODE, Label("reason", Registered.REASON), _closed("reaction", v.Reaction),
    born=Born.DECLARED, series_max=10_000,
)  # fmt: skip
HANDOFFS: Final = _metric(
    "handoffs_total", _C, "Handoffs that ended, by outcome.", "HandoffEnded", *_H, _closed("outcome", v.HandoffOutcome)
)
HANDOFF_ATTEMPTS: Final = _metric(
    "handoff_attempts", _HG, "Attempts that a handoff needed.", "HandoffEnded",
    _ROUTE, buckets=(1.0, 2.0, 3.0, 5.0, 8.0),
)  # fmt: skip
HANDOFF_REPAIRS: Final = _metric(
    "handoff_repairs_total", _C, "Repair attempts, by what they led to.", "HandoffInspected",
    *_H, _closed("result", v.RepairResult),
)  # fmt: skip
HANDOFF_OVERHEAD: Final = _metric(
    "handoff_overhead_seconds", _HG, "Latency added to an attempt, without critic, repair and human time.",
    "HandoffInspected", _ROUTE, buckets=_OVERHEAD_BUCKETS,
)  # fmt: skip
HANDOFF_DETECTION: Final = _metric(
    "handoff_detection_seconds", _HG, "Time from producing a handoff to naming its bad field.", "HandoffInspected",
    _ROUTE, buckets=_CALL_BUCKETS,
)  # fmt: skip
HANDOFF_DIVERGENCES: Final = _metric(
    "handoff_divergences_total", _C, "State that did not survive the crossing, by the policy's pattern.",
    "HandoffCompared", _ROUTE, Label("path", Registered.PATH), born=Born.DECLARED,
)  # fmt: skip
HANDOFF_ROUTE_INFO: Final = _metric(
    "handoff_route_info", _I, "A registered route.", Source.PROCESS,
    _ROUTE, _H[1], _H[2], _MODE, _CRITICALITY, born=Born.DECLARED,
)  # fmt: skip
CHECKS_BYPASSED: Final = _metric(
    "checks_bypassed_total", _C, "Passes without a check.", "CheckBypassed",
    _closed("check", v.Check), Label("name", Registered.NAME), _closed("cause", v.BypassCause), born=Born.DECLARED,
)  # fmt: skip
CRITIC_CHECKS: Final = _metric(
    "critic_checks_total", _C, "Calls of the critic.", "CriticAnswered", _ROUTE, _closed("result", v.CriticResult)
)
CRITIC_DURATION: Final = _metric(
    "critic_duration_seconds", _HG, "Time a critic took.", "CriticAnswered", _ROUTE, buckets=_CALL_BUCKETS
)
CHECK_TOKENS: Final = _metric(
    "check_tokens_total", _C, "Tokens spent on checks, as the host reports them.", "UsageReported",
    _ROUTE, _closed("purpose", v.CheckPurpose),
)  # fmt: skip
CHECK_COST: Final = _metric(
    "check_cost_usd_total", _C, "Dollars spent on checks, as the host reports them.", "UsageReported",
    _ROUTE, _closed("purpose", v.CheckPurpose),
)  # fmt: skip

# tools
TOOL_CALLS: Final = _metric("tool_calls_total", _C, "Logical tool calls begun.", "ToolCallStarted", _TOOL)
TOOL_CALLS_ENDED: Final = _metric(
    "tool_calls_ended_total", _C, "Logical tool calls that ended, by outcome.", "ToolCallEnded",
    _TOOL, _closed("outcome", v.ToolOutcome),
)  # fmt: skip
TOOL_FAILURES: Final = _metric(
    "tool_failures_total", _C, "Logical tool calls that failed, by code and class.", "ToolCallEnded",
    _TOOL, _CODE, _closed("failure_class", v.FailureClass), born=Born.DECLARED, series_max=5_000,
)  # fmt: skip
TOOL_ATTEMPTS: Final = _metric(
    "tool_attempts_total", _C, "Wire attempts of tool calls, by code.", "ToolAttempted",
    _TOOL, Label("code", (v.OK, *map(str, v.ToolCode))), born=Born.DECLARED, series_max=5_000,
)  # fmt: skip
TOOL_DURATION: Final = _metric(
    "tool_duration_seconds", _HG, "Time of a logical tool call, waits included.", "ToolCallEnded",
    _TOOL, buckets=_CALL_BUCKETS,
)  # fmt: skip
TOOL_RETRY_WAIT: Final = _metric(
    "tool_retry_wait_seconds_total", _C, "Time waited before wire attempts.", "ToolCallEnded", _TOOL
)
TOOL_BREAKER_OPEN: Final = _metric(
    "tool_breaker_open", _G, "Runs in progress whose breaker for the tool is open.", Source.PROCESS, _TOOL
)

# runs and the guard
RUNS_STARTED: Final = _metric("runs_started_total", _C, "Runs begun.", "RunStarted", _WORKFLOW)
RUNS_IN_PROGRESS: Final = _metric("runs_in_progress", _G, "Runs begun and not ended.", Source.PROCESS, _WORKFLOW)
RUNS: Final = _metric(
    "runs_total", _C, "Runs that ended, by outcome.", "RunEnded", _WORKFLOW, _TOOLS_NEED,
    _closed("outcome", v.RunOutcome), born=Born.DECLARED,
)  # fmt: skip
RUNS_WITHOUT_TOOL_SUCCESS: Final = _metric(
    "runs_without_tool_success_total", _C, "Runs that ended without one successful tool call.", "RunEnded",
    _WORKFLOW, _TOOLS_NEED, _closed("cause", v.ZeroSuccessCause), born=Born.DECLARED,
)  # fmt: skip
RUNS_UNRECOVERED: Final = _metric(
    "runs_with_unrecovered_tool_failure_total", _C, "Runs with a tool failure that no later call recovered.",
    "RunEnded", _WORKFLOW,
)  # fmt: skip
RUNS_UNINSPECTED: Final = _metric(
    "runs_without_inspection_total", _C, "Runs that ended without one inspected handoff.", "RunEnded", _WORKFLOW
)
GUARD_CHECKS: Final = _metric("guard_checks_total", _C, "Final answers checked.", "GuardChecked", _WORKFLOW, _MODE)
GUARD_BLOCKS: Final = _metric(
    "guard_blocks_total", _C, "Final answers refused.", "GuardChecked",
    _WORKFLOW, _MODE, _closed("reason", v.GuardReason),
)  # fmt: skip
GUARD_LATE_REFUSALS: Final = _metric(
    "guard_late_refusals_total", _C, "Answers refused after text had been streamed.", "GuardChecked", _WORKFLOW
)

# outcomes, in the process that verifies
SETTLEMENT_SECONDS: Final = _metric(
    "settlement_seconds", _HG, "Time from claim to settlement of an operation.", "EffectSettled",
    _OPERATION, buckets=_LATE_BUCKETS,
)  # fmt: skip
VERIFICATION_SECONDS: Final = _metric(
    "verification_seconds", _HG, "Time of one read-back.", "EffectVerified", _OPERATION, buckets=_CALL_BUCKETS
)
VERIFICATIONS: Final = _metric(
    "verifications_total", _C, "Read-backs by result.", "EffectVerified",
    _OPERATION, _closed("result", v.VerificationResult),
)  # fmt: skip
REVIEW_WAIT: Final = _metric(
    "review_wait_seconds", _HG, "Time a person took, apart from latency.", "CaseReviewed",
    _closed("kind", v.ReviewKind), buckets=_LATE_BUCKETS,
)  # fmt: skip

# the product itself
TELEMETRY_DROPPED: Final = _metric(
    "telemetry_dropped_total", _C, "Telemetry that did not leave.", Source.PROCESS,
    _closed("signal", v.Signal), _closed("cause", v.DropCause),
)  # fmt: skip
LABEL_OVERFLOW: Final = _metric(
    "label_overflow_total", _C, "Label values folded into other.", Source.PROCESS,
    Label("metric", Registered.METRIC), Label("label", Registered.METRIC), born=Born.DECLARED,
)  # fmt: skip
INTERNAL_ERRORS: Final = _metric(
    "internal_errors_total", _C, "Faults of the product itself that were caught.", "InternalErrorCaught",
    _closed("component", v.Component),
)  # fmt: skip
CLOCK_SKEW: Final = _metric("clock_skew_total", _C, "Times from elsewhere that lie in the future.", "HandoffInspected")
COLLECTOR_SUCCESS: Final = _metric(
    "collector_success", _G, "Whether the last reading of the ledger worked.", Source.PROCESS, _COLLECTOR
)
COLLECTOR_DURATION: Final = _metric(
    "collector_duration_seconds", _G, "Time of the last reading of the ledger.", Source.PROCESS, _COLLECTOR
)
COLLECTOR_REGRESSIONS: Final = _metric(
    "collector_regressions_total", _C, "Ledger values that fell between two scrapes.", Source.PROCESS, _COLLECTOR
)
CONFIG_RELOAD_SUCCESSFUL: Final = _metric(
    "config_last_reload_successful", _G, "Whether the last reload of the configuration worked.", Source.PROCESS
)
CONFIG_RELOAD_TIME: Final = _metric(
    "config_last_reload_success_timestamp_seconds", _G, "When the configuration was last read without an error.",
    Source.PROCESS,
)  # fmt: skip
SELFTEST_TIME: Final = _metric(
    "watchdog_selftest_last_success_timestamp_seconds", _G,
    "When every contract last judged its own examples right; 0 is never.", Source.PROCESS,
)  # fmt: skip
BUILD_INFO: Final = _metric(
    "build_info", _I, "The running version.", Source.PROCESS,
    Label("version", Registered.TEXT), Label("semconv", Registered.TEXT),
)  # fmt: skip

# the ledger
LEDGER_CLAIMS: Final = _ledger(
    "ledger_claims_total", _C, "Runs of workflows with operations, by final claim.", _WORKFLOW, _CLAIMED
)
LEDGER_CLAIMS_OPEN: Final = _ledger(
    "ledger_claims_open", _G, "Claims of done or partial that are not settled.", _WORKFLOW, _CLAIMED_DONE
)
LEDGER_CLAIMS_SETTLED: Final = _ledger(
    "ledger_claims_settled_total", _C, "Runs that claimed done or partial and were settled, each once.",
    _WORKFLOW, _CLAIMED_DONE, _closed("effect", v.ClaimEffect),
)  # fmt: skip
LEDGER_CLAIMS_REVERSED: Final = _ledger(
    "ledger_claims_reversed_total", _C, "Runs settled as landed and later not_landed.", _WORKFLOW, _CLAIMED_DONE
)
LEDGER_FALSE_SUCCESSES: Final = _ledger(
    "ledger_false_successes_total", _C, "Operations claimed done and found not_landed, each once.",
    _WORKFLOW, _OPERATION, _CRITICALITY, _CAUSE, _closed("origin", v.Origin), born=Born.DECLARED,
)  # fmt: skip
LEDGER_FALSE_SUCCESSES_WITHDRAWN: Final = _ledger(
    "ledger_false_successes_withdrawn_total", _C, "False successes that landed after all.",
    _WORKFLOW, _OPERATION, _CRITICALITY, born=Born.DECLARED,
)  # fmt: skip
LEDGER_FALSE_SUCCESS_LAST: Final = _ledger(
    "ledger_false_success_last_timestamp_seconds", _G, "When the last false success was settled; 0 is never.",
    _WORKFLOW, _OPERATION, _CRITICALITY, born=Born.DECLARED,
)  # fmt: skip
LEDGER_UNASKED: Final = _ledger(
    "ledger_unasked_effects_total", _C, "Effects beyond what was asked for.",
    _WORKFLOW, _OPERATION, _CRITICALITY, _closed("kind", v.UnaskedKind), born=Born.DECLARED,
)  # fmt: skip
LEDGER_UNCLAIMED: Final = _ledger(
    "ledger_unclaimed_effects_total", _C, "Operations claimed not done that landed.",
    _WORKFLOW, _OPERATION, born=Born.DECLARED,
)  # fmt: skip
LEDGER_EFFECTS_SETTLED: Final = _ledger(
    "ledger_effects_settled_total", _C, "Operations settled, by effect and cause (empty when landed).",
    _WORKFLOW, _OPERATION, _CRITICALITY, Label("effect", (v.Effect.LANDED, v.Effect.NOT_LANDED)),
    Label("cause", ("", *map(str, v.Cause))), born=Born.DECLARED,
)  # fmt: skip
LEDGER_EFFECTS_REVERSED: Final = _ledger(
    "ledger_effects_reversed_total", _C, "Operations that landed and were undone.", _OPERATION
)
LEDGER_EFFECTS_OPEN: Final = _ledger(
    "ledger_effects_open", _G, "Operations without a final effect.",
    _OPERATION, Label("effect", (v.Effect.PENDING, v.Effect.UNKNOWN)),
)  # fmt: skip
LEDGER_EFFECTS_OVERDUE: Final = _ledger(
    "ledger_effects_overdue", _G, "Open operations past their deadline.", _OPERATION
)
LEDGER_EFFECTS_OLDEST: Final = _ledger(
    "ledger_effects_oldest_open_timestamp_seconds", _G, "Start of the oldest open operation; absent when none.",
    _OPERATION, Label("effect", (v.Effect.PENDING, v.Effect.UNKNOWN)), born=Born.FIRST_USE,
)  # fmt: skip
LEDGER_VERIFICATION_LAST: Final = _ledger(
    "ledger_verification_last_success_timestamp_seconds", _G, "When a read-back last gave an answer.", _OPERATION
)
LEDGER_WEBHOOKS: Final = _ledger(
    "ledger_webhooks_total", _C, "Webhooks by what became of them.",
    Label("source", Registered.WEBHOOK_SOURCE), _closed("result", v.WebhookResult),
)  # fmt: skip
LEDGER_FINAL_EVALS: Final = _ledger(
    "ledger_final_evals_total", _C, "Final evals, against whether the crossings kept their rules.",
    _WORKFLOW, _closed("result", v.EvalResult), _closed("crossings", v.Crossings),
)  # fmt: skip
LEDGER_VIOLATIONS_BEFORE_EVAL: Final = _ledger(
    "ledger_violations_before_eval_total", _C, "Violations that were known before the final eval.", _WORKFLOW
)
LEDGER_HANDOFF_REVIEWS: Final = _ledger(
    "ledger_handoff_reviews_total", _C, "Reviewed blocks; the false-block share uses random ones only.",
    _ROUTE, _H[3], _MODE, _closed("selection", v.ReviewSelection), _closed("verdict", v.ReviewVerdict),
    born=Born.DECLARED,
)  # fmt: skip
LEDGER_GUARD_REVIEWS: Final = _ledger(
    "ledger_guard_reviews_total", _C, "Reviewed refusals of the guard.",
    _WORKFLOW, _closed("selection", v.ReviewSelection), _closed("verdict", v.ReviewVerdict),
)  # fmt: skip
LEDGER_CASES_OPEN: Final = _ledger("ledger_cases_open", _G, "Cases that wait for a person.", _CASE_KIND, _CRITICALITY)
LEDGER_CASES_OLDEST: Final = _ledger(
    "ledger_cases_oldest_open_timestamp_seconds", _G, "Start of the oldest open case; absent when none.",
    _CASE_KIND, _CRITICALITY, born=Born.FIRST_USE,
)  # fmt: skip

CATALOGUE: Final[tuple[Metric, ...]] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""Every metric, in the order above."""

BY_NAME: Final[dict[str, Metric]] = {metric.name: metric for metric in CATALOGUE}
