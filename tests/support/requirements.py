"""What a test needs from the machine: absent, it skips on a laptop and fails where CI=true."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED_VARIABLE = "HANDOFFWATCH_SHARED"

_DEBIAN_NAMES = {"alertmanager": "prometheus-alertmanager"}


def missing(message: str) -> NoReturn:
    """End the test: a failure where CI=true, else a skip."""
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def require_program(name: str) -> str:
    """Return the path of an installed program, by its own or its Debian name."""
    path = shutil.which(name) or shutil.which(_DEBIAN_NAMES.get(name, name))
    return path or missing(f"{name} is not installed: apt-get install prometheus prometheus-alertmanager")


def find_shared_folder() -> Path:
    """Return the folder of shared data: HANDOFFWATCH_SHARED, else `shared` beside the repository."""
    folder = Path(os.environ.get(SHARED_VARIABLE) or ROOT.parent / "shared")
    return folder if folder.is_dir() else missing(f"no folder {folder}: set {SHARED_VARIABLE} to the shared data")
