"""The settings of tools."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from handoffwatch.tools.retry import RetryPolicy
from handoffwatch.tools.settings import ToolSettings


def test_tool_settings_are_the_documented_ones_when_nothing_is_set() -> None:
    """Three attempts, two seconds to start from, thirty at most, two minutes in all; the policy has the same."""
    defaults = {"attempts_max": 3, "base_wait_s": 2.0, "wait_s_max": 30.0, "deadline_s": 120.0}

    assert ToolSettings().model_dump() == defaults | {"grace_s": 0.5, "breaker_after": 3}
    assert RetryPolicy() == RetryPolicy(**defaults)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts_max": 0}, {"attempts_max": 101}, {"attempts_max": "3"}, {"attempts_max": True}, {"base_wait_s": -1},
        {"wait_s_max": -0.1}, {"wait_s_max": float("inf")}, {"deadline_s": 0}, {"deadline_s": float("nan")},
        {"attempt_max": 3},
    ],
    ids=str,
)  # fmt: skip
def test_tool_settings_are_refused_when_a_value_is_outside_its_range(wrong: dict[str, object]) -> None:
    """A number outside its range, a text, NaN or an unknown key does not pass."""
    with pytest.raises(ValidationError):
        ToolSettings.model_validate(wrong)
