"""One small handoff for each reason code that the watchdog gives, with the contract it breaks.

The pages of docs/reasons show these classes and functions as they stand here, and what the watchdog says about them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel, Field

from handoffwatch import Contract, HandoffContext, TaskFacts, rule
from handoffwatch.clock import Clock

ROUTE: Final = "executor->reviewer"
ROUTES: Final = (ROUTE, "reviewer->synthesizer")
"""The routes that are registered for every example."""

NOW: Final = "2026-06-01T12:00:00Z"
CLOCK: Final = Clock(wall_s=lambda: 1_780_315_200.0, monotonic_s=lambda: 0.0)
"""The time at which every example is judged."""

HANDOFF: Final[Mapping[str, object]] = MappingProxyType(
    {
        "handoff_id": "h-1842",
        "task_id": "t-1",
        "source_agent": "executor",
        "target_agent": "reviewer",
        "task_type": "refund",
        "status": "completed",
        "schema_version": "1",
    }
)
"""The envelope of every example, before its change."""

LEFT_OUT: Final = object()
"""Stands in a change for a field that the sender leaves out."""


class Findings(Contract, version="1"):
    """What the reviewer needs."""

    order_id: str = Field(min_length=1, pattern=r"^[0-9]{4}$")
    result: str
    amount_cents: int | None = None
    note: str | None = None


class FindingsInCents(Contract, version="2"):
    """What the reviewer needs since amounts are sent along."""

    order_id: str
    result: str
    amount_cents: int


class OldFindings(Contract, version="1", deprecated_from="2026-07-01"):
    """What the reviewer needed before amounts were sent along."""

    order_id: str
    result: str


class Count(Contract, version="1"):
    """What was counted."""

    count: int = 0
    items_count: int = 0


class Reference(Contract, version="1"):
    """An order by its number."""

    order_number: int


class Anything(Contract, version="1"):
    """Whatever was found."""

    found: Any


class Failure(Contract, version="1", accepts=("failed",)):
    """What the receiver of failed work needs."""

    order_id: str
    error: str


class Attempted(Contract, version="1"):
    """Work that may have failed, for a receiver that takes only work that did not."""

    order_id: str
    error: str | None = None


class Search(Contract, version="1", needs_results=True):
    """What was found: at least one hit."""

    results: list[str]


class Plan(Contract, version="1", ready_needs=("steps",)):
    """What is to be done; a plan that is ready has its steps."""

    goal: str
    steps: list[str] | None = None


class Payment(Contract, version="1", irreversible=True):
    """What is to be paid, under which operation."""

    order_id: str
    operation_id: str | None = None


class Checked(Contract, version="1", requires_context=True):
    """What can only be judged beside the active run."""

    order_id: str


class Choice(Contract, version="1", choices={"selected": "candidates.*"}):
    """One order out of those that were found."""

    selected: str
    candidates: list[str]


class Outcome(Contract, version="1"):
    """What a tool returned."""

    result: dict[str, Any]


class Item(BaseModel):
    """A part of a task."""

    task_id: str
    text: str


class Bundle(Contract, version="1", same_task=("items.*.task_id",)):
    """Parts that all belong to this task."""

    items: list[Item]


class Merged(Contract, version="1", merged="parts"):
    """What several workers found about one order."""

    parts: list[dict[str, Any]]


class Guess(Contract, version="1", confidence_min=0.5):
    """An answer, and how sure the sender is."""

    answer: str
    confidence: float


class Export(Contract, version="1", age_s_max=3600):
    """State that is worth nothing after an hour."""

    order_id: str


class History(Contract, version="1", messages="messages"):
    """The conversation so far."""

    messages: list[dict[str, Any]]


class Average(Contract, version="1"):
    """A sum and what it is divided by."""

    total: int
    parts: int

    @rule("average_too_high", "the reviewer may see averages up to 100 only")
    def is_moderate(self) -> bool:
        """Divide without a look at the divisor."""
        return self.total / self.parts <= 100


def too_deep() -> dict[str, Any]:
    """Return lists in lists, 1,000 deep."""
    found: list[Any] = []
    for _ in range(1_000):
        found = [found]
    return {**HANDOFF, "payload": {"found": found}}


def too_large() -> dict[str, Any]:
    """Return a text of 2 MiB."""
    return {**HANDOFF, "payload": {"found": "x" * 2 * 1024 * 1024}}


def cyclic_value() -> dict[str, Any]:
    """Return something found whose child is itself."""
    found: dict[str, Any] = {}
    found["child"] = found
    return {**HANDOFF, "payload": {"found": found}}


def not_serialisable() -> dict[str, Any]:
    """Return an open file instead of what it holds."""
    return {**HANDOFF, "payload": {"found": io.StringIO("order 4417")}}


def non_finite_number() -> dict[str, Any]:
    """Return the confidence that comes out of a division by nothing."""
    return {**HANDOFF, "payload": {"answer": "order 4417", "confidence": float("nan")}}


def invalid_text() -> dict[str, Any]:
    """Return a note that was cut in the middle of an emoji."""
    return {**HANDOFF, "payload": {"order_id": "4417", "result": "Refund submitted.", "note": "thanks \ud83d"}}


def unparsable_text() -> str:
    """Return a sentence, and then JSON."""
    return 'Here is the handoff: {"handoff_id": "h-1842", "task_id": "t-1", "payload": {"order_id": "4417"}}'


@dataclass(frozen=True, slots=True)
class Example:
    """One handoff, and what it is judged by.

    Attributes:
        contracts: The contracts of the route, one for each schema version.
        change: What differs from `HANDOFF`, by field of the envelope.
        make: Makes a handoff that JSON cannot show; then `change` means nothing.
        models: Further classes that the contracts use.
        context: What the orchestrator knows.
        expected_target: The agent that the orchestrator is about to start.
        given: What else the reader must know, as a sentence.
        configured: How a contract or route configures the rule, as sentences.
    """

    contracts: tuple[type[Contract], ...]
    change: Mapping[str, object] = field(default_factory=dict)
    make: Callable[[], object] | None = None
    models: tuple[type[BaseModel], ...] = ()
    context: HandoffContext | None = None
    expected_target: str | None = None
    given: str = ""
    configured: str = ""

    def handoff(self) -> object:
        """Return the handoff as it is given to the watchdog."""
        if self.make is not None:
            return self.make()
        return {key: value for key, value in {**HANDOFF, **self.change}.items() if value is not LEFT_OUT}


_GOOD: Final = {"order_id": "4417", "result": "Refund submitted."}


def _payload(contract: type[Contract], configured: str, /, **payload: object) -> Example:
    return Example((contract,), {"payload": payload}, configured=configured)


EXAMPLES: Final[dict[str, Example]] = {
    # structure
    "missing_field": _payload(
        Findings,
        "A field of the contract without a default is required. Give it a default, as `note` has, to make it optional.",
        result="Refund submitted.",
    ),
    "null_field": _payload(
        Findings,
        "A field whose type does not name `None` needs a value. Write `order_id: str | None` to allow null.",
        order_id=None,
        result="Refund submitted.",
    ),
    "empty_field": _payload(
        Findings,
        "`Field(min_length=1)` on a text, list or dict says that it must not be empty. Without it, empty is a value.",
        order_id="",
        result="Refund submitted.",
    ),
    "type_mismatch": _payload(
        Count,
        "The field's type decides, and values are taken strictly: text is no number, 1 is not true. A contract with "
        "the keyword `lax=True` converts what can be converted, and the decision lists it in `coerced`.",
        count="3",
    ),
    "unknown_field": _payload(
        Findings,
        "A contract knows its own fields only. Add the field to the contract when the receiver needs it.",
        order_id="4417",
        result="Refund submitted.",
        amout_cents=3800,
    ),
    "bad_format": _payload(
        Findings,
        "Everything that a field asks for beyond its type gives this code: `Field(pattern=…, ge=…, max_length=…)`, "
        "`Literal`, an enumeration, a validator.",
        order_id="order 4417",
        result="Refund submitted.",
    ),
    "unknown_status": Example(
        (Findings,),
        {"status": "done", "payload": _GOOD},
        configured="The three statuses are fixed; `accepts` says which of them a receiver takes.",
    ),
    "unknown_schema_version": Example(
        (Findings, FindingsInCents),
        {"schema_version": "7", "payload": _GOOD},
        configured="`contract=[Findings, FindingsInCents]` registers versions side by side; the keyword `version` of "
        "each class names it.",
    ),
    "deprecated_schema_version": Example(
        (OldFindings, FindingsInCents),
        {"payload": _GOOD},
        given=f"It is {NOW}.",
        configured="The keyword `deprecated_from` of the contract names the day (UTC) on which the version ends: until "
        "then it warns, from then on it blocks.",
    ),
    "non_finite_number": Example(
        (Guess,),
        make=non_finite_number,
        configured="Nothing to configure: JSON has no such number, and readers that invent one disagree.",
    ),
    "unsafe_integer": _payload(
        Reference,
        "Nothing to configure: type ids as `str` in the contract.",
        order_number=1_234_567_890_123_456_789,
    ),
    "invalid_text": Example(
        (Findings,), make=invalid_text, configured="Nothing to configure: such a text cannot be stored or sent on."
    ),
    "too_deep": Example((Anything,), make=too_deep, configured="Nothing to configure: the limit is 64 levels."),
    "too_large": Example(
        (Anything,),
        make=too_large,
        configured="The setting `handoffs.payload_bytes_max` is the limit; it is 1 MiB of JSON text unless said.",
    ),
    "cyclic_value": Example(
        (Anything,), make=cyclic_value, configured="Nothing to configure: such a value has no JSON form."
    ),
    "not_serialisable": Example(
        (Anything,),
        make=not_serialisable,
        configured="Nothing to configure: nothing is turned into text for want of a better form.",
    ),
    "unparsable_text": Example(
        (Findings,),
        make=unparsable_text,
        given="Its id cannot be read either.",
        configured="Nothing to configure: a text is never cut out, repaired or closed. Nobody knows what was meant.",
    ),
    "truncated_payload": Example(
        (Findings,),
        {"payload": _GOOD, "finish_reason": "length"},
        configured="Send the model's finish reason in the envelope's `finish_reason`. Without it, only a text that "
        "ends before its JSON does shows that something is missing.",
    ),
    "missing_handoff_id": Example(
        (Findings,),
        {"handoff_id": LEFT_OUT, "payload": _GOOD},
        configured="The context's `handoff_id` is taken before one is made.",
    ),
    # completeness
    "missing_result": _payload(
        Findings,
        "A contract with a field `result` asks completed work for it. White space is empty; 0, false and [] are "
        "results. A contract without that field asks for no result.",
        order_id="4417",
        result=" ",
    ),
    "missing_error": Example(
        (Failure,),
        {"status": "failed", "payload": {"order_id": "4417", "error": " "}},
        configured="Every contract that accepts failed work asks for its cause in `payload.error`.",
    ),
    "empty_results": _payload(
        Search,
        "The keyword `needs_results=True` of the contract asks for one result at least. Without it, an empty list is "
        "an answer.",
        results=[],
    ),
    "not_ready": Example(
        (Plan,),
        {"status": "ready", "payload": {"goal": "refund order 4417"}},
        configured="The keyword `ready_needs` of the contract lists the payload fields that a handoff of status ready "
        "must bring.",
    ),
    "missing_operation_id": Example(
        (Payment,),
        {"status": "ready", "payload": {"order_id": "4417"}},
        configured="The keyword `irreversible=True` of the contract asks for `payload.operation_id`.",
    ),
    "status_not_accepted": Example(
        (Attempted,),
        {"status": "failed", "payload": {"order_id": "4417", "error": "401 from the order service"}},
        configured="The keyword `accepts` of the contract lists the statuses that its receiver takes: ready and "
        'completed unless said. `accepts=("failed",)` makes a failure path.',
    ),
    "missing_context": Example(
        (Checked,),
        {"payload": {"order_id": "4417"}},
        configured="The keyword `requires_context=True` of the contract asks for it. `watch.run(…)` brings it by "
        "itself; a direct `inspect` needs `context=HandoffContext(…)`.",
    ),
    # plausibility
    "negative_count": _payload(
        Count,
        "Whole numbers in the fields `count` and `…_count` are counts. For other names write `Field(ge=0)`, which "
        "gives `bad_format`.",
        items_count=-1,
    ),
    "selected_not_in_candidates": _payload(
        Choice,
        "The keyword `choices` of the contract says which field must be among the values at which path.",
        selected="9",
        candidates=["1", "2", "3"],
    ),
    "status_contradicts_result": _payload(
        Outcome,
        "Completed work must not hold a result that says it failed: an error flag, `ok` or `success` false, `status` "
        "error, or only an `error`. Text decides nothing.",
        result={"error": "401 from the order service"},
    ),
    "operation_unconfirmed": Example(
        (Payment,),
        {"payload": {"order_id": "4417", "operation_id": "op-2"}},
        context=HandoffContext(finished_operations=frozenset({"op-1"})),
        configured="The keyword `irreversible=True` of the contract asks completed work for an operation that the "
        "context lists in `finished_operations`.",
    ),
    "foreign_reference": _payload(
        Bundle,
        "The keyword `same_task` of the contract lists the payload paths whose values must be the envelope's "
        "`task_id`.",
        items=[{"task_id": "t-1", "text": "order found"}, {"task_id": "t-2", "text": "another customer's"}],
    ),
    "merge_conflict": _payload(
        Merged,
        "The keyword `merged` of the contract names the payload field with the parts.",
        parts=[{"order_id": "4417", "amount_cents": 3800}, {"order_id": "4417", "amount_cents": 8300}],
    ),
    "low_confidence": _payload(
        Guess,
        "The keyword `confidence_min` of the contract sets the threshold; without it `payload.confidence` is only a "
        "field.",
        answer="order 4417",
        confidence=0.2,
    ),
    # identity
    "route_mismatch": Example(
        (Findings,),
        {"target_agent": "billing", "payload": _GOOD},
        expected_target="reviewer",
        configured="Nothing to configure: the run, or `expected_target` of `inspect`, says who is about to start. "
        "Names are compared exactly.",
    ),
    "unknown_agent": Example(
        (Findings,),
        {"source_agent": "ExecutorAgent", "payload": _GOOD},
        configured="`watch.route` registers both agents of a route. Names are compared exactly.",
    ),
    "unknown_route": Example(
        (Findings,),
        {"target_agent": "synthesizer", "payload": _GOOD},
        configured="`watch.route` registers a route. One that nobody has a contract for yet is registered with "
        "`unchecked=True`: it passes, and counts as bypassed.",
    ),
    "foreign_task": Example(
        (Findings,),
        {"task_id": "t-2", "payload": _GOOD},
        context=HandoffContext(task_id="t-1"),
        configured="Judged whenever the context has a task: `watch.run(…, task_id=…)`.",
    ),
    "foreign_run": Example(
        (Findings,),
        {"run_id": "r-0", "payload": _GOOD},
        context=HandoffContext(run_id="r-1"),
        configured="Judged whenever the context has a run and the envelope names one; `watch.run(…)` always has one.",
    ),
    "stale_context": Example(
        (Findings,),
        {"context_version": 3, "payload": _GOOD},
        context=HandoffContext(context_version=5),
        configured="Judged whenever the context and the envelope both have a version: "
        "`watch.run(…, context_version=…)`.",
    ),
    "stale_state": Example(
        (Export,),
        {"produced_at": "2026-06-01T10:00:00Z", "payload": {"order_id": "4417"}},
        given=f"It is {NOW}.",
        configured="The keyword `age_s_max` of the contract sets the most seconds since `produced_at`.",
    ),
    "orphaned_tool_call": _payload(
        History,
        "The keyword `messages` of the contract names the payload field with the message history.",
        messages=[
            {"role": "user", "content": "refund order 4417"},
            {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "find_order", "arguments": "{}"}}]},
            {"role": "user", "content": "and?"},
        ],
    ),
    "orphaned_item": _payload(
        History,
        "The keyword `messages` of the contract names the payload field with the message history.",
        messages=[
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"role": "user", "content": "refund order 4417"},
        ],
    ),
    "consumed_handoff": Example(
        (Findings,),
        {"payload": _GOOD},
        context=HandoffContext(consumed=frozenset({"h-1842"})),
        configured="Judged by the context's `consumed`: the ids of handoffs that were accepted before.",
    ),
    "duplicate_handoff": Example(
        (Findings,),
        {"payload": _GOOD},
        context=HandoffContext(task=TaskFacts(hops=1, is_open=True)),
        configured="Nothing to configure: of two handoffs with one id at once, one proceeds. A run counts them itself.",
    ),
    "loop_limit": Example(
        (Findings,),
        {"payload": _GOOD},
        context=HandoffContext(task=TaskFacts(hops=25)),
        configured="Settings `handoffs.hops_max` (25 per task) and `handoffs.repeats_max` (3 with the same content).",
    ),
    # flow
    "route_stopped": Example(
        (Findings,),
        {"payload": _GOOD},
        context=HandoffContext(task=TaskFacts(hops=1, is_stopped=True)),
        configured="Nothing to configure: `watch.reopen(task_id)` opens the routes of a task again.",
    ),
    "check_failed": _payload(
        Average,
        "Nothing to configure: a rule that raises proves nothing, so it blocks. Mend the rule.",
        total=100,
        parts=0,
    ),
}
"""An example of each code that the watchdog gives."""

RAISED_BY_FLOWS: Final[dict[str, str]] = {
    "repair_exhausted": "Raised when a handoff is blocked and no repair is left: settings `handoffs.repairs_max` (2 "
    "for each handoff) and `handoffs.repairs_per_run_max` (10). With `handoffs.stop_identical: true` an answer that "
    "says the same as one before it ends the repairs too.",
    "approval_required": 'Raised on a route with `approval="required"` for each handoff that the contract allows. '
    "`handoffwatch case approve ID --note TEXT` lets it go on, `handoffwatch case reject ID --note TEXT` stops it.",
    "critic_concern": "Raised by a critic, which looks at a handoff that the watchdog lets pass and that has a risk "
    "signal. Its policy names the signals, the share of such handoffs and what it may spend. It may ask for a flag or "
    "a warning, and for nothing else; what it says stands in the case.",
    "value_missing": "Raised by the boundary when a path of `exact_paths` is lost on the way, and also when it is on "
    "neither side. `schema_version` is always such a path. Null and empty are not missing.",
    "value_added": "Raised by the boundary when something stands at or below a path of `exact_paths` that was not "
    "sent. For a path of `ignore_paths` that reached the far side it is a warning: local state must stay behind.",
    "value_changed": "Raised by the boundary when a path of `exact_paths` has another value than it had, an emptied "
    "one too, and when the post-condition of a transform does not hold.",
    "type_changed": "Raised by the boundary when a path of `exact_paths` has another type than it had: text for a "
    "number, an integer for a float, null for a value, text for a datetime, a bare dict for a model. The types and "
    "what a policy may declare equal stand in [the canonical form](../canonical-form.md).",
    "order_changed": "Raised by the boundary when a list at or below a path of `exact_paths` holds the same parts in "
    "another order. A path of `sets` has no order.",
    "rest_changed": "Raised by the boundary when anything differs that neither `exact_paths` nor `transforms` name. "
    "What may differ belongs into `ignore_paths`.",
    "capture_failed": "Raised by the boundary when it cannot tell whether a state survived: export or import raises, "
    "or the snapshot of a side cannot be written.",
    "artifact_changed": "Raised on the far side of a boundary: each artefact that a path of `artifacts` names is "
    "opened with the route's `open_artifact`, and its revision, size and SHA-256 are compared.",
    "seal_missing": "Raised by `transfer(seal=None)` and `submit(seal=None)`: a handoff from another process came "
    "alone.",
    "seal_invalid": "Raised by `transfer(seal=…)` and `submit(seal=…)` when a seal is forged, cut, expired, that of "
    "another handoff, made with a key that is not known here, or for a state under another policy.",
    "migration_failed": "Raised where a route has `migrations`, when no registered step leads to the version of the "
    "policy, a step raises or changes its input, or a declared field is not kept.",
}
"""What raises the codes that no look at one handoff can give."""
