"""Artefacts: what a state only names must be on the far side too, in the named revision, size and content."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from handoffwatch.boundary import artifacts
from handoffwatch.boundary.artifacts import Artifact, OpenArtifact, check_artifacts
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.decision import Finding
from handoffwatch.vocabulary import Reaction, Severity

POLICY = BoundaryPolicy(artifacts=("artifacts",))
CONTENT = b"the report" * 100
DIGEST = hashlib.sha256(CONTENT).hexdigest()
OTHER_SIZE = "must be the size of the artefact on the far side"
OTHER_DIGEST = "must be the digest of the artefact on the far side"
OTHER_REVISION = "must be the revision that is there on the far side"
NOT_THERE = "must name an artefact that is there on the far side"
ENTRY = {"id": "report", "revision": "3", "size": len(CONTENT), "sha256": DIGEST}


def state_of(**changes: Any) -> dict[str, Any]:
    """Return a state that names one artefact; a field that is given as `...` is left out."""
    return {"artifacts": [{name: value for name, value in (ENTRY | changes).items() if value is not ...}]}


def wrong_in(state: object, policy: BoundaryPolicy, **options: Any) -> tuple[Finding, ...]:
    """Return what is wrong with the artefacts of a state."""
    return check_artifacts(state, policy, **options).findings


def holding(content: Any = CONTENT, revision: Any = "3") -> OpenArtifact:
    """Return how the far side opens the one artefact that it has."""

    def open_artifact(artifact_id: str, _revision: object) -> Artifact | None:
        if artifact_id != "report":
            return None
        return Artifact(io.BytesIO(content) if isinstance(content, bytes) else content, revision)

    return open_artifact


def changed(path: str, sentence: str) -> tuple[Finding, ...]:
    """Return the one finding that blocks."""
    return (Finding("artifact_changed", path, f"{path} {sentence}", Reaction.BLOCK, Severity.ERROR, False, "validate"),)


@pytest.mark.parametrize("left_out", [{}, {"size": ...}, {"revision": ...}, {"revision": None, "size": None}])
def test_artifact_passes_when_it_is_as_named(left_out: dict[str, Any]) -> None:
    """Revision and size are checked where they are named; the digest always is."""
    assert wrong_in(state_of(**left_out), POLICY, open=holding()) == ()


def test_artifact_passes_when_the_host_gives_a_file_or_a_path(tmp_path: Path) -> None:
    """A host opens the artefact itself, or says where its file is."""
    path = tmp_path / "report"
    path.write_bytes(CONTENT)
    for answer in (io.BytesIO(CONTENT), path, str(path), Artifact(path), Artifact(path, 3)):
        assert wrong_in(state_of(revision=3), POLICY, open=lambda _id, _revision, answer=answer: answer) == ()


def test_host_is_asked_for_id_and_revision_when_a_state_names_them() -> None:
    """The host opens exactly what the state names, once each, in order."""
    asked: list[tuple[str, object]] = []

    def open_artifact(artifact_id: str, revision: object) -> BinaryIO:
        asked.append((artifact_id, revision))
        return io.BytesIO(CONTENT)

    state = {"artifacts": [ENTRY, ENTRY | {"id": "b", "revision": 7}, ENTRY | {"id": "c", "revision": None}]}
    assert wrong_in(state, POLICY, open=open_artifact) == ()
    assert asked == [("report", "3"), ("b", 7), ("c", None)]


@pytest.mark.parametrize(
    ("state", "far_side", "path", "sentence"),
    [
        (state_of(id="other"), holding(), "artifacts.0", NOT_THERE),
        (state_of(), holding(CONTENT[:-1]), "artifacts.0.size", OTHER_SIZE),
        (state_of(), holding(CONTENT + b"x"), "artifacts.0.size", OTHER_SIZE),
        (state_of(), holding(b""), "artifacts.0.size", OTHER_SIZE),
        (state_of(size=0), holding(), "artifacts.0.size", OTHER_SIZE),
        (state_of(), holding(b"X" + CONTENT[1:]), "artifacts.0.sha256", OTHER_DIGEST),
        (state_of(size=...), holding(CONTENT + b"x"), "artifacts.0.sha256", OTHER_DIGEST),
        (state_of(), holding(revision="2"), "artifacts.0.revision", OTHER_REVISION),
        (state_of(revision=3), holding(revision=4), "artifacts.0.revision", OTHER_REVISION),
    ],
)
def test_finding_names_the_field_when_the_artifact_differs(
    state: dict[str, Any], far_side: OpenArtifact, path: str, sentence: str
) -> None:
    """What is missing, and another revision, size or content, is told by its path."""
    assert wrong_in(state, POLICY, open=far_side) == changed(path, sentence)


@pytest.mark.parametrize("error", [KeyError("report"), FileNotFoundError("report"), IndexError()])
def test_artifact_is_missing_when_the_host_says_so_by_an_error(error: Exception) -> None:
    """The errors of look-ups are answers."""

    def open_artifact(_id: str, _revision: object) -> None:
        raise error

    found = wrong_in(state_of(), POLICY, open=open_artifact)
    assert found == changed("artifacts.0", NOT_THERE)
    missing = wrong_in(state_of(), POLICY, open=lambda _id, _revision: "/nowhere/at/all")
    assert missing == found


@pytest.mark.parametrize(
    ("entry", "path", "sentence"),
    [
        ("report", "artifacts.0", "must be an object of id, revision, size and sha256"),
        (None, "artifacts.0", "must be an object of id, revision, size and sha256"),
        (ENTRY | {"id": ""}, "artifacts.0.id", "must be a text that is not empty"),
        (ENTRY | {"id": 7}, "artifacts.0.id", "must be a text that is not empty"),
        ({}, "artifacts.0.id", "must be a text that is not empty"),
        (ENTRY | {"revision": 1.5}, "artifacts.0.revision", "must be a text or an integer"),
        (ENTRY | {"revision": True}, "artifacts.0.revision", "must be a text or an integer"),
        (ENTRY | {"size": -1}, "artifacts.0.size", "must be an integer of at least 0"),
        (ENTRY | {"size": "1000"}, "artifacts.0.size", "must be an integer of at least 0"),
        (ENTRY | {"size": True}, "artifacts.0.size", "must be an integer of at least 0"),
        (ENTRY | {"sha256": DIGEST.upper()}, "artifacts.0.sha256", "must be 64 hexadecimal digits in small letters"),
        (ENTRY | {"sha256": None}, "artifacts.0.sha256", "must be 64 hexadecimal digits in small letters"),
        (ENTRY | {"sha256": DIGEST + "\n"}, "artifacts.0.sha256", "must be 64 hexadecimal digits in small letters"),
    ],
)
def test_finding_names_the_field_when_an_entry_is_none(entry: object, path: str, sentence: str) -> None:
    """What cannot be checked does not pass, and the host is not asked for it."""

    def refuse(_id: str, _revision: object) -> None:
        raise AssertionError("the host was asked")

    assert wrong_in({"artifacts": [entry]}, POLICY, open=refuse) == changed(path, sentence)


def test_entry_is_wrong_when_there_is_no_list() -> None:
    """What stands at the path must be a list."""
    found = wrong_in({"artifacts": ENTRY["id"]}, POLICY, open=holding())
    assert found == changed("artifacts", "must be an object of id, revision, size and sha256")
    assert wrong_in({"artifacts": []}, POLICY, open=holding()) == ()
    assert wrong_in({}, POLICY, open=holding()) == ()


def test_every_wrong_artifact_is_named_when_there_are_more() -> None:
    """All findings come at once, in the order of the paths."""
    state = {"artifacts": [ENTRY, ENTRY | {"id": "x"}], "task": {"a": {"files": [ENTRY | {"size": 1}]}}}
    policy = BoundaryPolicy(artifacts=("artifacts", "task.*.files"))
    found = wrong_in(state, policy, open=holding())
    assert [finding.path for finding in found] == ["artifacts.1", "task.a.files.0.size"]


class _Endless(io.RawIOBase):
    """A file without an end, which counts what is read."""

    def __init__(self) -> None:
        self.pieces: list[int] = []

    def read(self, size: int = -1) -> bytes:
        """Return as many bytes as asked."""
        self.pieces.append(size)
        return b"x" * size


@pytest.mark.parametrize(
    ("size", "bytes_max", "pieces", "path", "sentence"),
    [
        (5_000_000, 1 << 30, [1_048_576] * 4 + [805_697], "artifacts.0.size", OTHER_SIZE),
        (..., 2_000_000, [1_048_576, 951_425], "artifacts.0", "must name an artefact of at most 2000000 bytes"),
    ],
)
def test_reading_ends_when_the_artifact_does_not(
    size: Any, bytes_max: int, pieces: list[int], path: str, sentence: str
) -> None:
    """It is read in pieces, and no further than one byte beyond what is right."""
    endless = _Endless()
    found = wrong_in(state_of(size=size), POLICY, open=holding(endless), bytes_max=bytes_max)
    assert found == changed(path, sentence)
    assert endless.pieces == pieces
    assert endless.closed


def test_artifact_is_not_opened_when_it_is_declared_too_large() -> None:
    """A size beyond the limit is refused unread; at the limit it is read."""
    size = len(CONTENT)
    found = wrong_in(state_of(), POLICY, open=holding(), bytes_max=size - 1)
    assert found == changed("artifacts.0.size", f"must be at most {size - 1} bytes")
    assert wrong_in(state_of(), POLICY, open=holding(), bytes_max=size) == ()
    assert wrong_in(state_of(size=...), POLICY, open=holding(), bytes_max=size) == ()


def test_check_ends_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state with more artefacts than are checked does not pass."""
    monkeypatch.setattr(artifacts, "ARTIFACTS_MAX", 2)
    assert wrong_in({"artifacts": [ENTRY] * 2}, POLICY, open=holding()) == ()
    found = wrong_in({"artifacts": [ENTRY] * 9}, POLICY, open=holding())
    assert found == changed("artifacts.2", "must be one of at most 2")


class _Broken(io.BytesIO):
    def read(self, _size: int | None = -1) -> bytes:
        """Fail as a network does, with a secret in the message."""
        raise TimeoutError("token=hunter2")


@pytest.mark.parametrize("content", [_Broken(), io.StringIO("text"), object()])
def test_check_fails_closed_when_the_host_does(content: Any) -> None:
    """A store that raises, or gives something that is no file, proves nothing; what it says is not repeated."""
    (finding,) = wrong_in(state_of(), POLICY, open=holding(content))
    assert (finding.code, finding.path, finding.reaction) == ("check_failed", "artifacts.0", Reaction.BLOCK)
    assert "hunter2" not in finding.sentence
    assert finding.sentence.startswith("artifacts.0: opening or reading it raised ")


def test_check_does_not_wait_when_the_path_is_a_pipe(tmp_path: Path) -> None:
    """A pipe that nobody writes to is no artefact, and neither is a folder."""
    os.mkfifo(tmp_path / "pipe")
    found = wrong_in(state_of(), POLICY, open=holding(tmp_path / "pipe"))
    assert found == changed("artifacts.0.size", OTHER_SIZE)
    assert [each.code for each in wrong_in(state_of(), POLICY, open=holding(tmp_path))] == ["check_failed"]


def test_content_is_closed_when_it_was_read() -> None:
    """Right or wrong, no file stays open."""
    for content, revision in ((CONTENT, "3"), (b"", "3"), (CONTENT, "4")):
        file = io.BytesIO(content)
        wrong_in(state_of(), POLICY, open=lambda _id, _revision, file=file, is_=revision: Artifact(file, is_))
        assert file.closed


def test_finding_holds_no_secret_when_a_key_does() -> None:
    """Keys on the way to an artefact are told without the secrets in them."""
    policy = BoundaryPolicy(artifacts=("by_owner.*",))
    state = {"by_owner": {"Bearer abc0DEF1ghi2JKL3mno4pqr5": [ENTRY | {"size": 1}]}}
    (finding,) = wrong_in(state, policy, open=holding())
    assert finding.path == "by_owner.Bearer [redacted].0.size"
    assert "abc0DEF1ghi2JKL3mno4pqr5" not in str(finding)
