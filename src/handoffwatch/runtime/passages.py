"""A handoff's way over the boundary: captured, exported, imported, captured again, and compared."""

from __future__ import annotations

import hashlib
import hmac
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handoffwatch.boundary.comparison import Capture, Comparison, capture, compare
from handoffwatch.boundary.findings import finding_of
from handoffwatch.decision import Finding, reacting
from handoffwatch.errors import SnapshotUnavailable
from handoffwatch.events import HandoffCompared
from handoffwatch.runtime.attempts import Attempt, Carriers
from handoffwatch.runtime.drivers import Flow, Invoke, Write
from handoffwatch.vocabulary import BypassCause, Check, Mode, OnFailure, Reaction, SnapshotStage, Stage

if TYPE_CHECKING:
    from handoffwatch.boundary.policy import BoundaryPolicy
    from handoffwatch.boundary.snapshots import Snapshots
    from handoffwatch.runtime.crossings import Crossing
    from handoffwatch.runtime.run import Run


@dataclass(frozen=True, slots=True)
class Side:
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
    side, policy, snapshots = _side(run, source, target, raw, key)
    before = capture(raw, policy)
    found = yield from _keep(run, before, policy, snapshots, side, SnapshotStage.BEFORE)
    stage = Stage.SERIALIZE
    try:
        wire = yield Invoke(carriers.export, (raw,))
        stage = Stage.DESERIALIZE
        arrived = yield Invoke(carriers.import_, (wire,))
    except Exception as error:  # noqa: BLE001 - the host's own, which the flow raises again
        attempt = run.handoffs.judge(source, target, raw, key)
        sentence = "export and import must bring the handoff to the other side, and raised"
        attempt.add(found := [*found, finding_of("capture_failed", "$", sentence, stage=stage)])
        mark(attempt.crossing, blocking(found), attempt.decision.mode, policy)
        run.handoffs.refuse(run.concluded(attempt))
        return attempt, error
    after = capture(arrived, policy, like=before)
    found += yield from _keep(run, after, policy, snapshots, side, SnapshotStage.AFTER)
    comparison = compared(run, before, after, policy, side)
    attempt = run.handoffs.judge(source, target, arrived, key)
    attempt.digests = digests(run, before, after)
    _add(run, attempt, [*found, *comparison.findings], policy)
    return attempt, None


def compared(run: Run, before: Capture, after: Capture, policy: BoundaryPolicy, side: Side) -> Comparison:
    """Return what the policy says about a crossing, and record it."""
    comparison = compare(before, after, policy)
    paths = tuple(item.path for item in blocking(comparison.findings))
    event = HandoffCompared(run.run_id, side.route, side.handoff_id, side.attempt, comparison.diverged, paths)
    run.watch.recorder.emit(event, within=run.scope)
    return comparison


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


def _side(
    run: Run, source: str, target: str, raw: object, key: str | None
) -> tuple[Side, BoundaryPolicy, Snapshots | None]:
    handoff_id, attempt = run.handoffs.upcoming(source, target, raw, key)
    route = f"{source}->{target}"
    return (
        Side(route, handoff_id or uuid.uuid4().hex, attempt),
        run.watch.boundaries.policy_of(route),
        run.watch.boundaries.snapshots_of(route),
    )


def _keep(
    run: Run, side_capture: Capture, policy: BoundaryPolicy, snapshots: Snapshots | None, side: Side,
    stage: SnapshotStage,
) -> Flow[list[Finding]]:  # fmt: skip
    """Write the snapshot of one side when its route keeps them; what could not be kept is a finding."""
    if snapshots is None or side_capture.form.faults:
        return []
    try:
        yield Write(
            lambda: snapshots.write_snapshot(
                side_capture.form,
                policy=policy,
                stage=stage,
                run_id=run.run_id,
                handoff_id=side.handoff_id,
                attempt=side.attempt,
                route=side.route,
            )
        )
    except SnapshotUnavailable:
        where = Stage.CAPTURE_BEFORE if stage is SnapshotStage.BEFORE else Stage.CAPTURE_AFTER
        return [finding_of("capture_failed", "$", "the snapshot of the state must be written", stage=where)]
    return []


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
