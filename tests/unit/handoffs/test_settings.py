"""The settings of handoffs."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from handoffwatch.handoffs.settings import HandoffSettings


def test_handoff_settings_are_the_documented_ones_when_nothing_is_set() -> None:
    """Two repairs of a handoff, ten in a run, a self-test every minute."""
    assert HandoffSettings().model_dump() == {
        "repairs_max": 2,
        "repairs_per_run_max": 10,
        "stop_identical": False,
        "hops_max": 25,
        "repeats_max": 3,
        "hold_poll_s": 2,
        "lease_s": 900,
        "seal_s": 3_600,
        "evidence_bytes_max": 262_144,
        "keep_sample": 0.1,
        "review_sample": 0.1,
        "redact": [],
        "payload_bytes_max": 1_048_576,
        "selftest_every_s": 60,
        "routes": {},
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"repairs_max": -1},
        {"repairs_max": "2"},
        {"repairs_max": True},
        {"repairs_per_run_max": -1},
        {"selftest_every_s": -1},
        {"selftest_every_s": 86_401},
        {"selftest_every_s": True},
        {"repairs": 2},
    ],
    ids=str,
)
def test_handoff_settings_are_refused_when_a_value_is_outside_its_range(wrong: dict[str, object]) -> None:
    """A negative number, a text, a truth value or an unknown key does not pass."""
    with pytest.raises(ValidationError):
        HandoffSettings.model_validate(wrong)
