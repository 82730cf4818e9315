"""The question that a verifier is asked, and its answer."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from handoffwatch.outcomes.intent import Intent
from handoffwatch.outcomes.kind import OperationKind
from handoffwatch.outcomes.receipt import Receipt
from handoffwatch.vocabulary import Cause, Effect


@dataclass(frozen=True, slots=True)
class ReadBack:
    """One question to a verifier: did this operation have its effect?

    Attributes:
        kind: The operation's kind.
        intent: What was wanted.
        receipt: What the tool returned, when it was a receipt.
        age_s: Seconds since the last write, or since the operation became known when no call was made; at least 0.
        window_s: How long absence proves nothing after a write.
    """

    kind: OperationKind
    intent: Intent
    receipt: Receipt | None
    age_s: float
    window_s: float


@dataclass(frozen=True, slots=True)
class Verification:
    """A verifier's answer.

    Attributes:
        effect: What the stored state says; its text is accepted.
        cause: Why the effect is not_landed; None for every other effect. Its text is accepted.

    Raises:
        ValueError: A word is unknown, not_landed has no cause, or another effect has one.
    """

    effect: Effect
    cause: Cause | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "effect", _word("effect", Effect, self.effect))
        if self.cause is not None:
            object.__setattr__(self, "cause", _word("cause", Cause, self.cause))
        if (self.effect is Effect.NOT_LANDED) is (self.cause is None):
            raise ValueError(
                f"verification: cause: must be given for not_landed and for no other effect: {self.effect}"
            )


def _word(field: str, words: type[StrEnum], given: object) -> StrEnum:
    try:
        return words(str(given))
    except ValueError:
        raise ValueError(
            f"verification: {field}: must be one of {', '.join(words)}, got {type(given).__name__}"
        ) from None


class Verifier(Protocol):
    """Code outside the model that reads the stored effect. It may be asked again and must not change anything."""

    def verify(self, question: ReadBack, /) -> Verification | Awaitable[Verification]:
        """Return what the store says. Whatever it raises leaves the effect as it was."""
        ...
