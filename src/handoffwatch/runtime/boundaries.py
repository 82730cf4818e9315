"""The boundaries of a Watch's routes: what must survive there, and where its states are kept."""

from __future__ import annotations

import dataclasses
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

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
    from handoffwatch.boundary.snapshots import Snapshots

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


class _Kept:
    """One folder of snapshots, and when it was last looked through."""

    def __init__(self, snapshots: Snapshots, max_bytes: int) -> None:
        self.snapshots = snapshots
        self.max_bytes = max_bytes
        self.looked_s: float | None = None
        self.written_bytes = 0


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
        self.accepted: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._boundaries: dict[str, Boundary] = {}
        self._kept: dict[str, _Kept] = {}
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
                self.accepted.popitem(last=False)

    def snapshots_of(self, route: str) -> Snapshots | None:
        """Return where the states of a route are kept; None when they are not."""
        wanted = self._settings.snapshot_of(route)
        if not wanted.enabled:
            return None
        from handoffwatch.boundary.snapshots import Snapshots

        with self._lock:
            known = self._kept.get(wanted.directory)
            if known is None:
                snapshots = Snapshots(
                    wanted.directory,
                    retention_days=wanted.retention_days,
                    max_bytes=wanted.max_bytes,
                    clock=self._clock,
                )
                known = self._kept[wanted.directory] = _Kept(snapshots, wanted.max_bytes)
            return known.snapshots

    def written(self, route: str, size_bytes: int) -> None:
        """Take note of a snapshot; from time to time the folder is looked through for old ones, in a thread.

        That is at the first snapshot, then after 600 seconds, or once a tenth of what the folder may hold was written.
        """
        kept = self._kept[self._settings.snapshot_of(route).directory]
        now_s = self._clock.monotonic_s()
        with self._lock:
            kept.written_bytes += size_bytes
            is_much = kept.written_bytes >= _PRUNE_SHARE * kept.max_bytes
            if kept.looked_s is not None and now_s - kept.looked_s < PRUNE_EVERY_S and not is_much:
                return
            kept.looked_s, kept.written_bytes = now_s, 0
        try:
            _PRUNING.start(lambda: self._prune(kept.snapshots))
        except ThreadsExhausted:
            kept.looked_s = None  # the next snapshot tries again

    def _prune(self, snapshots: Snapshots) -> None:
        try:
            while not snapshots.prune(self._clock.wall_s()).is_done:
                pass
        except Exception as error:  # noqa: BLE001 - a recorder fails open; what is left is removed the next time
            self._failed(error)
