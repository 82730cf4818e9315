"""Judging one attempt of a handoff: the watchdog, the limits of its task, and what the flow itself has to say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from handoffwatch.decision import Finding, reacting
from handoffwatch.handoffs.context import HandoffContext, TaskFacts
from handoffwatch.handoffs.limits import judge_limits, judge_repeats
from handoffwatch.handoffs.routes import Route
from handoffwatch.handoffs.structure import finding
from handoffwatch.runtime.attempts import Attempt
from handoffwatch.runtime.crossings import Crossings
from handoffwatch.runtime.envelopes import (
    Envelope,
    content_of,
    fingerprint_of,
    id_of,
    identity_of,
    name_of,
    read_envelope,
    text_of,
)
from handoffwatch.vocabulary import Mode, Verdict

if TYPE_CHECKING:
    from handoffwatch.ledger.facts import Admission
    from handoffwatch.runtime.run import Run


class Judging:
    """Judges the attempts of one run's handoffs. Thread-safe, in memory only."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._watch = run.watch
        self._clock = run.watch.clock
        self._settings = run.watch.settings.handoffs
        self._inspect = run.watch.watchdog.inspect
        self._limits = run.watch.watchdog.limits
        self._routes = run.watch.watchdog.routes
        self._tasks = run.watch.tasks
        self._crossings = Crossings(self._settings)

    def judge(self, source: str, target: str, raw: object, key: str | None) -> Attempt:
        """Return one attempt with what the watchdog finds, the limits of its task included."""
        started_s = self._clock.monotonic_s()
        run = self._run
        source, target = name_of(source), name_of(target)
        envelope = read_envelope(raw, bytes_max=self._settings.payload_bytes_max)
        route = self._routes.find(source, target)
        task = self._task(envelope)
        crossing = self._crossings.begin(
            (source, target, self._identity(route, envelope) if key is None else key), task=task
        )
        is_new = crossing.attempts == 1 or crossing.task != task
        crossing.registered, crossing.task = route, task
        crossing.sent_id = id_of(envelope, "handoff_id")
        if route is not None and route.replaces_state:
            crossing.replaces = self._replaces(route, envelope)
        facts = self._tasks.enter(crossing, is_new=is_new)
        context = HandoffContext(
            run.run_id, run.task_id, run.context_version, None, crossing.attempts, None, None, facts
        )
        decision = self._inspect(raw, expected_source=source, expected_target=target, context=context)
        crossing.handoff_id = decision.handoff_id
        attempt = Attempt(crossing, raw, envelope, decision, started_s)
        if route is not None and decision.normalized_payload is not None and self._routes.may_come_back(route):
            crossing.fingerprint = fingerprint_of(decision.normalized_payload)
            repeats = self._tasks.repeats(crossing) if facts.hops else 0
            if repeats and not route.is_unchecked:
                found: list[Finding] = []
                judge_repeats(found, repeats, self._limits)
                attempt.add(_as_the_route_reacts(found, route))
        return attempt

    def upcoming(self, source: str, target: str, raw: object, key: str | None) -> tuple[str, int]:
        """Return the id of a handoff and the number of the attempt that it would be; an empty id when it has none."""
        source, target = name_of(source), name_of(target)
        envelope = read_envelope(raw, bytes_max=self._settings.payload_bytes_max)
        named = self._identity(self._routes.find(source, target), envelope) if key is None else key
        return id_of(envelope, "handoff_id"), self._crossings.upcoming((source, target, named))

    def admit(self, attempt: Attempt, admission: Admission) -> None:
        """Add to the attempt what the ledger knows of its task."""
        crossing, route = attempt.crossing, attempt.route
        assert route is not None
        facts = TaskFacts(
            hops=self._tasks.learn(crossing, admission.hops),
            repeats=admission.repeats,
            is_open=admission.is_taken,
            is_consumed=admission.is_consumed,
            is_stopped=admission.is_stopped,
            replaced_version=admission.newest_base,
        )
        found: list[Finding] = []
        contract = route.contracts[attempt.decision.schema_version]
        judge_limits(found, attempt.envelope, contract, facts, self._limits)
        if admission.is_taken or admission.is_consumed:
            crossing.reserved = None
        attempt.add(_as_the_route_reacts(found, route))
        attempt.is_admitted = True

    def durable_content(self, attempt: Attempt) -> str:
        """Return the digest that the ledger may keep of a handoff: made without what is secret in it.

        Empty on a route to which nothing can come back.
        """
        if attempt.route is None or not self._routes.may_come_back(attempt.route):
            return ""
        return content_of(_object(self._watch.evidence.content(attempt.decision.normalized_payload, attempt.crossing)))

    def add_flow_findings(self, attempt: Attempt, *, approved: bool) -> None:
        """Add what the flow itself has to say: repairs are used up, a person must approve."""
        decision, crossing = attempt.decision, attempt.crossing
        if decision.mode is Mode.SHADOW:
            return
        if decision.allowed:
            if attempt.conduct.approval and not approved:
                sentence = "a person must approve the handoff before its receiver starts"
                attempt.add([finding("approval_required", "$", sentence)])
            return
        if decision.verdict is not Verdict.BLOCKED or not decision.retryable:
            return
        if attempt.is_failed_work or attempt.is_second:
            return
        is_repeated = self._settings.stop_identical and self._is_repeated(attempt)
        if self._settings.repairs_max and (is_repeated or not self._crossings.may_repair(crossing, decision)):
            sentence = (
                "the answer must not be one that was blocked before"
                if is_repeated
                else f"no repair is left after attempt {crossing.attempts}"
            )
            attempt.add([finding("repair_exhausted", "$", sentence)])

    def _is_repeated(self, attempt: Attempt) -> bool:
        """Return whether a blocked answer says the same as one before it on this handoff."""
        said = content_of(_object(self._watch.evidence.content(attempt.envelope, attempt.crossing)))
        is_repeated = said in attempt.crossing.answers
        attempt.crossing.answers |= {said}
        return is_repeated

    def _task(self, envelope: Envelope) -> str:
        """Return what limits are counted by: the run's task, else the handoff's, else the run."""
        if self._run.task_id is not None:
            return self._run.task_id
        return id_of(envelope, "task_id") or f"run:{self._run.run_id}"

    def _identity(self, route: Route | None, envelope: Envelope) -> str:
        path = ("task_id",) if route is None else route.identity
        if path == ("task_id",):
            return self._run.task_id or text_of(envelope, "task_id")
        return identity_of(envelope, path)

    def _replaces(self, route: Route | None, envelope: Envelope) -> int | None:
        """Return the version of the state that this handoff replaces, when its contract says so."""
        contract = None if route is None else route.contracts.get(text_of(envelope, "schema_version"))
        if contract is None or not contract.options.replaces_state:
            return None
        version = envelope.get("context_version")
        return version if type(version) is int else self._run.context_version


def _as_the_route_reacts(found: list[Finding], route: Route | None) -> list[Finding]:
    """Return what the limits of a task found, with the reactions of the route."""
    reactions = {} if route is None else route.reactions
    return [reacting(item, reactions.get(item.code)) for item in found] if reactions else found


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"payload": value}
