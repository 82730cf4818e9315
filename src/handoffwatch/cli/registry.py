"""What of a user's program an argument names."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Final

from handoffwatch.errors import ConfigError

if TYPE_CHECKING:
    from handoffwatch.testing.registry import Registry

METAVAR: Final = "MODULE:REGISTRY"

_HINT: Final = "name a Watch or a Watchdog, as in shop.agents:watch, or shop/agents.py:watch"


def load_registry(spec: str, *, where: str) -> Registry:
    """Return the Watch or Watchdog that `module:attribute` or `file.py:attribute` names.

    What its module prints goes to stderr, since stdout is data.

    Raises:
        ConfigError: There is none of that name, or the module is missing or broken.
    """
    from handoffwatch.handoffs.watchdog import Watchdog
    from handoffwatch.runtime.watch import Watch

    found = load_object(spec, where=where, hint=_HINT)
    if not isinstance(found, Watch | Watchdog):
        raise ConfigError(f"{where}: {spec}: must be a Watch or a Watchdog, got a {type(found).__name__}", hint=_HINT)
    return found


def load_object(spec: str, *, where: str, hint: str) -> object:
    """Return what `module:attribute` or `file.py:attribute` names.

    What its module prints goes to stderr, since stdout is data.

    Raises:
        ConfigError: There is none of that name, or the module is missing or broken.
    """
    from handoffwatch.runtime.importing import import_object

    with contextlib.redirect_stdout(sys.stderr):
        return import_object(spec, where=where, hint=hint, files=True)
