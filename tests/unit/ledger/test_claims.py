"""Claims: counted once, final, and settled as DESIGN section 6 counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from handoffwatch.errors import ClaimRefused, RegistrationError
from handoffwatch.ledger import Ledger, Settled
from handoffwatch.outcomes import Claim, Intent, OperationKind, business_key
from handoffwatch.vocabulary import Cause, ClaimEffect, Criticality, VerificationResult
from support.outcomes import DeclaredWorkflow, StillClock, open_ledger, refund_intent, refund_kind


@pytest.fixture
def time() -> StillClock:
    """Time that stands still."""
    return StillClock()


@pytest.fixture
def ledger(tmp_path: Path, time: StillClock) -> Iterator[Ledger]:
    """A ledger with a critical and a routine operation."""
    note = OperationKind("note", key="order_id", criticality=Criticality.ROUTINE)
    opened = open_ledger(tmp_path / "ledger.db", time, refund_kind(), note)
    yield opened
    opened.close()


def counters(ledger: Ledger, metric: str) -> dict[tuple[str, ...], int]:
    """Return a counter's values by labels."""
    return {labels: value for (name, labels), value in ledger.snapshot().counters.items() if name == metric}


def read(ledger: Ledger, time: StillClock, key: str, result: VerificationResult) -> Settled | None:
    """Record a read-back of one operation that is due."""
    due = ledger.due(time.now_s, limit=100, kinds=("refund", "note"))
    (operation,) = [each for each in due if each.intent.key == key]
    cause = Cause.MISSING if result is VerificationResult.NOT_LANDED else None
    return ledger.record_verification(operation, result, cause=cause, next_poll_unix_s=time.now_s)


def test_claim_is_counted_once_when_it_is_repeated(ledger: Ledger) -> None:
    """The same words again change nothing."""
    assert ledger.record_claim("r-1", "refunds", Claim.of("done")) is True
    assert ledger.record_claim("r-1", "refunds", Claim.of("done")) is False
    assert counters(ledger, "ledger_claims_total") == {("refunds", "done"): 1}


def test_claim_is_refused_when_another_was_made(ledger: Ledger) -> None:
    """A claim is final."""
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    with pytest.raises(ClaimRefused) as caught:
        ledger.record_claim("r-1", "refunds", Claim.of("not_done"))
    assert caught.value.message == "run r-1: claim: must be made once, got not_done after done"
    assert counters(ledger, "ledger_claims_total") == {("refunds", "done"): 1}


def test_run_counts_as_none_when_it_ends_without_a_claim(ledger: Ledger) -> None:
    """Once, and only when nothing was claimed."""
    ledger.open_operation(refund_intent("1"))
    for _ in range(2):
        ledger.end_run("r-1", "refunds")
    ledger.record_claim("r-2", "refunds", Claim.of("done"))
    ledger.end_run("r-2", "refunds")
    assert counters(ledger, "ledger_claims_total") == {("refunds", "none"): 1, ("refunds", "done"): 1}
    with pytest.raises(ClaimRefused):
        ledger.record_claim("r-1", "refunds", Claim.of("done"))


def test_run_is_not_counted_when_its_workflow_has_no_operations(ledger: Ledger) -> None:
    """Such runs have nothing to be judged by."""
    ledger.end_run("r-1", "chat")
    assert ledger.record_claim("r-2", "chat", Claim.of("done")) is False
    assert counters(ledger, "ledger_claims_total") == {}


def test_claim_is_unchecked_at_once_when_its_run_has_no_operation(ledger: Ledger) -> None:
    """Nothing was intended, so nothing can be read back."""
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    assert counters(ledger, "ledger_claims_settled_total") == {("refunds", "done", "unchecked"): 1}


@pytest.mark.parametrize(
    ("results", "effect"),
    [
        ({"1": "landed", "2": "landed"}, "landed"),
        ({"1": "landed", "2": "skipped"}, "landed"),
        ({"1": "skipped", "2": "skipped"}, "unchecked"),
        ({"1": "not_landed"}, "not_landed"),
        ({"1": "landed", "2": "not_landed"}, "not_landed"),
        ({"1": "not_landed", "2": "not_landed"}, "not_landed"),
        ({"1": "landed", "2": "pending"}, None),
        ({"1": "landed", "2": "unknown"}, None),
        ({"1": "landed", "2": "error"}, None),
        ({"1": "landed"}, None),
    ],
)
def test_claim_of_done_is_settled_when_its_operations_decide(
    ledger: Ledger, time: StillClock, results: dict[str, str], effect: str | None
) -> None:
    """Not landed at the first such operation; landed and unchecked when nothing is open."""
    for key in ("1", "2"):
        ledger.open_operation(refund_intent(key))
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    for key, result in results.items():
        read(ledger, time, key, VerificationResult(result))
    settled = {("refunds", "done", effect): 1} if effect else {}
    assert counters(ledger, "ledger_claims_settled_total") == settled
    assert ledger.snapshot().claims == ({} if effect else {("refunds", "done"): 1})
    assert ledger.identity_violations() == []


def test_claim_says_how_it_was_settled_when_an_operation_decides_it(ledger: Ledger, time: StillClock) -> None:
    """The settlement that decides the claim carries that, a later one does not."""
    for key in ("1", "2"):
        ledger.open_operation(refund_intent(key))
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    first = read(ledger, time, "1", VerificationResult.NOT_LANDED)
    second = read(ledger, time, "2", VerificationResult.NOT_LANDED)
    assert first is not None
    assert second is not None
    assert (first.claim_effect, second.claim_effect) == (ClaimEffect.NOT_LANDED, None)


def test_claim_of_partial_is_judged_by_what_it_names_when_others_fail(ledger: Ledger, time: StillClock) -> None:
    """An operation that was not claimed done is no false success."""
    for key in ("1", "2"):
        ledger.open_operation(refund_intent(key))
    ledger.record_claim("r-1", "refunds", Claim.of("partial", operations=[("refund", "1")]))
    read(ledger, time, "2", VerificationResult.NOT_LANDED)
    read(ledger, time, "1", VerificationResult.LANDED)
    assert counters(ledger, "ledger_claims_settled_total") == {("refunds", "partial", "landed"): 1}
    assert counters(ledger, "ledger_false_successes_total") == {}
    assert ledger.identity_violations() == []


def test_claim_adds_an_operation_when_nobody_opened_it(ledger: Ledger, time: StillClock) -> None:
    """It is verified by its key, and nobody made a call for it."""
    ledger.record_claim("r-1", "refunds", Claim.of("partial", operations=[("refund", "4417")]))
    settled = read(ledger, time, "4417", VerificationResult.NOT_LANDED)
    assert settled is not None
    assert settled.operation.intent.values == {"order_id": "4417"}
    assert counters(ledger, "ledger_false_successes_total") == {
        ("refunds", "refund", "critical", "missing", "model"): 1
    }


@pytest.mark.parametrize("key", [4417, "4417", "x" * 300, None])
def test_claim_keeps_the_key_as_it_was_stated_when_nobody_opened_its_operation(
    ledger: Ledger, time: StillClock, key: object
) -> None:
    """The verifier is asked with the number or the long text itself, which another text form would not find."""
    ledger.record_claim("r-1", "refunds", Claim.of("partial", operations=[("refund", key)]))
    (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
    assert operation.intent.key == business_key(key)
    assert operation.intent.values == {"order_id": key}


def test_claim_keeps_no_key_when_it_cannot_be_stored(ledger: Ledger, time: StillClock) -> None:
    """A structure is known by its text alone."""
    ledger.record_claim("r-1", "refunds", Claim.of("partial", operations=[("refund", [1])]))
    (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
    assert (operation.intent.key, operation.intent.values) == ("[1]", {})


def test_claim_is_refused_when_its_run_belongs_to_another_workflow(tmp_path: Path, time: StillClock) -> None:
    """Its operations would be sought among those of the first workflow, and never be read back."""
    with closing(open_ledger(tmp_path / "two.db", time)) as two:
        two.register([DeclaredWorkflow("credits", ("credit",))], [OperationKind("credit", key="order_id")])
        two.open_operation(refund_intent("1"))
        credit = Intent("r-1", "credits", "credit", "2", {"order_id": "2"})
        for refused in (
            lambda: two.expect(credit),
            lambda: two.open_operation(credit),
            lambda: two.record_claim("r-1", "credits", Claim.of("done")),
        ):
            with pytest.raises(RegistrationError) as caught:
                refused()
            assert caught.value.message == "run r-1: workflow: belongs to refunds, got credits"
            assert caught.value.hint == "give each run an id of its own, or leave run_id out"
        assert counters(two, "ledger_claims_total") == {}
        assert set(two.snapshot().effects) == {("refund", "unknown")}


def test_run_is_left_alone_when_one_of_another_workflow_ends_under_its_id(tmp_path: Path, time: StillClock) -> None:
    """The end of a run stands in nobody's way; the run that owns the id may still claim."""
    with closing(open_ledger(tmp_path / "two.db", time)) as two:
        two.register([DeclaredWorkflow("credits", ("credit",))], [OperationKind("credit", key="order_id")])
        two.open_operation(refund_intent("1"))
        two.end_run("r-1", "credits")
        assert counters(two, "ledger_claims_total") == {}
        assert two.record_claim("r-1", "refunds", Claim.of("done")) is True


def test_claim_is_refused_when_it_names_an_undeclared_operation(ledger: Ledger) -> None:
    """Nothing is written of such a claim."""
    with pytest.raises(RegistrationError):
        ledger.record_claim("r-1", "refunds", Claim.of("partial", operations=[("transfer", "1")]))
    assert counters(ledger, "ledger_claims_total") == {}
    assert ledger.record_claim("r-1", "refunds", Claim.of("done")) is True


@pytest.mark.parametrize(("claim", "counted"), [("not_done", {("refunds", "refund"): 1}), (None, {}), ("done", {})])
def test_effect_counts_as_unclaimed_when_it_landed_and_the_agent_denied_it(
    ledger: Ledger, time: StillClock, claim: str | None, counted: dict[tuple[str, ...], int]
) -> None:
    """Only a claim of not_done is contradicted by an effect that landed."""
    ledger.open_operation(refund_intent("1"))
    if claim is None:
        ledger.end_run("r-1", "refunds")
    else:
        ledger.record_claim("r-1", "refunds", Claim.of(claim))
    read(ledger, time, "1", VerificationResult.LANDED)
    assert counters(ledger, "ledger_unclaimed_effects_total") == counted


@pytest.mark.parametrize("claim", ["not_done", None])
def test_operation_is_no_false_success_when_it_was_not_claimed_done(
    ledger: Ledger, time: StillClock, claim: str | None
) -> None:
    """It is settled as not_landed, and nobody is paged."""
    ledger.open_operation(refund_intent("1"))
    if claim is None:
        ledger.end_run("r-1", "refunds")
    else:
        ledger.record_claim("r-1", "refunds", Claim.of(claim))
    settled = read(ledger, time, "1", VerificationResult.NOT_LANDED)
    assert settled is not None
    assert not settled.false_success
    assert settled.origin is None
    assert counters(ledger, "ledger_effects_settled_total") == {
        ("refunds", "refund", "critical", "not_landed", "missing"): 1
    }
    assert counters(ledger, "ledger_false_successes_total") == {}
    assert ledger.snapshot().cases == {}
