"""The handoffs of one run: each attempt is judged, then concluded, and what it leads to is recorded once."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from handoffwatch.decision import Decision, Finding, amended
from handoffwatch.errors import LedgerUnavailable, RegistrationError
from handoffwatch.events import HandoffEnded, HandoffInspected, InternalErrorCaught, UsageReported
from handoffwatch.handoffs.routes import Route
from handoffwatch.handoffs.structure import finding
from handoffwatch.handoffs.usage import Usage
from handoffwatch.runtime.attempts import NOT_GIVEN, Attempt
from handoffwatch.runtime.crossings import Crossing
from handoffwatch.runtime.envelopes import name_of, seconds_since
from handoffwatch.runtime.judging import Judging
from handoffwatch.runtime.registrations import member
from handoffwatch.runtime.repair_text import repair_text
from handoffwatch.runtime.step import Step
from handoffwatch.runtime.unstored import Closing
from handoffwatch.vocabulary import (
    OTHER,
    Action,
    BypassCause,
    Check,
    CheckPurpose,
    Component,
    HandoffOutcome,
    Mode,
    OnFailure,
    Reaction,
    Verdict,
)

if TYPE_CHECKING:
    from handoffwatch.ledger.facts import Evidence
    from handoffwatch.runtime.run import Run

_ALL_OTHER: Final = (OTHER, OTHER, OTHER, OTHER)
_LATCHES_NOTHING: Final = frozenset({"route_stopped", "status_not_accepted", "check_failed", "capture_failed"})
"""A handoff that is stopped for these alone leaves its route open: its work failed honestly, or the fault is ours."""

_REPEATS: Final = frozenset({"duplicate_handoff", "consumed_handoff"})
"""A repeat leaves its route open whatever else is wrong with it: the handoff that it repeats has gone on."""


class Handoffs(Judging):
    """The handoffs of one run: what follows each attempt, and how each handoff ends. Thread-safe, in memory only.

    Attributes:
        inspected: Whether an attempt was judged.
        stopped: Whether a handoff was stopped.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._recorder = run.watch.recorder
        self._evidence = run.watch.evidence
        self.inspected = False
        self.stopped = False
        self._delivered: set[str] = set()

    def reserve(self, crossing: Crossing, handoff_id: str) -> None:
        """Take note under which id the ledger is asked to hold a handoff; what it holds under another one is let go."""
        place = (crossing.task, handoff_id)
        if crossing.reserved not in (None, place):
            self._run.unstored.add(_freed(crossing))
        crossing.reserved = place
        crossing.holder = crossing.holder or uuid.uuid4().hex

    def conclude(self, attempt: Attempt, *, approved: bool = False) -> Step:
        """Return what follows an attempt, and record it.

        Args:
            attempt: The attempt, with all that was found.
            approved: Whether a person has approved this handoff before.
        """
        crossing, conduct = attempt.crossing, attempt.conduct
        if conduct.approval or attempt.decision.verdict is not Verdict.ALLOWED:
            self.add_flow_findings(attempt, approved=approved)
        decision = attempt.decision
        if decision.verdict is Verdict.HELD and approved:
            decision = attempt.decision = decision._replace(allowed=True)
        is_honest, otherwise = False, conduct.when_blocked
        if not decision.allowed:
            is_honest = attempt.is_failed_work
            if is_honest:
                otherwise = Action.DIVERT if conduct.failure is not None else Action.STOP
            elif attempt.is_second:
                otherwise = Action.STOP
            if is_honest or attempt.is_second:
                decision = attempt.decision = decision._replace(retryable=False)
        action, repair = self._crossings.judge(crossing, decision, otherwise=otherwise)
        source, target, _ = crossing.key
        crossing.labels = (
            _ALL_OTHER if attempt.route is None else (decision.route, source, target, decision.schema_version)
        )
        self.inspected = True
        if decision.verdict is not Verdict.ALLOWED or attempt.is_noted:
            self._note(attempt, action)
        if action is Action.DELIVER:
            self._tasks.let_through(crossing)
        overhead_s = max(0.0, self._clock.monotonic_s() - attempt.started_s - attempt.elsewhere_s)
        run = self._run
        self._recorder.emit(
            HandoffInspected(
                run.workflow.name, run.run_id, run.task_id or "", crossing.labels, source, target,
                decision, action, repair, overhead_s, self._detection_s(attempt) if decision.findings else None,
                attempt.digests,
                attempt.traceparent,
            ),
            within=run.scope,
        )  # fmt: skip
        step = Step(
            action, "", 0.0, decision, decision.handoff_id, crossing, None, "", attempt.raw, "", crossing.diverged
        )
        return step if action is Action.DELIVER else self._follow(attempt, step, is_honest=is_honest)

    def leave(self, attempt: Attempt, before: object) -> None:
        """Capture the state of a handoff that is about to cross a boundary."""
        from handoffwatch.boundary.comparison import capture
        from handoffwatch.runtime.passages import state_of

        crossing = attempt.crossing
        crossing.left = capture(state_of(self._run, before), self._watch.boundaries.of(crossing.route).policy), attempt

    def arrived(self, handoff: Step | str, after: object = NOT_GIVEN) -> Step:
        """Return deliver when the handoff was let through, has not ended and has survived its way; else stop."""
        crossing = self._crossing(handoff)
        if crossing is None or not self._crossings.is_open(crossing):
            return Step(Action.STOP)
        decision = None if crossing.has_arrived else self._compared(crossing, after)
        if decision is not None:
            return Step(Action.STOP, "", 0.0, decision, decision.handoff_id, diverged=crossing.diverged)
        crossing.has_arrived = True
        if isinstance(handoff, Step):
            return handoff
        return Step(Action.DELIVER, "", 0.0, None, crossing.handoff_id, crossing)

    def take_leave(self, crossing: Crossing) -> bool:
        """Take a handoff out that goes on in another process; False when it was not let through to leave."""
        return self._crossings.take_leaving(crossing)

    def hand_on(self, crossing: Crossing) -> None:
        """Let go of a handoff that has left for another process, where it ends and is accepted."""
        self._delivered.add(crossing.route)
        self._tasks.take_back(crossing)
        self._tasks.leave(crossing, consumed=False, stops=False)
        if crossing.reserved is not None:
            self._run.unstored.add(_freed(crossing))

    def stayed(self, crossing: Crossing) -> None:
        """Record that a handoff was about to leave for another process, and was interrupted."""
        self._end(crossing, HandoffOutcome.NOT_DELIVERED)

    def lost(self, crossing: Crossing, decision: Decision, diverged: tuple[Finding, ...], *, state: object) -> None:
        """End a handoff that did not survive its way, once it was taken out.

        Args:
            crossing: The handoff.
            decision: About it, with what was found on its way.
            diverged: What of that its policy blocks.
            state: As it left or arrived.
        """
        from handoffwatch.runtime.passages import mark

        mark(crossing, diverged, decision.mode, self._watch.boundaries.of(crossing.route).policy)
        self._evidence.note_attempt(crossing, decision, state, {})
        self.stopped = True
        self._end(crossing, HandoffOutcome.STOPPED, decision=decision)

    def _compared(self, crossing: Crossing, after: object) -> Decision | None:
        """Return the decision about a handoff whose state did not survive its way, and end it; None when it goes on."""
        if crossing.left is None or after is NOT_GIVEN:
            if (crossing.left is None) != (after is NOT_GIVEN):  # one side alone cannot be compared
                self._run.bypassed(Check.BOUNDARY, crossing.route, BypassCause.UNCHECKED)
            return None
        from handoffwatch.boundary.comparison import capture, compare
        from handoffwatch.runtime.passages import Side, blocking, digests, record, state_of

        (before, attempt), run = crossing.left, self._run
        decision: Decision = attempt.decision
        policy = self._watch.boundaries.of(crossing.route).policy
        arrived = capture(state_of(run, after), policy, like=before)
        comparison = compare(before, arrived, policy)
        side = Side(crossing.route, crossing.handoff_id, crossing.attempts)
        diverged = blocking(comparison.findings)
        is_lost = bool(diverged) and decision.mode is not Mode.SHADOW and policy.on_failure is not OnFailure.PASS
        lost = amended(decision, comparison.findings) if is_lost else None
        record(run, comparison, side, lost=lost, digests=digests(run, before, arrived) if is_lost else ("", ""))
        if lost is not None:
            if self._crossings.take(crossing):  # else another thread has told it
                self.lost(crossing, lost, diverged, state=after)
            return lost
        if policy.artifacts:
            run.bypassed(Check.BOUNDARY, crossing.route, BypassCause.UNCHECKED)  # looking at them may wait: `transfer`
        elif diverged and decision.mode is not Mode.SHADOW:
            run.bypassed(Check.BOUNDARY, crossing.route, BypassCause.ON_FAILURE_PASS)
        return None

    def refuse(self, handoff: Step | str, *, decision: Decision | None = None) -> None:
        """Stop a handoff that was let through and cannot go on; what a decision blocks latches its route."""
        crossing = self._crossing(handoff)
        if crossing is not None and self._crossings.take(crossing):
            self.stopped = True
            self._end(crossing, HandoffOutcome.STOPPED, decision=decision)
        elif isinstance(handoff, Step):
            self.let_go(handoff)

    def ended(self, handoff: Step | str, error: BaseException | None) -> None:
        """Record that the receiver returned or raised; what is reported twice counts once."""
        crossing = self._crossing(handoff)
        if crossing is None or not self._crossings.take(crossing):
            return
        outcome = HandoffOutcome.DELIVERED if error is None else HandoffOutcome.RECEIVER_FAILED
        delivered = handoff.decision.normalized_payload if isinstance(handoff, Step) and handoff.decision else None
        if crossing.diverted_to:
            outcome, delivered = HandoffOutcome.DIVERTED, None
        self._end(crossing, outcome, delivered=delivered)

    def given_up(self, step: Step) -> Step:
        """Return what follows a blocked handoff that nobody will repair: its route's fallback, a hold, or a stop."""
        crossing = step.crossing
        if crossing is None or not self._crossings.abandon(crossing):
            return step if step.action is not Action.REPAIR else Step(Action.STOP)
        route = crossing.registered
        action = Action.STOP if route is None else route.conduct.when_blocked
        if action is Action.DIVERT:
            self._crossings.open(crossing)
        elif action is Action.HOLD:
            self._crossings.hold(crossing)
        return self._settled(step._replace(action=action, text=""), route, is_honest=False)

    def decided(self, step: Step, action: Action) -> Step:
        """Return what follows a held handoff once a person, or the time, has decided: deliver, divert or stop."""
        crossing = step.crossing
        if crossing is None or not self._crossings.take_held(crossing):
            return Step(Action.STOP)
        route = crossing.registered
        if action in (Action.DELIVER, Action.DIVERT):
            self._crossings.open(crossing)
        if action is Action.DELIVER:
            self._tasks.let_through(crossing)
            if step.decision is not None and step.decision.verdict is Verdict.BLOCKED:
                self._run.bypassed(Check.CONTRACT, crossing.route, BypassCause.ON_FAILURE_PASS)
        return self._settled(step._replace(action=action), route, is_honest=False, latches=False)

    def broken_off(self, attempt: Attempt, error: BaseException) -> None:
        """Record an attempt that was never concluded, because the ledger is down or the flow was interrupted."""
        if isinstance(error, LedgerUnavailable):
            sentence = "the ledger must say what was handed over before, and cannot be read"
            attempt.add([finding("check_failed", "$", sentence)])
        attempt.is_admitted = True
        self.let_go(self._run.concluded(attempt))

    def let_go(self, step: Step) -> None:
        """Record that nothing follows a step: its receiver was not started, and nobody waits for a person."""
        crossing = step.crossing
        if crossing is None:
            return
        if self._crossings.take(crossing):
            self._end(crossing, HandoffOutcome.STOPPED if crossing.diverted_to else HandoffOutcome.NOT_DELIVERED)
        elif self._crossings.take_held(crossing) or self._crossings.abandon(crossing):
            self.stopped = True
            self._end(crossing, HandoffOutcome.STOPPED)

    def was_delivered(self, source: str, target: str) -> bool:
        """Return whether a handoff between two agents has reached its receiver in this run."""
        return f"{source}->{target}" in self._delivered

    def drain(self) -> None:
        """End what is open: it was not delivered, was stopped, or is still with its receiver, which counts as taken."""
        for crossing, left in self._crossings.drain():
            self.stopped = self.stopped or left is HandoffOutcome.STOPPED
            self._end(crossing, left)

    def subject_of(self, crossing: Crossing, decision: Decision, sent: object) -> str:
        """Return what a person is asked about when a handoff is held: what its receiver would get now."""
        normalized = decision.normalized_payload
        return self._evidence.subject(crossing, sent if normalized is None else normalized)

    def evidence_of_hold(self, crossing: Crossing, subject: str, *, expires_unix_s: float) -> Evidence | None:
        """Return the evidence of a held handoff, for the person who decides; its subject is that handoff alone."""
        return self._evidence.of_handoff(crossing, self._run, None, subject=subject, expires_unix_s=expires_unix_s)

    def report_usage(self, route: str, purpose: str, tokens: int, cost_usd: float) -> None:
        """Count what a model call for a check has cost.

        Raises:
            RegistrationError: A value is outside its range, or the route is not registered.
        """
        known = {each.name for each in self._routes}
        if route not in known:
            raise RegistrationError(
                f"usage: route {route!r}: is not registered", hint=f"the routes are: {', '.join(sorted(known))}"
            )
        spent = member("usage", "purpose", purpose, CheckPurpose)
        try:
            usage = Usage(tokens, cost_usd)
        except ValueError as error:
            raise RegistrationError(str(error), hint="tokens and dollars are numbers of at least 0") from None
        self._recorder.emit(UsageReported(self._run.run_id, route, spent, usage.tokens, usage.cost_usd))

    def said_handed_over(self, source: str, target: str) -> bool:
        """Return whether a handoff that an agent speaks of was delivered; one that was not is recorded as such."""
        source, target = name_of(source), name_of(target)
        if self.was_delivered(source, target):
            return True
        route = self._routes.find(source, target)
        version = OTHER if route is None else next(reversed(route.contracts), OTHER)
        labels = _ALL_OTHER if route is None else (route.name, source, target, version)
        self._recorder.emit(
            HandoffEnded(self._run.run_id, "", labels, HandoffOutcome.NOT_DELIVERED, 0), within=self._run.scope
        )
        return False

    # inside

    def _note(self, attempt: Attempt, action: Action) -> None:
        """Keep what the run and its evidence need of an attempt."""
        crossing, route, decision = attempt.crossing, attempt.route, attempt.decision
        self._evidence.note_attempt(crossing, decision, attempt.raw, attempt.kept or {})
        if route is not None and route.is_unchecked:
            self._run.bypassed(Check.CONTRACT, route.name, BypassCause.UNCHECKED)
        if "check_failed" in decision.reasons:
            self._recorder.emit(InternalErrorCaught(Component.WATCHDOG, "check_failed"))
        is_unproven = attempt.conduct.durable and not attempt.is_admitted and decision.mode is Mode.ENFORCE
        if is_unproven and action is Action.DELIVER:
            self._run.bypassed(Check.LEDGER, crossing.route, BypassCause.UNCHECKED)

    def _follow(self, attempt: Attempt, step: Step, *, is_honest: bool) -> Step:
        """Return what a handoff that does not go to its receiver leads to."""
        decision, crossing = attempt.decision, attempt.crossing
        if step.action is Action.REPAIR:
            self._tasks.leave(crossing, consumed=False, stops=False)
            is_last = self._crossings.is_last_try(crossing)
            text = repair_text(decision, repairs_max=self._settings.repairs_max, is_last=is_last)
            if self._crossings.wait_for_repair(crossing):
                return step._replace(text=text)
            step = step._replace(action=Action.STOP)
        if attempt.is_second:
            self._tasks.leave(crossing, consumed=False, stops=False)
            return step._replace(crossing=None)  # the first of the two is the one that counts
        if step.action is Action.DIVERT:
            self._crossings.open(crossing)
        return self._settled(step, attempt.route, is_honest=is_honest)

    def _settled(self, step: Step, route: Route | None, *, is_honest: bool, latches: bool = True) -> Step:
        """Return a step that ends, holds or diverts a handoff, and record a stop."""
        crossing = step.crossing
        assert crossing is not None
        if step.action is Action.DIVERT:
            assert route is not None
            crossing.diverted_to = "failure" if is_honest else "fallback"
            return step._replace(target=(route.conduct.failure if is_honest else route.conduct.fallback) or "")
        if step.action is Action.STOP:
            self.stopped = True
            self._end(crossing, HandoffOutcome.STOPPED, decision=step.decision if latches else None)
            return step._replace(crossing=None)
        if step.action is Action.HOLD:
            self.stopped = True
        return step

    def _end(
        self,
        crossing: Crossing,
        outcome: HandoffOutcome,
        *,
        decision: Decision | None = None,
        delivered: object = None,
    ) -> None:
        """Record the end of a handoff, let go of it, and keep what must be written of it."""
        accepted = outcome is HandoffOutcome.DELIVERED or outcome is HandoffOutcome.RECEIVER_FAILED
        if accepted:
            self._delivered.add(crossing.route)
            if crossing.sealed_id:
                self._watch.boundaries.accept(crossing.route, crossing.sealed_id)
        reasons: list[str] = []
        if decision is not None and outcome is HandoffOutcome.STOPPED:
            codes = [item.code for item in decision.findings if item.reaction is Reaction.BLOCK]
            reasons = [code for code in codes if code not in _LATCHES_NOTHING] if _REPEATS.isdisjoint(codes) else []
        stops = bool(reasons)
        self._tasks.leave(crossing, consumed=accepted, stops=stops)
        run_id, handoff_id = self._run.run_id, crossing.handoff_id
        self._recorder.emit(HandoffEnded(run_id, handoff_id, crossing.labels, outcome, crossing.attempts))
        evidence: Evidence | None = None
        if crossing.tried:
            evidence = self._evidence.of_handoff(crossing, self._run, outcome, delivered=delivered)
        route = crossing.registered
        durable = route is not None and route.conduct.durable
        stop_reason = reasons[0] if stops and durable else None
        if evidence is not None or stop_reason is not None or crossing.reserved is not None:
            freed = _freed(crossing)
            self._run.unstored.add(
                freed._replace(accepted=accepted, stop_reason=stop_reason, is_durable=durable, evidence=evidence)
            )

    def _detection_s(self, attempt: Attempt) -> float | None:
        """Return the time from producing a handoff to naming what is wrong with it; None when nobody said when."""
        return seconds_since(attempt.envelope.get("produced_at"), now_unix_s=self._clock.wall_s())

    def _crossing(self, handoff: Step | str) -> Crossing | None:
        return handoff.crossing if isinstance(handoff, Step) else self._crossings.find(handoff)


def _freed(crossing: Crossing) -> Closing:
    """Return the end of what the ledger holds of a handoff that was not accepted."""
    task, handoff_id = crossing.reserved or (crossing.task, crossing.sent_id or crossing.handoff_id)
    return Closing(task, crossing.route, handoff_id, crossing.holder, False, None, True, None)
