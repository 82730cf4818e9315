"""The judgement of one stored record against the intent, in the order that DESIGN section 9 fixes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from handoffwatch.outcomes.intent import business_key, plain
from handoffwatch.outcomes.verification import ReadBack, Verification
from handoffwatch.vocabulary import Cause, Effect


class Look(StrEnum):
    """How the look-up of the record went.

    impossible: neither a receipt id nor a look-up by key. failed: it timed out or the service erred.
    """

    IMPOSSIBLE = "impossible"
    FAILED = "failed"
    NOT_FOUND = "not_found"
    FOUND = "found"


def judge_record(
    question: ReadBack,
    look: Look,
    record: Mapping[str, object] | None = None,
    *,
    status: str = "status",
    succeeded: Collection[str] = ("succeeded",),
    pending: Collection[str] = ("pending", "requires_action"),
) -> Verification:
    """Return what a looked-up record says about the intended effect.

    Args:
        question: The intent, and whether the read-back window is over.
        look: How the look-up went.
        record: The record when it was found.
        status: The record's field that holds its status.
        succeeded: Its values for an effect that happened.
        pending: Its values for an effect that may still happen.

    Source: DESIGN section 9. The values are compared before the status is looked at: a wrong amount is a mismatch
    whatever became of it.
    """
    if look in (Look.IMPOSSIBLE, Look.FAILED):
        return Verification(Effect.UNKNOWN)
    if look is Look.NOT_FOUND or record is None:
        inside = question.age_s < question.window_s
        return Verification(Effect.PENDING) if inside else Verification(Effect.NOT_LANDED, Cause.MISSING)
    if not _matches(question, record):
        return Verification(Effect.NOT_LANDED, Cause.MISMATCH)
    found = record.get(status)
    if _is_among(found, succeeded):
        return Verification(Effect.LANDED)
    if _is_among(found, pending):
        return Verification(Effect.PENDING)
    return Verification(Effect.NOT_LANDED, Cause.FAILED)


def _matches(question: ReadBack, record: Mapping[str, object]) -> bool:
    """Return whether the record repeats the business key and every compared value that the intent states."""
    kind, intent = question.kind, question.intent
    if kind.key not in record or business_key(record[kind.key]) != intent.key:
        return False
    wanted = {name: intent.values[name] for name in kind.compare if name in intent.values}
    return all(name in record and _is_same(record[name], value) for name, value in wanted.items())


def _is_among(found: object, words: Collection[object]) -> bool:
    """Return whether a record's status is one of these words."""
    return any(_is_same(found, word) for word in words)


def _is_same(found: object, wanted: object) -> bool:
    """Return whether two values say the same; true is not 1, and null equals nothing but null."""
    found, wanted = plain(found), plain(wanted)
    return found == wanted and isinstance(found, bool) is isinstance(wanted, bool)
