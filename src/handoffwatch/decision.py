"""The watchdog's answer about one attempt of a handoff."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from handoffwatch.vocabulary import SEVERITY_RANK, Mode, Reaction, Severity, Verdict


class Finding(NamedTuple):
    """A violated rule at a path.

    Attributes:
        code: The reason code.
        path: Where, in keys and indices with dots (`payload.results.0.id`); `$` is the whole handoff.
        sentence: Names the field and what would be right, never the value.
        reaction: What the rule asks for.
        severity: How bad it is.
        retryable: Whether the sender can repair it.
        stage: The stage in which it was found.
    """

    code: str
    path: str
    sentence: str
    reaction: Reaction = Reaction.BLOCK
    severity: Severity = Severity.ERROR
    retryable: bool = True
    stage: str = "validate"


class Decision(NamedTuple):
    """What the program must do with a handoff (`allowed`), and what the rules said about it (`verdict`).

    Attributes:
        allowed: Whether the receiver may start. Always true in shadow mode.
        reasons: The codes of all findings, warnings included, each once, in the order found.
        severity: The worst finding's; info without findings.
        retryable: Whether the sender can repair it; false when nothing blocks.
        handoff_id: Never empty: from the envelope, else from the context, else generated.
        normalized_payload: The JSON-mode dump of the whole validated handoff; None when blocked.
            In shadow mode the handoff as received, None when that is not a JSON object.
        verdict: allowed, warned, held or blocked.
        findings: Every violated rule.
        route: `source->target` as registered, or `other`.
        schema_version: The contract's version, or `other`.
        attempt: 1-based number of this try.
        mode: enforce or shadow.
        skipped: Rules that had no context to judge by.
        coerced: Paths whose values were converted; only where the contract opts out of strictness.
        elapsed_s: Seconds that the check took.
    """

    allowed: bool
    reasons: list[str]
    severity: Severity
    retryable: bool
    handoff_id: str
    normalized_payload: dict[str, Any] | None
    verdict: Verdict
    findings: tuple[Finding, ...]
    route: str
    schema_version: str
    attempt: int
    mode: Mode
    skipped: tuple[str, ...]
    coerced: tuple[str, ...]
    elapsed_s: float

    def to_json(self) -> str:
        """Return the decision as one JSON object with its keys in the documented order."""
        fields = self._asdict() | {"findings": [finding._asdict() for finding in self.findings]}
        return json.dumps(fields, ensure_ascii=False, allow_nan=False)

    @property
    def paths(self) -> list[str]:
        """The paths of all findings, each once, in the order found."""
        return list(dict.fromkeys(finding.path for finding in self.findings))


def reacting(finding: Finding, reaction: Reaction | None) -> Finding:
    """Return a finding that asks for another reaction; what then blocks is an error, what no longer does a warning."""
    if reaction is None or reaction is finding.reaction:
        return finding
    if reaction is Reaction.BLOCK:
        worse = SEVERITY_RANK[finding.severity] >= SEVERITY_RANK[Severity.ERROR]
        return finding._replace(reaction=reaction, severity=finding.severity if worse else Severity.ERROR)
    return finding._replace(reaction=reaction, severity=Severity.WARNING)


def worst_severity(findings: Sequence[Finding]) -> Severity:
    """Return the severity of the worst finding; info when there is none."""
    if not findings:
        return Severity.INFO
    return max({finding.severity for finding in findings}, key=SEVERITY_RANK.__getitem__)


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    """Return what the findings add up to: a block outweighs a hold, a hold outweighs a warning."""
    if not findings:
        return Verdict.ALLOWED
    reactions = {finding.reaction for finding in findings}
    if Reaction.BLOCK in reactions:
        return Verdict.BLOCKED
    if Reaction.HOLD in reactions:
        return Verdict.HELD
    return Verdict.WARNED


def is_retryable(findings: Sequence[Finding]) -> bool:
    """Return whether the sender can repair it: something blocks, and nothing that blocks is critical or final."""
    blocking = {(f.retryable, f.severity) for f in findings if f.reaction is Reaction.BLOCK}
    return bool(blocking) and all(retryable and severity is not Severity.CRITICAL for retryable, severity in blocking)
