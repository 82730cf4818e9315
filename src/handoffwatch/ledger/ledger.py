"""The ledger: every method is one transaction, and what it counts is counted in that transaction."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from handoffwatch.errors import RegistrationError
from handoffwatch.ledger import claims, operations, verifications
from handoffwatch.ledger.case_steps import CaseSteps
from handoffwatch.ledger.crossing_steps import CrossingSteps
from handoffwatch.ledger.facts import FalseBlockShare, IdentityViolation, OpenOperation, Settled, Snapshot
from handoffwatch.ledger.runs import lock_run
from handoffwatch.ledger.shares import false_block_shares
from handoffwatch.ledger.snapshot import identity_violations, read_snapshot, renew_id
from handoffwatch.ledger.tally import Tally
from handoffwatch.outcomes import Claim, Intent, Receipt
from handoffwatch.vocabulary import Cause, Claimed, ToolOutcome, VerificationResult


class Ledger(CrossingSteps, CaseSteps):
    """The durable store of handoffs, cases, reviews, intents, receipts, claims, settlements and counters.

    Thread-safe, and usable by any number of processes on one database. Nothing is opened before the first transaction.
    Each method raises LedgerUnavailable when the database cannot be used; the next call tries again.

    Args:
        settings: Where the database is, and how long things are kept.
        policy: The settings of settlement, which a kind's own values override.
        clock: Gives the times that are stored.
        must_exist: Refuse a database that is not there instead of making it.
    """

    def expect(self, intent: Intent) -> str:
        """Write an operation that the run's task calls for, and return its id.

        Raises:
            RegistrationError: The workflow did not declare the operation, or the run belongs to another workflow.
        """
        kind = self._registry.kind(intent.workflow, intent.kind)
        self._write_registrations()
        with self._database.write() as connection:
            run = lock_run(connection, intent.run_id, intent.workflow)
            return operations.expect(connection, run, kind, intent, now_unix_s=self.clock.wall_s())

    def open_operation(self, intent: Intent) -> str:
        """Write what a call is about to do, before it does it, and return the operation's id.

        An expectation of the same run, kind and key becomes this operation; a repeated call is counted on it.

        Raises:
            RegistrationError: The workflow did not declare the operation, or the run belongs to another workflow.
        """
        kind = self._registry.kind(intent.workflow, intent.kind)
        self._write_registrations()
        with self._database.write() as connection:
            run = lock_run(connection, intent.run_id, intent.workflow)
            return operations.open_call(connection, run, kind, intent, now_unix_s=self.clock.wall_s())

    def record_receipt(self, operation_id: str, outcome: ToolOutcome, receipt: Receipt | None) -> None:
        """Write how the operation's call ended, and its receipt when it returned one."""
        with self._database.write() as connection:
            operations.record_receipt(connection, operation_id, outcome, receipt, now_unix_s=self.clock.wall_s())

    def record_claim(self, run_id: str, workflow: str, claim: Claim, *, traceparent: str = "") -> bool:
        """Write a run's final claim; from then on its operations are verified.

        Args:
            run_id: The run.
            workflow: Its workflow.
            claim: What the agent said.
            traceparent: The run's span, for operations that only the claim names.

        Returns:
            True when it was written and counted; False for the same claim again, and for a workflow without operations.

        Raises:
            ClaimRefused: The run made another claim, or ended without one.
            RegistrationError: The claim names an operation that the workflow did not declare, or the run belongs to
                another workflow.
        """
        if workflow not in self._registry.workflows:
            return False
        self._write_registrations()
        tally = Tally(spread_by=run_id)
        with self._database.write() as connection:
            run = lock_run(connection, run_id, workflow)
            now_unix_s = self.clock.wall_s()
            is_new = claims.record_claim(
                connection, tally, self._registry, run, claim, now_unix_s=now_unix_s, traceparent=traceparent
            )
            tally.write(connection)
        return is_new

    def end_run(self, run_id: str, workflow: str) -> None:
        """Count a run of a workflow with operations that ended without a claim, once; any other run is left alone."""
        if workflow not in self._registry.workflows:
            return
        self._write_registrations()
        tally = Tally(spread_by=run_id)
        with self._database.write() as connection:
            try:
                run = lock_run(connection, run_id, workflow)
            except RegistrationError:
                return  # the run of that id is another workflow's, which refused all that this one wanted to write
            if run.claim is None:
                now_unix_s = self.clock.wall_s()
                nothing = Claim(Claimed.NONE)
                claims.record_claim(connection, tally, self._registry, run, nothing, now_unix_s=now_unix_s)
                tally.write(connection)

    def due(self, now_unix_s: float, *, limit: int, kinds: Collection[str]) -> list[OpenOperation]:
        """Return operations of these kinds whose effect is to be read now, the longest due first."""
        with self._database.read() as connection:
            return verifications.due(connection, now_unix_s=now_unix_s, kinds=tuple(kinds), limit=limit)

    def record_verification(
        self,
        operation: OpenOperation,
        result: VerificationResult,
        *,
        cause: Cause | None = None,
        next_poll_unix_s: float | None = None,
    ) -> Settled | None:
        """Write one read-back of an operation, exactly once for each time that it was due.

        Args:
            operation: As `due` returned it.
            result: landed and not_landed are final; skipped closes the operation unread.
            cause: Why it is not_landed.
            next_poll_unix_s: When to read again if the result is not final; None is never.

        Returns:
            What was settled; None when the operation stays open, was skipped, or another settler was faster.
        """
        tally = Tally(spread_by=operation.intent.run_id)
        with self._database.write() as connection:
            settled = verifications.record_verification(
                connection,
                tally,
                operation,
                result,
                cause,
                now_unix_s=self.clock.wall_s(),
                next_poll_unix_s=next_poll_unix_s,
            )
            tally.write(connection)
        return settled

    def postpone(self, operation: OpenOperation, *, next_poll_unix_s: float | None) -> None:
        """Move the next read of an operation that could not be handled, so that it does not stand before the others."""
        with self._database.write() as connection:
            verifications.postpone(connection, operation, next_poll_unix_s=next_poll_unix_s)

    def snapshot(self) -> Snapshot:
        """Return the ledger's numbers at one moment."""
        with self._database.read() as connection:
            return read_snapshot(connection, now_unix_s=self.clock.wall_s())

    def identity_violations(self) -> list[IdentityViolation]:
        """Return where the claims of done and partial are not the sum of the settled and the open ones."""
        return identity_violations(self.snapshot())

    def false_block_shares(self) -> list[FalseBlockShare]:
        """Return how often the blocks of each contract are wrong, by the verdicts on those that chance drew."""
        return false_block_shares(self.snapshot())

    def renew_id(self, old: str) -> str:
        """Give the ledger a new random id if it still has the old one, and return the id that it has now."""
        with self._database.write() as connection:
            renew_id(connection, old=old, new=uuid.uuid4().hex)
        return self.snapshot().ledger_id
