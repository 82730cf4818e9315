"""The decision and its arithmetic: what findings add up to, and how it is written down."""

from __future__ import annotations

import json
from itertools import permutations

import pytest

from handoffwatch import Decision, Finding
from handoffwatch.decision import summary_of
from handoffwatch.vocabulary import Mode, Reaction, Severity, Verdict

BLOCK = Finding("missing_field", "payload.a", "payload.a must be there")
FINAL = Finding("unknown_route", "target_agent", "no route leads there", retryable=False)
CRITICAL = Finding("foreign_task", "task_id", "task_id must be that of the active task", severity=Severity.CRITICAL)
HOLD = Finding("approval_required", "$", "a person must approve", Reaction.HOLD, Severity.INFO)
FLAG = Finding("low_confidence", "payload.b", "look again", Reaction.FLAG, Severity.WARNING)
WARN = Finding("missing_handoff_id", "handoff_id", "send one", Reaction.WARN, Severity.WARNING)
GRAVE_WARNING = Finding("x", "payload", "grave", Reaction.WARN, Severity.CRITICAL, retryable=False)


@pytest.mark.parametrize(
    ("findings", "verdict", "severity", "retryable"),
    [
        ((), Verdict.ALLOWED, Severity.INFO, False),
        ((WARN,), Verdict.WARNED, Severity.WARNING, False),
        ((FLAG,), Verdict.WARNED, Severity.WARNING, False),
        ((WARN, FLAG), Verdict.WARNED, Severity.WARNING, False),
        ((GRAVE_WARNING,), Verdict.WARNED, Severity.CRITICAL, False),
        ((HOLD,), Verdict.HELD, Severity.INFO, False),
        ((HOLD, WARN, FLAG), Verdict.HELD, Severity.WARNING, False),
        ((BLOCK,), Verdict.BLOCKED, Severity.ERROR, True),
        ((BLOCK, BLOCK), Verdict.BLOCKED, Severity.ERROR, True),
        ((BLOCK, WARN, HOLD), Verdict.BLOCKED, Severity.ERROR, True),
        ((BLOCK, GRAVE_WARNING), Verdict.BLOCKED, Severity.CRITICAL, True),
        ((BLOCK, FINAL), Verdict.BLOCKED, Severity.ERROR, False),
        ((BLOCK, CRITICAL), Verdict.BLOCKED, Severity.CRITICAL, False),
        ((FINAL,), Verdict.BLOCKED, Severity.ERROR, False),
        ((CRITICAL,), Verdict.BLOCKED, Severity.CRITICAL, False),
    ],
)
def test_decision_words_follow_the_findings_when_they_add_up(
    findings: tuple[Finding, ...], verdict: Verdict, severity: Severity, retryable: bool
) -> None:
    """A warning never becomes a block, and one critical or final block ends the repairs; order plays no part."""
    for order in permutations(findings):
        summary = summary_of(order)
        assert (summary.verdict, summary.severity, summary.retryable) == (verdict, severity, retryable)
        assert summary.reasons == tuple(dict.fromkeys(finding.code for finding in order))


def decided(**changes: object) -> Decision:
    """Return a blocked decision with fields replaced."""
    return Decision(
        allowed=False,
        reasons=["missing_result"],
        severity=Severity.ERROR,
        retryable=True,
        handoff_id="h-1842",
        normalized_payload=None,
        verdict=Verdict.BLOCKED,
        findings=(Finding("missing_result", "payload.result", "payload.result must hold the result"),),
        route="executor->reviewer",
        schema_version="1",
        attempt=2,
        mode=Mode.ENFORCE,
        skipped=("stale_context",),
        coerced=(),
        elapsed_s=0.25,
    )._replace(**changes)


def test_to_json_is_exact_when_a_decision_is_blocked() -> None:
    """The documented keys in the documented order, enumerations as their words."""
    assert decided().to_json() == (
        '{"allowed": false, "reasons": ["missing_result"], "severity": "error", "retryable": true, '
        '"handoff_id": "h-1842", "normalized_payload": null, "verdict": "blocked", '
        '"findings": [{"code": "missing_result", "path": "payload.result", '
        '"sentence": "payload.result must hold the result", "reaction": "block", "severity": "error", '
        '"retryable": true, "stage": "validate"}], "route": "executor->reviewer", "schema_version": "1", '
        '"attempt": 2, "mode": "enforce", "skipped": ["stale_context"], "coerced": [], "elapsed_s": 0.25}'
    )


def test_to_json_holds_the_payload_when_a_decision_is_allowed() -> None:
    """The normalised handoff is written as it is, in its own letters."""
    written = decided(
        allowed=True, findings=(), normalized_payload={"task_id": "größer", "payload": {"n": [1]}}
    ).to_json()

    assert '"normalized_payload": {"task_id": "größer", "payload": {"n": [1]}}' in written
    assert json.loads(written)["findings"] == []


def test_paths_are_unique_and_ordered_when_a_place_has_several_findings() -> None:
    """Each path once, in the order found."""
    assert decided(findings=(WARN, BLOCK, FLAG, BLOCK, WARN)).paths == ["handoff_id", "payload.a", "payload.b"]


def test_decision_fields_cannot_be_replaced_in_place_when_it_is_made() -> None:
    """A decision is a value."""
    with pytest.raises(AttributeError):
        decided().allowed = True  # type: ignore[misc]
