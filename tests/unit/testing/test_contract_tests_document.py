"""`docs/contract-tests.md` keeps its promises: its files are cases, and its commands print what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from support.requirements import ROOT

DOCUMENT = (ROOT / "docs" / "contract-tests.md").read_text(encoding="utf-8")
FILE_NAME = re.compile(r"`([\w./-]+\.(?:py|json|yaml))`")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
PROGRAM = "import sys; sys.argv[0] = 'handoffwatch'; from handoffwatch.cli import main; main()"


class File(NamedTuple):
    """A file of the document: where it stands, its name, and what is in it."""

    start: int
    name: str
    text: str


def _files() -> list[File]:
    """Return every block that follows a paragraph which names its file and ends in a colon."""
    found = []
    for block in BLOCK.finditer(DOCUMENT):
        paragraph = DOCUMENT[: block.start()].rstrip().rsplit("\n\n", 1)[-1]
        names = FILE_NAME.findall(paragraph)
        if block.group(1) != "console" and names and paragraph.endswith(":"):
            found.append(File(block.start(), names[-1], block.group(2)))
    return found


def _write(files: Iterable[File], folder: Path) -> None:
    for file in files:
        (folder / file.name).parent.mkdir(exist_ok=True)
        (folder / file.name).write_text(file.text, encoding="utf-8")


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)


def _commands(console: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a console block, each with the lines that follow it."""
    commands: list[tuple[str, list[str]]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            commands.append((line.removeprefix("$ handoffwatch "), []))
        else:
            commands[-1][1].append(line)
    return commands


@pytest.mark.parametrize(
    "name",
    ["desk.py", "handoff.json", "context.yaml", "cases/good.yaml", "next/desk.py", "conftest.py", "test_desk.py"],
)
def test_document_names_each_file_before_its_text(name: str) -> None:
    """The other tests would pass by overlooking a file."""
    assert name in [file.name for file in _files()]


def test_document_commands_print_what_it_says_when_typed_in_order(tmp_path: Path) -> None:
    """Every file is written and every command typed where it stands in the text; `...` leaves the rest out."""
    written = 0
    consoles = [block for block in BLOCK.finditer(DOCUMENT) if block.group(1) == "console"]
    assert len(consoles) == 7
    for block in consoles:
        _write((file for file in _files() if written <= file.start < block.start()), tmp_path)
        written = block.start()
        for command, expected in _commands(block.group(2)):
            ran = _run(tmp_path, "-c", PROGRAM, *shlex.split(command))
            assert ran.returncode in (0, 3), ran.stderr
            printed = [line.rstrip() for line in ran.stdout.splitlines()]
            if expected[-1] == "  ...":
                expected.pop()
                printed = printed[: len(expected)]
            assert printed == expected, command


def test_document_tests_pass_when_the_cases_are_right(tmp_path: Path) -> None:
    """The pytest example makes a test of each case; the example for other frameworks raises nothing."""
    _write((file for file in _files() if file.name != "cases/no-result.yaml"), tmp_path)
    ran = _run(tmp_path, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--strict-markers")
    assert ran.returncode == 0, ran.stdout
    for name in ("cut-off.json", "good.yaml", "other-task.yaml"):
        assert f"test_desk.py::test_contracts[{name}] PASSED" in ran.stdout
    (script,) = (text for _, text in BLOCK.findall(DOCUMENT) if "import check_cases" in text)
    checked = _run(tmp_path, "-c", script)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
