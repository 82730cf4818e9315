"""What an operator may set in the rules and dashboards: windows, selectors and links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, ValidationError

from handoffwatch.errors import ConfigError
from handoffwatch.values.settings_model import SettingsModel
from handoffwatch.values.settings_problems import Places, joined, problems
from handoffwatch.values.yaml_text import read_yaml

_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _duration(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]{0,5}[smhd]", text):
        raise ValueError("must be a duration of one unit, such as 30m")
    return text


def _url(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s\"]+", text):
        raise ValueError("must be a http or https address")
    return text


def _job(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.*+|()/:-]+", text):
        raise ValueError("must be made of letters, digits and the signs of a name or regular expression")
    return text


Duration = Annotated[str, AfterValidator(_duration)]
Url = Annotated[str, AfterValidator(_url)]
Job = Annotated[str, AfterValidator(_job)]


class Values(SettingsModel):
    """The one values file of `handoffwatch mixin render`; the committed files are the render of the defaults."""

    false_success_window: Duration = Field(
        default="30m", description="How long after its settlement a critical false success keeps paging."
    )
    false_success_open_for: Duration = Field(
        default="1m",
        description="How long a critical case must be open before it pages, so that the event comes first.",
    )
    exporter_down_for: Duration = Field(
        default="5m", description="How long no exporter may answer before that pages; at least two scrapes."
    )
    exporter_job: Job = Field(default="handoffwatch", description="Scrape job of `handoffwatch serve`.")
    jobs: Job = Field(
        default="handoffwatch.*",
        description="Regular expression of all scrape jobs that expose the product's metrics.",
    )
    runbook_url: Url = Field(
        default="https://runbooks.example.com/handoffwatch/{alert}.md",
        description="Where the files of docs/runbooks are published; {alert} becomes the alert's name.",
    )
    dashboard_url: Url = Field(
        default="https://grafana.example.com/d/{uid}",
        description="Where Grafana shows a dashboard; {uid} becomes the dashboard's uid.",
    )


def seconds(duration: str) -> int:
    """Return a duration of one unit in seconds: `30m` is 1800."""
    return int(duration[:-1]) * _UNITS_S[duration[-1]]


def load_values(path: Path | None) -> Values:
    """Return the values of a YAML file, or the defaults when there is none.

    Raises:
        ConfigError: The file cannot be read, is not a mapping, or has an unknown key or a wrong value.
    """
    if path is None:
        return Values()
    try:
        document = read_yaml(path.read_bytes(), name=str(path))
    except OSError as error:
        raise ConfigError(f"{path}: file: cannot be read: {error.strerror}", hint="check the path") from None
    try:
        return Values.model_validate({} if document.data is None else document.data)
    except ValidationError as error:
        raise joined(problems(error, model=Values, places=Places(document))) from None
