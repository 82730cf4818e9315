"""What an agent says at the end of a run, and how that is settled by what the read-backs found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from handoffwatch.errors import ClaimRefused
from handoffwatch.outcomes.intent import Scalar, business_key, is_scalar, plain
from handoffwatch.vocabulary import Claimed, ClaimEffect, VerificationResult


@dataclass(frozen=True, slots=True)
class Claim:
    """One run's final word.

    Attributes:
        claimed: done, partial or not_done; none is what the ledger writes for a run that ended without a word.
        operations: The operations named as done, as (kind, business key), sorted. A partial claim names at least one;
            a done claim covers every operation of its run, named or not.
        keys: The business key of each named operation as it was stated, for the verifier of an operation that nobody
            opened. Two claims that differ only in it are the same claim.

    Raises:
        ClaimRefused: A partial claim names nothing, or a claim of not_done or none names something.
    """

    claimed: Claimed
    operations: tuple[tuple[str, str], ...] = ()
    keys: Mapping[tuple[str, str], Scalar] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.claimed is Claimed.PARTIAL and not self.operations:
            raise ClaimRefused(
                "claim: operations: must name at least one operation when the claim is partial",
                hint='write run.claim("partial", operations=[("refund", "4417")])',
            )
        if self.claimed in (Claimed.NOT_DONE, Claimed.NONE) and self.operations:
            raise ClaimRefused(
                f"claim: operations: must be empty when the claim is {self.claimed}",
                hint='claim "partial" to name what was done',
            )

    @classmethod
    def of(cls, claimed: Claimed | str, *, operations: Iterable[tuple[str, object]] = ()) -> Claim:
        """Return the claim that these words make.

        Args:
            claimed: done, partial or not_done.
            operations: Pairs of kind and business key that are claimed done.

        Raises:
            ClaimRefused: The word is not one of the three, or the operations do not fit it.
        """
        words = (Claimed.DONE, Claimed.PARTIAL, Claimed.NOT_DONE)
        if claimed not in words:
            raise ClaimRefused("claim: must be done, partial or not_done", hint='write run.claim("done")')
        named = {(kind, business_key(key)): plain(key) for kind, key in operations}
        keys = {operation: key for operation, key in named.items() if is_scalar(key)}
        return cls(Claimed(claimed), tuple(sorted(named)), keys)

    def covers(self, kind: str, key: str) -> bool:
        """Return whether the claim says that this operation of its run was done."""
        return self.claimed is Claimed.DONE or (self.claimed is Claimed.PARTIAL and (kind, key) in self.operations)


def settle_claim(results: Iterable[VerificationResult]) -> ClaimEffect | None:
    """Return how a claim of done or partial is settled, or None while that is open.

    Args:
        results: The last result of each operation that the claim covers; pending and unknown ones are open.

    Source: DESIGN section 6, ledger_claims_settled_total.
    """
    found = set(results)
    if VerificationResult.NOT_LANDED in found:
        return ClaimEffect.NOT_LANDED
    if found - {VerificationResult.LANDED, VerificationResult.SKIPPED}:
        return None
    return ClaimEffect.LANDED if VerificationResult.LANDED in found else ClaimEffect.UNCHECKED
