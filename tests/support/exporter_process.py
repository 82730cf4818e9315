"""A real `handoffwatch serve`, started as a person would start it and found by what it prints."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from support.requirements import ROOT

HANDOFFWATCH = str(Path(sys.executable).with_name("handoffwatch"))
_LISTENING = re.compile(r"listening on (http://\S+)")
_START_S = 30.0
_STOP_S = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(slots=True)
class Exporter:
    """A running exporter and the lines that it has printed on stderr."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    url: str = ""
    _reader: threading.Thread | None = None

    def request(self, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
        """Send one request on a connection of its own and return the whole answer."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read().decode())
        finally:
            connection.close()

    def wait(self) -> int:
        """Return the exit code when the process has ended by itself and all its lines are read."""
        code = self.process.wait(_STOP_S)
        assert self._reader is not None
        self._reader.join(_STOP_S)
        return code

    def stop(self, signal_number: int) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(signal_number)
        return self.wait()

    def read_lines(self) -> None:
        """Read stderr in the background, and wait for the line that says where it listens."""
        found = threading.Event()

        def read() -> None:
            assert self.process.stderr is not None
            with self.process.stderr as stderr:
                for line in stderr:
                    self.lines.append(line.rstrip("\n"))
                    if said := _LISTENING.match(line):
                        self.url = said.group(1)
                        found.set()
            found.set()

        self._reader = threading.Thread(target=read, daemon=True)
        self._reader.start()
        assert found.wait(_START_S), f"nothing was said within {_START_S} s"
        assert self.url, "\n".join(self.lines)


@contextmanager
def exporter(folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[Exporter]:
    """`handoffwatch serve --port 0` in a working folder; the tests' modules are importable. Killed at the end."""
    command = [HANDOFFWATCH, "serve", "--port", "0", *arguments]
    importable = os.pathsep.join(filter(None, (str(ROOT / "tests"), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": importable, **(environ or {})}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        running = Exporter(process)
        try:
            running.read_lines()
            yield running
        finally:
            process.kill()
            process.wait()
            if running._reader is not None:
                running._reader.join(_STOP_S)
