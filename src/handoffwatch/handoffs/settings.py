"""Settings of handoffs."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Annotated

from pydantic import Field

from handoffwatch.errors import RegistrationError
from handoffwatch.values.settings_model import Number, SettingsModel
from handoffwatch.vocabulary import Mode, Reaction


class RouteSettings(SettingsModel):
    """What the file says of one route; it overrides what the code registers."""

    mode: Mode | None = Field(
        None, strict=False, description="`enforce`, or `shadow` to only count what would have been blocked."
    )
    reactions: dict[str, Annotated[Reaction, Field(strict=False)]] = Field(
        {}, description="Reaction by reason code: block, hold, flag or warn."
    )


class HandoffSettings(SettingsModel):
    """The section `handoffs`: how often a sender may repair a blocked handoff."""

    repairs_max: int = Field(2, ge=0, le=100, description="Repairs of one handoff; 0 stops at the first block.")
    repairs_per_run_max: int = Field(10, ge=0, le=10_000, description="Repairs of all handoffs of one run together.")
    payload_bytes_max: int = Field(
        1_048_576, ge=1_024, le=1_073_741_824, description="The largest handoff that is judged, as JSON text."
    )
    selftest_every_s: Number = Field(
        60.0, ge=0, le=86_400, description="Seconds between two self-tests of the contracts; 0 turns them off."
    )
    routes: dict[str, RouteSettings] = Field({}, description="By route, such as planner->executor.")

    def refuse_unknown_routes(self, known: Collection[str]) -> None:
        """Refuse settings of a route that nobody registered: a line that does nothing would hide a route in shadow.

        Raises:
            RegistrationError: A route of the settings is not among the known names.
        """
        for name in self.routes:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                raise RegistrationError(
                    f"settings: handoffs.routes: {name}: no route of this name is registered",
                    hint=f"did you mean {close[0]}?"
                    if close
                    else "register it with watch.route(…), or remove the line",
                )
