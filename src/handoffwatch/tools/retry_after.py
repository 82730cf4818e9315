"""The Retry-After header in both its forms."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

_SECONDS: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
WAIT_S_LIMIT: Final = 1e9
"""What a number too long to read as seconds is taken for; the retry policy caps it."""


def parse_retry_after_s(header: str | None, *, now_s: float) -> float | None:
    """Return the seconds that a Retry-After header asks for, or None when it cannot be read.

    Args:
        header: Seconds as plain digits, or an HTTP date, which is in UTC; anything else is unreadable.
        now_s: Unix time in seconds, for the date form; a date in the past is 0.

    Returns:
        0 <= seconds <= 1e9, finite.

    Source: RFC 9110 section 10.2.3.
    """
    if header is None:
        return None
    text = header.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    if text.isascii() and text.isdigit():
        return WAIT_S_LIMIT
    try:
        when = parsedate_to_datetime(text)
        when_s = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError):
        return None
    return min(max(0.0, when_s - now_s), WAIT_S_LIMIT)
