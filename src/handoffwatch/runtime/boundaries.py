"""The boundaries of a Watch's routes: what must survive there, and where its states are kept."""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING

from handoffwatch.boundary.transforms import Transforms
from handoffwatch.clock import Clock

if TYPE_CHECKING:
    from handoffwatch.boundary.policy import BoundaryPolicy
    from handoffwatch.boundary.settings import BoundarySettings
    from handoffwatch.boundary.snapshots import Snapshots


class Boundaries:
    """The policies of one Watch, by route. Thread-safe once all routes are registered.

    Args:
        settings: What the routes have that bring no policy of their own.
        clock: Times the snapshots.

    Attributes:
        transforms: Those that the settings may name.
        digest_key: What digests are keyed with that leave the process; new in each.
    """

    def __init__(self, settings: BoundarySettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.transforms = Transforms()
        self.digest_key = secrets.token_bytes(32)
        self._policies: dict[str, BoundaryPolicy] = {}
        self._snapshots: dict[str, Snapshots] = {}
        self._lock = threading.Lock()

    def add(self, route: str, policy: BoundaryPolicy | None) -> BoundaryPolicy:
        """Take note of a route's policy, and return it; None takes that of the settings.

        Raises:
            RegistrationError: The settings name a transform that nobody registered.
        """
        known = self._policies[route] = policy or self._settings.policy_of(route, transforms=self.transforms)
        return known

    def policy_of(self, route: str) -> BoundaryPolicy:
        """Return what must survive where a handoff of a route crosses; an unknown route has that of all routes."""
        return self._policies.get(route) or self._settings.policy_of(route, transforms=self.transforms)

    def snapshots_of(self, route: str) -> Snapshots | None:
        """Return where the states of a route are kept; None when they are not."""
        wanted = self._settings.snapshot_of(route)
        if not wanted.enabled:
            return None
        from handoffwatch.boundary.snapshots import Snapshots

        with self._lock:
            known = self._snapshots.get(wanted.directory)
            if known is None:
                known = self._snapshots[wanted.directory] = Snapshots(
                    wanted.directory,
                    retention_days=wanted.retention_days,
                    max_bytes=wanted.max_bytes,
                    clock=self._clock,
                )
            return known
