"""When an effect is read, and for which runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.outcomes import SettlementPolicy, is_sampled, next_poll_unix_s
from handoffwatch.vocabulary import Criticality


def polls(policy: SettlementPolicy, *, count: int, deadline_unix_s: float = 1e9) -> list[float]:
    """Return the first polls of an operation that stays open, as seconds after its claim at 1,000."""
    times, now = [], 1_000.0 + policy.polls_s[0]
    for _ in range(count):
        times.append(now - 1_000.0)
        found = next_poll_unix_s(policy, since_unix_s=1_000.0, now_unix_s=now, deadline_unix_s=deadline_unix_s)
        if found is None:
            break
        now = found
    return times


def test_next_poll_follows_the_list_and_then_doubles_when_the_effect_stays_open() -> None:
    """The listed polls, then each wait as long as all before it, up to the bound."""
    found = polls(SettlementPolicy(backoff_s_max=200.0), count=11)
    assert found == [0.0, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 240.0, 440.0, 640.0, 840.0]


def test_next_poll_is_the_deadline_and_then_none_when_that_comes() -> None:
    """The last read is at the deadline; afterwards nobody polls."""
    assert polls(SettlementPolicy(), count=20, deadline_unix_s=1_100.0)[-2:] == [60.0, 100.0]


def test_next_poll_leaves_out_missed_polls_when_the_settler_was_late() -> None:
    """A settler that comes back reads once, not once for each missed poll."""
    found = next_poll_unix_s(SettlementPolicy(), since_unix_s=0.0, now_unix_s=12.0, deadline_unix_s=1e6)
    assert found == 30.0


@given(
    since=st.floats(min_value=0, max_value=2e9),
    step=st.floats(min_value=-400, max_value=700_000),
    deadline=st.floats(min_value=0, max_value=3e9),
)
def test_next_poll_lies_ahead_and_within_bounds_when_clocks_step(since: float, step: float, deadline: float) -> None:
    """Whatever the clock does, a poll is in the future, not after the deadline, and at most the bound away."""
    now = since + step
    policy = SettlementPolicy()
    found = next_poll_unix_s(policy, since_unix_s=since, now_unix_s=now, deadline_unix_s=deadline)
    if now >= deadline:
        assert found is None
    else:
        assert found is not None
        assert now < found <= deadline
        assert found - now <= policy.backoff_s_max + 400


def test_sample_takes_every_run_when_the_operation_is_critical() -> None:
    """Money and access rights are always read back."""
    assert all(is_sampled(f"r-{n}", criticality=Criticality.CRITICAL, routine_sample=0.0) for n in range(100))


def test_sample_takes_its_share_of_runs_when_operations_are_routine() -> None:
    """A tenth of the runs, the same ones each time."""
    taken = [is_sampled(f"r-{n}", criticality=Criticality.ROUTINE, routine_sample=0.1) for n in range(5_000)]
    assert 0.08 < sum(taken) / len(taken) < 0.12
    again = [is_sampled(f"r-{n}", criticality=Criticality.ROUTINE, routine_sample=0.1) for n in range(5_000)]
    assert taken == again


@pytest.mark.parametrize(("share", "taken"), [(0.0, False), (1.0, True)])
def test_sample_is_all_or_none_when_the_share_is_an_end(share: float, taken: bool) -> None:
    """0 is nobody, 1 is everybody."""
    found = {is_sampled(f"r-{n}", criticality=Criticality.ROUTINE, routine_sample=share) for n in range(100)}
    assert found == {taken}
