"""The ready-made record verifier: what it looks up, and what it makes of the answer."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from handoffwatch.errors import RegistrationError
from handoffwatch.outcomes import Intent, ReadBack, Receipt, Verification
from handoffwatch.settlement import RecordVerifier
from handoffwatch.vocabulary import Cause, Effect
from support.outcomes import refund_intent, refund_kind, refund_receipt

RIGHT = {"order_id": "4417", "amount_cents": 3800, "status": "succeeded"}
LANDED = Verification(Effect.LANDED)
UNKNOWN = Verification(Effect.UNKNOWN)
MISSING = Verification(Effect.NOT_LANDED, Cause.MISSING)


def question(receipt: Receipt | None = None, intent: Intent | None = None) -> ReadBack:
    """Return the question after an order of 38.00, the window being over."""
    return ReadBack(refund_kind(), intent or refund_intent("4417"), receipt, age_s=60.0, window_s=30.0)


def found(wanted: object) -> dict[str, Any] | None:
    """Find the right record by its id or by its order."""
    return RIGHT if wanted in ("re_4417", "4417") else None


def nothing(_: object) -> None:
    """Find nothing."""


def refuse(_: object) -> dict[str, Any] | None:
    """Fail as a service without credentials does."""
    raise PermissionError("401 secret")


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionError(), PermissionError(), ValueError()])
def test_record_verifier_says_unknown_when_the_read_raises(error: Exception) -> None:
    """Whatever the service raised, absence is not proven."""

    def fetch(_: object) -> dict[str, Any] | None:
        raise error

    assert RecordVerifier(by_key=fetch).verify(question()) == UNKNOWN


def test_record_verifier_reads_by_receipt_when_there_is_an_id() -> None:
    """The receipt's id names this very record."""
    assert RecordVerifier(by_receipt=found, by_key=refuse).verify(question(refund_receipt("4417"))) == LANDED


def test_record_verifier_does_not_ask_by_key_when_the_receipts_record_is_missing() -> None:
    """Another refund of the same order is no proof of this one."""
    assert RecordVerifier(by_receipt=nothing, by_key=found).verify(question(refund_receipt("4417"))) == MISSING


@pytest.mark.parametrize("receipt", [None, Receipt({}, None)])
def test_record_verifier_reads_by_key_when_there_is_no_receipt_id(receipt: Receipt | None) -> None:
    """A crash between call and receipt is reconciled by the business key."""
    assert RecordVerifier(by_receipt=refuse, by_key=found).verify(question(receipt)) == LANDED


def test_record_verifier_reads_by_key_when_it_cannot_read_by_receipt() -> None:
    """A verifier that knows only keys uses them."""
    assert RecordVerifier(by_key=found).verify(question(refund_receipt("4417"))) == LANDED


def test_record_verifier_says_unknown_when_nothing_can_be_looked_up() -> None:
    """No receipt id and no look-up by key stays unknown."""
    assert RecordVerifier(by_receipt=nothing).verify(question()) == UNKNOWN


def test_record_verifier_asks_with_the_stated_key_when_it_is_a_number() -> None:
    """The function gets the key as the call had it, and its text when only a claim named it."""
    asked: list[object] = []
    verifier = RecordVerifier(by_key=asked.append)
    verifier.verify(question(intent=Intent("r-1", "refunds", "refund", "4417", {"order_id": 4417})))
    verifier.verify(question(intent=Intent("r-1", "refunds", "refund", "4417")))
    assert asked == [4417, "4417"]


def test_record_verifier_uses_the_services_words_when_they_are_given() -> None:
    """Status field and values are the service's."""
    verifier = RecordVerifier(by_key=lambda _: {**RIGHT, "state": "paid"}, status="state", succeeded=("paid",))
    assert verifier.verify(question()) == LANDED
    assert RecordVerifier(by_key=lambda _: {**RIGHT, "status": "queued"}, pending=("queued",)).verify(
        question()
    ) == Verification(Effect.PENDING)


@pytest.mark.parametrize(("record", "answer"), [(RIGHT, LANDED), (None, MISSING), (ConnectionError("secret"), UNKNOWN)])
def test_record_verifier_waits_when_the_function_is_async(
    record: dict[str, Any] | Exception | None, answer: Verification
) -> None:
    """An async function is judged as a plain one."""

    async def fetch(_: object) -> dict[str, Any] | None:
        if isinstance(record, Exception):
            raise record
        return record

    async def ask() -> Verification:
        waited = RecordVerifier(by_key=fetch).verify(question())
        assert inspect.isawaitable(waited)
        return await waited

    assert asyncio.run(ask()) == answer


def test_record_verifier_raises_when_the_function_returns_no_record() -> None:
    """A list is not judged as if it were a record."""
    with pytest.raises(TypeError, match="record verifier: the record must be a mapping or None, got list"):
        RecordVerifier(by_key=lambda _: [RIGHT]).verify(question())  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "record verifier: by_receipt or by_key: must be given"),
        ({"by_key": found, "succeeded": "succeeded"}, "record verifier: succeeded: must be a tuple of texts, got text"),
        ({"by_key": found, "pending": "pending"}, "record verifier: pending: must be a tuple of texts, got text"),
    ],
)
def test_record_verifier_is_refused_when_it_is_declared_wrongly(arguments: dict[str, Any], message: str) -> None:
    """A verifier that could never answer is refused at start."""
    with pytest.raises(RegistrationError) as caught:
        RecordVerifier(**arguments)
    assert caught.value.message == message
    assert caught.value.hint
