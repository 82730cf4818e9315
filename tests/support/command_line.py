"""Running the command line in this process, in a folder of its own."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from handoffwatch.cli import main


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left behind."""

    code: object
    out: str
    err: str


Run = Callable[..., Ended]


@contextmanager
def command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> Iterator[Run]:
    """Inside, run commands in a folder; afterwards the modules of the folder are forgotten.

    `run("inspect", "-", stdin=b"{}")` returns exit code, stdout and stderr.
    """
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def run(*arguments: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "argv", ["handoffwatch", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Ended(ended.value.code, said.out, said.err)

    yield run
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and folder in Path(file).parents:
            del sys.modules[name]
