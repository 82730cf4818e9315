"""A ledger in a folder, and the commands that work on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handoffwatch.ledger import Ledger
from support.command_line import Run, command_line
from support.outcomes import StillClock, open_ledger


@pytest.fixture
def time() -> StillClock:
    """Time that stands still, at 2001-09-09T01:46:40Z."""
    return StillClock(1_000_000_000.0)


@pytest.fixture
def ledger(tmp_path: Path, time: StillClock) -> Iterator[Ledger]:
    """The ledger that the commands work on."""
    opened = open_ledger(tmp_path / "ledger.db", time)
    opened.snapshot()
    yield opened
    opened.close()


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """Run a command with the settings file of the ledger's folder; `config` names another one."""
    (tmp_path / "handoffwatch.yaml").write_text("ledger: {url: sqlite:///ledger.db}\n", encoding="utf-8")
    with command_line(monkeypatch, capsys, tmp_path) as run:
        yield lambda *arguments, config="handoffwatch.yaml": run(*arguments, "--config", config)
