"""The options of `handoffwatch demo`."""

from __future__ import annotations

import pytest
import typer

from handoffwatch.cli.demo import seconds


@pytest.mark.parametrize(
    ("text", "expected"), [("60s", 60.0), ("60", 60.0), ("2m", 120.0), ("1h", 3600.0), ("0.5s", 0.5), (" 3s ", 3.0)]
)
def test_duration_is_read_as_seconds_when_it_has_a_unit_or_none(text: str, expected: float) -> None:
    """A number without a unit is seconds."""
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "s", "-1s", "0s", "1d", "1 s", "nan", "1e3", "١s", "9" * 50])
def test_duration_is_refused_when_it_is_none(text: str) -> None:
    """What is no duration above 0 is refused with an example."""
    with pytest.raises(typer.BadParameter, match="must be a duration above 0 such as 60s, 2m or 1h"):
        seconds(text)
