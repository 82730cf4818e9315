"""What frameworks raise from a tool on purpose: it is no failure, and goes on unchanged."""

from __future__ import annotations

from typing import Final

from handoffwatch.tools.foreign import classes_of

_SUSPENDING: Final = frozenset(
    {
        ("langgraph", "GraphBubbleUp"),
        ("langgraph", "ParentCommand"),
        ("pydantic_ai", "CallDeferred"),
        ("pydantic_ai", "ApprovalRequired"),
    }
)
"""By package and class: the call is put off, for a person or for another part of the program."""

_ASKING: Final = frozenset({("pydantic_ai", "ModelRetry")})
"""By package and class: the model is asked for other arguments."""


def is_control_flow(error: BaseException) -> bool:
    """Return whether a framework puts a call off with this exception: interrupts, deferred calls, approvals.

    Source: DESIGN section 3 rule 2.
    """
    return not _SUSPENDING.isdisjoint(classes_of(error))


def asks_the_model(error: BaseException) -> bool:
    """Return whether a tool asks the model for other arguments with this exception, which its framework waits for."""
    return not _ASKING.isdisjoint(classes_of(error))
