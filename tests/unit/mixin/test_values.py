"""The values file of the mixin."""

from __future__ import annotations

from pathlib import Path

import pytest

from handoffwatch.errors import ConfigError
from handoffwatch.mixin.values import Values, load_values, seconds


def test_load_values_returns_the_defaults_when_there_is_no_file() -> None:
    """Without a file, the committed rules are what is rendered."""
    assert load_values(None) == Values()


def test_load_values_returns_the_defaults_when_the_file_is_empty(tmp_path: Path) -> None:
    """A file that sets nothing changes nothing."""
    file = tmp_path / "values.yaml"
    file.write_text("# nothing\n")
    assert load_values(file) == Values()


def test_load_values_returns_what_was_set_when_the_file_is_right(tmp_path: Path) -> None:
    """A key that is set replaces its default, and no other."""
    file = tmp_path / "values.yaml"
    file.write_text("false_success_window: 1h\n")
    assert load_values(file) == Values(false_success_window="1h")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exporter_down: 5m\n", "{file}:1: exporter_down: unknown key"),
        (
            "jobs: watch.*\nfalse_success_window: half an hour\n",
            "{file}:2: false_success_window: must be a duration of one unit, such as 30m",
        ),
        ("false_success_window: 30\n", "{file}:1: false_success_window: must be a text, got 30"),
        ("runbook_url: runbooks\n", "{file}:1: runbook_url: must be a http or https address"),
        (
            'exporter_job: a"b\n',
            "{file}:1: exporter_job: must be made of letters, digits and the signs of a name or regular expression",
        ),
    ],
)
def test_load_values_names_file_line_and_key_when_a_value_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    """A wrong file is refused with the place to correct."""
    file = tmp_path / "values.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_values(file)
    assert caught.value.message == message.format(file=file)


def test_load_values_names_the_file_when_it_is_missing(tmp_path: Path) -> None:
    """A missing file is an error of configuration."""
    with pytest.raises(ConfigError) as caught:
        load_values(tmp_path / "values.yaml")
    assert caught.value.message == f"{tmp_path / 'values.yaml'}: file: cannot be read: No such file or directory"


@pytest.mark.parametrize(("duration", "expected"), [("45s", 45), ("30m", 1800), ("2h", 7200), ("1d", 86400)])
def test_seconds_converts_a_duration_when_it_has_one_unit(duration: str, expected: int) -> None:
    """The same window stands in a rule as a range and as a number."""
    assert seconds(duration) == expected
