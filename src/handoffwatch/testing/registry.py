"""The watchdog of what a user calls their registry: a Watch, or a Watchdog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handoffwatch.clock import Clock
from handoffwatch.handoffs.watchdog import Watchdog

if TYPE_CHECKING:
    from handoffwatch.runtime.watch import Watch

    Registry = Watch | Watchdog


def watchdog_of(registry: Registry) -> Watchdog:
    """Return the watchdog of a registry.

    Raises:
        TypeError: It is neither a Watch nor a Watchdog.
    """
    watchdog = getattr(registry, "watchdog", registry)
    if not isinstance(watchdog, Watchdog):
        raise TypeError(f"registry: must be a Watch or a Watchdog, got {type(registry).__name__}")
    return watchdog


def watchdog_at(registry: Registry, unix_s: float) -> Watchdog:
    """Return a watchdog with the routes of a registry, for which it is always the same time.

    It makes rules about age and deprecation testable. A Watch's limit of size holds; a Watchdog's is the default.

    Args:
        registry: A Watch or a Watchdog; it is not changed.
        unix_s: The time in Unix seconds.

    Raises:
        TypeError: It is neither a Watch nor a Watchdog.
    """
    routes, clock = watchdog_of(registry).routes, Clock(wall_s=lambda: unix_s)
    if isinstance(registry, Watchdog):
        return Watchdog(routes, clock=clock)
    return Watchdog(routes, clock=clock, payload_bytes_max=registry.settings.handoffs.payload_bytes_max)
