"""What the ledger gives back: plain values, free of the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from handoffwatch.outcomes import Intent, Receipt
from handoffwatch.vocabulary import CaseKind, Cause, Claimed, ClaimEffect, Criticality, Effect, Origin


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
        note: What that person wrote; None while it is open.
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


@dataclass(frozen=True, slots=True)
class Registration:
    """An operation that a workflow declared."""

    workflow: str
    operation: str
    criticality: Criticality


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
        registrations: What is registered.
        counters: Value by metric name and labels.
        timestamps: Unix seconds by metric name and labels.
        claims: Open claims by workflow and claim.
        effects: Open operations by operation and effect.
        cases: Open cases by kind and criticality.
    """

    ledger_id: str
    registrations: tuple[Registration, ...]
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
