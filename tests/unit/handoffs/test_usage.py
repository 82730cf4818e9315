"""What a host says a call has cost: numbers that one call can cost, and no others."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.handoffs.usage import COST_USD_MAX, TOKENS_MAX, Usage


@pytest.mark.parametrize(
    ("tokens", "cost_usd"), [(0, 0), (0, 0.0), (1, 1), (1_200, 0.0031), (TOKENS_MAX, COST_USD_MAX)]
)
def test_usage_keeps_numbers_when_a_call_can_cost_them(tokens: int, cost_usd: float) -> None:
    """Dollars are a float, also when a whole number was given."""
    usage = Usage(tokens, cost_usd)
    assert (usage.tokens, usage.cost_usd) == (tokens, cost_usd)
    assert type(usage.cost_usd) is float


@pytest.mark.parametrize("tokens", [-1, TOKENS_MAX + 1, 10**400, 1.0, math.nan, True, "7", None])
def test_usage_is_refused_when_the_tokens_are_no_number_of_one_call(tokens: object) -> None:
    """The message names the kind of value."""
    with pytest.raises(ValueError, match=r"^usage: tokens: ") as caught:
        Usage(tokens, 0.0)  # type: ignore[arg-type]
    assert str(caught.value) == (f"usage: tokens: must be an integer from 0 to 100000000, got {type(tokens).__name__}")


@pytest.mark.parametrize(
    "cost_usd", [-0.01, -1, COST_USD_MAX + 0.01, 10**400, math.nan, math.inf, -math.inf, True, "0.1", None, [0.1]]
)
def test_usage_is_refused_when_the_dollars_are_no_number_of_one_call(cost_usd: object) -> None:
    """One NaN or infinity would spoil a counter for good."""
    with pytest.raises(ValueError, match=r"^usage: cost_usd: ") as caught:
        Usage(0, cost_usd)  # type: ignore[arg-type]
    assert str(caught.value) == f"usage: cost_usd: must be a number from 0 to 10000, got {type(cost_usd).__name__}"


@given(st.integers() | st.floats(), st.integers() | st.floats())
def test_usage_can_always_be_added_up_when_it_was_accepted(tokens: float, cost_usd: float) -> None:
    """Whatever is accepted is finite and not below 0."""
    try:
        usage = Usage(tokens, cost_usd)  # type: ignore[arg-type]
    except ValueError:
        assert not (type(tokens) is int and 0 <= tokens <= TOKENS_MAX and 0 <= cost_usd <= COST_USD_MAX)
        return
    assert 0 <= usage.tokens <= TOKENS_MAX
    assert 0 <= usage.cost_usd <= COST_USD_MAX
