"""The identity of DESIGN section 6 over random histories."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from handoffwatch.errors import ClaimRefused
from handoffwatch.ledger import Ledger
from handoffwatch.ledger.facts import IdentityViolation
from handoffwatch.outcomes import Claim
from handoffwatch.vocabulary import Cause, Claimed, ToolOutcome, VerificationResult
from support.outcomes import StillClock, open_ledger, refund_intent

RUNS = st.sampled_from(["r-1", "r-2", "r-3"])
KEYS = st.sampled_from(["1", "2"])
CLAIMS = st.one_of(
    st.sampled_from([Claim.of("done"), Claim.of("not_done")]),
    st.lists(KEYS, min_size=1).map(lambda keys: Claim.of("partial", operations=[("refund", key) for key in keys])),
)
ACTS = st.one_of(
    st.tuples(st.just("expect"), RUNS, KEYS),
    st.tuples(st.just("call"), RUNS, KEYS),
    st.tuples(st.just("claim"), RUNS, CLAIMS),
    st.tuples(st.just("end"), RUNS, st.none()),
    st.tuples(st.just("read"), st.integers(0, 5), st.sampled_from(VerificationResult)),
)


def act(ledger: Ledger, time: StillClock, what: str, who: str | int, how: object) -> None:
    """Do one thing to the ledger."""
    if what == "read":
        due = ledger.due(time.now_s, limit=10, kinds=("refund",))
        result = VerificationResult(str(how))
        if due:
            cause = Cause.MISSING if result is VerificationResult.NOT_LANDED else None
            ledger.record_verification(due[int(who) % len(due)], result, cause=cause, next_poll_unix_s=time.now_s)
    elif isinstance(how, Claim):
        with suppress(ClaimRefused):
            ledger.record_claim(str(who), "refunds", how)
    elif what == "end":
        ledger.end_run(str(who), "refunds")
    elif what == "expect":
        ledger.expect(refund_intent(str(how), run_id=str(who)))
    else:
        operation_id = ledger.open_operation(refund_intent(str(how), run_id=str(who)))
        ledger.record_receipt(operation_id, ToolOutcome.FAILED, None)


@settings(max_examples=20, deadline=None)
@given(acts=st.lists(ACTS, max_size=30))
def test_claims_are_the_sum_of_settled_and_open_when_histories_are_random(
    acts: list[tuple[str, str | int, object]],
) -> None:
    """After every act the identity holds, and each false success has its case and its count."""
    time = StillClock()
    with tempfile.TemporaryDirectory() as folder:
        ledger = open_ledger(Path(folder) / "ledger.db", time)
        for what, who, how in acts:
            act(ledger, time, what, who, how)
            assert ledger.identity_violations() == []
        snapshot = ledger.snapshot()
        ledger.close()
    counted = sum(value for (name, _), value in snapshot.counters.items() if name == "ledger_false_successes_total")
    assert counted == sum(group.count for group in snapshot.cases.values())


def test_identity_names_the_gap_when_a_claim_is_lost(tmp_path: Path) -> None:
    """A row changed behind the ledger's back is found."""
    ledger = open_ledger(tmp_path / "ledger.db", StillClock())
    ledger.open_operation(refund_intent("1"))
    ledger.record_claim("r-1", "refunds", Claim.of("done"))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("UPDATE ledger_runs SET open_claimed = NULL")
    assert ledger.identity_violations() == [IdentityViolation("refunds", Claimed.DONE, claims=1, settled=0, open=0)]
    ledger.close()
