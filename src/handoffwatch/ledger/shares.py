"""Shares: how often a check is wrong, by what people said about those of its blocks that chance drew."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from handoffwatch import catalogue
from handoffwatch.ledger.facts import FalseBlockShare, Snapshot
from handoffwatch.vocabulary import Mode, ReviewSelection, ReviewVerdict

_Z: Final = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution: 95 % lie between it and its negative."""


def wilson_interval(successes: int, total: int) -> tuple[float, float]:
    """Return the ends of the Wilson 95 % interval of a share.

    It holds for small counts and for shares near 0 and 1, where the common interval of a mean does not.

    Args:
        successes: How many of the total count, 0 <= successes <= total.
        total: How many were looked at.

    Returns:
        Two shares, 0 <= low <= high <= 1; of 0 in 0 nothing is known, which is (0, 1).

    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the
    American Statistical Association 22 (1927), 209-212.
    """
    if total == 0:
        return 0.0, 1.0
    share = successes / total
    weight = _Z * _Z / total
    centre = (share + weight / 2) / (1 + weight)
    reach = _Z * math.sqrt(share * (1 - share) / total + weight / (4 * total)) / (1 + weight)
    low = 0.0 if successes == 0 else centre - reach
    high = 1.0 if successes == total else centre + reach
    return low, high


def false_block_shares(snapshot: Snapshot) -> list[FalseBlockShare]:
    """Return the share of false blocks of each registered or reviewed contract, sorted.

    Blocks that a rule forced into review are left out: they were not drawn by chance and say nothing of the others.
    """
    verdicts: Counter[tuple[str, str, str, str]] = Counter()
    contracts = {(row.route, row.schema_version, str(row.mode)) for row in snapshot.routes}
    for (metric, labels), value in snapshot.counters.items():
        if metric == catalogue.LEDGER_HANDOFF_REVIEWS.name:
            route, version, mode, selection, verdict = labels
            contracts.add((route, version, mode))
            if selection == ReviewSelection.RANDOM:
                verdicts[route, version, mode, verdict] += value
    return [_share(*contract, verdicts) for contract in sorted(contracts)]


def _share(route: str, version: str, mode: str, verdicts: Counter[tuple[str, str, str, str]]) -> FalseBlockShare:
    false_blocks = verdicts[route, version, mode, ReviewVerdict.FALSE_BLOCK]
    reviewed = false_blocks + verdicts[route, version, mode, ReviewVerdict.RIGHT_BLOCK]
    low, high = wilson_interval(false_blocks, reviewed)
    share = false_blocks / reviewed if reviewed else None
    return FalseBlockShare(route, version, Mode(mode), reviewed, false_blocks, share, low, high)
