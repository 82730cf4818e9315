"""Settings of settlement: when effects are read back, and what one reading may cost."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

from handoffwatch.outcomes import SettlementPolicy
from handoffwatch.values.settings_model import Number, SettingsModel


def _ascending(polls_s: tuple[float, ...]) -> tuple[float, ...]:
    if any(later <= earlier for earlier, later in pairwise(polls_s)):
        raise ValueError("must be ascending")
    return polls_s


class SettlementSettings(SettingsModel):
    """The section `settlement`: when claimed effects are read back, and when absence counts."""

    read_back_window_s: Number = Field(
        30.0, ge=0, le=86_400, description="Seconds after a write in which absence proves nothing."
    )
    polls_s: Annotated[tuple[Annotated[Number, Field(ge=0, le=86_400)], ...], AfterValidator(_ascending)] = Field(
        (0.0, 1.0, 3.0, 10.0, 30.0),
        strict=False,
        min_length=1,
        max_length=100,
        description="Seconds after the claim at which an effect is read back; later ones follow with growing waits.",
    )
    backoff_s_max: Number = Field(
        3600.0, ge=1, le=86_400, description="Most seconds between two read-backs after the listed ones."
    )
    deadline_s: Number = Field(
        604_800.0, ge=0, le=31_536_000, description="Seconds after which an open effect is overdue and no longer read."
    )
    routine_sample: Number = Field(
        0.1, ge=0, le=1, description="Share of runs whose routine operations are read back; critical ones always are."
    )
    tick_s: Number = Field(1.0, gt=0, le=60, description="Seconds that the settler waits when nothing is due.")
    verifier_timeout_s: Number = Field(10.0, gt=0, le=300, description="Seconds that one verifier may take.")
    batch_max: int = Field(100, ge=1, le=10_000, description="Operations taken from the ledger at a time.")

    def policy(self) -> SettlementPolicy:
        """Return what the outcomes and the ledger need of these settings."""
        return SettlementPolicy(
            read_back_window_s=self.read_back_window_s,
            polls_s=self.polls_s,
            deadline_s=self.deadline_s,
            backoff_s_max=self.backoff_s_max,
            routine_sample=self.routine_sample,
        )
