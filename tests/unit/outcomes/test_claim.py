"""Claims, and how they are settled."""

from enum import Enum
from uuid import UUID

import pytest

from handoffwatch.errors import ClaimRefused
from handoffwatch.outcomes import Claim, settle_claim
from handoffwatch.vocabulary import Claimed, ClaimEffect, VerificationResult

LANDED, PENDING, UNKNOWN, NOT_LANDED, SKIPPED = (
    VerificationResult.LANDED,
    VerificationResult.PENDING,
    VerificationResult.UNKNOWN,
    VerificationResult.NOT_LANDED,
    VerificationResult.SKIPPED,
)


def test_claim_covers_every_operation_when_it_is_done() -> None:
    """Done is said of the whole run."""
    assert Claim.of("done").covers("refund", "4417")


def test_claim_covers_only_what_it_names_when_it_is_partial() -> None:
    """A partial claim says nothing of other operations; keys are compared as text."""
    claim = Claim.of("partial", operations=[("refund", 4417)])
    assert claim.covers("refund", "4417")
    assert not claim.covers("refund", "4418")
    assert not claim.covers("credit", "4417")


class Order(Enum):
    """A key that is an enumeration."""

    REFUNDED = "4417"


@pytest.mark.parametrize(
    ("named", "key"), [(Order.REFUNDED, "4417"), (UUID(int=5), "00000000-0000-0000-0000-000000000005")]
)
def test_claim_covers_the_operation_when_its_key_is_an_id_or_an_enumeration(named: object, key: str) -> None:
    """What the claim names is the key that the call's intent had."""
    claim = Claim.of("partial", operations=[("refund", named)])
    assert claim.covers("refund", key)
    assert claim.keys == {("refund", key): key}


def test_claim_keeps_the_keys_as_they_were_stated_when_they_can_be_stored() -> None:
    """A store keyed by numbers is asked with a number; a key that is a structure is known by its text alone."""
    claim = Claim.of("partial", operations=[("refund", 4417), ("refund", "x" * 300), ("refund", [1])])
    assert sorted(map(str, claim.keys.values())) == ["4417", "x" * 300]
    assert 4417 in claim.keys.values()
    assert len(claim.operations) == 3
    assert claim == Claim(claim.claimed, claim.operations)


@pytest.mark.parametrize("claimed", ["not_done"])
def test_claim_covers_nothing_when_it_is_not_done(claimed: str) -> None:
    """Nothing was claimed done."""
    assert not Claim.of(claimed).covers("refund", "4417")


def test_claim_is_the_same_when_operations_are_named_in_another_order() -> None:
    """A repeat is recognised by its meaning."""
    pairs = [("refund", "2"), ("refund", "1"), ("refund", "1")]
    assert Claim.of("partial", operations=pairs) == Claim.of("partial", operations=reversed(pairs))


@pytest.mark.parametrize(
    ("claimed", "operations", "message"),
    [
        ("finished", [], "claim: must be done, partial or not_done"),
        ("none", [], "claim: must be done, partial or not_done"),
        ("partial", [], "claim: operations: must name at least one operation when the claim is partial"),
        ("not_done", [("refund", "1")], "claim: operations: must be empty when the claim is not_done"),
    ],
)
def test_claim_is_refused_when_its_words_do_not_fit(
    claimed: str, operations: list[tuple[str, str]], message: str
) -> None:
    """A claim is one of three words, and names operations only where that means something."""
    with pytest.raises(ClaimRefused) as caught:
        Claim.of(claimed, operations=operations)
    assert caught.value.message == message


def test_claim_of_none_names_nothing_when_the_ledger_writes_it() -> None:
    """A run without a word claims nothing."""
    assert not Claim(Claimed.NONE).covers("refund", "4417")


@pytest.mark.parametrize(
    ("results", "effect"),
    [
        ([], ClaimEffect.UNCHECKED),
        ([SKIPPED, SKIPPED], ClaimEffect.UNCHECKED),
        ([LANDED], ClaimEffect.LANDED),
        ([LANDED, SKIPPED], ClaimEffect.LANDED),
        ([LANDED, PENDING], None),
        ([SKIPPED, UNKNOWN], None),
        ([PENDING], None),
        ([NOT_LANDED, PENDING, UNKNOWN], ClaimEffect.NOT_LANDED),
        ([LANDED, NOT_LANDED], ClaimEffect.NOT_LANDED),
    ],
)
def test_settle_claim_decides_when_the_operations_do(
    results: list[VerificationResult], effect: ClaimEffect | None
) -> None:
    """The first not_landed decides at once; landed needs every read one; unchecked needs that none was read."""
    assert settle_claim(results) is effect
