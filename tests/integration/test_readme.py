"""The README keeps its promises: code prints what it says, settings are the defaults, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from handoffwatch.exporter.settings import ExporterSettings
from handoffwatch.mixin import Values, load_values
from handoffwatch.runtime.settings import Settings
from support.requirements import ROOT

README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_readme_code_prints_what_it_says(tmp_path: Path) -> None:
    """All Python blocks, run one after the other in a fresh folder, print the text blocks that follow them."""
    script = "\n".join(_blocks("python"))
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "".join(_blocks("text"))


def test_readme_contract_passes_its_selftest(tmp_path: Path) -> None:
    """The first contract that a newcomer writes needs no example."""
    selftest = """
from handoffwatch.runtime.selftest import SelfTester
print(SelfTester(watch.watchdog, watch.recorder, watch.clock).run_once())
"""
    script = _blocks("python")[0] + selftest
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines()[-1:] == ["True"], ran.stderr


def test_readme_first_code_has_twelve_lines() -> None:
    """The first example is as short as it is said to be: twelve statements."""
    first = _blocks("python")[0]
    lines = [line for line in first.splitlines() if line.strip() and not line.startswith("           ")]
    assert len([line for line in lines if not line.strip().startswith(("try:", "except", "with"))]) <= 12


def test_readme_demo_output_is_real() -> None:
    """`make demo` prints what the README shows, save the seconds it took and how many series there are."""
    shown = _blocks("console")[0].split("\n", 1)[1]
    ran = subprocess.run(
        [Path(sys.executable).with_name("handoffwatch"), "demo"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr

    def comparable(text: str) -> list[str]:
        text = re.sub(r"in [0-9.]+ s", "in N s", re.sub(r"All [0-9]+ numbers", "All N numbers", text))
        return [line.rstrip() for line in text.splitlines() if line.strip()]

    assert comparable(ran.stdout) == comparable(shown)


def _keys(model: type[BaseModel]) -> set[str]:
    return set(model.model_fields)


def test_readme_settings_are_all_keys_with_their_defaults(tmp_path: Path) -> None:
    """The file in the README loads, holds every key, and changes nothing."""
    file = tmp_path / "handoffwatch.yaml"
    file.write_text(_blocks("yaml")[0])
    loaded = Settings.load(file, environ={})
    defaults = Settings()
    for section in Settings.model_fields:
        if section == "exporter":
            assert ExporterSettings.model_validate(loaded.exporter) == ExporterSettings()
            assert set(loaded.exporter) == _keys(ExporterSettings)
        else:
            assert getattr(loaded, section) == getattr(defaults, section)
            assert getattr(loaded, section).model_fields_set == _keys(type(getattr(defaults, section)))


def test_readme_values_are_all_keys_with_their_defaults(tmp_path: Path) -> None:
    """The values file in the README loads, holds every key, and changes nothing."""
    file = tmp_path / "values.yaml"
    file.write_text(_blocks("yaml values")[0])
    assert load_values(file) == Values()
    assert load_values(file).model_fields_set == _keys(Values)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(document: Path) -> None:
    """Every relative link of a document names a file or folder of the repository."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []
