"""What a result says of itself by its flags; text decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ERROR_FLAGS: Final = ("isError", "is_error")
_OK_FLAGS: Final = ("ok", "success")


def says_it_failed(value: object) -> bool:
    """Return whether a result says that it failed: an error flag, ok or success false, status error, only an error.

    Source: DESIGN section 3 rule 2.
    """
    if not isinstance(value, Mapping):
        return any(getattr(value, flag, None) is True for flag in _ERROR_FLAGS)
    return (
        any(value.get(flag) is True for flag in _ERROR_FLAGS)
        or any(value.get(flag) is False for flag in _OK_FLAGS)
        or value.get("status") == "error"
        or set(value) == {"error"}
        or (isinstance(value.get("errors"), list) and bool(value["errors"]))
    )


def is_blank(value: object) -> bool:
    """Return whether a value says nothing: absent, null, or a text of white space. 0, false and [] say something."""
    return value is None or (isinstance(value, str) and not value.strip())
