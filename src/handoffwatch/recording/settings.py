"""Settings of metrics and spans."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from handoffwatch.values.settings_model import Number, SettingsModel


def _base_url(url: str) -> str:
    """Return a URL to which a path can be added and which logs may show: clients write it into their errors."""
    if not _is_http(url):
        raise ValueError("must be a URL such as http://127.0.0.1:4318")
    if any(mark in url for mark in "?#@"):
        raise ValueError("must hold no user name, password, query or fragment")
    return url


def _is_http(url: str) -> bool:
    if not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


class RecordingSettings(SettingsModel):
    """The section `recording`: where spans go, and what recording may cost the host."""

    otlp_endpoint: Annotated[str, AfterValidator(_base_url)] | None = Field(
        None, repr=False, description="Base URL of an OpenTelemetry Collector (OTLP over HTTP); null exports nothing."
    )
    otlp_timeout_s: Number = Field(1.5, gt=0, le=60, description="Seconds after which one export is given up.")
    exit_s: Number = Field(2.0, ge=0, le=60, description="Most seconds that the end of the process waits for exports.")
    queue_max: int = Field(
        2048, ge=1, le=1_000_000, description="Spans that wait for export; more are dropped and counted."
    )
    exemplars: bool = Field(
        True, description="Whether samples of sampled spans carry trace_id and span_id as an exemplar."
    )
