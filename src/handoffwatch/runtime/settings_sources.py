"""The two places that settings are read from: the file, and the variables HANDOFFWATCH_<SECTION>__<KEY>."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handoffwatch.errors import ConfigError

if TYPE_CHECKING:
    from handoffwatch.values.yaml_text import KeyPath, YamlDocument

PREFIX: Final = "HANDOFFWATCH_"
CONFIG_VARIABLE: Final = f"{PREFIX}CONFIG"
_SEPARATOR: Final = "__"


@dataclass(frozen=True, slots=True)
class EnvironmentValues:
    """What the environment says: the values, the variable of each key path, and variables that are written wrongly."""

    values: Mapping[str, object]
    variables: Mapping[KeyPath, str]
    errors: Sequence[ConfigError]


def read_file(path: Path) -> YamlDocument:
    """Return the settings file as plain data.

    Raises:
        ConfigError: It cannot be read, is no YAML, or is no mapping.
    """
    from handoffwatch.values.yaml_text import BYTES_MAX, read_yaml

    try:
        with path.open("rb") as file:
            source = file.read(BYTES_MAX + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: file: does not exist", hint=_path_hint()) from None
    except ValueError:
        raise ConfigError("settings: path: must be a text without NUL and lone surrogates", hint=_path_hint()) from None
    except OSError as error:
        raise ConfigError(f"{path}: file: cannot be read: {error.strerror}", hint=_path_hint()) from None
    document = read_yaml(source, name=str(path))
    if document.data is not None and not isinstance(document.data, dict):
        raise ConfigError(f"{path}:1: document: must be a mapping of sections", hint="start with a section: tools:")
    return document


def read_environment(environ: Mapping[str, str], *, keys: Mapping[str, Sequence[str]]) -> EnvironmentValues:
    """Return the settings among the variables.

    Args:
        environ: The variables; those without the prefix are skipped.
        keys: The known keys of each section, to recognise a variable with one underscore where two are needed.
    """
    values: dict[str, object] = {}
    variables: dict[KeyPath, str] = {}
    errors: list[ConfigError] = []
    meant = {f"{PREFIX}{s}_{key}".upper(): f"{PREFIX}{s}{_SEPARATOR}{key}".upper() for s in keys for key in keys[s]}
    for variable in sorted(environ):
        if variable in meant:
            errors.append(ConfigError(f"{variable}: name: needs two underscores", hint=f"write {meant[variable]}"))
        if not variable.startswith(PREFIX) or _SEPARATOR not in variable:
            continue
        path = tuple(part.lower() for part in variable.removeprefix(PREFIX).split(_SEPARATOR))
        try:
            _put(values, path, _meaning(environ[variable], variable))
            variables[path] = variable
        except ConfigError as error:
            errors.append(error)
    return EnvironmentValues(values, variables, errors)


def _put(values: dict[str, object], path: tuple[str, ...], value: object) -> None:
    for key in path[:-1]:
        inner = values.setdefault(key, {})
        if not isinstance(inner, dict):
            inner = values[key] = {}
        values = inner
    values[path[-1]] = value


def _meaning(text: str, variable: str) -> object:
    """Return what a variable's text means; only a list, a mapping or a quoted text is read as a whole YAML document."""
    from handoffwatch.values.yaml_text import read_yaml, resolve_scalar

    if text.startswith(("[", "{", '"', "'")):
        return read_yaml(text, name=variable).data
    return resolve_scalar(text)


def _path_hint() -> str:
    return f"give the path of an existing file, by argument or by {CONFIG_VARIABLE}"
