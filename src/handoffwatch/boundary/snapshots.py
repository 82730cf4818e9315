"""Snapshots: the states before and after a crossing, as files that a person can compare."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.snapshot_files import FileFacts, OpenFolder, edited, is_temporary, opened
from handoffwatch.boundary.snapshot_names import ATTEMPT_MAX, SnapshotName, name_of_file, snapshot_name
from handoffwatch.boundary.snapshot_text import snapshot_text
from handoffwatch.clock import Clock
from handoffwatch.errors import SnapshotUnavailable
from handoffwatch.values.canonical import Canonical
from handoffwatch.vocabulary import SnapshotStage

SNAPSHOTS_MAX: Final = 100_000
"""Snapshots that a folder keeps, however small they are, so that looking through it takes a second or two at most."""

REMOVED_MAX: Final = 1_000
"""Snapshots that one call removes; as many unfinished files that it removes, and loose ones that it repairs."""

_FILES_MAX: Final = 4 * SNAPSHOTS_MAX
_UNFINISHED_AGE_S: Final = 3_600.0
_SIDE_BYTES_MAX: Final = 1_048_576
_TEXT_CHARACTERS_MAX: Final = 200
_S_PER_DAY: Final = 86_400.0


class SnapshotMeta(BaseModel):
    """The side file of a snapshot: which it is, and what was left out of it.

    Attributes:
        format: Of the side file.
        file: The name of the file that holds the state.
        stage: On which side of the crossing it was taken.
        run_id: The run.
        handoff_id: The handoff.
        attempt: 1-based number of the try.
        route: `source->target`.
        schema_version: Of the state, as written; None when it has none.
        state_bytes: The size of the file.
        sha256: Of the file, so of the state without secrets.
        ignored_paths: Those of the policy that stood in the state and were never read.
        omitted_paths: Those of the policy that stood in the state and were not written.
        redacted_paths: Places at which something was redacted, at most 100.
        written_unix_s: When.
        product_version: Of handoffwatch.
        meta_sha256: Of all the other fields.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)

    format: Literal[1] = 1
    file: str
    stage: SnapshotStage
    run_id: str
    handoff_id: str
    attempt: int
    route: str
    schema_version: str | int | None
    state_bytes: int
    sha256: str
    ignored_paths: tuple[str, ...]
    omitted_paths: tuple[str, ...]
    redacted_paths: tuple[str, ...]
    written_unix_s: float
    product_version: str
    meta_sha256: str = ""

    @property
    def own_sha256(self) -> str:
        """The digest of all fields but the digest itself."""
        fields = self.model_dump(mode="json", exclude={"meta_sha256"})
        return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()


class StoredSnapshot(NamedTuple):
    """A snapshot that was read back.

    Attributes:
        meta: Its side file.
        state: Plain JSON data: dicts, lists, texts, numbers, true, false, null.
    """

    meta: SnapshotMeta
    state: Any


class SnapshotEntry(NamedTuple):
    """A snapshot that lies in the folder.

    Attributes:
        name: What it is called.
        size_bytes: Of both its files.
        written_unix_s: When the later of them was written.
        is_whole: Whether both are there.
    """

    name: SnapshotName
    size_bytes: int
    written_unix_s: float
    is_whole: bool


class Pruned(NamedTuple):
    """What one call removed and left.

    Attributes:
        removed: Snapshots that were removed.
        removed_bytes: Their size.
        kept: Snapshots that are left, of those that were looked at.
        kept_bytes: Their size.
        is_done: Whether nothing is left to remove or repair; else another call goes on.
    """

    removed: int
    removed_bytes: int
    kept: int
    kept_bytes: int
    is_done: bool


class Snapshots:
    """The snapshots of one folder. Any number of threads and processes may write, read and prune at once.

    The folder is 0700, its files 0600, from the moment they are made. Loose rights of a folder or file that was there
    before are taken away and logged as a warning. All calls block: from async code, run them off the loop.

    Args:
        directory: The folder; made with the first snapshot. One that is relative stays where it is now.
        retention_days: Days that a snapshot is kept; more than 0.
        max_bytes: The size of all snapshots together; at least 1.
        clock: Time and waiting.

    Source: DESIGN section 8.
    """

    def __init__(
        self, directory: str | Path, *, retention_days: float, max_bytes: int, clock: Clock | None = None
    ) -> None:
        self._folder = Path(directory).absolute()
        self._retention_s = retention_days * _S_PER_DAY
        self._max_bytes = max_bytes
        self._clock = clock or Clock()

    def write_snapshot(
        self,
        form: Canonical,
        *,
        policy: BoundaryPolicy,
        stage: SnapshotStage,
        run_id: str,
        handoff_id: str,
        attempt: int,
        route: str,
        is_new: bool = False,
    ) -> SnapshotMeta:
        """Write a state and its side file, in the place of a snapshot of the same name; return the side file.

        Args:
            form: The canonical form of the state, by the rules of the policy. It is not changed.
            policy: Says what is redacted and omitted.
            stage: On which side of the crossing the state was captured.
            run_id: The run.
            handoff_id: The handoff; any text.
            attempt: 1-based number of the try.
            route: `source->target`.
            is_new: Whether a snapshot that is there stays: a handoff that is sent again gets the next number under
                which none of this stage lies. The side file says which.

        Raises:
            SnapshotUnavailable: Nothing was written: the disk is full, the folder is not writable or a symbolic link,
                or the state has no canonical form.
        """
        if form.faults:
            raise SnapshotUnavailable(
                "snapshots: state: must have a canonical form, got one with faults",
                hint="correct what the findings of the capture name",
            )
        name = snapshot_name(handoff_id, stage=stage, attempt=attempt)
        text = snapshot_text(form, policy)
        told = policy.redaction.redacted({"run_id": run_id, "handoff_id": handoff_id, "route": route})
        meta = SnapshotMeta(
            file=name.state_file,
            stage=name.stage,
            run_id=told["run_id"][:_TEXT_CHARACTERS_MAX],
            handoff_id=told["handoff_id"][:_TEXT_CHARACTERS_MAX],
            attempt=attempt,
            route=told["route"][:_TEXT_CHARACTERS_MAX],
            schema_version=text.schema_version,
            state_bytes=len(text.json),
            sha256=hashlib.sha256(text.json).hexdigest(),
            ignored_paths=text.ignored,
            omitted_paths=text.omitted,
            redacted_paths=text.redacted,
            written_unix_s=self._clock.wall_s(),
            product_version=_product_version(),
        )
        with opened(self._folder, clock=self._clock, is_made=True) as folder:
            with folder.temporary(text.json, written_unix_s=meta.written_unix_s) as state_file, folder.locked():
                name = _free(folder, name) if is_new else name
                meta = meta.model_copy(update={"file": name.state_file, "attempt": name.attempt})
                meta = meta.model_copy(update={"meta_sha256": meta.own_sha256})
                _put(folder, name, state_file, meta)
            folder.sync()
        return meta

    def read_snapshot(self, handoff_id: str, stage: SnapshotStage, attempt: int = 1) -> StoredSnapshot:
        """Return a snapshot as plain JSON data; no object is ever built from it.

        Raises:
            SnapshotUnavailable: It is not there, or cannot be read.
            SnapshotEdited: One of its files is not what was written.
        """
        return self.read_entry(snapshot_name(handoff_id, stage=stage, attempt=attempt))

    def read_entry(self, name: SnapshotName) -> StoredSnapshot:
        """Return a snapshot by the name that `list_snapshots` gave; otherwise as `read_snapshot`."""
        with opened(self._folder, clock=self._clock) as folder, folder.locked(is_shared=True):
            meta = _meta(folder.read(name.meta_file, bytes_max=_SIDE_BYTES_MAX), name)
            state = folder.read(name.state_file, bytes_max=meta.state_bytes)
        if hashlib.sha256(state).hexdigest() != meta.sha256:
            raise edited(name.state_file)
        try:
            return StoredSnapshot(meta, orjson.loads(state))
        except ValueError:
            raise edited(name.state_file) from None

    def list_snapshots(self) -> list[SnapshotEntry]:
        """Return the snapshots of the folder, the oldest first; those of which a file is missing too.

        Raises:
            SnapshotUnavailable: The folder cannot be read.
        """
        if not os.path.lexists(self._folder):
            return []
        with opened(self._folder, clock=self._clock) as folder:
            return _survey(folder).entries

    def prune(self, now_unix_s: float) -> Pruned:
        """Remove snapshots that are too old or too many, the oldest first, both files of a snapshot together.

        One call looks at 400,000 files and removes 1,000 snapshots at most; it takes a second or two when there are so
        many. Of all snapshots, 100,000 are kept at most. Files that no snapshot has are left alone.

        Args:
            now_unix_s: The time against which age is measured.

        Raises:
            SnapshotUnavailable: The folder cannot be read or written.
        """
        if not os.path.lexists(self._folder):
            return Pruned(0, 0, 0, 0, True)
        with opened(self._folder, clock=self._clock) as folder:
            entries, unfinished, loose = _survey(folder)
            due = self._due(entries, now_unix_s)
            left_unix_s = self._clock.wall_s() - _UNFINISHED_AGE_S
            left = [file.name for file in unfinished if file.written_unix_s < left_unix_s]
            with folder.locked():
                removed = [entry for entry in due[:REMOVED_MAX] if _is_removed(folder, entry)]
                for name in left[:REMOVED_MAX]:
                    folder.remove(name)
            for name in loose[:REMOVED_MAX]:
                folder.tighten(name)
        removed_bytes = sum(entry.size_bytes for entry in removed)
        return Pruned(
            removed=len(removed),
            removed_bytes=removed_bytes,
            kept=len(entries) - len(removed),
            kept_bytes=sum(entry.size_bytes for entry in entries) - removed_bytes,
            is_done=max(len(due), len(left), len(loose)) <= REMOVED_MAX,
        )

    def _due(self, entries: list[SnapshotEntry], now_unix_s: float) -> list[SnapshotEntry]:
        """Return which snapshots must go: the first ones, since they are the oldest."""
        bytes_left = sum(entry.size_bytes for entry in entries)
        for index, entry in enumerate(entries):
            is_old = now_unix_s - entry.written_unix_s > self._retention_s
            if not (is_old or bytes_left > self._max_bytes or len(entries) - index > SNAPSHOTS_MAX):
                return entries[:index]
            bytes_left -= entry.size_bytes
        return entries


def _put(folder: OpenFolder, name: SnapshotName, state_file: str, meta: SnapshotMeta) -> None:
    """Put both files in place; in between there is no side file, so that no reader takes the two for one."""
    side = orjson.dumps(meta.model_dump(mode="json"), option=orjson.OPT_INDENT_2)
    with folder.temporary(side, written_unix_s=meta.written_unix_s) as side_file:
        folder.refuse_other_than_files(name.state_file, name.meta_file)
        folder.remove(name.meta_file)
        try:
            folder.rename(state_file, name.state_file)
            folder.rename(side_file, name.meta_file)
        except BaseException:
            folder.remove(name.meta_file)
            folder.remove(name.state_file)
            raise


def _free(folder: OpenFolder, name: SnapshotName) -> SnapshotName:
    """Return a name with the first number from its own on under which nothing lies.

    It is looked for in steps that double, so a number may be left out where snapshots between were removed.

    Raises:
        SnapshotUnavailable: No number is left.
    """
    taken, step = name.attempt - 1, 1
    while step:
        tried = taken + step
        is_taken = tried <= ATTEMPT_MAX and _is_there(folder, name._replace(attempt=tried))
        if is_taken:
            taken, step = tried, step * 2
        else:
            step //= 2
    if taken == ATTEMPT_MAX:
        raise SnapshotUnavailable(
            "snapshots: attempt: must be a number that is free, got an id that has used up all",
            hint="give each handoff an id of its own",
        )
    return name._replace(attempt=taken + 1)


def _is_there(folder: OpenFolder, name: SnapshotName) -> bool:
    """Return whether something lies under a name; what left must not meet what arrived from another crossing."""
    stages = SnapshotStage if name.stage is SnapshotStage.BEFORE else (name.stage,)
    names = [name._replace(stage=stage) for stage in stages]
    return any(folder.facts_of(file) is not None for each in names for file in (each.state_file, each.meta_file))


class _Survey(NamedTuple):
    """What lies in a folder: the snapshots, oldest first, unfinished files, and the names of those that are loose."""

    entries: list[SnapshotEntry]
    unfinished: list[FileFacts]
    loose: list[str]


def _survey(folder: OpenFolder) -> _Survey:
    parts: dict[SnapshotName, list[FileFacts]] = {}
    survey = _Survey([], [], [])
    for file in itertools.islice(folder.names(), _FILES_MAX):
        name = name_of_file(file)
        facts = folder.facts_of(file) if name is not None or is_temporary(file) else None
        if facts is None:
            continue
        (survey.unfinished if name is None else parts.setdefault(name, [])).append(facts)
        if facts.is_loose:
            survey.loose.append(file)
    for name, both in parts.items():
        size_bytes = sum(facts.size_bytes for facts in both)
        written_unix_s = max(facts.written_unix_s for facts in both)
        survey.entries.append(SnapshotEntry(name, size_bytes, written_unix_s, is_whole=len(both) == 2))
    survey.entries.sort(key=lambda entry: (entry.written_unix_s, entry.name))
    return survey


def _is_removed(folder: OpenFolder, entry: SnapshotEntry) -> bool:
    """Remove a snapshot unless it was written again since; return whether it was removed."""
    names = (entry.name.meta_file, entry.name.state_file)
    written = [facts.written_unix_s for facts in map(folder.facts_of, names) if facts is not None]
    if not written or max(written) != entry.written_unix_s:
        return False
    for name in names:
        folder.remove(name)
    return True


@functools.cache
def _product_version() -> str:
    return version("handoffwatch")


def _meta(side: bytes, name: SnapshotName) -> SnapshotMeta:
    try:
        meta = SnapshotMeta.model_validate_json(side)
    except ValidationError:
        raise edited(name.meta_file) from None
    if meta.meta_sha256 != meta.own_sha256 or meta.file != name.state_file:
        raise edited(name.meta_file)
    return meta
