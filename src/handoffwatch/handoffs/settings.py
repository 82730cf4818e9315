"""Settings of handoffs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Annotated

from pydantic import Field

from handoffwatch.errors import RegistrationError
from handoffwatch.handoffs.conduct import HOLD_S_MAX
from handoffwatch.values.settings_model import Number, SettingsModel
from handoffwatch.vocabulary import HoldThen, Keep, Mode, Reaction


class RouteSettings(SettingsModel):
    """What the file says of one route; it overrides what the code registers."""

    mode: Mode | None = Field(
        None, strict=False, description="`enforce`, or `shadow` to only count what would have been blocked."
    )
    reactions: dict[str, Annotated[Reaction, Field(strict=False)]] = Field(
        {}, description="Reaction by reason code: block, hold, flag or warn."
    )
    durable: bool | None = Field(None, description="Whether limits and duplicates are kept in the ledger.")
    keep: Keep | None = Field(
        None, strict=False, description="Which handoffs leave evidence: blocked, sampled (some others too) or all."
    )
    approval: bool | None = Field(None, description="Whether a person must approve what the contract allows.")
    hold_s: Number | None = Field(
        None, ge=0, le=HOLD_S_MAX, description="How long a held handoff waits for a person; 0 does not wait."
    )
    hold_then: HoldThen | None = Field(
        None, strict=False, description="What follows when nobody has decided in time: stop, deliver or divert."
    )


class HandoffSettings(SettingsModel):
    """The section `handoffs`: repairs, limits, waits for a person, and what is kept."""

    repairs_max: int = Field(2, ge=0, le=100, description="Repairs of one handoff; 0 stops at the first block.")
    repairs_per_run_max: int = Field(10, ge=0, le=10_000, description="Repairs of all handoffs of one run together.")
    stop_identical: bool = Field(
        False, description="Whether an answer that says the same as one that was blocked before ends the repairs."
    )
    hops_max: int = Field(25, ge=1, le=1_000_000, description="Handoffs of one task.")
    repeats_max: int = Field(
        3, ge=1, le=1_000_000, description="How often the same content may come to a route of a task."
    )
    hold_poll_s: Number = Field(
        2.0, gt=0, le=3_600, description="Seconds between two looks at whether a person has decided."
    )
    lease_s: Number = Field(
        900.0, gt=0, le=86_400, description="How long a durable route takes a handoff for one that is in progress."
    )
    seal_s: Number = Field(
        3_600.0, gt=0, le=31_536_000, description="How long another process may take a sealed handoff."
    )
    evidence_bytes_max: int = Field(
        262_144, ge=4_096, le=16_777_216, description="The largest evidence of one handoff, as JSON text."
    )
    keep_sample: Number = Field(0.1, ge=0, le=1, description="The share of good handoffs kept where a route samples.")
    review_sample: Number = Field(0.1, ge=0, le=1, description="The share of blocks drawn for review.")
    redact: list[str] = Field(
        [], description="Paths and field names that evidence leaves out, beside those known as secret."
    )
    payload_bytes_max: int = Field(
        1_048_576, ge=1_024, le=1_073_741_824, description="The largest handoff that is judged, as JSON text."
    )
    selftest_every_s: Number = Field(
        60.0, ge=0, le=86_400, description="Seconds between two self-tests of the contracts; 0 turns them off."
    )
    routes: dict[str, RouteSettings] = Field({}, description="By route, such as planner->executor.")


def refuse_unknown_routes(named: Iterable[str], known: Collection[str], *, section: str) -> None:
    """Refuse settings of a route that nobody registered: a line that does nothing would hide a route in shadow.

    Raises:
        RegistrationError: A route of the settings is not among the known names.
    """
    for name in named:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise RegistrationError(
                f"settings: {section}.routes: {name}: no route of this name is registered",
                hint=f"did you mean {close[0]}?" if close else "register it with watch.route(…), or remove the line",
            )
