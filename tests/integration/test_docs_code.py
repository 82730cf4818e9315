"""The guides keep their promises: their code runs and prints what they say, and so do their commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.requirements import ROOT

_BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_END = "\x1e"

GUIDES = [
    ROOT / "docs" / f"{name}.md"
    for name in (
        "contracts",
        "shadow-mode",
        "what-each-check-proves",
        "what-follows-a-decision",
        "boundary",
        "tools",
        "final-answer-guard",
    )
]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return kind and text of the blocks of a page, in their order."""
    return [(found[1], found[2]) for found in _BLOCK.finditer(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_guide_prints_what_it_says_when_run(page: Path, tmp_path: Path) -> None:
    """All Python blocks, run one after the other in a fresh folder, print the text block that follows them."""
    pieces = {
        "python": lambda text: text,
        "text": lambda text: f"print({_END!r}, end='')\n",
        "console": lambda text: "",
    }
    script = "".join(pieces[kind](text) for kind, text in blocks(page))
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split(_END) == [*(text for kind, text in blocks(page) if kind == "text"), ""]

    for kind, text in blocks(page):
        if kind == "console":
            command, printed = text.removeprefix("$ handoffwatch ").split("\n", 1)
            program = Path(sys.executable).with_name("handoffwatch")
            called = subprocess.run(
                [program, *shlex.split(command)], cwd=tmp_path, capture_output=True, text=True, check=False
            )
            assert (called.stdout, called.stderr) == (printed, "")
