"""A handoff's way over the boundary: captured, exported or sealed, taken in, captured again, and compared."""

from __future__ import annotations

import hashlib
import hmac
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from handoffwatch.boundary.comparison import Capture, Comparison, capture, compare
from handoffwatch.boundary.findings import finding_of
from handoffwatch.boundary.policy import REST, SCHEMA_VERSION
from handoffwatch.decision import Decision, Finding, amended, reacting
from handoffwatch.errors import RegistrationError, SnapshotUnavailable
from handoffwatch.events import HandoffCompared
from handoffwatch.runtime.attempts import Attempt, Carriers, Sealed
from handoffwatch.runtime.boundaries import Boundary
from handoffwatch.runtime.drivers import Flow, Invoke, Write
from handoffwatch.runtime.envelopes import Envelope, read_envelope, text_of
from handoffwatch.runtime.step import Step
from handoffwatch.vocabulary import BypassCause, Check, Mode, OnFailure, Reaction, SnapshotStage, Stage

if TYPE_CHECKING:
    from handoffwatch.boundary.policy import BoundaryPolicy
    from handoffwatch.boundary.seal_keys import SealKey
    from handoffwatch.runtime.crossings import Crossing
    from handoffwatch.runtime.run import Run


class Side(NamedTuple):
    """Under which name both sides of one crossing are captured."""

    route: str
    handoff_id: str
    attempt: int


def carry(
    run: Run, source: str, target: str, raw: object, key: str | None, carriers: Carriers
) -> Flow[tuple[Attempt, Exception | None]]:
    """Take a handoff over the boundary.

    Returns:
        The attempt about what arrived, with what was found on the way; and what export or import raised, when the
        attempt is about what left because nothing arrived.
    """
    side, boundary = _side(run, source, target, raw, key)
    before = capture(state_of(run, raw), boundary.on_the_way)
    side, found = yield from _keep(run, before, boundary, side, SnapshotStage.BEFORE, is_new=True)
    stage = Stage.SERIALIZE
    try:
        wire = yield Invoke(carriers.export, (raw,))
        stage = Stage.DESERIALIZE
        arrived = yield Invoke(carriers.import_, (wire,))
    except Exception as error:  # noqa: BLE001 - the host's own, which the flow raises again
        attempt = run.handoffs.judge(source, target, raw, key)
        sentence = "export and import must bring the handoff to the other side, and raised"
        attempt.add(found := [*found, finding_of("capture_failed", "$", sentence, stage=stage)])
        mark(attempt.crossing, blocking(found), attempt.decision.mode, boundary.policy)
        run.handoffs.refuse(run.concluded(attempt))
        return attempt, error
    after = capture(state_of(run, arrived), boundary.on_the_way, like=before)
    _, lost = yield from _keep(run, after, boundary, side, SnapshotStage.AFTER)
    comparison = compare(before, after, boundary.on_the_way)
    arrived, comparison = yield from _taken_in(run, arrived, after, comparison, boundary)
    record(run, comparison, side)
    attempt = run.handoffs.judge(source, target, arrived, key)
    attempt.digests = digests(run, before, after)
    _add(run, attempt, [*found, *lost, *comparison.findings], boundary.policy)
    return attempt, None


def unseal(run: Run, source: str, target: str, raw: object, key: str | None, sealed: Sealed) -> Flow[Attempt]:
    """Take in a handoff that came from another process, and return the attempt about it.

    What was accepted before is found as in every handoff, by its id.
    """
    from handoffwatch.boundary.seals import open_seal

    side, boundary = _side(run, source, target, raw, key)
    after = capture(state_of(run, raw), boundary.on_the_way)
    boundaries, now_s = run.watch.boundaries, run.watch.clock.wall_s()
    said_id = text_of(_envelope(run, raw), "handoff_id")
    is_accepted = (side.route, said_id) in boundaries.accepted
    opened = open_seal(
        sealed.text,
        after,
        boundary.on_the_way,
        keys=boundaries.seal_keys,
        route=side.route,
        now_unix_s=now_s,
        consumed={said_id} if is_accepted else frozenset(),
    )
    comparison = opened.comparison
    if opened.handoff_id and opened.handoff_id != said_id:
        sentence = "the seal must be that of this handoff, and names another id"
        comparison = Comparison.of([(finding_of("seal_invalid", "seal", sentence, stage=Stage.DESERIALIZE), REST)])
    side = side._replace(attempt=opened.attempt or side.attempt)
    side, found = yield from _keep(run, after, boundary, side, SnapshotStage.AFTER, is_new=True)
    arrived, comparison = yield from _taken_in(run, raw, after, comparison, boundary)
    record(run, comparison, side)
    attempt = run.handoffs.judge(source, target, arrived, key)
    attempt.traceparent, attempt.crossing.sealed_id = opened.traceparent, opened.handoff_id
    _add(run, attempt, [*found, *comparison.findings], boundary.policy)
    return attempt


def seal_up(run: Run, step: Step) -> Flow[tuple[str, Decision | None]]:
    """Return the seal of a handoff that leaves this process, which ends here; else the decision that stopped it.

    Raises:
        RegistrationError: The handoff was not let through with the state that leaves, or there is no key.
    """
    crossing, keys = step.crossing, run.watch.boundaries.seal_keys
    if not keys:
        raise RegistrationError("seal: key: must be registered, and none is", hint="watch.seal_keys(SealKey(…))")
    if crossing is not None and text_of(_envelope(run, step.sent), "handoff_id") != crossing.handoff_id:
        raise RegistrationError(
            "seal: handoff_id: must be said by the handoff itself, or its receiver knows it by another one",
            hint='{"handoff_id": uuid.uuid4().hex, …}',
        )
    if crossing is None or crossing.left is None or not run.handoffs.take_leave(crossing):
        raise RegistrationError(
            "seal: handoff: must be one that was let through with its state, and has not arrived here",
            hint="run.seal(run.handoff(source, target, state, before=state))",
        )
    try:
        return (yield from _sealed(run, step, crossing, keys[0]))
    except BaseException:
        run.handoffs.stayed(crossing)
        raise


def _sealed(run: Run, step: Step, crossing: Crossing, key: SealKey) -> Flow[tuple[str, Decision | None]]:
    from handoffwatch.boundary.seals import seal

    before, attempt = crossing.left
    boundary = run.watch.boundaries.of(crossing.route)
    side = Side(crossing.route, crossing.handoff_id, crossing.attempts)
    side, found = yield from _keep(run, before, boundary, side, SnapshotStage.BEFORE, is_new=True)
    text = ""
    if not found:
        try:
            text = seal(
                before,
                boundary.policy,
                key=key,
                route=side.route,
                handoff_id=side.handoff_id,
                attempt=side.attempt,
                schema_version=str(before.schema_version or attempt.decision.schema_version),
                traceparent=run.traceparent(),
                expires_unix_s=run.watch.clock.wall_s() + run.watch.settings.handoffs.seal_s,
            )
        except ValueError as error:  # its message holds no value
            found = [finding_of("capture_failed", "$", f"the state must be sealed: {error}", stage=Stage.SERIALIZE)]
    if found:
        decision = amended(attempt.decision, found)
        run.handoffs.lost(crossing, decision, blocking(found), state=step.sent)
        return "", decision
    run.handoffs.hand_on(crossing)
    return text, None


def record(
    run: Run, comparison: Comparison, side: Side, *, lost: Decision | None = None, digests: tuple[str, str] = ("", "")
) -> None:
    """Record what the policy says about a crossing, and how it was stopped when its attempt was concluded before."""
    paths = tuple(item.path for item in blocking(comparison.findings))
    event = HandoffCompared(
        run.run_id, side.route, side.handoff_id, side.attempt, comparison.diverged, paths, lost, digests
    )
    run.watch.recorder.emit(event, within=run.scope)


def blocking(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return what a policy blocks, whatever its code: what raised and what could not be captured too."""
    return tuple(item for item in findings if item.reaction is Reaction.BLOCK)


def mark(crossing: Crossing, diverged: tuple[Finding, ...], mode: Mode, policy: BoundaryPolicy) -> None:
    """Take note that a handoff did not survive its way; in shadow mode nobody waits for a person."""
    crossing.diverged = diverged
    is_obeyed = bool(diverged) and mode is not Mode.SHADOW
    crossing.is_quarantined = is_obeyed and policy.on_failure is OnFailure.QUARANTINE


def digests(run: Run, before: Capture, after: Capture) -> tuple[str, str]:
    """Return the digests of both sides as they may leave the process: keyed, so that no small secret can be tried."""
    return _keyed(run, before), _keyed(run, after)


def _side(run: Run, source: str, target: str, raw: object, key: str | None) -> tuple[Side, Boundary]:
    handoff_id, attempt = run.handoffs.upcoming(source, target, raw, key)
    route = f"{source}->{target}"
    return Side(route, handoff_id or uuid.uuid4().hex, attempt), run.watch.boundaries.of(route)


def state_of(run: Run, raw: object) -> object:
    """Return a handoff as the state that it is: JSON text of an object is that object."""
    return dict(_envelope(run, raw)) or raw if isinstance(raw, str | bytes | bytearray) else raw


def _envelope(run: Run, raw: object) -> Envelope:
    return read_envelope(raw, bytes_max=run.watch.settings.handoffs.payload_bytes_max)


def _keep(
    run: Run, side_capture: Capture, boundary: Boundary, side: Side, stage: SnapshotStage, *, is_new: bool = False
) -> Flow[tuple[Side, list[Finding]]]:
    """Write the snapshot of one side when its route keeps them; what could not be kept is a finding.

    Returns:
        The side, with the number under which it was kept; and the finding.
    """
    folder = run.watch.boundaries.snapshots_of(side.route)
    if folder is None or side_capture.form.faults:
        return side, []
    try:
        meta = yield Write(
            lambda: folder.write(
                side_capture.form,
                policy=boundary.policy,
                stage=stage,
                run_id=run.run_id,
                handoff_id=side.handoff_id,
                attempt=side.attempt,
                route=side.route,
                is_new=is_new,
            )
        )
    except SnapshotUnavailable:
        where = Stage.CAPTURE_BEFORE if stage is SnapshotStage.BEFORE else Stage.CAPTURE_AFTER
        return side, [finding_of("capture_failed", "$", "the snapshot of the state must be written", stage=where)]
    return side._replace(attempt=meta.attempt), []


def _taken_in(
    run: Run, arrived: object, after: Capture, comparison: Comparison, boundary: Boundary
) -> Flow[tuple[object, Comparison]]:
    """Bring what arrived to the schema version of the policy, and look whether its artefacts are there."""
    policy, version = boundary.policy, after.schema_version
    state = after.form.value if policy.artifacts and not after.form.faults else None
    found = list(zip(comparison.findings, comparison.patterns, strict=True))
    if boundary.migrations is not None and version is not None and str(version) != policy.schema_version:
        migrated = boundary.migrations.migrate(state_of(run, arrived), str(version), policy.schema_version or "")
        found += [(_shown(item, policy), SCHEMA_VERSION) for item in migrated.findings]
        if not migrated.findings:
            arrived, state = migrated.state, capture(migrated.state, policy).form.value
    if policy.artifacts and not blocking([item for item, _ in found]):
        from handoffwatch.boundary.artifacts import check_artifacts

        opens = boundary.open_artifact
        if opens is None:
            sentence = "its artefacts must be looked at on this side, and the route has nothing that opens them"
            found.append((finding_of("check_failed", "$", sentence), policy.artifacts[0]))
        else:
            checked = yield Write(lambda: check_artifacts(state, policy, open=opens))
            found += zip(checked.findings, checked.patterns, strict=True)
    return arrived, Comparison.of(found)


def _shown(finding: Finding, policy: BoundaryPolicy) -> Finding:
    """Return a finding whose path ends where a secret begins."""
    path = policy.shown(finding.path.split(".")) if finding.path != "$" else "$"
    return finding._replace(path=path, sentence=finding.sentence.replace(finding.path, path))


def _add(run: Run, attempt: Attempt, findings: Sequence[Finding], policy: BoundaryPolicy) -> None:
    """Add to an attempt what was found on its way, as the policy reacts to that: where it passes, it only warns."""
    diverged, mode = blocking(findings), attempt.decision.mode
    if policy.on_failure is not OnFailure.PASS:
        mark(attempt.crossing, diverged, mode, policy)
        attempt.add(findings)
        return
    if diverged and mode is not Mode.SHADOW:
        run.bypassed(Check.BOUNDARY, attempt.crossing.route, BypassCause.ON_FAILURE_PASS)
    attempt.add([reacting(item, Reaction.WARN) if item in diverged else item for item in findings])


def _keyed(run: Run, side: Capture) -> str:
    if not side.form.digest:
        return ""
    return hmac.new(run.watch.boundaries.digest_key, side.form.digest.encode(), hashlib.sha256).hexdigest()[:32]
