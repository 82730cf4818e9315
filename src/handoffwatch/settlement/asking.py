"""Asking a verifier within a time limit, sync or async, without letting a hanging one hold up the others."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from typing import Final

from handoffwatch.outcomes import ReadBack, Verification, Verifier
from handoffwatch.threads import DaemonThreads, ThreadsExhausted

HANGING_MAX: Final = 8
"""How many verifiers may hang at once; beyond it a question fails at once instead of starting another thread."""


class VerifierFailed(Exception):
    """A verifier gave no answer; the message is the class of what it raised, or what was wrong with its answer."""


class Asker:
    """Asks verifiers one at a time, each in a thread of its own that is abandoned when it takes too long.

    Args:
        timeout_s: How long one verifier may take.
    """

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._threads = DaemonThreads("handoffwatch-verifier", threads_max=HANGING_MAX)

    def ask(self, verifier: Verifier, question: ReadBack) -> Verification:
        """Return the verifier's answer.

        Raises:
            VerifierFailed: It raised, took too long, answered something else, or too many verifiers hang.
        """
        try:
            answered = self._threads.start(lambda: _ask(verifier, question))
            error = answered.exception(timeout=self._timeout_s)
        except ThreadsExhausted:
            raise VerifierFailed(f"{HANGING_MAX} verifiers hang") from None
        except TimeoutError:
            raise VerifierFailed("TimeoutError") from None
        if error is not None:
            raise VerifierFailed(type(error).__name__) from error
        found: object = answered.result()
        if isinstance(found, Verification):
            return found
        raise VerifierFailed(f"an answer of type {type(found).__name__}")


def _ask(verifier: Verifier, question: ReadBack) -> Verification:
    answer = verifier.verify(question)
    return asyncio.run(_waited(answer)) if inspect.isawaitable(answer) else answer


async def _waited(answer: Awaitable[Verification]) -> Verification:
    return await answer
