"""Asking a verifier: one that fails, hangs or answers nonsense gives no answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from handoffwatch.outcomes import ReadBack, Verification
from handoffwatch.settlement.asking import HANGING_MAX, Asker, VerifierFailed
from handoffwatch.vocabulary import Effect
from support.outcomes import refund_intent, refund_kind

QUESTION = ReadBack(refund_kind(), refund_intent("4417"), None, age_s=0.0, window_s=0.0)


class Plain:
    """Answers what it is told to."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def verify(self, _: ReadBack, /) -> Verification:
        """Answer, or raise."""
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]


class Async:
    """Answers after a turn of the event loop."""

    async def verify(self, _: ReadBack, /) -> Verification:
        """Answer."""
        await asyncio.sleep(0)
        return Verification(Effect.PENDING)


class Stopping:
    """Raises what stops a task, a thread or a process, after a turn of the event loop."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def verify(self, _: ReadBack, /) -> Verification:
        """Raise."""
        await asyncio.sleep(0)
        raise self.error


class Hanging:
    """Hangs until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def verify(self, _: ReadBack, /) -> Verification:
        """Wait."""
        self.let_go.wait(timeout=60)
        return Verification(Effect.LANDED)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    """A verifier that hangs until the test is over."""
    made = Hanging()
    yield made
    made.let_go.set()


@pytest.mark.parametrize(
    ("verifier", "effect"), [(Plain(Verification(Effect.LANDED)), Effect.LANDED), (Async(), Effect.PENDING)]
)
def test_asker_returns_the_answer_when_the_verifier_is_plain_or_async(verifier: Plain | Async, effect: Effect) -> None:
    """Both kinds are asked alike."""
    assert Asker(timeout_s=10).ask(verifier, QUESTION) == Verification(effect)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ConnectionError("secret"), "ConnectionError"),
        (None, "an answer of type NoneType"),
        (True, "an answer of type bool"),
        ("landed", "an answer of type str"),
    ],
)
def test_asker_says_what_went_wrong_when_there_is_no_answer(answer: object, message: str) -> None:
    """The message names a class, never what was said."""
    with pytest.raises(VerifierFailed) as caught:
        Asker(timeout_s=10).ask(Plain(answer), QUESTION)
    assert str(caught.value) == message


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
@pytest.mark.parametrize("kind", [Plain, Stopping])
def test_asker_hears_of_it_at_once_when_a_verifier_raises_what_stops_a_program(
    kind: type[Plain | Stopping], error: BaseException
) -> None:
    """It ends the question, not the thread unheard: nobody waits for an answer that cannot come."""
    with pytest.raises(VerifierFailed) as caught:
        Asker(timeout_s=60).ask(kind(error), QUESTION)
    assert str(caught.value) == type(error).__name__


def test_asker_goes_on_when_a_verifier_hangs(hanging: Hanging) -> None:
    """The next question is answered while the hanging one still waits."""
    asker = Asker(timeout_s=0.01)
    with pytest.raises(VerifierFailed, match=r"^TimeoutError$"):
        asker.ask(hanging, QUESTION)
    patient = Plain(Verification(Effect.LANDED))
    assert Asker(timeout_s=10).ask(patient, QUESTION) == Verification(Effect.LANDED)


def test_asker_starts_no_more_threads_when_too_many_verifiers_hang(hanging: Hanging) -> None:
    """What hangs is bounded."""
    asker = Asker(timeout_s=0.001)
    for _ in range(HANGING_MAX):
        with pytest.raises(VerifierFailed, match=r"^TimeoutError$"):
            asker.ask(hanging, QUESTION)
    with pytest.raises(VerifierFailed, match=rf"^{HANGING_MAX} verifiers hang$"):
        asker.ask(Plain(Verification(Effect.LANDED)), QUESTION)
