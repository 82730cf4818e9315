"""The flows of handoffs: judged, held, repaired, delivered or diverted, with what the ledger keeps of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from handoffwatch.errors import HandoffBlocked, HandoffDivergence, HandoffHeld, LedgerUnavailable
from handoffwatch.handoffs.critique import CriticRequest
from handoffwatch.handoffs.risks import risks_of
from handoffwatch.reasons import REASONS
from handoffwatch.runtime.attempts import NOT_GIVEN, Attempt, Carriers, Way
from handoffwatch.runtime.critics import criticise
from handoffwatch.runtime.drivers import Flow, Invoke, Wait, Write
from handoffwatch.runtime.step import Step
from handoffwatch.values.json_text import encode
from handoffwatch.vocabulary import (
    Action,
    BypassCause,
    CaseKind,
    Check,
    Criticality,
    CriticResult,
    HandoffOutcome,
    Mode,
    Reaction,
    Ruling,
    Verdict,
)

if TYPE_CHECKING:
    from handoffwatch.ledger.facts import Case
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.unstored import Closing

ASKED_MAX: Final = 1_000
"""How often a person can be asked about one content that comes without an id."""

_STARTED: Final = (HandoffOutcome.DELIVERED, HandoffOutcome.RECEIVER_FAILED)

Receiver = Callable[[Any], Any]
Answer = Callable[[Step], object]


def transfer(
    run: Run,
    source: str,
    target: str,
    raw: object,
    receiver: Receiver,
    repair: Answer | None,
    fallback: Answer | None,
    failure: Answer | None,
    key: str | None,
    way: Way,
) -> Flow[Any]:
    """Judge, repair and deliver one handoff; returns what the receiver, or who stands in for it, returned."""
    step = yield from submit(run, source, target, raw, key, way)
    while step.action is Action.REPAIR and repair is not None:
        assert step.crossing is not None
        key = step.crossing.key[2]  # an answer that names another task, or none, is an answer all the same
        try:
            raw = yield Invoke(repair, (step,))
        except BaseException:
            run.abandoned(step)
            raise
        step = yield from submit(run, source, target, raw, key, way)
    if step.action is Action.REPAIR:
        step = run.abandoned(step)
        if step.action is Action.HOLD:
            step = yield from _open_case(run, step)
    if step.action is Action.HOLD:
        try:
            step = yield from wait_for_person(run, step)
        except BaseException:
            run.handoffs.let_go(step)
            raise
    if step.action is Action.DIVERT:
        return (yield from _divert(run, source, target, step, fallback, failure))
    decision = step.decision
    if step.action is not Action.DELIVER or decision is None or run.arrived(step).action is not Action.DELIVER:
        yield from store(run)
        raise _blocked(run, step, source, target)
    payload = decision.normalized_payload
    return (yield from _start(run, step, receiver, step.sent if payload is None else payload))


def submit(
    run: Run, source: str, target: str, raw: object, key: str | None, way: Way = None, before: object = NOT_GIVEN
) -> Flow[Step]:
    """Judge one attempt with all that the route asks for: its critic, the ledger's limits, a person's approval.

    What comes over a boundary is taken in first, and what arrived is judged.
    """
    raised: Exception | None = None
    try:
        if way is None:
            attempt = run.handoffs.judge(source, target, raw, key)
            if before is not NOT_GIVEN:
                run.handoffs.leave(attempt, before)
        elif isinstance(way, Carriers):
            from handoffwatch.runtime.passages import carry

            attempt, raised = yield from carry(run, source, target, raw, key, way)
        else:
            from handoffwatch.runtime.passages import unseal

            attempt = yield from unseal(run, source, target, raw, key, way)
    except Exception as error:  # noqa: BLE001 - our own fault in a check fails closed, and is counted
        return run.failed_closed(error)
    except BaseException as error:  # interrupted on its way over the boundary
        run.handoffs.broken_off(run.handoffs.judge(source, target, raw, key), error)
        raise
    if raised is not None:
        yield from store(run)
        raise raised
    return (yield from _judged(run, attempt))


def seal(run: Run, step: Step) -> Flow[str]:
    """Return the seal of a handoff that leaves this process."""
    from handoffwatch.runtime.passages import seal_up

    text, decision = yield from seal_up(run, step)
    yield from store(run)
    if decision is not None:
        assert step.crossing is not None
        source, target, _ = step.crossing.key
        raise _blocked(run, step._replace(decision=decision, diverged=step.crossing.diverged), source, target)
    return text


def _judged(run: Run, attempt: Attempt) -> Flow[Step]:
    """Return what follows an attempt that was judged."""
    try:
        approved = yield from _considered(run, attempt)
    except BaseException as error:
        run.handoffs.broken_off(attempt, error)
        raise
    step = run.concluded(attempt, approved=approved)
    if step.action is Action.HOLD:
        try:
            step = yield from _open_case(run, step)
        except BaseException:
            run.handoffs.let_go(step)
            raise
    return step


def _considered(run: Run, attempt: Attempt) -> Flow[bool]:
    """Add to an attempt what the ledger and the critic say, and return whether a person has approved it before."""
    conduct, is_obeyed = attempt.conduct, attempt.decision.mode is Mode.ENFORCE
    if is_obeyed and conduct.durable and attempt.decision.verdict is not Verdict.BLOCKED:
        yield from _admit(run, attempt)
    if attempt.decision.allowed and conduct.critic is not None:
        yield from _criticise(run, attempt)
    if not is_obeyed:
        return False
    asks = conduct.approval or attempt.decision.verdict is Verdict.HELD
    if not asks or attempt.decision.verdict is Verdict.BLOCKED:
        return False
    return (yield from _is_approved(run, attempt))


def approval(run: Run, step: Step) -> Flow[Step]:
    """Return what a person has decided about a held handoff: deliver or stop; the step itself while nobody has.

    One that was changed since it was held is not the one that was approved, and stops.
    """
    crossing = step.crossing
    if step.action is not Action.HOLD or crossing is None:
        return step
    if not step.case_id:
        step = yield from _open_case(run, step)
    subject = crossing.subject
    case = yield Write(lambda: run.watch.ledger.case_of(CaseKind.HELD, subject))
    if case is None or case.ruling is None:
        return step
    assert step.decision is not None
    is_same = run.handoffs.subject_of(crossing, step.decision, step.sent) == subject.partition("-")[0]
    is_approved = case.ruling is Ruling.APPROVED and is_same
    step = run.handoffs.decided(step, Action.DELIVER if is_approved else Action.STOP)
    if step.action is Action.STOP:
        yield from store(run)
    return step


def wait_for_person(run: Run, step: Step) -> Flow[Step]:
    """Return what follows a held handoff, once a person has decided or the route's time for it is over.

    Raises:
        HandoffHeld: The route does not wait.
        LedgerUnavailable: There is no case, or the ledger cannot say until the time is over.
    """
    assert step.crossing is not None
    source, target, _ = step.crossing.key
    assert step.crossing.registered is not None
    conduct, clock = step.crossing.registered.conduct, run.watch.clock
    give_up_s = clock.monotonic_s() + conduct.hold_s
    while step.action is Action.HOLD:
        try:
            step = yield from approval(run, step)
        except LedgerUnavailable:
            if not step.case_id or clock.monotonic_s() >= give_up_s:
                raise
        left_s = give_up_s - clock.monotonic_s()
        if step.action is Action.HOLD and left_s <= 0:
            break
        if step.action is Action.HOLD:
            yield Wait(min(run.watch.settings.handoffs.hold_poll_s, left_s))
    if step.action is not Action.HOLD:
        return step
    if conduct.hold_s == 0:
        run.handoffs.decided(step, Action.STOP)  # else the same handoff, sent again, would be one in progress
        yield from store(run)
        raise HandoffHeld(
            f"handoff {source}->{target}: held: must be approved by a person first",
            decision=step.decision,
            case_id=step.case_id,
            run_id=run.run_id,
            hint=f'handoffwatch case approve {step.case_id} --note "…", then send the same handoff again',
        )
    return run.handoffs.decided(step, Action(conduct.hold_then.value))


def store(run: Run) -> Flow[None]:
    """Write down what has ended: which ids were accepted, which routes are stopped, and the evidence."""
    if not run.unstored:
        return
    try:
        yield Write(lambda: run.unstored.write(lambda closing: _write(run, closing)))
    except LedgerUnavailable:
        for name in {route or run.workflow.name for route in run.unstored.routes}:
            run.bypassed(Check.LEDGER, name, BypassCause.LEDGER_DOWN)


def _write(run: Run, closing: Closing) -> None:
    """Write one ending; what cannot be written for a fault of our own is counted and given up."""
    ledger = run.watch.ledger
    try:
        if closing.is_durable:
            ledger.close_handoff(
                closing.task,
                closing.route,
                closing.handoff_id,
                holder=closing.holder,
                accepted=closing.accepted,
                stop_reason=closing.stop_reason,
                evidence=closing.evidence,
            )
        elif closing.evidence is not None:
            ledger.store_case(closing.evidence)
    except LedgerUnavailable:
        raise
    except Exception as error:  # noqa: BLE001 - the receiver has run: a recorder fails open
        run.recording_failed(error)


def _start(run: Run, step: Step, function: Callable[[Any], Any], argument: object) -> Flow[Any]:
    """Start who takes the handoff, and record how that ended; what it raises goes on unchanged."""
    try:
        result = yield Invoke(function, (argument,))
    except BaseException as error:
        run.ended(step, error=error)
        if isinstance(error, Exception):
            yield from store(run)
        raise
    run.ended(step)
    yield from store(run)
    return result


def _divert(
    run: Run, source: str, target: str, step: Step, fallback: Answer | None, failure: Answer | None
) -> Flow[Any]:
    assert step.crossing is not None
    taker = failure if step.crossing.diverted_to == "failure" else fallback
    if taker is None or run.arrived(step).action is not Action.DIVERT:
        run.handoffs.refuse(step, decision=step.decision)
        yield from store(run)
        raise _blocked(run, step, source, target)
    return (yield from _start(run, step, taker, step))


def _admit(run: Run, attempt: Attempt) -> Flow[None]:
    """Add the ledger's limits to an attempt; on a critical route nothing passes while the ledger is down."""
    crossing, decision, conduct = attempt.crossing, attempt.decision, attempt.conduct
    assert attempt.route is not None
    handoff_id = crossing.sent_id or decision.handoff_id
    content = run.handoffs.durable_content(attempt)
    may_wait_s = conduct.hold_s if conduct.approval or decision.verdict is Verdict.HELD else 0.0
    lease_s = run.watch.settings.handoffs.lease_s + may_wait_s
    run.handoffs.reserve(crossing, handoff_id)
    yield from store(run)  # what has ended under this id must be written before it is held again
    try:
        admission = yield Write(
            lambda: run.watch.ledger.open_handoff(
                crossing.task,
                crossing.route,
                handoff_id,
                holder=crossing.holder,
                digest=content,
                base=crossing.replaces,
                lease_s=lease_s,
            )
        )
    except LedgerUnavailable:
        if attempt.route.criticality is Criticality.CRITICAL:
            raise
        run.bypassed(Check.LEDGER, crossing.route, BypassCause.LEDGER_DOWN)
        attempt.is_admitted = True
    else:
        run.handoffs.admit(attempt, admission)


def _is_approved(run: Run, attempt: Attempt) -> Flow[bool]:
    """Return whether a person has approved this very handoff, and it has not been delivered since."""
    crossing = attempt.crossing
    subject = run.handoffs.subject_of(crossing, attempt.decision, attempt.raw)
    try:
        subject, case = yield from _last_asked(run, subject)
    except LedgerUnavailable:
        return False
    if case is None or case.ruling is not Ruling.APPROVED:
        return False
    crossing.subject = subject
    return True


def _last_asked(run: Run, subject: str) -> Flow[tuple[str, Case | None]]:
    """Return under which subject a person is asked about a handoff now, and its case when there is one.

    One approval is for one delivery: what has been delivered since is asked about anew.
    """
    name, case = subject, None
    for number in range(1, ASKED_MAX):
        asked = name
        case = yield Write(lambda: run.watch.ledger.case_of(CaseKind.HELD, asked))  # noqa: B023 - run before the next
        if case is None or case.facts.get("outcome") not in _STARTED:
            break
        name = f"{subject}-{number}"
    return name, case


def _open_case(run: Run, step: Step) -> Flow[Step]:
    """Write the case of a held handoff, which is what a person decides about.

    Raises:
        LedgerUnavailable: It cannot be written, so nobody could ever decide.
    """
    crossing, decision = step.crossing, step.decision
    assert crossing is not None
    assert decision is not None
    subject = crossing.subject
    if not subject:
        subject, _ = yield from _last_asked(run, run.handoffs.subject_of(crossing, decision, step.sent))
    hold_s = 0.0 if crossing.registered is None else crossing.registered.conduct.hold_s
    expires_unix_s = run.watch.clock.wall_s() + hold_s
    evidence = run.handoffs.evidence_of_hold(crossing, subject, expires_unix_s=expires_unix_s)
    if evidence is None:
        return step
    case_id = yield Write(lambda: run.watch.ledger.store_case(evidence))
    crossing.subject = subject  # from now on its end is told in this case
    return step._replace(case_id=case_id)


def _criticise(run: Run, attempt: Attempt) -> Flow[None]:
    """Add to an attempt what the route's critic has to say, where there is a risk."""
    decision, conduct = attempt.decision, attempt.conduct
    handoff = decision.normalized_payload
    if conduct.critic is None or conduct.critique is None or attempt.route is None or handoff is None:
        return
    limits = conduct.critique.limits
    is_new = run.watch.is_new_version(decision.route, decision.schema_version)
    signals = risks_of(handoff, decision, payload_bytes=len(encode(handoff)), limits=limits, is_new_version=is_new)
    if not signals & conduct.critique.signals:
        return
    request = CriticRequest(
        route=decision.route,
        source=attempt.route.source,
        target=attempt.route.target,
        run_id=run.run_id,
        handoff_id=decision.handoff_id,
        attempt=decision.attempt,
        handoff=handoff,
        signals=signals & conduct.critique.signals,
        reasons=tuple(decision.reasons),
    )
    outcome = yield from criticise(
        conduct.critic,
        conduct.critique,
        request,
        clock=run.watch.clock,
        spent=run.critic_budget,
        emit=lambda event: run.watch.recorder.emit(event, within=run.scope),
    )
    attempt.add(outcome.findings)
    attempt.elsewhere_s = outcome.duration_s
    if outcome.result is not CriticResult.SKIPPED:
        attempt.kept = {"critic": outcome._asdict()}


def _blocked(run: Run, step: Step, source: str, target: str) -> HandoffBlocked:
    decision = step.decision
    found = decision.findings if decision is not None else ()
    stopping = dict.fromkeys(each.code for each in found if each.reaction in (Reaction.BLOCK, Reaction.HOLD))
    codes = ", ".join(stopping) or "check_failed"
    attempts = "" if decision is None or decision.attempt == 1 else f" after {decision.attempt} attempts"
    if decision is not None and step.diverged:
        first = step.diverged[0]
        return HandoffDivergence(
            f"handoff {source}->{target}: {first.path} did not survive the crossing: {first.code}",
            decision=decision,
            run_id=run.run_id,
            handoff_id=decision.handoff_id,
            attempt=decision.attempt,
            stage=first.stage,
            paths=tuple(dict.fromkeys(item.path for item in step.diverged)),
            hint=f"{REASONS[first.code].advice}; `handoffwatch snapshots` shows both sides where they are kept",
        )
    return HandoffBlocked(
        f"handoff {source}->{target}: blocked before the receiver's first action{attempts}: {codes}",
        decision=decision,
        run_id=run.run_id,
        hint="read error.decision.findings for the fields and what would be right",
    )
