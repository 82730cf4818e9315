"""Finding the object that a command line names by a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handoffwatch import ConfigError, Watch
from handoffwatch.runtime.importing import import_object

HINT = "name a Watch"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("southpole"):
            del sys.modules[name]


def _write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _found(spec: str) -> object:
    return import_object(spec, where="OLD", hint=HINT, files=True)


def test_import_object_holds_two_versions_side_by_side_when_their_files_have_one_name() -> None:
    """Each finds the modules beside it, in a package too, and nothing of them stays behind."""
    for version in ("old", "new"):
        _write(f"{version}/southpole_limit.py", f"LIMIT = '{version}'")
        _write(f"{version}/southpole_desk.py", "from southpole_limit import LIMIT")
        _write(f"{version}/southpole/__init__.py", "")
        _write(f"{version}/southpole/sub/__init__.py", "")
        _write(f"{version}/southpole/sub/rules.py", "from southpole_limit import LIMIT")
        _write(f"{version}/southpole/sub/desk.py", "from .rules import LIMIT")
    modules, path = set(sys.modules), list(sys.path)
    found = [
        _found(f"{version}/{file}:LIMIT")
        for version in ("old", "new", "old")
        for file in ("southpole_desk.py", "southpole/sub/desk.py", "southpole/../southpole_desk.py")
    ]
    assert found == ["old"] * 3 + ["new"] * 3 + ["old"] * 3
    assert (set(sys.modules), sys.path) == (modules, path)


def test_import_object_leaves_the_loaded_module_alone_when_a_file_has_its_name() -> None:
    """The program's own modules come back, the same objects as before."""
    _write("southpole_desk.py", "LIMIT = 'mine'")
    _write("other/southpole_desk.py", "LIMIT = 'other'")
    assert import_object("southpole_desk:LIMIT", where="OLD", hint=HINT) == "mine"
    mine = sys.modules["southpole_desk"]
    assert _found("other/southpole_desk.py:LIMIT") == "other"
    assert _found("southpole_desk.py:LIMIT") == "mine"
    assert sys.modules["southpole_desk"] is mine


def test_import_object_gives_our_own_classes_when_the_file_lies_beside_the_product() -> None:
    """A file of the product's own source is no second product."""
    import handoffwatch

    (folder,) = handoffwatch.__path__
    assert _found(f"{folder}/runtime/watch.py:Watch") is Watch


@pytest.mark.parametrize(
    ("spec", "message", "hint"),
    [
        ("southpole.py:watch", "OLD: southpole.py: no such file", HINT),
        ("southpole-1.py:watch", "OLD: southpole-1.py: must be named as a Python module", "rename the file"),
        ("json.py:watch", "OLD: json.py: another module is named json", "rename the file"),
        ("southpole_desk.py:wacht", "OLD: southpole_desk.py:wacht: the module has no attribute wacht", HINT),
        ("southpole_desk.py:", "OLD: value: must be module:attribute or file.py:attribute", HINT),
        ("southpole_desk.py", "OLD: value: must be module:attribute or file.py:attribute", HINT),
        ("./southpole_desk:watch", "OLD: value: must be module:attribute or file.py:attribute", HINT),
        (
            "southpole_exit.py:watch",
            "OLD: southpole_exit.py: importing it raised SystemExit at southpole_exit.py:2",
            "python southpole_exit.py shows the whole error",
        ),
        (
            "southpole_needs.py:watch",
            "OLD: southpole_needs.py: importing it raised ModuleNotFoundError at southpole_needs.py:1",
            "python southpole_needs.py shows the whole error",
        ),
    ],
)
def test_import_object_says_what_is_wrong_when_the_file_does_not_serve(spec: str, message: str, hint: str) -> None:
    """A module that exits while it is imported must not end the command as if all were well."""
    _write("southpole_desk.py", "watch = 1")
    _write("southpole-1.py", "watch = 1")
    _write("json.py", "watch = 1")
    _write("southpole_exit.py", "import sys\nsys.exit(0)")
    _write("southpole_needs.py", "import southpole_dependency")
    before = set(sys.modules), list(sys.path)
    with pytest.raises(ConfigError) as caught:
        _found(spec)
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert (set(sys.modules), sys.path) == before
