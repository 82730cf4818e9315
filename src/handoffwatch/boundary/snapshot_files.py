"""A folder for its owner alone, whose files appear whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from handoffwatch.clock import Clock
from handoffwatch.errors import SnapshotEdited, SnapshotUnavailable

LOCK_WAIT_S: Final = 5.0
_LOCK_POLL_S: Final = 0.005
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_OTHERS: Final = 0o077
_TEMPORARY: Final = re.compile(r"\.snapshot-[0-9a-f]{16}\.tmp")
_LOG: Final = logging.getLogger("handoffwatch.boundary")

_HINTS: Final = {
    errno.ENOSPC: "free space on its disk, or lower snapshot.max_bytes and prune",
    errno.EDQUOT: "free space in its quota, or lower snapshot.max_bytes and prune",
    errno.ENOTDIR: "name a folder in snapshot.directory that is no symbolic link",
    errno.ELOOP: "name a folder in snapshot.directory that is no symbolic link",
}
_HINT: Final = "name a folder in snapshot.directory that the process owns"


class FileFacts(NamedTuple):
    """What is known of a file without opening it.

    Attributes:
        name: Within the folder.
        size_bytes: Its size.
        written_unix_s: When it was written.
        is_loose: Whether others than its owner may read or write it.
    """

    name: str
    size_bytes: int
    written_unix_s: float
    is_loose: bool


class OpenFolder:
    """A folder that is held open, so that nothing outside it is reached, whatever is put in its place meanwhile."""

    def __init__(self, descriptor: int, *, clock: Clock) -> None:
        self._descriptor = descriptor
        self._clock = clock

    @contextmanager
    def locked(self, *, is_shared: bool = False) -> Iterator[None]:
        """Hold the folder's lock, which all threads and processes share.

        Raises:
            SnapshotUnavailable: Another process holds it for more than 5 seconds.
        """
        kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
        give_up_s = self._clock.monotonic_s() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if self._clock.monotonic_s() >= give_up_s:
                    raise SnapshotUnavailable(
                        "snapshots: folder: must be free, got one that another process holds",
                        hint="look for a process that hangs while it writes snapshots",
                    ) from None
            self._clock.sleep(_LOCK_POLL_S)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    @contextmanager
    def temporary(self, data: bytes, *, written_unix_s: float) -> Iterator[str]:
        """Yield the name of a whole and synced file, which is removed afterwards unless it was given another name."""
        name = f".snapshot-{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, _FILE_MODE, dir_fd=self._descriptor)
        try:
            with open(descriptor, "wb", buffering=0) as file:
                os.fchmod(descriptor, _FILE_MODE)
                left = memoryview(data)
                while left:
                    left = left[file.write(left) :]
                os.utime(descriptor, (written_unix_s, written_unix_s))
                os.fsync(descriptor)
            yield name
        finally:
            self.remove(name)

    def refuse_other_than_files(self, *names: str) -> None:
        """Raise when something else than a file has one of the names.

        Raises:
            SnapshotUnavailable: So it is; a symbolic link is something else too.
        """
        for name in names:
            with suppress(FileNotFoundError):
                if not stat.S_ISREG(os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode):
                    raise _no_file(name)

    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name, in the place of the file that has it."""
        os.replace(name, new_name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def sync(self) -> None:
        """Make the names of the folder survive a crash of the machine."""
        os.fsync(self._descriptor)

    def read(self, name: str, *, bytes_max: int) -> bytes:
        """Return the content of a file; the rights of others to it are taken away, and a warning is logged.

        Raises:
            SnapshotUnavailable: It is not there, or no file.
            SnapshotEdited: It is longer than `bytes_max`.
        """
        try:
            file = self._file(name)
        except FileNotFoundError:
            raise SnapshotUnavailable(
                f"snapshots: {name}: must be there, got no file", hint="handoffwatch snapshots list"
            ) from None
        with file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise _no_file(name)
            if facts.st_mode & _OTHERS:
                _tighten(file.fileno(), _FILE_MODE, name)
            data = file.read(max(bytes_max, 0) + 1) if facts.st_size <= bytes_max else None
        if data is None or len(data) > bytes_max:
            raise edited(name)
        return data

    def tighten(self, name: str) -> None:
        """Take the rights of others to a file away, and log a warning; one that is gone has none."""
        with suppress(FileNotFoundError), self._file(name) as file:
            _tighten(file.fileno(), _FILE_MODE, name)

    def _file(self, name: str) -> BinaryIO:
        try:
            return open(name, "rb", opener=self._open)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise _no_file(name) from None
            raise

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._descriptor)

    def remove(self, name: str) -> bool:
        """Remove a file; return whether it was there."""
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            return False
        return True

    def facts_of(self, name: str) -> FileFacts | None:
        """Return what is known of a file; None when it is gone, or no file."""
        try:
            found = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return FileFacts(name, found.st_size, found.st_mtime, bool(found.st_mode & _OTHERS))

    def names(self) -> Iterator[str]:
        """Yield the names of all that lies in the folder, in any order."""
        with os.scandir(self._descriptor) as entries:
            for entry in entries:
                yield entry.name


@contextmanager
def opened(path: Path, *, clock: Clock, is_made: bool = False) -> Iterator[OpenFolder]:
    """Hold a folder open.

    One that is made is for its owner alone. The rights of others to one that was there are taken away, and a warning
    is logged.

    Args:
        path: Of the folder; a symbolic link is refused.
        clock: For waiting.
        is_made: Whether the folder, and those above it, are made when they are not there.

    Raises:
        SnapshotUnavailable: It is no folder, or the system refuses what is done in it.
    """
    with _translated(path):
        if is_made:
            _make(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_mode & _OTHERS:
                _tighten(descriptor, _FOLDER_MODE, str(path))
            yield OpenFolder(descriptor, clock=clock)
        finally:
            os.close(descriptor)


def is_temporary(name: str) -> bool:
    """Return whether a file is one that was not finished."""
    return _TEMPORARY.fullmatch(name) is not None


def _make(path: Path) -> None:
    missing = [each for each in (path, *path.parents) if not os.path.lexists(each)]
    for each in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(each, _FOLDER_MODE)


def _tighten(descriptor: int, mode: int, name: str) -> None:
    had = stat.S_IMODE(os.fstat(descriptor).st_mode)
    os.fchmod(descriptor, mode)
    if os.fstat(descriptor).st_mode & _OTHERS:
        raise PermissionError(errno.EPERM, "rights stay as they were")
    _LOG.warning("snapshots: %s: others had rights to it (%04o), and have none any more (%04o)", name, had, mode)


def edited(name: str) -> SnapshotEdited:
    """Return the error that says that a file is not what was written."""
    return SnapshotEdited(
        f"snapshots: {name}: must be as it was written, got another content", hint="do not rely on this snapshot"
    )


def _no_file(name: str) -> SnapshotUnavailable:
    return SnapshotUnavailable(
        f"snapshots: {name}: must be a file, got something else", hint="move it out of the folder"
    )


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, type(error).__name__)
        raise SnapshotUnavailable(
            f"snapshots: {folder}: must be a folder that can be read and written, got {code}",
            hint=_HINTS.get(error.errno or 0, _HINT),
        ) from error
