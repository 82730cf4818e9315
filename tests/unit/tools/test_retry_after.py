"""The Retry-After header: both forms are read, everything else is unreadable, nothing raises."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handoffwatch.tools.retry_after import WAIT_S_LIMIT, parse_retry_after_s

NOW_S = 1_792_567_620.0
"""2026-10-21 07:27:00 UTC."""


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ("0", 0.0),
        ("1", 1.0),
        ("120", 120.0),
        ("  120\t", 120.0),
        ("007", 7.0),
        ("999999999", 999_999_999.0),
        ("9999999999", WAIT_S_LIMIT),
        ("9223372037", WAIT_S_LIMIT),
        ("9" * 5_000, WAIT_S_LIMIT),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 60.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wednesday, 21-Oct-26 07:28:00 GMT", 60.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", WAIT_S_LIMIT),
    ],
)
def test_parse_retry_after_gives_seconds_when_the_header_has_one_of_its_forms(header: str, wait_s: float) -> None:
    """BR-055, BR-056: digits and dates, a past date is 0, and a number too long for seconds is the limit."""
    assert parse_retry_after_s(header, now_s=NOW_S) == wait_s


@pytest.mark.parametrize(
    "header",
    [
        None, "", " ", "-1", "+1", "NaN", "inf", "Infinity", "1e9", "12.5", "120, 60", "120;60", "0x10", "1_000",
        "٣", "５", "soon", "Thu", "20 Oct", "Wed, 21 Oct 99999 07:28:00 GMT", "Wed, 32 Oct 2026 07:28:00 GMT",
        "Wed, 21 Oct 2026 25:00:00 GMT", "\x00", "\udc97",
    ],
)  # fmt: skip
def test_parse_retry_after_gives_nothing_when_the_header_is_unreadable(header: str | None) -> None:
    """BR-056: what is in neither form falls back to our own back-off."""
    assert parse_retry_after_s(header, now_s=NOW_S) is None


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_zone")
@pytest.mark.parametrize(
    "header",
    ["Wed, 21 Oct 2026 07:28:00 GMT", "Wed Oct 21 07:28:00 2026", "Wed, 21 Oct 2026 07:28:00 -0000"],
)
def test_parse_retry_after_reads_dates_as_utc_when_the_machine_is_anywhere(header: str) -> None:
    """An HTTP date is in UTC, the old asctime form too, which names no zone (RFC 9110 section 5.6.7)."""
    assert parse_retry_after_s(header, now_s=NOW_S) == 60.0


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(
    header=st.text(max_size=30)
    | st.text(alphabet="0123456789 :,-+.GMTWedOct()\"\\;", max_size=40)
    | st.from_regex(r"(Mon|Wed), \d{1,3} (Oct|Feb) \d{1,6} \d{1,3}:\d{1,3}:\d{1,3} (GMT|[+-]\d{1,8})", fullmatch=True),
    now_s=st.floats(min_value=0, max_value=1e11),
)  # fmt: skip
def test_parse_retry_after_is_bounded_when_the_header_is_arbitrary(header: str, now_s: float) -> None:
    """Any text gives nothing, or a finite number of seconds between 0 and the limit."""
    wait_s = parse_retry_after_s(header, now_s=now_s)

    assert wait_s is None or (math.isfinite(wait_s) and 0 <= wait_s <= WAIT_S_LIMIT)
