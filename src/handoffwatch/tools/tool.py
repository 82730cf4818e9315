"""A registered tool."""

from __future__ import annotations

from dataclasses import dataclass

from handoffwatch.tools.classification import declared_codes
from handoffwatch.tools.overrides import NO_OVERRIDES, Overrides
from handoffwatch.tools.retry import RetryPolicy
from handoffwatch.tools.success import SuccessRule
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode, WhenFailed


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
        overrides: What it means by its statuses and exceptions.
        when_failed: Whether a failed call raises or returns its text for the model.
    """

    name: str
    safety: Safety
    success: SuccessRule | None
    policy: RetryPolicy
    operation: str | None
    limit_s: float | None = None
    when_failed: WhenFailed = WhenFailed.RAISE
    overrides: Overrides = NO_OVERRIDES

    @property
    def codes(self) -> list[tuple[ToolCode, FailureClass]]:
        """Every pair of code and class that a call can fail with, for series that are born at 0."""
        declared = {*declared_codes(self.safety)}
        declared |= {(ToolCode.EXCEPTION, each) for each in FailureClass if each is not FailureClass.RETRYABLE}
        return sorted(declared | self.overrides.codes(declared))  # a call within it that failed passes through
