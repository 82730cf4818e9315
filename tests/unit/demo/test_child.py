"""Starting and stopping the demo's processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handoffwatch.demo.child import Child, ChildFailed

SAYS_WHERE = "import time; print('toy on http://127.0.0.1:1234', flush=True); time.sleep(60)"


def test_child_knows_its_address_when_the_process_says_it(tmp_path: Path) -> None:
    """The address is read from what the process prints, and the process ends on request."""
    child = Child("toy", [sys.executable, "-c", SAYS_WHERE], log=tmp_path / "log")
    assert child.url == "http://127.0.0.1:1234"
    child.stop()
    assert child.process.returncode == -15


def test_child_reads_its_own_words_only_when_the_log_has_older_ones(tmp_path: Path) -> None:
    """A restarted process is not taken for the one before it."""
    log = tmp_path / "log"
    log.write_text("toy on http://127.0.0.1:1\n")
    child = Child("toy", [sys.executable, "-c", SAYS_WHERE], log=log)
    child.kill()
    assert child.url == "http://127.0.0.1:1234"
    assert child.process.returncode == -9


def test_child_fails_with_its_last_line_when_it_ends_too_early(tmp_path: Path) -> None:
    """The message holds what the process said last."""
    with pytest.raises(ChildFailed) as caught:
        Child("toy", [sys.executable, "-c", "raise SystemExit('no luck')"], log=tmp_path / "log")
    assert caught.value.message == "demo: toy: did not say where it listens, its last line: no luck"
