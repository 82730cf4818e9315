"""The rendered files as a whole: what they are, writing them, and finding where a folder differs from them."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Final

from handoffwatch.mixin.overview import UID, overview
from handoffwatch.mixin.reason_pages import FOLDER as REASONS
from handoffwatch.mixin.reason_pages import reason_pages
from handoffwatch.mixin.reference import metrics_page
from handoffwatch.mixin.rules import render_rules
from handoffwatch.mixin.values import Values

RULES: Final = PurePosixPath("deploy/prometheus/rules")
DASHBOARDS: Final = PurePosixPath("dashboards")


def render(values: Values, *, docs: bool = False) -> dict[PurePosixPath, str]:
    """Return the text of every rule file and dashboard by its path; equal values give equal text.

    Args:
        values: What the operator set.
        docs: Whether the project's own pages of documentation are rendered too.
    """
    files = {RULES / name: text for name, text in render_rules(values, overview_uid=UID).items()}
    files[DASHBOARDS / "overview.json"] = json.dumps(overview(values), indent=2, ensure_ascii=False) + "\n"
    if docs:
        files[PurePosixPath("docs/metrics.md")] = metrics_page()
        files |= reason_pages()
    return files


def write(files: dict[PurePosixPath, str], out: Path) -> None:
    """Write the files below a folder, which is created where needed."""
    for path, text in files.items():
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def drift(files: dict[PurePosixPath, str], out: Path) -> list[str]:
    """Return a sentence for each file that is missing, differs, or is no longer rendered."""
    found = []
    for path, text in sorted(files.items()):
        target = out / path
        if not target.is_file():
            found.append(f"{path}: is missing")
        elif target.read_text(encoding="utf-8") != text:
            found.append(f"{path}: differs from its render")
    present = {
        folder / file.name for folder, ending in ((RULES, "yaml"), (DASHBOARDS, "json"), (REASONS, "md"))
        if any(path.parent == folder for path in files)
        for file in (out / folder).glob(f"*.{ending}")
    }  # fmt: skip
    return found + [f"{path}: is not rendered by anything" for path in sorted(present - files.keys())]
