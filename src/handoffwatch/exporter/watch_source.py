"""The Watch that an exporter serves: the user's own, imported by `module:attribute`, or a bare one over the ledger."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from handoffwatch.errors import ConfigError, HandoffwatchError

if TYPE_CHECKING:
    from handoffwatch.runtime.watch import Watch

_HINT = "give --app module:attribute, as in --app shop.agents:watch, from the folder that holds the module"


def import_watch(spec: str) -> Watch:
    """Return the Watch that `module:attribute` names; the working folder is importable.

    Args:
        spec: The module's dotted name, a colon, and a dotted attribute.

    Raises:
        ConfigError: The text is no such name, the module is missing or broken, or what it names is no Watch.
    """
    from handoffwatch.runtime.watch import Watch

    module_name, colon, attribute = spec.partition(":")
    parts = [*module_name.split("."), *attribute.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise ConfigError("--app: value: must be module:attribute", hint=_HINT)
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    found: object = _imported(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"--app: {spec}: the module has no attribute {attribute}", hint=_HINT)
        found = getattr(found, part)
    if not isinstance(found, Watch):
        raise ConfigError(f"--app: {spec}: must be a Watch, got a {type(found).__name__}", hint=_HINT)
    return found


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except HandoffwatchError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError(f"--app: {name}: no such module", hint=_HINT) from None
        raise _broken(name, error) from error
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> ConfigError:
    """Return an error that says where the user's module broke, without the text of its exception."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<frozen"):
            place = f" at {os.path.relpath(file)}:{trace.tb_lineno}"
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        place = f" at {os.path.relpath(error.filename)}:{error.lineno}"
    kind = type(error).__name__
    return ConfigError(
        f"--app: {name}: importing it raised {kind}{place}", hint=f'python -c "import {name}" shows the whole error'
    )
