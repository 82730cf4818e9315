"""The watchdog's answer about one attempt of a handoff."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

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
        normalized_payload: The JSON-mode dump of the whole validated handoff; None when blocked. A held handoff
            has it, so that it can go on once a person has approved it.
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


def amended(decision: Decision, findings: Sequence[Finding]) -> Decision:
    """Return a decision with more findings, and all that follows from them."""
    together = (*decision.findings, *findings)
    reasons, verdict, severity, retryable = summary_of(together)
    allowed = verdict in (Verdict.ALLOWED, Verdict.WARNED) or decision.mode is Mode.SHADOW
    return decision._replace(
        allowed=allowed,
        reasons=list(reasons),
        severity=severity,
        retryable=retryable,
        normalized_payload=decision.normalized_payload if allowed or verdict is Verdict.HELD else None,
        verdict=verdict,
        findings=together,
    )


class Summary(NamedTuple):
    """What findings add up to.

    Attributes:
        reasons: Their codes, each once, in the order found.
        verdict: A block outweighs a hold, a hold outweighs a warning.
        severity: That of the worst; info when there is none.
        retryable: Whether the sender can repair it: something blocks, and nothing that blocks is critical or final.
    """

    reasons: tuple[str, ...]
    verdict: Verdict
    severity: Severity
    retryable: bool


def summary_of(findings: Iterable[Finding]) -> Summary:
    """Return what the findings add up to. Their places do not matter, so that many of one kind cost little."""
    return _summary(tuple(dict.fromkeys(map(_KIND, findings))))


_KIND: Final = operator.itemgetter(*map(Finding._fields.index, ("code", "reaction", "severity", "retryable")))


@functools.lru_cache(maxsize=1_024)
def _summary(kinds: tuple[tuple[str, Reaction, Severity, bool], ...]) -> Summary:
    if not kinds:
        return Summary((), Verdict.ALLOWED, Severity.INFO, False)
    codes, reactions, severities, _ = zip(*kinds, strict=True)
    verdict = (
        Verdict.BLOCKED if Reaction.BLOCK in reactions
        else Verdict.HELD if Reaction.HOLD in reactions
        else Verdict.WARNED
    )  # fmt: skip
    blocking = [(severity, retryable) for _, reaction, severity, retryable in kinds if reaction is Reaction.BLOCK]
    return Summary(
        reasons=tuple(dict.fromkeys(codes)),
        verdict=verdict,
        severity=max(severities, key=SEVERITY_RANK.__getitem__),
        retryable=bool(blocking) and all(again and severity is not Severity.CRITICAL for severity, again in blocking),
    )
