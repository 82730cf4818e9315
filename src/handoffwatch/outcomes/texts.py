"""What the customer is told about an operation, by its effect."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from handoffwatch.vocabulary import Effect

CUSTOMER_TEXTS: Final[Mapping[Effect, str]] = MappingProxyType(
    {
        Effect.LANDED: "It is done{amount}.",
        Effect.PENDING: "It is on its way.",
        Effect.UNKNOWN: "A colleague is checking whether it went through.",
        Effect.NOT_LANDED: "It did not go through. A person is dealing with it.",
    }
)
"""The default texts; `{amount}` becomes `: ` and the amount, or nothing without one. Source: DESIGN section 9."""


def customer_text(effect: Effect, *, amount: str = "", texts: Mapping[Effect, str] = CUSTOMER_TEXTS) -> str:
    """Return what the customer is told.

    Args:
        effect: What the last read-back found.
        amount: The amount as the customer reads it, such as `38.00 EUR`.
        texts: Overrides; an effect that is left out keeps its default.
    """
    text = texts.get(effect, CUSTOMER_TEXTS[effect])
    return text.replace("{amount}", f": {amount}" if amount else "")
