"""The settler: reads back what is due and records what it found; between times it keeps the ledger's house."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from handoffwatch.clock import Clock
from handoffwatch.errors import LedgerUnavailable
from handoffwatch.events import CaseReviewed, EffectSettled, EffectVerified, Event, InternalErrorCaught
from handoffwatch.outcomes import OperationKind, ReadBack, Verification, is_sampled, next_poll_unix_s
from handoffwatch.settlement.asking import Asker, VerifierFailed
from handoffwatch.vocabulary import Cause, Component, VerificationResult

if TYPE_CHECKING:
    from handoffwatch.ledger import Ledger, OpenOperation, Settled
    from handoffwatch.settlement.settings import SettlementSettings

_LOG = logging.getLogger("handoffwatch.settlement")

_PRUNE_EVERY_S: Final = 3600.0
_DAY_S: Final = 86_400.0


class Settler:
    """Verifies the operations of a ledger; any number of settlers may share one.

    Whatever a verifier does, an operation is never called not_landed without its answer. Not thread-safe: each thread
    has a settler of its own.

    Args:
        ledger: Where operations are found and settled.
        kinds: The operations that this settler knows, by name; others are left to other settlers.
        emit: Takes the events; it must not raise.
        clock: Times the reads and the polls.
        settings: Polls, deadline, sampling and time-out.
    """

    def __init__(
        self,
        ledger: Ledger,
        kinds: Mapping[str, OperationKind],
        emit: Callable[[Event], None],
        clock: Clock,
        settings: SettlementSettings,
    ) -> None:
        self._ledger = ledger
        self._kinds = kinds
        self._emit = emit
        self._clock = clock
        self._settings = settings
        self._policy = settings.policy()
        self._asker = Asker(timeout_s=settings.verifier_timeout_s)
        self._next_pruning_s = clock.monotonic_s()
        self._pruning_from_unix_s: float | None = None

    def run_once(self, stop: threading.Event | None = None) -> int:
        """Read back up to `batch_max` operations that are due, and return how many were handled.

        Then emit how long people took since the last pass, and once an hour remove what has been over for longer than
        the settings keep it.

        An operation that meets a fault of our own is counted and pushed back as far as a read would have pushed it:
        however many there are, they do not stand before the others at the next time.

        Args:
            stop: When it is set, the rest is left as it is.

        Raises:
            LedgerUnavailable: The ledger cannot be used.
        """
        handled = 0
        now_unix_s = self._clock.wall_s()
        for operation in self._ledger.due(now_unix_s, limit=self._settings.batch_max, kinds=tuple(self._kinds)):
            if stop is not None and stop.is_set():
                break
            try:
                self._handle(operation)
            except LedgerUnavailable:
                raise
            except Exception as error:  # noqa: BLE001  one bad operation must not stop the others; it is counted
                self._report(Component.SETTLEMENT, error)
                self._ledger.postpone(operation, next_poll_unix_s=self._next_poll_unix_s(operation))
            else:
                handled += 1
        if stop is None or not stop.is_set():
            self._emit_waits()
            self._prune()
        return handled

    def serve(self, stop: threading.Event) -> None:
        """Settle until `stop` is set, waiting `tick_s` whenever nothing was due or the ledger is down."""
        while not stop.is_set():
            if self._run_guarded(stop) == 0:
                stop.wait(self._settings.tick_s)

    def _run_guarded(self, stop: threading.Event) -> int:
        try:
            return self.run_once(stop)
        except LedgerUnavailable as error:
            self._report(Component.LEDGER, error)
        except Exception as error:  # noqa: BLE001  the loop outlives any fault of its own; it is counted
            self._report(Component.SETTLEMENT, error)
        return 0

    def _handle(self, operation: OpenOperation) -> None:
        kind = self._kinds[operation.intent.kind]
        policy = kind.policy(self._policy)
        run_id = operation.intent.run_id
        started_s = self._clock.monotonic_s()
        if is_sampled(run_id, criticality=operation.criticality, routine_sample=policy.routine_sample):
            result, cause = self._read(kind, operation, window_s=policy.read_back_window_s)
        else:
            result, cause = VerificationResult.SKIPPED, None
        duration_s = self._clock.monotonic_s() - started_s
        next_poll = self._next_poll_unix_s(operation)
        settled = self._ledger.record_verification(operation, result, cause=cause, next_poll_unix_s=next_poll)
        self._emit(_verified(operation, result, duration_s=duration_s))
        if settled is not None:
            self._emit(_settled(settled))

    def _emit_waits(self) -> None:
        for wait in self._ledger.take_waits(self._settings.batch_max):
            self._emit(CaseReviewed(wait.kind, wait.seconds))

    def _prune(self) -> None:
        """Remove one batch of what was old when the hour began; the rest goes with the next passes."""
        if self._clock.monotonic_s() >= self._next_pruning_s:
            self._next_pruning_s = self._clock.monotonic_s() + _PRUNE_EVERY_S
            self._pruning_from_unix_s = self._clock.wall_s()
        if self._pruning_from_unix_s is None:
            return
        kept = self._ledger.settings
        removed = self._ledger.prune(
            cases_before_unix_s=self._pruning_from_unix_s - kept.cases_kept_days * _DAY_S,
            handoffs_before_unix_s=self._pruning_from_unix_s - kept.handoffs_kept_days * _DAY_S,
        )
        if removed == 0:
            self._pruning_from_unix_s = None

    def _next_poll_unix_s(self, operation: OpenOperation) -> float | None:
        return next_poll_unix_s(
            self._kinds[operation.intent.kind].policy(self._policy),
            since_unix_s=operation.polled_since_unix_s,
            now_unix_s=self._clock.wall_s(),
            deadline_unix_s=operation.deadline_unix_s,
        )

    def _read(
        self, kind: OperationKind, operation: OpenOperation, *, window_s: float
    ) -> tuple[VerificationResult, Cause | None]:
        if kind.verifier is None:
            return VerificationResult.UNKNOWN, None
        age_s = max(0.0, self._clock.wall_s() - operation.written_unix_s)
        question = ReadBack(kind, operation.intent, operation.receipt, age_s=age_s, window_s=window_s)
        try:
            answer: Verification = self._asker.ask(kind.verifier, question)
        except VerifierFailed as error:
            _LOG.warning("operation %s: its verifier gave no answer: %s", kind.name, error)
            return VerificationResult.ERROR, None
        return VerificationResult(answer.effect), answer.cause

    def _report(self, component: Component, error: Exception) -> None:
        _LOG.error("%s: %s", component, error, exc_info=error)
        self._emit(InternalErrorCaught(component, type(error).__name__))


def _verified(operation: OpenOperation, result: VerificationResult, *, duration_s: float) -> EffectVerified:
    return EffectVerified(
        run_id=operation.intent.run_id,
        workflow=operation.intent.workflow,
        operation=operation.intent.kind,
        operation_id=operation.operation_id,
        criticality=operation.criticality,
        result=result,
        duration_s=duration_s,
        traceparent=operation.intent.traceparent,
    )


def _settled(settled: Settled) -> EffectSettled:
    operation = settled.operation
    return EffectSettled(
        run_id=operation.intent.run_id,
        workflow=operation.intent.workflow,
        operation=operation.intent.kind,
        operation_id=operation.operation_id,
        business_key=operation.intent.key,
        criticality=operation.criticality,
        claimed=settled.claimed,
        effect=settled.effect,
        cause=settled.cause,
        origin=settled.origin,
        false_success=settled.false_success,
        seconds=settled.seconds,
    )
