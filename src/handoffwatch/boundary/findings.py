"""The findings of this room: none that a sender can repair by sending again, since export and import are code."""

from __future__ import annotations

from handoffwatch.decision import Finding
from handoffwatch.reasons import REASONS
from handoffwatch.vocabulary import Stage


def finding_of(code: str, path: str, sentence: str, *, stage: Stage = Stage.VALIDATE) -> Finding:
    """Return a finding with the reaction and the severity that its code has."""
    reason = REASONS[code]
    return Finding(code, path, sentence, reason.reaction, reason.severity, retryable=False, stage=stage)
