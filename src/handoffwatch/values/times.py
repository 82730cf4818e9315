"""Times as text: one way to write each of them."""

from __future__ import annotations

import datetime
import re
from typing import Final

_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,30}))?([Zz]|[+-][0-9]{2}:[0-9]{2})?"
)


def time_text(text: str) -> str:
    """Return a time in RFC 3339 as one way to write it; any other text as it is.

    The date and the time of day are parted by `T`, the zone +00:00 is `Z`, and a fraction of a second has no zeros at
    its end. Nothing else changes: another offset, none at all (a naive time), and -00:00 stay, and so do all digits.

    Source: RFC 3339 sections 4.3 and 5.6.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        return text
    day, clock, fraction, zone = found.groups(default="")
    fraction = fraction.rstrip("0")
    zone = "Z" if zone in ("z", "+00:00") else zone
    return f"{day}T{clock}{'.' if fraction else ''}{fraction}{zone}"


def written(time: datetime.datetime) -> str:
    """Return the text of a time object; one without an offset stays naive.

    Raises:
        Exception: Whatever a foreign time zone raises.
    """
    return time_text(datetime.datetime.isoformat(time))
