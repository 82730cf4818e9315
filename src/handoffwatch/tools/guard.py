"""The final-answer guard: is there anything to base an answer on?"""

from __future__ import annotations

from handoffwatch.vocabulary import GuardReason, ToolsNeed


def refusal_reason(
    need: ToolsNeed, *, calls: int, successes: int, has_ambiguous: bool = False, has_undiscovered: bool = False
) -> GuardReason | None:
    """Return why a final answer must be refused, or None when it may be given.

    Args:
        need: What the workflow declared: `required` refuses without one success, `if_called` only when tools were
            called and none succeeded, `none` never.
        calls: Logical tool calls of the run that ended.
        successes: Those that succeeded; an empty list is a success.
        has_ambiguous: Whether a call is open of which nobody knows whether it happened. It refuses whatever the need.
        has_undiscovered: Whether the tools could not be listed; it refuses unless the workflow needs none.
    """
    if has_ambiguous:
        return GuardReason.AMBIGUOUS_OPEN
    if has_undiscovered and need is not ToolsNeed.NONE:
        return GuardReason.TOOL_DISCOVERY_FAILED
    if successes > 0 or need is ToolsNeed.NONE:
        return None
    if need is ToolsNeed.IF_CALLED and calls == 0:
        return None
    return GuardReason.NO_TOOL_SUCCESS
