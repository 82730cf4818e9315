"""Asking a critic about a handoff that was let through: by sample, within limits of time and money, and counted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from handoffwatch.clock import Clock
from handoffwatch.events import CriticAnswered, Event, UsageReported
from handoffwatch.handoffs.critique import Critic, CriticAnswer, CriticOutcome, CriticPolicy, CriticRequest, outcome_of
from handoffwatch.handoffs.structure import kind_in_words
from handoffwatch.runtime.drivers import LIMITED_MAX, Flow, Invoke, LeftRunning, NeedsAsyncDriver
from handoffwatch.threads import ThreadsExhausted
from handoffwatch.values.json_text import decode, encode, kind_of
from handoffwatch.vocabulary import CheckPurpose, CriticResult, RiskSignal


class CriticBudget:
    """What the critics of one run have spent. Thread-safe.

    A call that is still going on has spent nothing yet, so a bound is passed by at most what the calls in flight cost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens = 0
        self._cost_usd = 0.0

    def add(self, tokens: int, cost_usd: float) -> None:
        """Take note of what an answer has cost."""
        with self._lock:
            self._tokens += tokens
            self._cost_usd += cost_usd

    def is_used_up(self, policy: CriticPolicy) -> bool:
        """Return whether the run has spent what the policy allows it."""
        with self._lock:
            return (policy.tokens_max_per_run is not None and self._tokens >= policy.tokens_max_per_run) or (
                policy.cost_usd_max_per_run is not None and self._cost_usd >= policy.cost_usd_max_per_run
            )


def criticise(
    critic: Critic,
    policy: CriticPolicy,
    request: CriticRequest,
    *,
    clock: Clock,
    spent: CriticBudget,
    emit: Callable[[Event], None],
) -> Flow[CriticOutcome]:
    """Ask a critic about a handoff that has a signal of its policy; returns what the handoff's case keeps.

    Whatever goes wrong is counted as `error` and goes no further: an exception, an answer that is none, numbers that
    cannot be, or no answer within `time_s_max`. Then a coroutine is cancelled. A plain function, which runs in a daemon
    thread of its own with the caller's context variables, in async code too, is left behind: it goes on to its end,
    and what it says or spends is lost. While 64 of them run in the process, a critic is skipped.

    Args:
        critic: Plain, or in async code also a coroutine function.
        policy: Its limits; whether the handoff has one of its signals the caller has seen.
        request: What the critic is shown; it gets a copy of the handoff.
        clock: Gives chance and times the call; the limit itself runs on real time.
        spent: What the critics of this run have spent.
        emit: Records `CriticAnswered`, and `UsageReported` when there was an answer.

    Raises:
        BaseException: Cancellation, an interrupt and the end of the process, unchanged; nothing is recorded then.
    """
    if clock.random() >= policy.sample:
        outcome = CriticOutcome(CriticResult.SKIPPED)
    elif spent.is_used_up(policy):
        outcome = CriticOutcome(CriticResult.SKIPPED, note="the budget of the run is used up")
    else:
        outcome = yield from _asked(critic, policy, request, clock)
    emit(
        CriticAnswered(
            request.run_id, request.route, request.handoff_id, outcome.result, outcome.duration_s,
            tuple(signal for signal in RiskSignal if signal in request.signals), outcome.note,
        )
    )  # fmt: skip
    if outcome.is_answered:
        spent.add(outcome.tokens, outcome.cost_usd)
        emit(UsageReported(request.run_id, request.route, CheckPurpose.CRITIC, outcome.tokens, outcome.cost_usd))
    return outcome


def _asked(critic: Critic, policy: CriticPolicy, request: CriticRequest, clock: Clock) -> Flow[CriticOutcome]:
    started_s = clock.monotonic_s()
    try:
        copied = replace(request, handoff=decode(encode(request.handoff)))
        answer = yield Invoke(critic, (copied,), limit_s=policy.time_s_max)
        note = "" if type(answer) is CriticAnswer else f"the answer is {kind_in_words(answer)} and no CriticAnswer"
    except ThreadsExhausted:
        return CriticOutcome(CriticResult.SKIPPED, note=f"{LIMITED_MAX} critics run or hang")
    except NeedsAsyncDriver:
        note = "the critic is a coroutine function, and this is plain code: use transfer_async"
    except LeftRunning:
        note = "TimeoutError"
    except Exception as error:  # noqa: BLE001 - a critic is the host's code and may raise anything; it blocks nothing
        note = kind_of(error)
    duration_s = max(0.0, clock.monotonic_s() - started_s)
    if note:
        return CriticOutcome(CriticResult.ERROR, duration_s=duration_s, note=note)
    return outcome_of(answer, duration_s=duration_s)
