"""The durable steps of runs and handoffs: reservations, latches, violations and final evals."""

from __future__ import annotations

from collections.abc import Mapping

from handoffwatch.ledger import evals, handoffs
from handoffwatch.ledger.evidence import store_case
from handoffwatch.ledger.facts import Admission, Evidence
from handoffwatch.ledger.handoffs import HandoffKey
from handoffwatch.ledger.store import Store
from handoffwatch.ledger.tally import Tally
from handoffwatch.ledger.violations import add_violations
from handoffwatch.vocabulary import ViolationKind


class CrossingSteps(Store):
    """What a ledger does for the handoffs of durable routes, and for the runs in which they happen."""

    def open_handoff(
        self,
        task: str,
        route: str,
        handoff_id: str,
        *,
        holder: str,
        digest: str,
        base: int | None,
        lease_s: float,
    ) -> Admission:
        """Reserve a handoff before an attempt of it, and return what is known of its task.

        It is reserved unless it was accepted before, or is in progress with another holder whose lease has not run
        out. Of any number of threads and processes that open the same one at once, exactly one gets it. The same
        holder may open it again, for a repair: digest, base and lease are renewed.

        Args:
            task: The task; limits and duplicates are counted within it.
            route: The registered route.
            handoff_id: The handoff's id, one within task and route.
            holder: Who asks: a text that no other process and no other handoff in progress has.
            digest: What the payload is recognised by when it is repeated.
            base: The version of the state on which the handoff rests, below 2**63; None when it carries none.
            lease_s: Seconds after which another holder may take it, unless it is closed before.
        """
        self._write_registrations()
        with self._database.write() as connection:
            return handoffs.open_handoff(
                connection,
                HandoffKey(task, route, handoff_id),
                holder=holder,
                digest=digest,
                base=base,
                lease_s=lease_s,
                now_unix_s=self.clock.wall_s(),
            )

    def close_handoff(
        self,
        task: str,
        route: str,
        handoff_id: str,
        *,
        holder: str,
        accepted: bool,
        stop_reason: str | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        """End a reserved handoff, and write what follows from it in the same transaction.

        Args:
            task: The task.
            route: The route.
            handoff_id: The handoff's id.
            holder: Who opened it; what another holder has taken meanwhile is left alone.
            accepted: Whether the receiver took it, so that it can never be accepted again; else it is free again.
            stop_reason: Why the route is stopped for the task; None when it is not. A latch keeps its first reason.
            evidence: What is stored of a handoff that went badly.
        """
        self._write_registrations()
        key = HandoffKey(task, route, handoff_id)
        with self._database.write() as connection:
            now_unix_s = self.clock.wall_s()
            handoffs.close_handoff(connection, key, holder=holder, accepted=accepted, now_unix_s=now_unix_s)
            if stop_reason is not None:
                handoffs.stop_route(connection, task, route, reason=stop_reason, now_unix_s=now_unix_s)
            if evidence is not None:
                store_case(connection, evidence, now_unix_s=now_unix_s)

    def reopen_route(self, task: str, route: str | None = None) -> int:
        """Let handoffs of a stopped task go on, on one route or on all, and return how many latches were lifted."""
        with self._database.write() as connection:
            return handoffs.reopen_route(connection, task, route)

    def record_violations(self, run_id: str, workflow: str, counts: Mapping[ViolationKind, int]) -> None:
        """Add to the violations of a run; a count of 0 adds nothing."""
        self._write_registrations()
        with self._database.write() as connection:
            add_violations(connection, run_id, workflow, counts, now_unix_s=self.clock.wall_s())

    def record_eval(self, run_id: str, *, workflow: str | None = None, passed: bool) -> bool:
        """Write and count what a final eval said about a run, against the violations that are known by now.

        Args:
            run_id: The run; it may have ended long ago, and in another process.
            workflow: Its registered workflow; None takes that under which the ledger knows the run.
            passed: What the eval said.

        Returns:
            True when it was counted, False when the run had an eval before.

        Raises:
            RegistrationError: The ledger does not know the run, and no workflow is given.
        """
        self._write_registrations()
        tally = Tally(spread_by=run_id)
        with self._database.write() as connection:
            is_new = evals.record_eval(
                connection, tally, run_id, workflow=workflow, passed=passed, now_unix_s=self.clock.wall_s()
            )
            tally.write(connection)
        return is_new
