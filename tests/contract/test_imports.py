"""What an import of the product must not bring along."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ["opentelemetry.sdk", "tenacity", "yaml", "sqlalchemy", "alembic", "starlette", "uvicorn", "typer", "httpx"]


def _loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(list(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    return set(json.loads(out))


@pytest.mark.parametrize("name", HEAVY)
def test_import_of_watch_loads_no_heavy_library(name: str) -> None:
    """`from handoffwatch import Watch` loads neither SDK nor database, YAML, retry or web library."""
    assert name not in _loaded_after("from handoffwatch import Watch")


def test_watch_without_operations_loads_no_database() -> None:
    """A program that declares no operation never loads SQLAlchemy."""
    loaded = _loaded_after(
        "from handoffwatch import Watch\n"
        "watch = Watch(); watch.workflow('w', tools='none')\n"
        "with watch.run('w') as run: run.answer('text')"
    )
    assert "sqlalchemy" not in loaded
    assert "opentelemetry.sdk" not in loaded
