"""A folder of snapshots on still time, and what lies in it."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.snapshots import SnapshotMeta, Snapshots
from handoffwatch.clock import Clock
from handoffwatch.values.canonical import canonical_form
from handoffwatch.vocabulary import SnapshotStage
from support.outcomes import StillClock

POLICY = BoundaryPolicy(
    exact_paths=("task.id",),
    ignore_paths=("created_at", "runtime.*"),
    redact=("credentials", "task.pin"),
    secret=("tool_inputs.raw",),
    omit=("attachments",),
)

DAY_S = 86_400.0


@dataclass
class SnapshotDesk:
    """Writes the snapshots of a test.

    Attributes:
        directory: The folder.
        retention_days: Days that a snapshot is kept.
        max_bytes: The size of all of them.
        time: Moves only when a test moves it.
        is_real: Whether time moves by itself, so that threads and processes can wait for each other.
    """

    directory: Path
    retention_days: float = 14.0
    max_bytes: int = 1_048_576
    time: StillClock = field(default_factory=StillClock)
    is_real: bool = False

    @property
    def snapshots(self) -> Snapshots:
        """The folder's snapshots, as another process would open them."""
        clock = Clock() if self.is_real else self.time.clock()
        return Snapshots(self.directory, retention_days=self.retention_days, max_bytes=self.max_bytes, clock=clock)

    def write(
        self,
        state: object,
        *,
        handoff_id: str = "h-1",
        stage: SnapshotStage = SnapshotStage.BEFORE,
        attempt: int = 1,
        policy: BoundaryPolicy = POLICY,
        run_id: str = "r-1",
        route: str = "planner->executor",
    ) -> SnapshotMeta:
        """Write a state as it is captured under the policy."""
        return self.snapshots.write_snapshot(
            canonical_form(state, rules=policy.rules),
            policy=policy,
            stage=stage,
            run_id=run_id,
            handoff_id=handoff_id,
            attempt=attempt,
            route=route,
        )

    def files(self) -> list[str]:
        """Return the names of all that lies in the folder."""
        return sorted(path.name for path in self.directory.iterdir()) if self.directory.exists() else []

    def content(self) -> str:
        """Return the names and content of all files, one behind the other."""
        return "\n".join(f"{path.name}\n{path.read_text()}" for path in sorted(self.directory.iterdir()))


def rights(path: Path) -> int:
    """Return the rights of a file or folder."""
    return stat.S_IMODE(path.stat().st_mode)


def nested(path: str, value: Any) -> dict[str, Any]:
    """Return a state that holds one value at a path of keys."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value  # type: ignore[no-any-return]
