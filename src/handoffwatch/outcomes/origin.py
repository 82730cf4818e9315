"""Where the truth was lost when an operation was claimed done and did not land."""

from __future__ import annotations

from handoffwatch.vocabulary import Origin, ToolOutcome


def origin_of(*, calls: int, outcome: ToolOutcome | None, has_receipt: bool) -> Origin:
    """Return where the truth of a false success was lost.

    Args:
        calls: How many calls were made for the operation.
        outcome: How the deciding call ended; None when nobody recorded its end, as after a crash.
        has_receipt: Whether the call returned a valid receipt.

    Returns:
        model when no call was made; wrapper when the call failed, since somebody turned that into success; tool when
        its receipt says success; unknown when none of them can be shown.
    """
    if calls == 0:
        return Origin.MODEL
    if outcome is ToolOutcome.FAILED:
        return Origin.WRAPPER
    if outcome is ToolOutcome.OK and has_receipt:
        return Origin.TOOL
    return Origin.UNKNOWN
