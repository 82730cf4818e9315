"""Snapshots on disk: for their owner alone, whole or not there, kept as long as asked, and read back as plain data."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from handoffwatch.boundary.snapshot_names import snapshot_name
from handoffwatch.boundary.snapshots import Pruned, StoredSnapshot
from handoffwatch.errors import HandoffwatchError, SnapshotEdited, SnapshotUnavailable
from handoffwatch.vocabulary import SnapshotStage
from support.snapshots import DAY_S, SnapshotDesk, rights

BEFORE, AFTER = SnapshotStage
STATE = {"schema_version": 1, "task": {"id": "t-1", "pin": 482913}, "created_at": "now", "attachments": ["x"]}
WRITTEN = b'{"schema_version":1,"task":{"id":"t-1","pin":"[redacted]"}}'


@pytest.fixture
def desk(tmp_path: Path) -> SnapshotDesk:
    """Return a desk whose folder is not there yet."""
    return SnapshotDesk(tmp_path / "handoff-snapshots")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Set the mask of new files for a while."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_files_hold_the_state_and_what_is_known_of_it_when_written(desk: SnapshotDesk) -> None:
    """The state file holds nothing but the state; everything else lies beside it."""
    meta = desk.write(STATE, attempt=2, stage=AFTER)
    assert desk.files() == ["h-1.2.after.json", "h-1.2.after.meta.json"]
    assert (desk.directory / "h-1.2.after.json").read_bytes() == WRITTEN
    side = json.loads((desk.directory / "h-1.2.after.meta.json").read_text())
    assert side.pop("product_version") == meta.product_version != ""
    assert side.pop("meta_sha256") == meta.own_sha256
    assert side == {
        "format": 1,
        "file": "h-1.2.after.json",
        "stage": "after",
        "run_id": "r-1",
        "handoff_id": "h-1",
        "attempt": 2,
        "route": "planner->executor",
        "schema_version": 1,
        "state_bytes": len(WRITTEN),
        "sha256": hashlib.sha256(WRITTEN).hexdigest(),
        "ignored_paths": ["created_at"],
        "omitted_paths": ["attachments"],
        "redacted_paths": ["task.pin"],
        "written_unix_s": 1_000_000.0,
    }


def test_files_are_equal_when_states_are_equal(desk: SnapshotDesk) -> None:
    """Whatever made the two states and whatever lies beside them, `sha256sum` says that they are equal."""
    desk.write(STATE, run_id="r-1")
    desk.time.advance(60)
    desk.write({"task": {"pin": 1, "id": "t-1"}, "schema_version": 1}, stage=AFTER, run_id="r-2")
    before, after = (desk.directory / f"h-1.{stage}.json" for stage in SnapshotStage)
    assert before.read_bytes() == after.read_bytes()


def test_state_is_as_it_was_when_it_was_written(desk: SnapshotDesk) -> None:
    """The sender's object keeps its secrets, and a later change of it is not in the file."""
    state = {"users": [{"password": "a"}, {"password": "b"}]}
    desk.write(state)
    assert state == {"users": [{"password": "a"}, {"password": "b"}]}
    state["users"].append({"password": "c"})
    assert desk.snapshots.read_snapshot("h-1", BEFORE).state == {"users": [{"password": "[redacted]"}] * 2}


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_rights_are_the_owners_alone_when_the_mask_allows_more(tmp_path: Path, mask: int) -> None:
    """Folders are 0700 and files 0600, whatever the mask of the process."""
    desk = SnapshotDesk(tmp_path / "new" / "snapshots")
    with umask(mask):
        desk.write(STATE)
    assert {rights(path) for path in desk.directory.iterdir()} == {0o600}
    assert (rights(desk.directory), rights(desk.directory.parent)) == (0o700, 0o700)


def test_rights_are_the_owners_alone_when_a_file_is_made(desk: SnapshotDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is open to others for a moment: it has its rights before it has a byte."""
    seen: list[tuple[int, int]] = []

    def fsync(descriptor: int) -> None:
        seen.append((os.fstat(descriptor).st_mode & 0o777, os.fstat(descriptor).st_size))

    opened: list[int] = []
    real_open = os.open

    def recording_open(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        descriptor = real_open(path, flags, mode, **options)
        if flags & os.O_CREAT:
            opened.append(os.fstat(descriptor).st_mode & 0o777)
        return descriptor

    monkeypatch.setattr(os, "open", recording_open)
    monkeypatch.setattr(os, "fsync", fsync)
    with umask(0):
        desk.write(STATE)
    assert opened == [0o600, 0o600]
    assert [mode for mode, _ in seen] == [0o600, 0o600, 0o700]
    assert seen[0][1] == len(WRITTEN)


def test_loose_folder_is_repaired_and_reported_when_it_was_there(
    desk: SnapshotDesk, caplog: pytest.LogCaptureFixture
) -> None:
    """Others lose their rights to a folder that was made by somebody else's mask, once."""
    desk.directory.mkdir()
    desk.directory.chmod(0o755)
    with caplog.at_level(logging.WARNING, logger="handoffwatch.boundary"):
        desk.write(STATE)
        desk.write(STATE)
    assert rights(desk.directory) == 0o700
    assert caplog.messages == [
        f"snapshots: {desk.directory}: others had rights to it (0755), and have none any more (0700)"
    ]


@pytest.mark.parametrize(
    "use", [lambda desk: desk.snapshots.read_snapshot("h-1", BEFORE), lambda desk: desk.snapshots.prune(0.0)]
)
def test_loose_files_are_repaired_and_reported_when_they_were_there(
    desk: SnapshotDesk, caplog: pytest.LogCaptureFixture, use: Callable[[SnapshotDesk], object]
) -> None:
    """Reading and pruning take the rights of others to a file away; foreign files are left alone."""
    desk.write(STATE)
    for path in desk.directory.iterdir():
        path.chmod(0o644)
    foreign = desk.directory / "notes.txt"
    foreign.touch(0o644)
    foreign.chmod(0o644)
    with caplog.at_level(logging.WARNING, logger="handoffwatch.boundary"):
        use(desk)
    assert sorted(caplog.messages) == [
        f"snapshots: {file}: others had rights to it (0644), and have none any more (0600)"
        for file in ("h-1.before.json", "h-1.before.meta.json")
    ]
    assert (rights(desk.directory / "h-1.before.json"), rights(foreign)) == (0o600, 0o644)


def test_loose_file_is_replaced_when_it_is_written_again(desk: SnapshotDesk) -> None:
    """The file that others could read is gone, and they who have it open read the old state."""
    desk.write({"a": 1})
    path = desk.directory / "h-1.before.json"
    path.chmod(0o644)
    with path.open("rb") as reader:
        desk.write({"a": 2})
        assert (reader.read(), path.read_bytes(), rights(path)) == (b'{"a":1}', b'{"a":2}', 0o600)


def test_symbolic_link_is_refused_when_it_stands_for_the_folder(desk: SnapshotDesk, tmp_path: Path) -> None:
    """Nothing is written where a link leads, be there a folder or not."""
    for target in ("elsewhere", "missing"):
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        desk.directory.symlink_to(tmp_path / target)
        for use in (lambda: desk.write(STATE), desk.snapshots.list_snapshots, lambda: desk.snapshots.prune(0.0)):
            with pytest.raises(SnapshotUnavailable) as caught:
                use()
            assert caught.value.message == (
                f"snapshots: {desk.directory}: must be a folder that can be read and written, got ENOTDIR"
            )
            assert caught.value.hint == "name a folder in snapshot.directory that is no symbolic link"
        desk.directory.unlink()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("file", ["h-1.before.json", "h-1.before.meta.json"])
@pytest.mark.parametrize(
    "make", [lambda path, to: path.symlink_to(to), lambda path, _: path.mkdir(), lambda path, _: os.mkfifo(path)]
)
def test_snapshot_is_refused_when_something_else_has_its_name(
    desk: SnapshotDesk, tmp_path: Path, file: str, make: Callable[[Path, Path], None]
) -> None:
    """A link, a folder or a pipe in the place of a file is neither followed nor replaced, written nor read."""
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    desk.write(STATE)
    (desk.directory / file).unlink()
    make(desk.directory / file, victim)
    for use in (lambda: desk.write(STATE), lambda: desk.snapshots.read_snapshot("h-1", BEFORE)):
        with pytest.raises(SnapshotUnavailable) as caught:
            use()
        assert not isinstance(caught.value, SnapshotEdited)
        assert caught.value.message == f"snapshots: {file}: must be a file, got something else"
    assert victim.read_text() == "untouched"
    assert desk.files() == ["h-1.before.json", "h-1.before.meta.json"]


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of the process grow beyond a size, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_nothing_is_left_when_the_disk_refuses_the_rest(desk: SnapshotDesk) -> None:
    """A file that could not be finished is gone, and the snapshot that was there before is whole."""
    desk.write({"a": 1})
    with file_size_limit(50), pytest.raises(SnapshotUnavailable) as caught:
        desk.write({"a": "x" * 100})
    assert caught.value.message == (
        f"snapshots: {desk.directory}: must be a folder that can be read and written, got EFBIG"
    )
    assert isinstance(caught.value, HandoffwatchError)
    assert desk.files() == ["h-1.before.json", "h-1.before.meta.json"]
    assert desk.snapshots.read_snapshot("h-1", BEFORE).state == {"a": 1}


@pytest.mark.parametrize("failing", ["write", "fsync", "first rename", "second rename"])
def test_nothing_is_left_when_the_disk_is_full(
    desk: SnapshotDesk, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Wherever the system refuses, there is an error that says so, and neither half of a file nor half a snapshot."""
    calls = 0

    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    real_replace = os.replace

    def full_at_second(*arguments: Any, **options: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            full()
        real_replace(*arguments, **options)

    with monkeypatch.context() as patch:
        if failing == "write":
            patch.setattr(os, "utime", full)
        elif failing == "fsync":
            patch.setattr(os, "fsync", full)
        else:
            patch.setattr(os, "replace", full if failing == "first rename" else full_at_second)
        with pytest.raises(SnapshotUnavailable) as caught:
            desk.write(STATE)
    assert str(caught.value) == (
        f"snapshots: {desk.directory}: must be a folder that can be read and written, got ENOSPC\n"
        "hint: free space on its disk, or lower snapshot.max_bytes and prune"
    )
    assert desk.files() == []
    desk.write(STATE)
    assert desk.snapshots.read_snapshot("h-1", BEFORE).state == json.loads(WRITTEN)


def _write_until_killed(directory: Path) -> None:
    real_replace = os.replace

    def replace_and_die(*arguments: Any, **options: Any) -> None:
        real_replace(*arguments, **options)
        os._exit(9)

    os.replace = replace_and_die
    SnapshotDesk(directory).write({"a": 2})


def test_snapshot_is_not_whole_when_its_writer_is_killed_halfway(desk: SnapshotDesk) -> None:
    """A new state never lies beside the side file of the one before, which would say that somebody edited it."""
    desk.write({"a": 1})
    process = get_context("fork").Process(target=_write_until_killed, args=(desk.directory,))
    process.start()
    process.join()
    assert process.exitcode == 9
    with pytest.raises(SnapshotUnavailable) as caught:
        desk.snapshots.read_snapshot("h-1", BEFORE)
    assert caught.value.message == "snapshots: h-1.before.meta.json: must be there, got no file"
    assert [entry.is_whole for entry in desk.snapshots.list_snapshots()] == [False]
    desk.write({"a": 3})
    assert desk.snapshots.read_snapshot("h-1", BEFORE).state == {"a": 3}


def _error_of_write(directory: Path, answers: Any) -> None:
    if os.geteuid() == 0:
        os.setuid(65_534)
    try:
        SnapshotDesk(directory).write(STATE)
    except HandoffwatchError as error:
        answers.put(str(error))
    else:
        answers.put("written")


@pytest.mark.parametrize("has_folder", [True, False])
def test_error_is_clear_when_the_folder_is_not_writable(has_folder: bool) -> None:
    """A process without the right to write is told so, with and without a folder."""
    with tempfile.TemporaryDirectory() as parent:
        directory = Path(parent) / "snapshots"
        if has_folder:
            directory.mkdir(mode=0o500)
            os.chown(directory, 65_534 if os.geteuid() == 0 else -1, -1)
        os.chmod(parent, 0o555)
        fork = get_context("fork")
        answers = fork.SimpleQueue()
        process = fork.Process(target=_error_of_write, args=(directory, answers))
        process.start()
        assert answers.get() == (
            f"snapshots: {directory}: must be a folder that can be read and written, got EACCES\n"
            "hint: name a folder in snapshot.directory that the process owns"
        )
        process.join()
        os.chmod(parent, 0o700)


def test_error_is_clear_when_the_folder_cannot_be(tmp_path: Path) -> None:
    """A file in the place of the folder, or of one above it, is told."""
    (tmp_path / "file").touch()
    for directory in (tmp_path / "file", tmp_path / "file" / "snapshots"):
        with pytest.raises(SnapshotUnavailable) as caught:
            SnapshotDesk(directory).write(STATE)
        assert caught.value.message == (
            f"snapshots: {directory}: must be a folder that can be read and written, got ENOTDIR"
        )


def test_state_is_refused_when_it_has_no_canonical_form(desk: SnapshotDesk) -> None:
    """What could not be captured is not written, in no other form either."""
    with pytest.raises(SnapshotUnavailable) as caught:
        desk.write({"a": object()})
    assert caught.value.message == "snapshots: state: must have a canonical form, got one with faults"
    assert desk.files() == []


def test_relative_folder_stays_where_it_was_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is the one that was meant when the snapshots were opened."""
    monkeypatch.chdir(tmp_path)
    snapshots = SnapshotDesk(Path("./snaps")).snapshots
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert snapshots.list_snapshots() == []
    monkeypatch.chdir(tmp_path)
    SnapshotDesk(Path("snaps")).write(STATE)
    monkeypatch.chdir(tmp_path / "other")
    assert [entry.name.stem for entry in snapshots.list_snapshots()] == ["h-1"]


def test_snapshot_is_plain_data_when_it_is_read_back(desk: SnapshotDesk) -> None:
    """What was written is what is read, by id, stage and attempt."""
    first = desk.write(STATE)
    second = desk.write({"a": [1, 1.5, "x", None, True]}, attempt=2, stage=AFTER)
    assert desk.snapshots.read_snapshot("h-1", BEFORE) == StoredSnapshot(first, json.loads(WRITTEN))
    assert desk.snapshots.read_snapshot("h-1", AFTER, 2) == StoredSnapshot(second, {"a": [1, 1.5, "x", None, True]})
    assert desk.snapshots.read_entry(snapshot_name("h-1", stage=AFTER, attempt=2)).meta == second


@pytest.mark.parametrize(
    ("handoff_id", "stage", "attempt", "file"),
    [("h-2", BEFORE, 1, "h-2.before"), ("h-1", AFTER, 1, "h-1.after"), ("h-1", BEFORE, 2, "h-1.2.before")],
)
def test_error_names_the_file_when_a_snapshot_is_not_there(
    desk: SnapshotDesk, handoff_id: str, stage: SnapshotStage, attempt: int, file: str
) -> None:
    """Another id, stage or attempt is another snapshot."""
    desk.write(STATE)
    with pytest.raises(SnapshotUnavailable) as caught:
        desk.snapshots.read_snapshot(handoff_id, stage, attempt)
    assert str(caught.value) == (
        f"snapshots: {file}.meta.json: must be there, got no file\nhint: handoffwatch snapshots list"
    )


def _changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    side = json.loads(path.read_text())
    change(side)
    path.write_text(json.dumps(side))


@pytest.mark.parametrize(
    ("edit", "file"),
    [
        (lambda state, _: state.write_bytes(WRITTEN.replace(b"t-1", b"t-2")), "h-1.before.json"),
        (lambda state, _: state.write_bytes(WRITTEN + b"\n"), "h-1.before.json"),
        (lambda state, _: state.write_bytes(WRITTEN[:-1]), "h-1.before.json"),
        (lambda state, _: state.write_bytes(b""), "h-1.before.json"),
        (lambda _, side: side.write_bytes(b"{}"), "h-1.before.meta.json"),
        (lambda _, side: side.write_bytes(b""), "h-1.before.meta.json"),
        (lambda _, side: side.write_bytes(b"\xff" * 300_000), "h-1.before.meta.json"),
        (lambda _, side: _changed(side, lambda meta: meta.update(route="a->b")), "h-1.before.meta.json"),
        (lambda _, side: _changed(side, lambda meta: meta.update(state_bytes="59")), "h-1.before.meta.json"),
        (lambda _, side: _changed(side, lambda meta: meta.update(sha256="0" * 64)), "h-1.before.meta.json"),
        (lambda _, side: _changed(side, lambda meta: meta.update(note="x")), "h-1.before.meta.json"),
        (lambda _, side: _changed(side, lambda meta: meta.pop("meta_sha256")), "h-1.before.meta.json"),
    ],
)  # fmt: skip
def test_snapshot_is_refused_when_a_file_was_edited(
    desk: SnapshotDesk, edit: Callable[[Path, Path], object], file: str
) -> None:
    """A change of the state fails its digest, and so does one of what lies beside it; neither is quoted."""
    desk.write(STATE)
    edit(desk.directory / "h-1.before.json", desk.directory / "h-1.before.meta.json")
    with pytest.raises(SnapshotEdited) as caught:
        desk.snapshots.read_snapshot("h-1", BEFORE)
    assert str(caught.value) == (
        f"snapshots: {file}: must be as it was written, got another content\nhint: do not rely on this snapshot"
    )


def test_snapshot_is_refused_when_its_files_are_those_of_another(desk: SnapshotDesk) -> None:
    """Two good files under another name are another handoff's."""
    desk.write(STATE, handoff_id="h-2")
    for suffix in ("json", "meta.json"):
        (desk.directory / f"h-2.before.{suffix}").rename(desk.directory / f"h-1.before.{suffix}")
    with pytest.raises(SnapshotEdited) as caught:
        desk.snapshots.read_snapshot("h-1", BEFORE)
    assert caught.value.message == "snapshots: h-1.before.meta.json: must be as it was written, got another content"


def test_snapshot_is_refused_when_it_was_forged_and_is_no_json(desk: SnapshotDesk) -> None:
    """Digests that fit make no snapshot of what is not JSON."""
    meta = desk.write(STATE)
    forged = b"cos\nsystem\n(S'true'\ntR."
    told = meta.model_copy(update={"sha256": hashlib.sha256(forged).hexdigest(), "state_bytes": len(forged)})
    told = told.model_copy(update={"meta_sha256": told.own_sha256})
    (desk.directory / "h-1.before.json").write_bytes(forged)
    (desk.directory / "h-1.before.meta.json").write_text(told.model_dump_json())
    with pytest.raises(SnapshotEdited) as caught:
        desk.snapshots.read_snapshot("h-1", BEFORE)
    assert caught.value.message == "snapshots: h-1.before.json: must be as it was written, got another content"


def test_list_has_the_oldest_first_when_there_are_many(desk: SnapshotDesk) -> None:
    """Each is there once, with the size of both its files; what is not whole says so, what is foreign is not there."""
    for handoff_id in ("c", "a", "b"):
        desk.write({"id": handoff_id}, handoff_id=handoff_id)
        desk.time.advance(1)
    (desk.directory / "a.before.meta.json").unlink()
    (desk.directory / "notes.txt").touch()
    (desk.directory / "z.before.json").symlink_to("/etc/hostname")
    entries = desk.snapshots.list_snapshots()
    assert [(entry.name.stem, entry.written_unix_s, entry.is_whole) for entry in entries] == [
        ("c", 1_000_000.0, True),
        ("a", 1_000_001.0, False),
        ("b", 1_000_002.0, True),
    ]
    assert entries[0].size_bytes == sum(path.stat().st_size for path in desk.directory.glob("c.*"))
    assert entries[1].size_bytes == len(b'{"id":"a"}')


def test_list_and_prune_have_nothing_when_there_is_no_folder(desk: SnapshotDesk) -> None:
    """They do not make the folder."""
    assert desk.snapshots.list_snapshots() == []
    assert desk.snapshots.prune(0.0) == Pruned(0, 0, 0, 0, True)
    assert not desk.directory.exists()


def test_prune_removes_both_files_when_a_snapshot_is_too_old(desk: SnapshotDesk) -> None:
    """At the age itself it stays; beyond, both files go."""
    desk.write(STATE, handoff_id="old")
    desk.time.advance(DAY_S)
    desk.write(STATE, handoff_id="new")
    (desk.directory / "notes.txt").touch()
    size = sum(path.stat().st_size for path in desk.directory.glob("old.*"))
    assert desk.snapshots.prune(1_000_000.0 + 14 * DAY_S).removed == 0
    assert desk.snapshots.prune(1_000_000.0 + 14 * DAY_S + 1) == Pruned(1, size, 1, size, True)
    assert desk.files() == ["new.before.json", "new.before.meta.json", "notes.txt"]


def test_prune_removes_the_oldest_when_all_are_too_large_together(desk: SnapshotDesk) -> None:
    """As many of the oldest go as must, no more; the newest goes too when it alone is too large."""
    for handoff_id in "cab":
        desk.write(STATE, handoff_id=handoff_id)
        desk.time.advance(1)
    size = sum(path.stat().st_size for path in desk.directory.iterdir())
    each = size // 3
    desk.max_bytes = size
    assert desk.snapshots.prune(desk.time.now_s) == Pruned(0, 0, 3, size, True)
    desk.max_bytes = size - 1
    assert desk.snapshots.prune(desk.time.now_s) == Pruned(1, each, 2, 2 * each, True)
    assert [entry.name.stem for entry in desk.snapshots.list_snapshots()] == ["a", "b"]
    desk.max_bytes = each - 1
    assert desk.snapshots.prune(desk.time.now_s) == Pruned(2, 2 * each, 0, 0, True)
    assert desk.files() == []


def test_prune_goes_on_in_the_next_call_when_there_is_much_to_remove(
    desk: SnapshotDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call removes so many and says that it is not done."""
    monkeypatch.setattr("handoffwatch.boundary.snapshots.REMOVED_MAX", 2)
    for index in range(5):
        desk.write(STATE, handoff_id=f"h-{index}")
        desk.time.advance(1)
    later_s = desk.time.now_s + 15 * DAY_S
    calls = [desk.snapshots.prune(later_s) for _ in range(4)]
    assert [(call.removed, call.kept, call.is_done) for call in calls] == [
        (2, 3, False), (2, 1, False), (1, 0, True), (0, 0, True),
    ]  # fmt: skip


def test_prune_removes_the_oldest_when_there_are_too_many(desk: SnapshotDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of snapshots is bounded, however small they are."""
    monkeypatch.setattr("handoffwatch.boundary.snapshots.SNAPSHOTS_MAX", 2)
    for handoff_id in "cab":
        desk.write(STATE, handoff_id=handoff_id)
        desk.time.advance(1)
    assert desk.snapshots.prune(desk.time.now_s)[::2] == (1, 2, True)
    assert [entry.name.stem for entry in desk.snapshots.list_snapshots()] == ["a", "b"]


def test_prune_removes_unfinished_files_when_they_are_an_hour_old(desk: SnapshotDesk) -> None:
    """What a killed process left goes; what a process is writing just now stays."""
    desk.write(STATE)
    left = desk.directory / ".snapshot-0123456789abcdef.tmp"
    left.touch()
    os.utime(left, (1_000_000.0, 1_000_000.0))
    desk.time.advance(3_600.0)
    desk.snapshots.prune(desk.time.now_s)
    assert left.exists()
    desk.time.advance(1.0)
    desk.snapshots.prune(desk.time.now_s)
    assert desk.files() == ["h-1.before.json", "h-1.before.meta.json"]


def test_prune_keeps_a_snapshot_when_it_is_written_again_meanwhile(
    desk: SnapshotDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process writes between the look and the removal is new, and stays."""
    desk.write({"a": "old"})
    desk.time.advance(15 * DAY_S)
    real_flock = fcntl.flock

    def write_first(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real_flock)
        desk.write({"a": "new"})
        real_flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", write_first)
    assert desk.snapshots.prune(desk.time.now_s).removed == 0
    assert desk.snapshots.read_snapshot("h-1", BEFORE).state == {"a": "new"}


def test_side_file_is_short_when_ids_are_long(desk: SnapshotDesk) -> None:
    """Of each id and of the route 200 characters are told."""
    meta = desk.write({}, handoff_id="h " * 200, run_id="r " * 200, route="a " * 200)
    assert (meta.handoff_id, meta.run_id, meta.route) == ("h " * 100, "r " * 100, "a " * 100)
    assert desk.snapshots.read_snapshot("h " * 200, BEFORE).meta == meta


def test_prune_keeps_a_snapshot_when_its_time_lies_ahead(desk: SnapshotDesk) -> None:
    """A clock that was set back makes nothing old."""
    desk.write(STATE)
    assert desk.snapshots.prune(0.0)[::2] == (0, 1, True)


def test_error_says_so_when_another_process_holds_the_folder(desk: SnapshotDesk) -> None:
    """Nobody waits for ever for a process that hangs, and nothing is left."""
    desk.write(STATE)
    holder = os.open(desk.directory, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        for use in (lambda: desk.write({"a": 1}), lambda: desk.snapshots.read_snapshot("h-1", BEFORE)):
            started_s = desk.time.now_s
            with pytest.raises(SnapshotUnavailable) as caught:
                use()
            assert caught.value.message == "snapshots: folder: must be free, got one that another process holds"
            assert 5.0 <= desk.time.now_s - started_s < 5.1
    finally:
        os.close(holder)
    assert desk.files() == ["h-1.before.json", "h-1.before.meta.json"]


def _write_and_prune(directory: Path, worker: int, failures: Any) -> None:
    desk = SnapshotDesk(directory, is_real=True)
    try:
        for index in range(30):
            handoff_id = f"h-{index % 3}"
            desk.write({"worker": worker, "text": "x" * worker * 50}, handoff_id=handoff_id)
            desk.snapshots.prune(time.time() + (15 * DAY_S if index % 7 == 0 else 0))
            try:
                state = desk.snapshots.read_snapshot(handoff_id, BEFORE).state
            except SnapshotUnavailable as error:
                if not error.message.endswith("must be there, got no file"):
                    raise
            else:
                assert len(state["text"]) == 50 * state["worker"]
    except BaseException as error:
        failures.put(repr(error))
        raise


def test_snapshots_are_whole_when_processes_write_read_and_prune_at_once(desk: SnapshotDesk) -> None:
    """Whoever comes first, nobody reads a state beside the side file of another, and nobody fails."""
    fork = get_context("fork")
    failures = fork.SimpleQueue()
    workers = [fork.Process(target=_write_and_prune, args=(desk.directory, worker, failures)) for worker in range(1, 5)]
    for process in workers:
        process.start()
    for process in workers:
        process.join()
    assert failures.empty(), failures.get()
    assert [process.exitcode for process in workers] == [0] * 4
    entries = desk.snapshots.list_snapshots()
    assert sorted(desk.files()) == sorted(
        file for entry in entries for file in (entry.name.state_file, entry.name.meta_file)
    )
    for entry in entries:
        assert desk.snapshots.read_entry(entry.name).meta.run_id == "r-1"


def test_snapshots_are_whole_when_200_threads_write_at_once(desk: SnapshotDesk) -> None:
    """Threads exclude each other as processes do, those that write the same snapshot and all others."""
    desk.is_real = True
    failed: list[HandoffwatchError] = []

    def write(number: int) -> None:
        try:
            desk.write({"n": [number] * number})
            desk.write({"n": number}, handoff_id=f"own-{number}")
        except HandoffwatchError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 201)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    state = desk.snapshots.read_snapshot("h-1", BEFORE).state
    assert state["n"] == [state["n"][0]] * state["n"][0]
    assert [desk.snapshots.read_snapshot(f"own-{number}", BEFORE).state for number in range(1, 201)] == [
        {"n": number} for number in range(1, 201)
    ]
    assert len(desk.files()) == 402
