"""The Watch that an exporter serves: the user's own, imported by `module:attribute`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handoffwatch.errors import ConfigError
from handoffwatch.runtime.importing import import_object

if TYPE_CHECKING:
    from handoffwatch.runtime.watch import Watch

_HINT: Final = "give --app module:attribute, as in --app shop.agents:watch, from the folder that holds the module"


def import_watch(spec: str) -> Watch:
    """Return the Watch that `module:attribute` names; the working folder is importable.

    Args:
        spec: The module's dotted name, a colon, and a dotted attribute.

    Raises:
        ConfigError: The text is no such name, the module is missing or broken, or what it names is no Watch.
    """
    from handoffwatch.runtime.watch import Watch

    found = import_object(spec, where="--app", hint=_HINT)
    if not isinstance(found, Watch):
        raise ConfigError(f"--app: {spec}: must be a Watch, got a {type(found).__name__}", hint=_HINT)
    return found
