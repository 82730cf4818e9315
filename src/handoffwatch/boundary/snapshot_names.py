"""The names of snapshot files: safe for any handoff id, and no two ids share one."""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

from handoffwatch.errors import SnapshotUnavailable
from handoffwatch.values.secret_names import is_secret_name
from handoffwatch.values.secret_shapes import without_secrets
from handoffwatch.vocabulary import SnapshotStage

ATTEMPT_MAX: Final = 999_999_999

_PLAIN_ID: Final = re.compile(r"[a-z0-9_-]{1,100}")
_FILE: Final = re.compile(
    r"(?P<stem>[a-z0-9_-]{1,100}|~[0-9a-f]{64})"
    r"(?:\.(?P<attempt>[2-9]|[1-9][0-9]{1,8}))?\.(?P<stage>before|after)(?P<meta>\.meta)?\.json"
)


class SnapshotName(NamedTuple):
    """What a snapshot is called.

    Attributes:
        stem: The handoff id, or `~` and the SHA-256 of one that is no safe name.
        attempt: 1-based number of the try.
        stage: On which side of the crossing it was taken.
    """

    stem: str
    attempt: int
    stage: SnapshotStage

    @property
    def state_file(self) -> str:
        """The name of the file that holds the state."""
        return f"{self._base}.json"

    @property
    def meta_file(self) -> str:
        """The name of the side file."""
        return f"{self._base}.meta.json"

    @property
    def _base(self) -> str:
        return f"{self.stem}.{self.stage}" if self.attempt == 1 else f"{self.stem}.{self.attempt}.{self.stage}"


def snapshot_name(handoff_id: str, *, stage: SnapshotStage, attempt: int = 1) -> SnapshotName:
    """Return the name of a snapshot.

    An id of other characters than `a-z`, `0-9`, `_` and `-`, of more than 100, or of the shape of a secret is told by
    its hash.

    Args:
        handoff_id: Any text.
        stage: On which side of the crossing it was taken.
        attempt: 1-based number of the try, 1 to 999,999,999.

    Raises:
        SnapshotUnavailable: The attempt is none.

    Source: DESIGN section 8.
    """
    if not 1 <= attempt <= ATTEMPT_MAX:
        raise SnapshotUnavailable(
            f"snapshots: attempt: must be 1 to {ATTEMPT_MAX}, got a number outside", hint="count attempts from 1"
        )
    is_plain = _PLAIN_ID.fullmatch(handoff_id) and without_secrets(handoff_id, is_secret=is_secret_name) == handoff_id
    stem = handoff_id if is_plain else f"~{hashlib.sha256(handoff_id.encode(errors='surrogatepass')).hexdigest()}"
    return SnapshotName(stem, attempt, SnapshotStage(stage))


def name_of_file(file: str) -> SnapshotName | None:
    """Return the name of the snapshot that a state file or a side file belongs to; None for any other file."""
    found = _FILE.fullmatch(file)
    if found is None:
        return None
    return SnapshotName(found["stem"], int(found["attempt"] or 1), SnapshotStage(found["stage"]))
