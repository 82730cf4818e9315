"""The record verifier's judgement, one test a row of the order in DESIGN section 9."""

from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from handoffwatch.outcomes import Intent, Look, ReadBack, Verification, intent_of_call, judge_record
from handoffwatch.vocabulary import Cause, Effect
from support.outcomes import refund_intent, refund_kind

RIGHT = {"order_id": "4417", "amount_cents": 3800, "status": "succeeded"}


class Word(Enum):
    """Values as a program's own record class holds them."""

    AMOUNT = 3800
    OTHER_AMOUNT = 380
    SUCCEEDED = "succeeded"
    PENDING = "pending"


def question(*, age_s: float = 60.0, intent: Intent | None = None) -> ReadBack:
    """Return the question after an order of 38.00, outside the window unless said."""
    return ReadBack(refund_kind(), intent or refund_intent("4417"), None, age_s=age_s, window_s=30.0)


def test_judge_record_says_unknown_when_nothing_can_be_looked_up() -> None:
    """No receipt id and no look-up by key proves nothing."""
    assert judge_record(question(), Look.IMPOSSIBLE) == Verification(Effect.UNKNOWN)


def test_judge_record_says_unknown_when_the_look_up_failed() -> None:
    """A time-out or an erring service is no news."""
    assert judge_record(question(), Look.FAILED) == Verification(Effect.UNKNOWN)


@pytest.mark.parametrize("age_s", [0.0, 29.999])
def test_judge_record_says_pending_when_not_found_inside_the_window(age_s: float) -> None:
    """A replica may not have it yet."""
    assert judge_record(question(age_s=age_s), Look.NOT_FOUND) == Verification(Effect.PENDING)


@pytest.mark.parametrize("age_s", [30.0, 60.0])
def test_judge_record_says_missing_when_not_found_after_the_window(age_s: float) -> None:
    """Absence counts from the window's end on."""
    assert judge_record(question(age_s=age_s), Look.NOT_FOUND) == Verification(Effect.NOT_LANDED, Cause.MISSING)


@pytest.mark.parametrize(
    "change",
    [
        {"amount_cents": 380},
        {"amount_cents": None},
        {"amount_cents": "3800"},
        {"amount_cents": True},
        {"order_id": "4418"},
        {"order_id": None},
        {"amount_cents": 380, "status": "succeeded"},
        {"amount_cents": 380, "status": "failed"},
        {"amount_cents": 380, "status": "pending"},
    ],
)
def test_judge_record_says_mismatch_when_amount_or_key_differs_whatever_the_status(change: dict[str, Any]) -> None:
    """The values are compared before the status is looked at."""
    assert judge_record(question(), Look.FOUND, {**RIGHT, **change}) == Verification(Effect.NOT_LANDED, Cause.MISMATCH)


@pytest.mark.parametrize("absent", ["order_id", "amount_cents"])
def test_judge_record_says_mismatch_when_amount_or_key_is_absent(absent: str) -> None:
    """A record that does not name its order proves nothing about this one."""
    record = {name: value for name, value in RIGHT.items() if name != absent}
    assert judge_record(question(), Look.FOUND, record) == Verification(Effect.NOT_LANDED, Cause.MISMATCH)


def test_judge_record_says_landed_when_the_status_is_succeeded() -> None:
    """The stored state confirms the intent."""
    assert judge_record(question(), Look.FOUND, RIGHT) == Verification(Effect.LANDED)


@pytest.mark.parametrize("status", ["pending", "requires_action"])
def test_judge_record_says_pending_when_the_status_is_still_open(status: str) -> None:
    """No news never turns pending into landed."""
    assert judge_record(question(), Look.FOUND, {**RIGHT, "status": status}) == Verification(Effect.PENDING)


@pytest.mark.parametrize("status", ["failed", "canceled", "", None, 1, ["succeeded"], "Succeeded"])
def test_judge_record_says_failed_when_the_status_is_anything_else(status: object) -> None:
    """A status that nobody declared good is not good."""
    assert judge_record(question(), Look.FOUND, {**RIGHT, "status": status}) == Verification(
        Effect.NOT_LANDED, Cause.FAILED
    )


def test_judge_record_takes_a_number_as_key_when_the_intent_has_its_text() -> None:
    """Business keys are compared as text."""
    assert judge_record(question(), Look.FOUND, {**RIGHT, "order_id": 4417}) == Verification(Effect.LANDED)


def test_judge_record_compares_only_the_key_when_a_claim_stated_nothing_else() -> None:
    """An operation that only a claim named has no amount to compare."""
    bare = Intent("r-1", "refunds", "refund", "4417")
    found = judge_record(question(intent=bare), Look.FOUND, {"order_id": "4417", "status": "succeeded"})
    assert found == Verification(Effect.LANDED)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"order_id": UUID(int=5)}, Verification(Effect.LANDED)),
        ({"order_id": str(UUID(int=5)), "amount_cents": Word.AMOUNT}, Verification(Effect.LANDED)),
        ({"order_id": UUID(int=5), "status": Word.SUCCEEDED}, Verification(Effect.LANDED)),
        ({"order_id": UUID(int=5), "status": Word.PENDING}, Verification(Effect.PENDING)),
        ({"order_id": UUID(int=6)}, Verification(Effect.NOT_LANDED, Cause.MISMATCH)),
        (
            {"order_id": UUID(int=5), "amount_cents": Word.OTHER_AMOUNT},
            Verification(Effect.NOT_LANDED, Cause.MISMATCH),
        ),
    ],
)
@pytest.mark.parametrize("key", [UUID(int=5), str(UUID(int=5))])
def test_judge_record_reads_both_sides_alike_when_they_hold_ids_or_enumerations(
    key: UUID | str, change: dict[str, Any], answer: Verification
) -> None:
    """A driver that returns a UUID where the tool was given a text, or the other way round, makes no mismatch."""
    arguments = {"order_id": key, "amount_cents": 3800}
    intent = intent_of_call(refund_kind(), arguments, run_id="r-1", workflow="refunds")
    assert judge_record(question(intent=intent), Look.FOUND, {**RIGHT, **change}) == answer


def test_judge_record_takes_words_of_an_enumeration_when_they_are_declared() -> None:
    """The words for a good status are read as the record is."""
    assert judge_record(question(), Look.FOUND, RIGHT, succeeded=(Word.SUCCEEDED,)) == Verification(Effect.LANDED)


@pytest.mark.parametrize(
    ("effect", "cause", "meant"),
    [
        ("landed", None, Verification(Effect.LANDED)),
        ("not_landed", "missing", Verification(Effect.NOT_LANDED, Cause.MISSING)),
    ],
)
def test_verification_takes_plain_text_when_it_is_a_word(effect: Any, cause: Any, meant: Verification) -> None:
    """A verifier may answer with the words themselves."""
    found = Verification(effect, cause)
    assert found == meant
    assert isinstance(found.effect, Effect)


@pytest.mark.parametrize(
    ("effect", "cause", "message"),
    [
        ("done", None, "verification: effect: must be one of landed, pending, unknown, not_landed, got str"),
        (None, None, "verification: effect: must be one of landed, pending, unknown, not_landed, got NoneType"),
        (
            "not_landed",
            "lost",
            "verification: cause: must be one of missing, failed, mismatch, reversed, got str",
        ),
        (
            "not_landed",
            None,
            "verification: cause: must be given for not_landed and for no other effect: not_landed",
        ),
    ],
)
def test_verification_is_refused_when_a_word_is_unknown(effect: Any, cause: Any, message: str) -> None:
    """A word that nobody knows is no answer; in plain text too, not_landed needs its cause."""
    with pytest.raises(ValueError, match=r"^verification: ") as caught:
        Verification(effect, cause)
    assert str(caught.value) == message


@pytest.mark.parametrize(("effect", "cause"), [(Effect.NOT_LANDED, None), (Effect.LANDED, Cause.MISSING)])
def test_verification_is_refused_when_effect_and_cause_do_not_fit(effect: Effect, cause: Cause | None) -> None:
    """not_landed has a cause, and nothing else has one."""
    with pytest.raises(ValueError, match="must be given for not_landed and for no other effect"):
        Verification(effect, cause)
