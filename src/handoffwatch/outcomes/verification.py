"""The question that a verifier is asked, and its answer."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
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
        effect: What the stored state says.
        cause: Why the effect is not_landed; None for every other effect.

    Raises:
        ValueError: not_landed without a cause, or a cause with another effect.
    """

    effect: Effect
    cause: Cause | None = None

    def __post_init__(self) -> None:
        if (self.effect is Effect.NOT_LANDED) is (self.cause is None):
            raise ValueError(
                f"verification: cause: must be given for not_landed and for no other effect: {self.effect}"
            )


class Verifier(Protocol):
    """Code outside the model that reads the stored effect. It may be asked again and must not change anything."""

    def verify(self, question: ReadBack, /) -> Verification | Awaitable[Verification]:
        """Return what the store says. Whatever it raises leaves the effect as it was."""
        ...
