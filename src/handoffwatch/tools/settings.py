"""Settings of tool calls."""

from __future__ import annotations

from pydantic import Field

from handoffwatch.values.settings_model import Number, SettingsModel


class ToolSettings(SettingsModel):
    """The section `tools`: how often and how long a failed wire attempt is repeated."""

    attempts_max: int = Field(
        3, ge=1, le=100, description="Wire attempts of one logical call, the first included; 1 never repeats."
    )
    base_wait_s: Number = Field(
        2.0, ge=0, le=3600, description="Seconds that the first wait is drawn from; it doubles with every attempt."
    )
    wait_s_max: Number = Field(30.0, ge=0, le=86_400, description="Most seconds of one wait.")
    grace_s: Number = Field(
        0.5, ge=0, le=60, description="Seconds that an unsafe tool is waited for after its time limit."
    )
    breaker_after: int = Field(
        3, ge=0, le=1_000, description="Fatal answers in a row after which a run calls a tool no more; 0 never stops."
    )
    deadline_s: Number = Field(
        120.0, gt=0, le=86_400, description="Seconds after which a logical call is not attempted again."
    )
