"""The share of false blocks and its interval, against published values and against the truth."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.ledger import FalseBlockShare, Snapshot
from handoffwatch.ledger.facts import RouteRegistration
from handoffwatch.ledger.shares import false_block_shares, wilson_interval
from handoffwatch.vocabulary import Criticality, Mode, ReviewSelection, ReviewVerdict

REVIEWS = "ledger_handoff_reviews_total"
ROUTE = "planner->executor"


def snapshot(counts: dict[tuple[str, ...], int], *routes: RouteRegistration) -> Snapshot:
    """Return a snapshot that holds reviews alone."""
    return Snapshot(
        ledger_id="0" * 32,
        registrations=(),
        routes=routes,
        workflows=(),
        counters={(REVIEWS, labels): value for labels, value in counts.items()},
        timestamps={},
        claims={},
        effects={},
        cases={},
    )


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (15, 148, 0.0624, 0.1605),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_interval_is_the_published_one_when_counts_are_known(
    successes: int, total: int, low: float, high: float
) -> None:
    """The examples of Newcombe (1998), "Two-sided confidence intervals for the single proportion", and of textbooks."""
    assert wilson_interval(successes, total) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 10_000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_interval_holds_the_share_within_0_and_1_when_counts_are_any(counts: tuple[int, int]) -> None:
    """It is never empty, never wider than all, and the mirror of that of the failures."""
    successes, total = counts
    low, high = wilson_interval(successes, total)
    assert 0.0 <= low < high <= 1.0
    if total:
        assert low <= successes / total <= high
    assert wilson_interval(total - successes, total) == pytest.approx((1 - high, 1 - low))


def test_share_is_that_of_random_reviews_alone_when_others_are_forced() -> None:
    """Forced ones were chosen, so that they say nothing of those that were not."""
    counts = {
        (ROUTE, "1", "enforce", "random", "false_block"): 1,
        (ROUTE, "1", "enforce", "random", "right_block"): 9,
        (ROUTE, "1", "enforce", "forced", "false_block"): 50,
        (ROUTE, "1", "shadow", "forced", "right_block"): 7,
    }
    low, high = wilson_interval(1, 10)
    assert false_block_shares(snapshot(counts)) == [
        FalseBlockShare(ROUTE, "1", Mode.ENFORCE, 10, 1, 0.1, low, high),
        FalseBlockShare(ROUTE, "1", Mode.SHADOW, 0, 0, None, 0.0, 1.0),
    ]


def test_share_is_unknown_when_nothing_of_a_registered_contract_was_reviewed() -> None:
    """It is shown all the same, so that nobody takes it for a good one."""
    route = RouteRegistration(ROUTE, "2", Mode.ENFORCE, Criticality.CRITICAL)
    assert false_block_shares(snapshot({}, route)) == [FalseBlockShare(ROUTE, "2", Mode.ENFORCE, 0, 0, None, 0.0, 1.0)]


@pytest.mark.parametrize("true_share", [0.03, 0.1, 0.3])
def test_interval_covers_the_true_share_when_a_tenth_of_the_blocks_is_reviewed(true_share: float) -> None:
    """In at least 930 of 1,000 seeded weeks of 2,000 blocks, whose critical half is forced into review besides."""
    covered = 0
    for seed in range(1000):
        chance = random.Random(seed)
        counts: Counter[tuple[str, ...]] = Counter()
        for block in range(2000):
            is_drawn = chance.random() < 0.1
            if is_drawn or block % 2:
                is_false = chance.random() < (true_share if is_drawn else 2 * true_share)
                selection = ReviewSelection.RANDOM if is_drawn else ReviewSelection.FORCED
                verdict = ReviewVerdict.FALSE_BLOCK if is_false else ReviewVerdict.RIGHT_BLOCK
                counts[ROUTE, "1", "enforce", selection, verdict] += 1
        (share,) = false_block_shares(snapshot(counts))
        covered += share.low <= true_share <= share.high
    assert covered >= 930
