"""The boundaries of a Watch's routes: what must survive there, and where its states are kept."""

from __future__ import annotations

import dataclasses
import secrets
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from handoffwatch.boundary.transforms import Transforms
from handoffwatch.clock import Clock
from handoffwatch.errors import RegistrationError
from handoffwatch.threads import DaemonThreads, ThreadsExhausted

if TYPE_CHECKING:
    from handoffwatch.boundary.artifacts import OpenArtifact
    from handoffwatch.boundary.migrations import Migrations
    from handoffwatch.boundary.policy import BoundaryPolicy
    from handoffwatch.boundary.seal_keys import SealKey
    from handoffwatch.boundary.settings import BoundarySettings
    from handoffwatch.boundary.snapshots import SnapshotMeta, Snapshots
    from handoffwatch.values.canonical import Canonical

ACCEPTED_MAX: Final = 100_000
"""Sealed handoffs whose acceptance a process remembers, whatever its ledger does; the oldest go first."""

PRUNE_EVERY_S: Final = 600.0
"""How long after a look through a folder of snapshots the next one comes, unless much has been written since."""

_PRUNE_SHARE: Final = 0.1
"""The share of a folder's size that may be written between two looks through it."""

_PRUNING: Final = DaemonThreads("handoffwatch-prune", threads_max=8)


class Boundary(NamedTuple):
    """What happens at the boundary of one route.

    Attributes:
        policy: What must survive.
        on_the_way: The policy for states that are brought to its schema version only after they have arrived.
        migrations: What brings them there; None when nothing does.
        open_artifact: Opens the artefacts of the far side; None when nobody said how.
    """

    policy: BoundaryPolicy
    on_the_way: BoundaryPolicy
    migrations: Migrations | None = None
    open_artifact: OpenArtifact | None = None


class SnapshotFolder:
    """One folder of snapshots, looked through for old ones from time to time. Thread-safe.

    That is at its first snapshot, then after 600 seconds, or once a tenth of what it may hold was written.

    Args:
        snapshots: What lies there.
        max_bytes: The size of all snapshots together.
        clock: Time.
        failed: Called with what went wrong in removing old snapshots.
    """

    def __init__(
        self, snapshots: Snapshots, *, max_bytes: int, clock: Clock, failed: Callable[[Exception], None]
    ) -> None:
        self._snapshots = snapshots
        self._max_bytes = max_bytes
        self._clock = clock
        self._failed = failed
        self._looked_s: float | None = None
        self._written_bytes = 0
        self._lock = threading.Lock()

    def write(self, form: Canonical, **what: Any) -> SnapshotMeta:
        """Write a snapshot, as `Snapshots.write_snapshot` does; a look for old ones goes on in a thread of its own."""
        meta = self._snapshots.write_snapshot(form, **what)
        if self._is_due(meta.state_bytes):
            try:
                _PRUNING.start(self.prune)
            except ThreadsExhausted:
                self._looked_s = None  # the next snapshot tries again
        return meta

    def prune(self) -> None:
        """Remove what is too old or too much."""
        try:
            while not self._snapshots.prune(self._clock.wall_s()).is_done:
                pass
        except Exception as error:  # noqa: BLE001 - a recorder fails open; what is left is removed the next time
            self._failed(error)

    def _is_due(self, size_bytes: int) -> bool:
        now_s = self._clock.monotonic_s()
        with self._lock:
            self._written_bytes += size_bytes
            is_much = self._written_bytes >= _PRUNE_SHARE * self._max_bytes
            if self._looked_s is not None and now_s - self._looked_s < PRUNE_EVERY_S and not is_much:
                return False
            self._looked_s, self._written_bytes = now_s, 0
            return True


class Boundaries:
    """The boundaries of one Watch, by route. Thread-safe once all routes are registered.

    Args:
        settings: What the routes have that bring no policy of their own.
        clock: Times the snapshots.
        failed: Called with what went wrong in removing old snapshots.

    Attributes:
        transforms: Those that the settings may name.
        digest_key: What digests are keyed with that leave the process; new in each.
        seal_keys: The first makes seals, all open them.
        accepted: Routes and ids of the handoffs that came with a seal and were accepted, the oldest first.
    """

    def __init__(self, settings: BoundarySettings, clock: Clock, *, failed: Callable[[Exception], None]) -> None:
        self._settings = settings
        self._clock = clock
        self._failed = failed
        self.transforms = Transforms()
        self.digest_key = secrets.token_bytes(32)
        self.seal_keys: tuple[SealKey, ...] = ()
        self.accepted: dict[tuple[str, str], None] = {}
        self._boundaries: dict[str, Boundary] = {}
        self._folders: dict[str, SnapshotFolder] = {}
        self._lock = threading.Lock()

    def add(
        self,
        route: str,
        policy: BoundaryPolicy | None,
        *,
        migrations: Migrations | None,
        open_artifact: OpenArtifact | None,
    ) -> Boundary:
        """Take note of a route's boundary, and return it; without a policy it has that of the settings.

        Raises:
            RegistrationError: The settings name a transform that nobody registered, or the policy does not say to
                which version states are migrated.
        """
        policy = policy or self._settings.policy_of(route, transforms=self.transforms)
        if migrations is not None and policy.schema_version is None:
            raise RegistrationError(
                f"route {route}: migrations: must lead to the schema version of the policy, and it says none",
                hint='BoundaryPolicy(schema_version="2", …)',
            )
        on_the_way = policy if migrations is None else dataclasses.replace(policy, schema_version=None)
        known = self._boundaries[route] = Boundary(policy, on_the_way, migrations, open_artifact)
        return known

    def of(self, route: str) -> Boundary:
        """Return the boundary of a route; an unknown one has the policy of all routes."""
        known = self._boundaries.get(route)
        if known is None:
            policy = self._settings.policy_of(route, transforms=self.transforms)
            known = Boundary(policy, policy)
        return known

    def hidden_on(self, route: str) -> tuple[str, ...]:
        """Return the paths and names that a route's policy keeps out of what is written."""
        policy = self.of(route).policy
        return (*policy.redact, *policy.secret, *policy.omit)

    def accept(self, route: str, handoff_id: str) -> None:
        """Take note of a handoff that came with a seal and was accepted, so that it is not accepted again."""
        with self._lock:
            self.accepted[route, handoff_id] = None
            if len(self.accepted) > ACCEPTED_MAX:
                del self.accepted[next(iter(self.accepted))]

    def snapshots_of(self, route: str) -> SnapshotFolder | None:
        """Return where the states of a route are kept; None when they are not."""
        wanted = self._settings.snapshot_of(route)
        if not wanted.enabled:
            return None
        from handoffwatch.boundary.snapshots import Snapshots

        with self._lock:
            known = self._folders.get(wanted.directory)
            if known is None:
                snapshots = Snapshots(
                    wanted.directory,
                    retention_days=wanted.retention_days,
                    max_bytes=wanted.max_bytes,
                    clock=self._clock,
                )
                known = self._folders[wanted.directory] = SnapshotFolder(
                    snapshots, max_bytes=wanted.max_bytes, clock=self._clock, failed=self._failed
                )
            return known
