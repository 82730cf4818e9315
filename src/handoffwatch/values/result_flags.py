"""What a result says of itself by its flags; text decides nothing."""

from __future__ import annotations

from collections.abc import Mapping


def says_it_failed(value: object) -> bool:
    """Return whether a result says that it failed: an error flag, ok or success false, status error, only an error.

    Source: DESIGN section 3 rule 2.
    """
    if type(value) is not dict and not isinstance(value, Mapping):
        return getattr(value, "isError", None) is True or getattr(value, "is_error", None) is True
    get = value.get
    if get("isError") is True or get("is_error") is True or get("ok") is False or get("success") is False:
        return True
    errors = get("errors")
    return (
        get("status") == "error"
        or (len(value) == 1 and "error" in value)
        or (isinstance(errors, list) and errors != [])
    )


def is_blank(value: object) -> bool:
    """Return whether a value says nothing: absent, null, or a text of white space. 0, false and [] say something."""
    return value is None or (isinstance(value, str) and not value.strip())
