"""Writing the rendered files, and finding drift."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from handoffwatch.mixin.render import drift, render, write
from handoffwatch.mixin.values import Values

PATHS = [
    PurePosixPath("deploy/prometheus/rules/handoffwatch-alerts.yaml"),
    PurePosixPath("deploy/prometheus/rules/handoffwatch-recording.yaml"),
    PurePosixPath("dashboards/overview.json"),
]


def test_render_gives_the_same_text_when_repeated() -> None:
    """Equal values give equal files."""
    first, second = render(Values()), render(Values())
    assert first == second
    assert list(first) == PATHS


def test_drift_finds_nothing_when_the_files_were_just_written(tmp_path: Path) -> None:
    """What was written is what is rendered."""
    files = render(Values())
    write(files, tmp_path)
    assert drift(files, tmp_path) == []


def test_drift_names_each_file_when_it_is_missing_changed_or_left_over(tmp_path: Path) -> None:
    """Each kind of drift has its own sentence."""
    files = render(Values())
    write(files, tmp_path)
    (tmp_path / PATHS[0]).write_text("groups: []\n")
    (tmp_path / PATHS[1]).unlink()
    (tmp_path / "dashboards/old.json").write_text("{}\n")
    assert drift(files, tmp_path) == [
        "deploy/prometheus/rules/handoffwatch-alerts.yaml: differs from its render",
        "deploy/prometheus/rules/handoffwatch-recording.yaml: is missing",
        "dashboards/old.json: is not rendered by anything",
    ]


def test_drift_names_the_page_of_a_code_when_the_code_is_gone(tmp_path: Path) -> None:
    """A page that nothing renders any more is found, but only where the pages are rendered."""
    files = render(Values(), docs=True)
    write(files, tmp_path)
    assert drift(files, tmp_path) == []
    (tmp_path / "docs/reasons/old_code.md").write_text("# old_code\n")
    assert drift(files, tmp_path) == ["docs/reasons/old_code.md: is not rendered by anything"]
    assert drift(render(Values()), tmp_path) == []
