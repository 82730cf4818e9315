"""The settings of handoffs."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from handoffwatch.handoffs.settings import HandoffSettings


def test_handoff_settings_are_the_documented_ones_when_nothing_is_set() -> None:
    """Two repairs of a handoff, ten in a run."""
    assert HandoffSettings().model_dump() == {"repairs_max": 2, "repairs_per_run_max": 10}


@pytest.mark.parametrize(
    "wrong",
    [{"repairs_max": -1}, {"repairs_max": "2"}, {"repairs_max": True}, {"repairs_per_run_max": -1}, {"repairs": 2}],
    ids=str,
)
def test_handoff_settings_are_refused_when_a_value_is_outside_its_range(wrong: dict[str, object]) -> None:
    """A negative number, a text, a truth value or an unknown key does not pass."""
    with pytest.raises(ValidationError):
        HandoffSettings.model_validate(wrong)
