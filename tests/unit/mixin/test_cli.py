"""`handoffwatch mixin render`."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from handoffwatch.cli.mixin import app
from handoffwatch.mixin import Values, drift, render

RUNNER = CliRunner()


def test_render_writes_the_files_and_prints_their_paths_when_called(tmp_path: Path) -> None:
    """The folder gets exactly the rendered files, and stdout names them."""
    result = RUNNER.invoke(app, ["render", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [str(tmp_path / path) for path in render(Values())]
    assert drift(render(Values()), tmp_path) == []


def test_render_uses_the_values_file_when_given(tmp_path: Path) -> None:
    """The operator's window stands in the rule."""
    file = tmp_path / "values.yaml"
    file.write_text("false_success_window: 2h\n")
    result = RUNNER.invoke(app, ["render", "--values", str(file), "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert drift(render(Values(false_success_window="2h")), tmp_path) == []


def test_render_check_exits_0_when_nothing_differs(tmp_path: Path) -> None:
    """A folder that was just rendered passes, in silence."""
    RUNNER.invoke(app, ["render", "--out", str(tmp_path)])
    result = RUNNER.invoke(app, ["render", "--check", "--out", str(tmp_path)])
    assert (result.exit_code, result.output) == (0, "")


def test_render_check_exits_3_and_writes_nothing_when_a_file_differs(tmp_path: Path) -> None:
    """Drift is said on stderr with what to type, and is left as it is."""
    RUNNER.invoke(app, ["render", "--out", str(tmp_path)])
    changed = tmp_path / "dashboards/overview.json"
    changed.write_text("{}\n")
    result = RUNNER.invoke(app, ["render", "--check", "--out", str(tmp_path)])
    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr == (
        "error: dashboards/overview.json: differs from its render\nhint: handoffwatch mixin render\n"
    )  # fmt: skip
    assert changed.read_text() == "{}\n"
