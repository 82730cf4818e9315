"""The final-answer guard: zero successful calls in a workflow that needs tools is refused."""

from __future__ import annotations

import pytest

from handoffwatch.tools.guard import refusal_reason
from handoffwatch.vocabulary import GuardReason, ToolsNeed

NO_SUCCESS = GuardReason.NO_TOOL_SUCCESS


@pytest.mark.parametrize(
    ("need", "calls", "successes", "reason"),
    [
        (ToolsNeed.REQUIRED, 0, 0, NO_SUCCESS),
        (ToolsNeed.REQUIRED, 1, 0, NO_SUCCESS),
        (ToolsNeed.REQUIRED, 9, 0, NO_SUCCESS),
        (ToolsNeed.REQUIRED, 1, 1, None),
        (ToolsNeed.REQUIRED, 9, 1, None),
        (ToolsNeed.IF_CALLED, 0, 0, None),
        (ToolsNeed.IF_CALLED, 1, 0, NO_SUCCESS),
        (ToolsNeed.IF_CALLED, 9, 0, NO_SUCCESS),
        (ToolsNeed.IF_CALLED, 1, 1, None),
        (ToolsNeed.IF_CALLED, 9, 1, None),
        (ToolsNeed.NONE, 0, 0, None),
        (ToolsNeed.NONE, 9, 0, None),
        (ToolsNeed.NONE, 9, 9, None),
    ],
)
def test_refusal_reason_follows_the_workflows_need_when_calls_succeeded_or_not(
    need: ToolsNeed, calls: int, successes: int, reason: GuardReason | None
) -> None:
    """Required wants one success, if_called only when tools were called, none never refuses."""
    assert refusal_reason(need, calls=calls, successes=successes) is reason


def test_refusal_reason_goes_away_when_a_later_call_recovers() -> None:
    """Three failed calls refuse an answer; one success after them lets it through."""
    told = [refusal_reason(ToolsNeed.REQUIRED, calls=3, successes=0),
            refusal_reason(ToolsNeed.REQUIRED, calls=4, successes=1)]  # fmt: skip

    assert told == [NO_SUCCESS, None]
