"""What the ledger gives back: plain values, free of the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from handoffwatch.outcomes import Intent, Receipt
from handoffwatch.vocabulary import (
    CaseKind,
    Cause,
    Claimed,
    ClaimEffect,
    Criticality,
    Effect,
    Mode,
    Origin,
    ReviewKind,
    ReviewSelection,
    ReviewVerdict,
    Ruling,
    ViolationKind,
)


@dataclass(frozen=True, slots=True)
class OpenOperation:
    """An operation whose effect is to be read now.

    Attributes:
        operation_id: The ledger's id of the operation.
        intent: What was wanted.
        criticality: As it was when the operation was opened.
        receipt: The receipt of its call, when there was one.
        reads: How many read-backs are recorded; a result counts only while this has not changed.
        written_unix_s: When its last call ended or began; when it became known if no call was made.
        polled_since_unix_s: When its run claimed or ended.
        deadline_unix_s: When polling ends.
    """

    operation_id: str
    intent: Intent
    criticality: Criticality
    receipt: Receipt | None
    reads: int
    written_unix_s: float
    polled_since_unix_s: float
    deadline_unix_s: float


@dataclass(frozen=True, slots=True)
class Settled:
    """An operation that has got its final effect, once.

    Attributes:
        operation: The operation.
        claimed: What its run claimed.
        effect: landed or not_landed.
        cause: Why it is not_landed.
        origin: Where the truth was lost; only for a false success.
        false_success: Whether it was claimed done and is not_landed.
        claim_effect: How the run's claim was settled by it, when it was.
        seconds: From claim to settlement, at least 0.
    """

    operation: OpenOperation
    claimed: Claimed
    effect: Effect
    cause: Cause | None
    origin: Origin | None
    false_success: bool
    claim_effect: ClaimEffect | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Admission:
    """What the ledger knows of a task before an attempt of a handoff on a durable route.

    The handoff was reserved for whoever asked unless it is consumed or taken.

    Attributes:
        hops: Handoffs of the task that were accepted or are in progress, without this one. One whose holder died
            counts too: it may have been delivered.
        repeats: How often one with the same digest came to this route, with the task on another route in between.
        is_stopped: Whether the route is latched for the task.
        is_consumed: Whether this handoff was accepted before.
        is_taken: Whether this handoff is in progress with another holder, whose lease has not run out.
        newest_base: The largest base among those that `hops` counts; None when none of them carries one.
    """

    hops: int
    repeats: int
    is_stopped: bool
    is_consumed: bool
    is_taken: bool
    newest_base: int | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is stored of a handoff, an answer or an operation that went badly, already redacted.

    Attributes:
        kind: What went wrong.
        subject: The id of what it is about; one case is kept for each kind and subject.
        run_id: The run in which it happened.
        workflow: The run's workflow.
        criticality: How much it costs.
        route: The registered route, or `other`; empty when there is none, as for a refusal of the guard.
        schema_version: The registered version, or `other`; empty when there is no route.
        mode: Whether the program obeyed the check; None when there was no check to obey.
        facts: A few for lists, as JSON: names, ids, reasons, paths, stage, attempts, outcome, trace id.
        record: Everything for the page of the case, as JSON; empty when the facts are all.
        is_open: Whether a person must act.
        selection: How the case was drawn for review; None when it was not.
        violation: What it is to the run; None when it breaks no rule.
        expires_unix_s: When an approval runs out; None when it does not.
    """

    kind: CaseKind
    subject: str
    run_id: str
    workflow: str
    criticality: Criticality
    route: str
    schema_version: str
    mode: Mode | None
    facts: Mapping[str, object]
    record: Mapping[str, object]
    is_open: bool
    selection: ReviewSelection | None
    violation: ViolationKind | None
    expires_unix_s: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """Stored evidence of a bad crossing.

    Attributes:
        case_id: The ledger's id of the case.
        kind: What went wrong.
        subject: The id of what it is about; of a false success that is the operation.
        criticality: As it was when the case was opened.
        run_id: The run in which it happened.
        facts: What is known, by name; which names there are depends on the kind.
        opened_unix_s: When it was opened.
        resolved_unix_s: When a person resolved it; None while it is open.
        note: What that person wrote; None while it is open, empty when nobody had to act.
        workflow: The run's workflow; None when it was not stored.
        route: The route; None when there is none.
        schema_version: The version of the contract; None when there is no route.
        mode: Whether the program obeyed the check; None when there was none.
        ruling: What a person decided about a held handoff.
        ruled_unix_s: When that was decided.
        expires_unix_s: When an approval runs out; None when it does not.
        record: The redacted evidence; None in lists, and when the facts are all.
    """

    case_id: str
    kind: CaseKind
    subject: str
    criticality: Criticality
    run_id: str
    facts: Mapping[str, object]
    opened_unix_s: float
    resolved_unix_s: float | None
    note: str | None
    workflow: str | None = None
    route: str | None = None
    schema_version: str | None = None
    mode: Mode | None = None
    ruling: Ruling | None = None
    ruled_unix_s: float | None = None
    expires_unix_s: float | None = None
    record: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A case that was drawn for a person's verdict on whether the check was right.

    Attributes:
        case: The case.
        selection: Whether chance drew it, or a rule did.
        drawn_unix_s: When it was drawn.
        verdict: The person's judgement; None while the review is open.
        reviewed_unix_s: When it was given.
        note: What the person wrote.
    """

    case: Case
    selection: ReviewSelection
    drawn_unix_s: float
    verdict: ReviewVerdict | None
    reviewed_unix_s: float | None
    note: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """How long something waited until a person did it; `seconds` is at least 0."""

    kind: ReviewKind
    seconds: float


@dataclass(frozen=True, slots=True)
class FalseBlockShare:
    """How often the blocks of one contract are wrong, by the verdicts on those that chance drew.

    Attributes:
        route: The route.
        schema_version: The version of the contract.
        mode: Whether the program obeyed it.
        reviewed: Reviewed blocks that were drawn at random.
        false_blocks: How many of these a person found wrong.
        share: Their share; None when nothing was reviewed.
        low: Lower end of the Wilson 95 % interval of the true share.
        high: Its upper end.
    """

    route: str
    schema_version: str
    mode: Mode
    reviewed: int
    false_blocks: int
    share: float | None
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Registration:
    """An operation that a workflow declared."""

    workflow: str
    operation: str
    criticality: Criticality


@dataclass(frozen=True, slots=True)
class RouteRegistration:
    """A route with one of its schema versions; `other` stands for the version of a route without contracts."""

    route: str
    schema_version: str
    mode: Mode
    criticality: Criticality


@dataclass(frozen=True, slots=True)
class RegisteredRows:
    """What is registered, by a process or in the ledger."""

    operations: frozenset[Registration]
    routes: frozenset[RouteRegistration]
    workflows: frozenset[str]

    def without(self, others: RegisteredRows) -> RegisteredRows:
        """Return what is not among the others."""
        return RegisteredRows(
            self.operations - others.operations, self.routes - others.routes, self.workflows - others.workflows
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is registered."""
        return not (self.operations or self.routes or self.workflows)


Labels = tuple[str, ...]
"""Label values in the catalogue's order, without the label `ledger`."""


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """Open things that share their labels."""

    count: int
    oldest_unix_s: float
    overdue: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The ledger's numbers at one moment.

    Attributes:
        ledger_id: The ledger's random id.
        registrations: The operations that workflows declared.
        routes: The registered routes with their versions.
        workflows: The registered workflows, with operations and without.
        counters: Value by metric name and labels.
        timestamps: Unix seconds by metric name and labels.
        claims: Open claims by workflow and claim.
        effects: Open operations by operation and effect.
        cases: Open cases by kind and criticality.
    """

    ledger_id: str
    registrations: tuple[Registration, ...]
    routes: tuple[RouteRegistration, ...]
    workflows: tuple[str, ...]
    counters: Mapping[tuple[str, Labels], int]
    timestamps: Mapping[tuple[str, Labels], float]
    claims: Mapping[Labels, int]
    effects: Mapping[Labels, OpenGroup]
    cases: Mapping[Labels, OpenGroup]

    @property
    def label(self) -> str:
        """The value of the label `ledger`."""
        return self.ledger_id[:8]


@dataclass(frozen=True, slots=True)
class IdentityViolation:
    """A workflow's claims that are not the sum of its settled and its open ones."""

    workflow: str
    claimed: Claimed
    claims: int
    settled: int
    open: int
