"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.requirements import find_shared_folder


@pytest.fixture(scope="session")
def soak_scale() -> float:
    """The share of a soak test's work to do: all of it with HANDOFFWATCH_SOAK=1, else a tenth."""
    return 1.0 if os.environ.get("HANDOFFWATCH_SOAK") == "1" else 0.1


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """The folder of shared data; without it the test skips on a laptop and fails where CI=true."""
    return find_shared_folder()


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test takes settings from the environment of whoever runs it, or leaves a file where it was started."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HANDOFFWATCH_") and "__" in name]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("HANDOFFWATCH_CONFIG", raising=False)
