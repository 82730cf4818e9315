"""A registered tool."""

from __future__ import annotations

from dataclasses import dataclass

from handoffwatch.tools.retry import RetryPolicy
from handoffwatch.tools.success import SuccessRule
from handoffwatch.vocabulary import Safety


@dataclass(frozen=True, slots=True)
class Tool:
    """What a tool declares about itself.

    Attributes:
        name: The registered name; a label.
        safety: What repeating a call may do; it has no default.
        success: The tool's own rule of success, or None for the default one.
        policy: Bounds of its repetition.
        operation: The kind of operation that a call opens, or None.
    """

    name: str
    safety: Safety
    success: SuccessRule | None
    policy: RetryPolicy
    operation: str | None
