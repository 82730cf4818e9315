"""What every room's settings have in common: strict, frozen, no unknown keys, finite numbers."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict

_DECIMAL: Final = re.compile(r"-?[0-9]{1,30}\.[0-9]{1,30}")


def _decimal(value: object) -> object:
    return float(value) if isinstance(value, str) and _DECIMAL.fullmatch(value) else value


Number = Annotated[float, BeforeValidator(_decimal)]
"""A finite decimal number. `values.yaml_text` keeps `0.10` as a text, for versions' sake; here it is a number."""


class SettingsModel(BaseModel):
    """Base of the settings of a room. Every field has a default and a description with its unit."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        validate_default=True,
        hide_input_in_errors=True,
    )
