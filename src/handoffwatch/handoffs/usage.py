"""What a model call for a check has cost, as the host reports it: checked here, before anything is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TOKENS_MAX: Final = 100_000_000
COST_USD_MAX: Final = 10_000.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and dollars of one model call.

    Attributes:
        tokens: Tokens in and out, 0 to 100,000,000.
        cost_usd: Dollars, 0 to 10,000.

    Raises:
        ValueError: A number is none that one call can cost: it would spoil the counters for good.
    """

    tokens: int = 0
    cost_usd: float = 0.0

    def __post_init__(self) -> None:
        tokens, cost_usd = self.tokens, self.cost_usd
        if isinstance(tokens, bool) or not isinstance(tokens, int) or not 0 <= tokens <= TOKENS_MAX:
            raise ValueError(f"usage: tokens: must be an integer from 0 to {TOKENS_MAX}, got {type(tokens).__name__}")
        if isinstance(cost_usd, bool) or not isinstance(cost_usd, int | float) or not 0 <= cost_usd <= COST_USD_MAX:
            raise ValueError(
                f"usage: cost_usd: must be a number from 0 to {COST_USD_MAX:g}, got {type(cost_usd).__name__}"
            )
        object.__setattr__(self, "tokens", int(tokens))
        object.__setattr__(self, "cost_usd", float(cost_usd))
