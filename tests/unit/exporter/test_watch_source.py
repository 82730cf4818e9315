"""Finding the Watch that `--app module:attribute` names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handoffwatch.errors import ConfigError, RegistrationError
from handoffwatch.exporter.watch_source import import_watch

_HINT = "give --app module:attribute, as in --app shop.agents:watch, from the folder that holds the module"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("northpole"):
            del sys.modules[name]


def test_import_watch_returns_the_watch_when_the_module_is_in_the_working_folder(tmp_path: Path) -> None:
    """A dotted attribute of a module in a package is found."""
    (tmp_path / "northpole").mkdir()
    (tmp_path / "northpole" / "__init__.py").touch()
    (tmp_path / "northpole" / "desk.py").write_text(
        "from handoffwatch.runtime.watch import Watch\nclass desk:\n    watch = Watch()\n", encoding="utf-8"
    )

    found = import_watch("northpole.desk:desk.watch")

    assert found is sys.modules["northpole.desk"].desk.watch


@pytest.mark.parametrize(
    ("source", "spec", "message", "hint"),
    [
        ("", "northpole", "--app: value: must be module:attribute", _HINT),
        ("", "northpole:", "--app: value: must be module:attribute", _HINT),
        ("", "../northpole.py:watch", "--app: value: must be module:attribute", _HINT),
        ("", "northpole_missing:watch", "--app: northpole_missing: no such module", _HINT),
        ("", "northpole.missing:watch", "--app: northpole.missing: no such module", _HINT),
        ("", "northpole:wacht", "--app: northpole:wacht: the module has no attribute wacht", _HINT),
        ("watch = 'hunter2'", "northpole:watch", "--app: northpole:watch: must be a Watch, got a str", _HINT),
        (
            "import northpole_dependency",
            "northpole:watch",
            "--app: northpole: importing it raised ModuleNotFoundError at northpole.py:1",
            'python -c "import northpole" shows the whole error',
        ),
        (
            "def connect():\n    raise OSError('password hunter2')\nconnect()",
            "northpole:watch",
            "--app: northpole: importing it raised OSError at northpole.py:2",
            'python -c "import northpole" shows the whole error',
        ),
        (
            "watch = = 3",
            "northpole:watch",
            "--app: northpole: importing it raised SyntaxError at northpole.py:1",
            'python -c "import northpole" shows the whole error',
        ),
    ],
)
def test_import_watch_says_what_is_wrong_when_there_is_no_watch(
    tmp_path: Path, source: str, spec: str, message: str, hint: str
) -> None:
    """The error says where to look, and never repeats the text of the user's exception."""
    (tmp_path / "northpole.py").write_text(source, encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        import_watch(spec)

    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_import_watch_passes_our_own_errors_on_when_the_app_is_declared_wrongly(tmp_path: Path) -> None:
    """A refused registration says itself what to type."""
    (tmp_path / "northpole.py").write_text(
        "from handoffwatch.runtime.watch import Watch\nwatch = Watch()\nwatch.workflow('other')\n", encoding="utf-8"
    )

    with pytest.raises(RegistrationError):
        import_watch("northpole:watch")
