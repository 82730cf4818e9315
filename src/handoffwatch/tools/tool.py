"""A registered tool."""

from __future__ import annotations

from dataclasses import dataclass

from handoffwatch.tools.retry import RetryPolicy
from handoffwatch.tools.success import SuccessRule
from handoffwatch.vocabulary import Safety, WhenFailed


@dataclass(frozen=True, slots=True)
class Tool:
    """What a tool declares about itself.

    Attributes:
        name: The registered name; a label.
        safety: What repeating a call may do; it has no default.
        success: The tool's own rule of success, or None for the default one.
        policy: Bounds of its repetition.
        operation: The kind of operation that a call opens, or None.
        limit_s: The most seconds of one wire attempt; None sets no limit.
        when_failed: Whether a failed call raises or returns its text for the model.
    """

    name: str
    safety: Safety
    success: SuccessRule | None
    policy: RetryPolicy
    operation: str | None
    limit_s: float | None = None
    when_failed: WhenFailed = WhenFailed.RAISE
