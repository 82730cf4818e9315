"""What redacting costs when a text is twice as long, and when it is as long as it may be."""

from __future__ import annotations

import time

import pytest

from handoffwatch.values.redaction import TEXT_CHARACTERS_MAX, Redaction
from support.near_misses import NEAR_MISSES, near_miss
from support.ratios import growth

CHARACTERS = 32_768
REDACTION = Redaction(["credentials", "headers.authorization", "**.raw_private_data"])


@pytest.mark.bench
@pytest.mark.parametrize("name", NEAR_MISSES)
def test_redaction_takes_twice_as_long_when_a_text_of_near_misses_is_twice_as_long(name: str) -> None:
    """BR-126: no pattern starts over again and again; a text twice as long takes at most 2.2 times as long."""
    short, long = near_miss(name, CHARACTERS), near_miss(name, 2 * CHARACTERS)

    measured = growth(lambda: REDACTION.redacted(long), lambda: REDACTION.redacted(short))

    print(f"\nredaction, twice as long: {name:<32} {measured:5.2f} times as long (at most 2.2)")
    assert measured <= 2.2


@pytest.mark.bench
@pytest.mark.parametrize("text", ["A" * 262_144, '{"' * 1_000_000], ids=["256 KB of A", "2 MB of braces"])
def test_redaction_ends_soon_when_a_text_is_huge(text: str) -> None:
    """BR-126: the texts that blocked a loop for minutes take under 250 ms."""
    elapsed_s = _processor_s(text)

    print(f"\nredaction of {len(text)} characters: {elapsed_s * 1e3:.0f} ms (at most 250)")
    assert elapsed_s < 0.25


@pytest.mark.bench
@pytest.mark.parametrize("name", NEAR_MISSES)
def test_redaction_ends_soon_when_near_misses_fill_a_text(name: str) -> None:
    """BR-126: no text takes longer than 250 ms, for the longest one that is read is bounded."""
    assert _processor_s(near_miss(name, TEXT_CHARACTERS_MAX)) < 0.25


def _processor_s(text: str) -> float:
    started = time.thread_time()
    REDACTION.redacted(text)
    return time.thread_time() - started
