"""How long to wait before the next wire attempt, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from handoffwatch.tools.failure import Failure
from handoffwatch.vocabulary import FailureClass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of a tool's repetition.

    Attributes:
        attempts_max: The most wire attempts of one logical call, the first included; at least 1.
        wait_s_max: The longest wait before an attempt, in seconds.
        base_wait_s: The longest wait before the second attempt; it doubles with each further one.
        deadline_s: The longest a logical call may take in all, waits included, on the monotonic clock.
    """

    attempts_max: int = 3
    wait_s_max: float = 30.0
    base_wait_s: float = 2.0
    deadline_s: float = 120.0


def wait_before_retry_s(
    failure: Failure, *, attempt: int, elapsed_s: float, policy: RetryPolicy, random: Callable[[], float]
) -> float | None:
    """Return how long to wait before the next wire attempt, or None when there is to be none.

    Args:
        failure: How the last attempt failed; its `retry_after_s`, when given, is the least wait.
        attempt: 1-based number of the attempt that failed.
        elapsed_s: Seconds since the logical call began.
        policy: Bounds; `wait_s_max` caps the result.
        random: Gives 0.0 <= x < 1.0.

    Returns:
        Seconds, finite, 0 <= wait <= policy.wait_s_max, with full jitter above Retry-After. None when the failure is
        not retryable, the attempts are used up, or the wait would pass the deadline.

    Source: RFC 9110 section 10.2.3 (Retry-After).
    """
    if failure.failure_class is not FailureClass.RETRYABLE:
        return None
    from tenacity import RetryCallState, Retrying, stop_after_attempt, wait_exponential

    state = RetryCallState(Retrying(), None, (), {})
    state.attempt_number = attempt
    if stop_after_attempt(policy.attempts_max)(state):
        return None
    jitter_s = random() * wait_exponential(multiplier=policy.base_wait_s, max=policy.wait_s_max)(state)
    wait_s = min((failure.retry_after_s or 0.0) + jitter_s, policy.wait_s_max)
    return wait_s if elapsed_s + wait_s <= policy.deadline_s else None
