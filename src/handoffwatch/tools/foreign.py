"""Reading the errors and answers of client libraries that are never imported here: whatever they do, nothing raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def attribute_of(holder: object, name: str) -> Any:
    """Return an attribute of a foreign object; None when it has none, or a property of it raises."""
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - a foreign property may raise anything; what it would have said is unknown
        return None


def member_of(holder: object, name: str) -> Any:
    """Return what a foreign mapping holds under a name, else None."""
    try:
        return holder.get(name) if isinstance(holder, Mapping) else None
    except Exception:  # noqa: BLE001 - as above
        return None


def header_of(holder: object, name: str) -> str | None:
    """Return a header of a foreign response, whatever its case; `name` is in small letters."""
    headers = attribute_of(holder, "headers")
    try:
        for key, value in headers.items() if hasattr(headers, "items") else ():
            if isinstance(key, str) and key.lower() == name and isinstance(value, str):
                return value
    except Exception:  # noqa: BLE001 - as above
        return None
    return None


def status_of(holder: object) -> int | None:
    """Return the HTTP status that a response or an error carries, or None.

    `status_code` is one whatever its value, and so is `status` beside headers; else `status` and `code` have other
    meanings too and count from 100 to 599.
    """
    has_headers = attribute_of(holder, "headers") is not None
    for name in ("status_code", "status", "code"):
        value = attribute_of(holder, name)
        is_any = name == "status_code" or (name == "status" and has_headers)
        if type(value) is int and (is_any or 100 <= value <= 599):
            return value
    return None


def retry_after_of(holder: object) -> str | None:
    """Return the Retry-After header of a response, whatever its case, or None."""
    return header_of(holder, "retry-after")


def classes_of(error: BaseException) -> set[tuple[str, str]]:
    """Return the classes of an error, each by its package and its name."""
    modules = {each: attribute_of(each, "__module__") for each in type(error).__mro__}
    return {(name.partition(".")[0], each.__name__) for each, name in modules.items() if isinstance(name, str)}


def names_of(error: BaseException) -> set[str]:
    """Return the names of the classes of an error."""
    return {each.__name__ for each in type(error).__mro__}


def packages_of(error: BaseException) -> set[str]:
    """Return the packages in which the classes of an error are defined."""
    return {package for package, _ in classes_of(error)}
