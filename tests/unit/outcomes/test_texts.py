"""What the customer is told."""

import pytest

from handoffwatch.outcomes import customer_text
from handoffwatch.vocabulary import Effect


@pytest.mark.parametrize(
    ("effect", "amount", "text"),
    [
        (Effect.LANDED, "38.00 EUR", "It is done: 38.00 EUR."),
        (Effect.LANDED, "", "It is done."),
        (Effect.PENDING, "38.00 EUR", "It is on its way."),
        (Effect.UNKNOWN, "", "A colleague is checking whether it went through."),
        (Effect.NOT_LANDED, "38.00 EUR", "It did not go through. A person is dealing with it."),
    ],
)
def test_customer_text_says_what_is_known_when_an_effect_is_given(effect: Effect, amount: str, text: str) -> None:
    """Each effect has its text, and only landed names the amount."""
    assert customer_text(effect, amount=amount) == text


def test_customer_text_uses_the_hosts_words_when_they_are_given() -> None:
    """Overrides replace single texts."""
    own = {Effect.LANDED: "Refunded{amount}!"}
    assert customer_text(Effect.LANDED, amount="38.00 EUR", texts=own) == "Refunded: 38.00 EUR!"
    assert customer_text(Effect.PENDING, texts=own) == "It is on its way."
