"""Settings of handoffs."""

from __future__ import annotations

from pydantic import Field

from handoffwatch.values.settings_model import SettingsModel


class HandoffSettings(SettingsModel):
    """The section `handoffs`: how often a sender may repair a blocked handoff."""

    repairs_max: int = Field(2, ge=0, le=100, description="Repairs of one handoff; 0 stops at the first block.")
    repairs_per_run_max: int = Field(10, ge=0, le=10_000, description="Repairs of all handoffs of one run together.")
