"""Settings of the exporter process."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from handoffwatch.values.settings_model import Number, SettingsModel

PORT_DEFAULT: Final = 15470
"""Prometheus' list of default ports, 9100 to 9999, is full, and its entries beyond are few and far from this one.

It also lies below the range from which Linux takes the ports of outgoing connections (from 32768), so that no client
happens to hold it when the exporter starts.
"""


class ExporterSettings(SettingsModel):
    """The section `exporter`: where metrics are served, and what a request may cost."""

    address: str = Field(
        "127.0.0.1", min_length=1, description="Address to listen on; without a proxy, keep it on loopback."
    )
    port: int = Field(PORT_DEFAULT, ge=0, le=65_535, description="Port to listen on; 0 takes a free one and prints it.")
    scrapes_max: int = Field(
        4, ge=1, le=64, description="Expositions made at the same time; a request beyond is answered with 503."
    )
    scrape_s_max: Number = Field(
        9.0, gt=0, le=300, description="Seconds after which a request for metrics is answered with 503."
    )
    drain_s: Number = Field(
        10.0, gt=0, le=300, description="Most seconds from SIGTERM to exit, for open requests and the settler."
    )
