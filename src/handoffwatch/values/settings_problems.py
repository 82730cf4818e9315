"""What is wrong with settings, said with the place to correct: file and line, or the variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from handoffwatch.errors import ConfigError

if TYPE_CHECKING:
    from handoffwatch.values.yaml_text import KeyPath, YamlDocument

_RULES: Final[Mapping[str, str]] = {
    "extra_forbidden": "unknown key",
    "missing": "is required",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of keys",
    "model_type": "must be a mapping of keys",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "value_error": "{error}",
}
"""pydantic's error types in our words. No rule shows the value: it may be a secret."""

_SHOW_KIND: Final = {"extra_forbidden", "missing", "value_error", "too_short", "too_long"}
"""Rules after which the kind of the value says nothing new."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where each setting was written."""

    file: YamlDocument | None = None
    variables: Mapping[KeyPath, str] = field(default_factory=dict)

    def variable(self, path: KeyPath) -> str | None:
        """Return the variable that gave a key, a part of it, or what it is a part of."""
        for given, variable in self.variables.items():
            shared = min(len(given), len(path))
            if given[:shared] == path[:shared]:
                return variable
        return None

    def where(self, path: KeyPath) -> str:
        """Return the start of a message: `file:line`, the variable, or `settings` when it was given in code."""
        if (variable := self.variable(path)) is not None:
            return variable
        if self.file is None:
            return "settings"
        return f"{self.file.name}:{self.line(path)}"

    def line(self, path: KeyPath) -> int:
        """Return the line of a key or of the nearest key around it; 0 when the file does not hold it."""
        if self.file is None or self.variable(path) is not None:
            return 0
        lines = self.file.lines
        return next((lines[path[:length]] for length in range(len(path), -1, -1) if path[:length] in lines), 1)


def problems(
    error: ValidationError, *, model: type[BaseModel], places: Places, below: KeyPath = ()
) -> list[ConfigError]:
    """Return one error for each broken rule, in the order of the places.

    Args:
        error: What pydantic found.
        model: The model that was validated.
        places: Where the values were written.
        below: The key path of the model's values in the file.
    """
    found = sorted(error.errors(include_url=False), key=lambda details: places.line((*below, *details["loc"])))
    return [_problem(details, model, places, below) for details in found]


def joined(errors: Iterable[ConfigError]) -> ConfigError:
    """Return one error that says all of them, one line each."""
    found = list(errors)
    hints = dict.fromkeys(error.hint for error in found if error.hint)
    return ConfigError("\n".join(error.message for error in found), hint="\n".join(hints))


def _problem(details: ErrorDetails, model: type[BaseModel], places: Places, below: KeyPath) -> ConfigError:
    path = (*below, *details["loc"])
    facts = {name: _shown(value) for name, value in details.get("ctx", {}).items()}
    rule = _RULES.get(details["type"], "{msg}").format(msg=details["msg"].lower(), **facts)
    got = "" if details["type"] in _SHOW_KIND else f", got {_kind(details['input'])}"
    key = ".".join(map(str, path))
    return ConfigError(f"{places.where(path)}: {key}: {rule}{got}", hint=_hint(details, model, places, path))


def _kind(value: object) -> str:
    """Return a number itself, and of anything else only its kind."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return _shown(value)
    names: dict[type[object], str] = {str: "a text", dict: "a mapping", list: "a list", tuple: "a list"}
    return names.get(type(value), f"a {type(value).__name__}")


def _hint(details: ErrorDetails, model: type[BaseModel], places: Places, path: KeyPath) -> str:
    if details["type"] == "extra_forbidden":
        return _known_keys(model, details["loc"])
    found = _field(model, details["loc"])
    variable = places.variable(path)
    remove = f"unset {variable}" if variable else "remove the key"
    default = _default(found) if found else None
    return f"{remove} to use the default of {default}" if default else f"{remove} to use the default"


def _known_keys(model: type[BaseModel], loc: KeyPath) -> str:
    parent = _model(model, loc[:-1])
    known = sorted(parent.model_fields) if parent else []
    close = get_close_matches(str(loc[-1]), known, n=1)
    listed = f"known keys: {', '.join(known)}"
    return f"did you mean {close[0]}? {listed}" if close else listed


def _model(model: type[BaseModel], loc: KeyPath) -> type[BaseModel] | None:
    keys = iter(loc)
    for key in keys:
        inner = model.model_fields[str(key)].annotation if key in model.model_fields else None
        if get_origin(inner) is dict:
            inner = get_args(inner)[1]
            next(keys, None)
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return None
        model = inner
    return model


def _field(model: type[BaseModel], loc: KeyPath) -> FieldInfo | None:
    """Return the field that a location lies in: an entry of a list lies in the list's field."""
    for length in range(len(loc), 0, -1):
        parent = _model(model, loc[: length - 1])
        if parent is not None and loc[length - 1] in parent.model_fields:
            return parent.model_fields[str(loc[length - 1])]
    return None


def _default(found: FieldInfo) -> str | None:
    if found.default is PydanticUndefined or isinstance(found.default, BaseModel):
        return None
    if isinstance(found.default, tuple):
        return f"[{', '.join(map(_shown, found.default))}]"
    if found.default is None or isinstance(found.default, bool):
        return {None: "null", True: "true", False: "false"}[found.default]
    return _shown(found.default)


def _shown(value: object) -> str:
    """Return a value as the file would hold it: a float without needless zeros."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
