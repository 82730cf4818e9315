"""Where the truth was lost."""

import pytest

from handoffwatch.outcomes import origin_of
from handoffwatch.vocabulary import Origin, ToolOutcome


@pytest.mark.parametrize(
    ("calls", "outcome", "has_receipt", "origin"),
    [
        (0, None, False, Origin.MODEL),
        (1, ToolOutcome.FAILED, False, Origin.WRAPPER),
        (1, ToolOutcome.OK, True, Origin.TOOL),
        (1, ToolOutcome.OK, False, Origin.UNKNOWN),
        (1, ToolOutcome.CANCELLED, False, Origin.UNKNOWN),
        (1, None, False, Origin.UNKNOWN),
    ],
)
def test_origin_is_found_when_call_and_receipt_show_it(
    calls: int, outcome: ToolOutcome | None, has_receipt: bool, origin: Origin
) -> None:
    """No call is the model's, a hidden failure the wrapper's, a false receipt the tool's; the rest is unknown."""
    assert origin_of(calls=calls, outcome=outcome, has_receipt=has_receipt) is origin
