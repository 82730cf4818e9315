"""Waiting before the next wire attempt: bounded, jittered, and never without end."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handoffwatch.tools.failure import Failure
from handoffwatch.tools.retry import RetryPolicy, wait_before_retry_s
from handoffwatch.tools.retry_after import parse_retry_after_s
from handoffwatch.vocabulary import FailureClass, ToolCode

POLICY = RetryPolicy()


def throttled(retry_after_s: float | None = None) -> Failure:
    """Return a failure that may be repeated."""
    return Failure(FailureClass.RETRYABLE, ToolCode.HTTP_429, "429", retry_after_s)


def wait(failure: Failure, *, attempt: int = 1, elapsed_s: float = 0.0, policy: RetryPolicy = POLICY,
         chance: float = 0.5) -> float | None:  # fmt: skip
    """Return the wait with a fixed chance."""
    return wait_before_retry_s(failure, attempt=attempt, elapsed_s=elapsed_s, policy=policy, random=lambda: chance)


@pytest.mark.parametrize(
    ("attempt", "retry_after_s", "chance", "wait_s"),
    [
        (1, None, 0.0, 0.0),
        (1, None, 0.5, 1.0),
        (1, None, 0.75, 1.5),
        (2, None, 0.5, 2.0),
        (3, None, 0.5, 4.0),
        (4, None, 0.5, 8.0),
        (5, None, 0.5, 15.0),
        (9, None, 0.5, 15.0),
        (1, 7.0, 0.0, 7.0),
        (1, 7.0, 0.5, 8.0),
        (1, 0.0, 0.5, 1.0),
        (1, 29.5, 0.5, 30.0),
        (1, 1e9, 0.5, 30.0),
    ],
)
def test_wait_doubles_and_adds_jitter_when_attempts_go_on(
    attempt: int, retry_after_s: float | None, chance: float, wait_s: float
) -> None:
    """Full jitter over a doubling span, above what the server asked for, capped."""
    policy = RetryPolicy(attempts_max=10)

    assert wait(throttled(retry_after_s), attempt=attempt, chance=chance, policy=policy) == wait_s


@pytest.mark.parametrize(
    "failure_class", [FailureClass.FATAL, FailureClass.REJECTED, FailureClass.AMBIGUOUS], ids=lambda item: item.value
)
def test_wait_is_none_when_the_failure_may_not_be_repeated(failure_class: FailureClass) -> None:
    """Only a retryable failure is repeated, even when the server names a wait."""
    assert wait(Failure(failure_class, ToolCode.HTTP_503, "503", 1.0)) is None


@pytest.mark.parametrize("attempts_max", [1, 2, 3, 5])
def test_wait_ends_when_the_attempts_are_used_up(attempts_max: int) -> None:
    """BR-072: five attempts are five wire attempts, the first included, and four waits."""
    policy = RetryPolicy(attempts_max=attempts_max)

    waits = [wait(throttled(), attempt=attempt, policy=policy) for attempt in range(1, attempts_max + 2)]

    assert [item is not None for item in waits] == [True] * (attempts_max - 1) + [False, False]


@pytest.mark.parametrize(
    ("elapsed_s", "retry_after_s", "goes_on"),
    [
        (0.0, None, True),
        (119.0, None, True),
        (119.5, None, False),
        (120.0, 0.0, False),
        (100.0, 19.0, True),
        (100.0, 20.0, False),
        (90.0, 1e9, True),
        (90.1, 1e9, False),
        (1e9, None, False),
    ],
)
def test_wait_ends_when_it_would_pass_the_deadline(
    elapsed_s: float, retry_after_s: float | None, goes_on: bool
) -> None:
    """BR-056: a wait that would end after the deadline is not begun."""
    assert (wait(throttled(retry_after_s), elapsed_s=elapsed_s) is not None) is goes_on


HEADERS = ["9999999999", "9223372037", "-1", "NaN", "inf", "1e9", "12.5", "120, 60", "9" * 5_000,
           "Wed, 21 Oct 99999 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", "0", ""]  # fmt: skip


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header[:20])
@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999999])
def test_wait_stays_in_its_bounds_when_the_header_is_absurd(header: str, chance: float) -> None:
    """BR-056: always a finite delay, at least 0 and at most the cap."""
    wait_s = wait(throttled(parse_retry_after_s(header, now_s=0.0)), chance=chance)

    assert wait_s is not None
    assert math.isfinite(wait_s)
    assert 0 <= wait_s <= POLICY.wait_s_max


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(
    retry_after_s=st.none() | st.floats(min_value=0, max_value=1e9),
    attempt=st.integers(1, 100),
    elapsed_s=st.floats(min_value=0, max_value=1e6),
    chance=st.floats(min_value=0, max_value=1, exclude_max=True),
    policy=st.builds(
        RetryPolicy,
        attempts_max=st.integers(1, 100),
        wait_s_max=st.floats(0, 86_400),
        base_wait_s=st.floats(0, 3_600),
        deadline_s=st.floats(0.001, 86_400),
    ),
)
def test_wait_is_finite_and_capped_when_everything_is_arbitrary(
    retry_after_s: float | None, attempt: int, elapsed_s: float, chance: float, policy: RetryPolicy
) -> None:
    """Within the settings' ranges the wait is finite, 0 <= wait <= cap, not below Retry-After, inside the deadline."""
    wait_s = wait(throttled(retry_after_s), attempt=attempt, elapsed_s=elapsed_s, chance=chance, policy=policy)

    if wait_s is None:
        span_s = min((retry_after_s or 0.0) + policy.wait_s_max, policy.wait_s_max)
        assert attempt >= policy.attempts_max or elapsed_s + span_s > policy.deadline_s
        return
    assert math.isfinite(wait_s)
    assert 0 <= wait_s <= policy.wait_s_max
    assert wait_s >= min(retry_after_s or 0.0, policy.wait_s_max)
    assert elapsed_s + wait_s <= policy.deadline_s
    assert attempt < policy.attempts_max


@pytest.mark.parametrize("retry_after_s", [None, 2.0])
def test_waits_are_spread_when_fifty_callers_fail_at_once(retry_after_s: float | None) -> None:
    """BR-067: with Retry-After 2 no caller comes early, and the fifty do not come together."""
    chance = random.Random(7)
    least_s = retry_after_s or 0.0

    waits = sorted(
        wait_before_retry_s(throttled(retry_after_s), attempt=1, elapsed_s=0.0, policy=POLICY, random=chance.random)  # type: ignore[type-var]
        for _ in range(50)
    )

    assert len(set(waits)) == 50
    assert least_s <= waits[0] < least_s + 0.25  # type: ignore[operator]
    assert least_s + 1.75 < waits[-1] < least_s + 2.0  # type: ignore[operator]
