"""Artefacts: what a state only names must be on the far side too, in the named revision, size and content."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from handoffwatch.boundary.comparison import Comparison, Found
from handoffwatch.boundary.findings import finding_of
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.values.json_text import kind_of
from handoffwatch.values.paths import places

ARTIFACTS_MAX: Final = 1_000
"""Artefacts of one state that are checked; a state with more does not pass."""

ARTIFACT_BYTES_MAX: Final = 1_073_741_824
"""The most bytes of one artefact that are read."""

_CHUNK_BYTES: Final = 1_048_576
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

Revision = str | int | None


class Artifact(NamedTuple):
    """An artefact as the far side has it.

    Attributes:
        content: Open for reading, and closed by the check; or the path of its file.
        revision: The revision that the far side has; None when it knows none but the one that was asked for.
    """

    content: BinaryIO | str | Path
    revision: Revision = None


OpenArtifact = Callable[[str, Revision], Artifact | BinaryIO | str | Path | None]
"""Called with an id and a revision; None, or a LookupError or FileNotFoundError, says that it is not there."""


class _Declared(NamedTuple):
    id: str
    revision: Revision
    size: int | None
    sha256: str


def check_artifacts(
    state: object, policy: BoundaryPolicy, *, open: OpenArtifact, bytes_max: int = ARTIFACT_BYTES_MAX
) -> Comparison:
    """Return where an artefact that a state names is not on this side as it is named; nothing is raised.

    An entry is `{id, revision, size, sha256}`; id and sha256 (hexadecimal, small letters) must be there. What is read
    is read in pieces, never more than the size that is declared, or `bytes_max`. It blocks: from async code, run it off
    the loop.

    Args:
        state: That of the far side, as plain JSON data: `Canonical.value`.
        policy: Says at which paths lists of artefacts stand. One that leads nowhere names none.
        open: Opens an artefact of this side.
        bytes_max: The most bytes of one artefact; at least 1.
    """
    return Comparison.of(_found(state, policy, open, bytes_max))


def _found(state: object, policy: BoundaryPolicy, open: OpenArtifact, bytes_max: int) -> Found:
    named = ((path, *entry) for path in policy.artifacts for entry in _entries(state, path))
    for index, (pattern, place, entry) in enumerate(named):
        shown = policy.shown(place)
        if index == ARTIFACTS_MAX:
            yield finding_of("artifact_changed", shown, f"{shown} must be one of at most {ARTIFACTS_MAX}"), pattern
            break
        try:
            wrong = _wrong(entry, open, bytes_max)
        except Exception as error:  # noqa: BLE001 - a store that raises proves nothing: it fails closed
            sentence = f"{shown}: opening or reading it raised {kind_of(error)}, so nothing was proven"
            yield finding_of("check_failed", shown, sentence), pattern
        else:
            if wrong is not None:
                path = f"{shown}.{wrong[0]}" if wrong[0] else shown
                yield finding_of("artifact_changed", path, f"{path} {wrong[1]}"), pattern


def _entries(state: object, path: str) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yield the entries of the lists at a path; what is no list is an entry, and a wrong one."""
    for place, value in places(state, path):
        if isinstance(value, list):
            yield from (((*place, index), entry) for index, entry in enumerate(value))
        else:
            yield place, value


def _wrong(entry: object, open: OpenArtifact, bytes_max: int) -> tuple[str, str] | None:
    """Return the field that is wrong, or no field when it is the artefact, and what would be right."""
    declared = _declared(entry)
    if not isinstance(declared, _Declared):
        return declared
    if declared.size is not None and declared.size > bytes_max:
        return "size", f"must be at most {bytes_max} bytes"
    try:
        answer = open(declared.id, declared.revision)
        artifact = answer if isinstance(answer, Artifact) else Artifact(answer) if answer is not None else None
        content = None if artifact is None else _opened(artifact.content)
    except (LookupError, FileNotFoundError):
        artifact = content = None
    if artifact is None or content is None:
        return "", "must name an artefact that is there on the far side"
    with closing(content):
        if None not in (artifact.revision, declared.revision) and str(artifact.revision) != str(declared.revision):
            return "revision", "must be the revision that is there on the far side"
        return _wrong_content(content, declared, bytes_max)


def _wrong_content(content: BinaryIO, declared: _Declared, bytes_max: int) -> tuple[str, str] | None:
    limit = bytes_max if declared.size is None else declared.size
    digest, size = hashlib.sha256(), 0
    while size <= limit and (piece := content.read(min(_CHUNK_BYTES, limit + 1 - size))):
        digest.update(piece)
        size += len(piece)
    if declared.size is not None and size != declared.size:
        return "size", "must be the size of the artefact on the far side"
    if size > limit:
        return "", f"must name an artefact of at most {bytes_max} bytes"
    if digest.hexdigest() != declared.sha256:
        return "sha256", "must be the digest of the artefact on the far side"
    return None


def _declared(entry: object) -> _Declared | tuple[str, str]:
    if not isinstance(entry, dict):
        return "", "must be an object of id, revision, size and sha256"
    fields: dict[str, Any] = {name: entry.get(name) for name in _Declared._fields}
    if not isinstance(fields["id"], str) or not fields["id"]:
        return "id", "must be a text that is not empty"
    if fields["revision"] is not None and type(fields["revision"]) not in (str, int):
        return "revision", "must be a text or an integer"
    if fields["size"] is not None and (type(fields["size"]) is not int or fields["size"] < 0):
        return "size", "must be an integer of at least 0"
    if not isinstance(fields["sha256"], str) or not _SHA256.fullmatch(fields["sha256"]):
        return "sha256", "must be 64 hexadecimal digits in small letters"
    return _Declared(**fields)


def _opened(content: BinaryIO | str | Path) -> BinaryIO:
    """Return a file that is open for reading; one of a path is not waited for, whatever stands there."""
    if isinstance(content, str | Path):
        return open(content, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))
    return content
