"""Times as text: one way to write each of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from handoffwatch.values.times import time_text, written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-29T02:30:00Z", "2026-03-29T02:30:00Z"),
        ("2026-03-29T02:30:00+00:00", "2026-03-29T02:30:00Z"),
        ("2026-03-29t02:30:00z", "2026-03-29T02:30:00Z"),
        ("2026-03-29 02:30:00Z", "2026-03-29T02:30:00Z"),
        ("2026-03-29T02:30:00.500Z", "2026-03-29T02:30:00.5Z"),
        ("2026-03-29T02:30:00.000000+00:00", "2026-03-29T02:30:00Z"),
        ("2026-03-29T02:30:00.123456789Z", "2026-03-29T02:30:00.123456789Z"),
        ("2026-03-29T02:30:00", "2026-03-29T02:30:00"),
        ("2026-03-29T02:30:00+02:00", "2026-03-29T02:30:00+02:00"),
        ("2026-03-29T02:30:00-00:00", "2026-03-29T02:30:00-00:00"),
        ("2026-03-29", "2026-03-29"),
        ("2026-03-29T02:30Z", "2026-03-29T02:30Z"),
        ("2026-03-29T02:30:00Z ", "2026-03-29T02:30:00Z "),
        ("２026-03-29T02:30:00+00:00", "２026-03-29T02:30:00+00:00"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_time_text_writes_a_time_in_one_way_when_it_is_one(text: str, expected: str) -> None:
    """Z and +00:00 are one, zeros at the end of a fraction go; another offset, none, and -00:00 stay."""
    assert time_text(text) == expected


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (datetime(2026, 3, 29, 2, 30, tzinfo=UTC), "2026-03-29T02:30:00Z"),
        (datetime(2026, 3, 29, 2, 30, 0, 500, tzinfo=UTC), "2026-03-29T02:30:00.0005Z"),
        (datetime(2026, 3, 29, 2, 30), "2026-03-29T02:30:00"),
        (datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=2))), "2026-03-29T02:30:00+02:00"),
        (datetime(2026, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")), "2026-03-29T02:30:00+01:00"),
        (datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")), "2026-10-25T02:30:00+01:00"),
        (datetime(1, 1, 1), "0001-01-01T00:00:00"),
    ],
)
def test_written_gives_the_text_of_a_time_object_when_it_has_an_offset_or_none(time: datetime, expected: str) -> None:
    """The offset is the one that the zone gives, also for a local time that does not exist or exists twice."""
    assert written(time) == expected
