"""When and how often an effect is read back, and for which runs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from handoffwatch.vocabulary import Criticality


@dataclass(frozen=True, slots=True)
class SettlementPolicy:
    """How the effects of one kind of operation are read back.

    Attributes:
        read_back_window_s: How long absence proves nothing after a write.
        polls_s: Seconds after the claim at which the effect is read, ascending.
        deadline_s: Seconds after the operation was opened at which polling ends; it then stays open and overdue.
        backoff_s_max: The longest wait between two reads after the listed polls.
        routine_sample: Share of runs, 0.0 to 1.0, whose routine operations are read back.

    Source: DESIGN section 11.
    """

    read_back_window_s: float = 30.0
    polls_s: tuple[float, ...] = (0.0, 1.0, 3.0, 10.0, 30.0)
    deadline_s: float = 604_800.0
    backoff_s_max: float = 3_600.0
    routine_sample: float = 0.1


_BACKOFF_S_MIN = 1.0


def next_poll_unix_s(
    policy: SettlementPolicy, *, since_unix_s: float, now_unix_s: float, deadline_unix_s: float
) -> float | None:
    """Return when to read an open effect again, or None when its deadline has passed.

    The listed polls come first. After them each wait is as long as the time waited so far, which doubles the distance
    from the claim, up to `policy.backoff_s_max`. The last read is at the deadline itself.

    Args:
        policy: The polls and the bound of the wait.
        since_unix_s: When polling began: the claim, or the end of the run.
        now_unix_s: The time of the read that left the effect open. It may lie before `since_unix_s` after a clock step.
        deadline_unix_s: When polling ends.
    """
    if now_unix_s >= deadline_unix_s:
        return None
    elapsed_s = now_unix_s - since_unix_s
    listed = (since_unix_s + poll_s for poll_s in policy.polls_s if poll_s > elapsed_s)
    backoff_s = min(max(elapsed_s, _BACKOFF_S_MIN), policy.backoff_s_max)
    return min(next(listed, now_unix_s + backoff_s), deadline_unix_s)


def is_sampled(run_id: str, *, criticality: Criticality, routine_sample: float) -> bool:
    """Return whether an operation is read back: critical ones always, routine ones by a hash of the run id.

    All routine operations of a run share one answer, in every process: sampling each operation by itself would bias
    the share of false successes. Source: DESIGN section 6.
    """
    if criticality is Criticality.CRITICAL:
        return True
    digest = hashlib.sha256(run_id.encode("utf-8", "backslashreplace")).digest()
    return int.from_bytes(digest[:8], "big") < routine_sample * 2**64
