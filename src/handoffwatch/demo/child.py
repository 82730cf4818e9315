"""A process of the demo: started, waited for until it says where it listens, and stopped by its own id."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from handoffwatch import HandoffwatchError

_ADDRESS: Final = re.compile(r" on (http://\S+:[0-9]+)\n")
_POLL_S: Final = 0.02
_START_S: Final = 30.0
_STOP_S: Final = 10.0


class ChildFailed(HandoffwatchError):
    """A process of the demo ended, or stayed silent, before it listened."""


class Child:
    """A running process that serves HTTP on loopback, in a process group of its own: Ctrl-C does not reach it.

    Args:
        name: What it is, for messages.
        command: Program and arguments; it must say `... on http://<address>:<port>` on stdout or stderr.
        log: File that its stdout and stderr are appended to.
        environment: Variables beside those of this process.

    Raises:
        ChildFailed: It did not say where it listens.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        with log.open("ab") as output:
            offset = output.tell()
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                process_group=0,
            )
        try:
            self.url = self._wait_for_address(log, offset)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ask the process to end, and end it when it has not after ten seconds."""
        self.process.terminate()
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the process at once, as `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def _wait_for_address(self, log: Path, offset: int) -> str:
        deadline_s = time.monotonic() + _START_S
        while True:
            has_ended = self.process.poll() is not None
            said = log.read_bytes()[offset:].decode("utf-8", errors="replace")
            found = _ADDRESS.search(said)
            if found:
                return found.group(1)
            if has_ended or time.monotonic() > deadline_s:
                last = next((line for line in reversed(said.splitlines()) if line.strip()), "nothing")
                raise ChildFailed(f"demo: {self.name}: did not say where it listens, its last line: {last[:500]}")
            time.sleep(_POLL_S)
