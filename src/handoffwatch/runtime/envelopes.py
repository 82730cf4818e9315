"""What the runtime reads of a handoff itself: the envelope, what tells it from others, and what it says in all."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from handoffwatch.values.json_text import canonical, decode, members_of
from handoffwatch.values.names import ID_CHARACTERS_MAX, is_id

Envelope = Mapping[str, Any]
"""The fields of a handoff as it came; empty when it cannot be read."""

_SAID: Final = ("target_agent", "task_id", "task_type", "status", "schema_version", "context_version", "payload")


def read_envelope(raw: object, *, bytes_max: int) -> Envelope:
    """Return the fields of a handoff: of a dict, a model, or JSON text of at most `bytes_max` bytes. Never raises."""
    if isinstance(raw, str | bytes | bytearray):
        if len(raw) > bytes_max:
            return {}
        try:
            value = decode(bytes(raw) if isinstance(raw, bytearray) else raw)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}
    if type(raw) is dict:
        return raw.copy()
    try:
        return {name: value for name, value in (members_of(raw) or {}).items() if type(name) is str}
    except Exception:  # noqa: BLE001 - a foreign value may raise whatever is asked of it: the watchdog names that
        return {}


def text_of(envelope: Envelope, name: str) -> str:
    """Return a field of the envelope, or an empty text when it is no text."""
    value = envelope.get(name)
    return value if type(value) is str else ""


def id_of(envelope: Envelope, name: str) -> str:
    """Return a field of the envelope as an id that can be stored: one that cannot be is known by its digest.

    An empty text when it is empty or no text.
    """
    value = envelope.get(name)
    if type(value) is not str or not value:
        return ""
    if (value.isascii() and len(value) <= ID_CHARACTERS_MAX) or is_id(value):
        return value
    return "~" + hashlib.blake2b(value.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def name_of(agent: object) -> str:
    """Return the name of an agent as the host gives it; what is no text names nobody, rather than anybody."""
    return agent if isinstance(agent, str) else ""


def identity_of(envelope: Envelope, path: tuple[str, ...]) -> str:
    """Return the text at the identity path of a handoff, or an empty text when it cannot be read there."""
    value: Any = envelope
    for part in path:
        try:
            members = value if type(value) is dict else members_of(value) or {}
            value = members.get(part)
        except Exception:  # noqa: BLE001 - as above
            return ""
    return value if type(value) is str else ""


def fingerprint_of(handoff: Mapping[str, Any]) -> int:
    """Return a number for what a handoff says, as `content_of` does, for this process alone; never 0."""
    return hash(canonical(_said(handoff))) or 1


def content_of(handoff: Mapping[str, Any]) -> str:
    """Return the digest of what a handoff says, whatever id and time it carries: equal contents have equal digests.

    Args:
        handoff: Plain and of bounded size, as the watchdog delivers it or as redaction leaves it.
    """
    return hashlib.blake2b(canonical(_said(handoff)), digest_size=16).hexdigest()


def _said(handoff: Mapping[str, Any]) -> list[Any]:
    return [handoff.get(name) for name in _SAID]


def seconds_since(produced_at: object, *, now_unix_s: float) -> float | None:
    """Return the seconds since a time with its zone (RFC 3339), negative when it lies ahead; None when it is none."""
    if not isinstance(produced_at, str):
        return None
    try:
        produced = datetime.datetime.fromisoformat(produced_at)
        return now_unix_s - produced.timestamp() if produced.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
