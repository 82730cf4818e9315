"""All settings of a process, from one strict file and the environment.

The file is `handoffwatch.yaml` by custom; its path is given, or stands in HANDOFFWATCH_CONFIG. A variable
HANDOFFWATCH_<SECTION>__<KEY> overrides the file and is read as an unquoted value of the file would be: numbers, true,
false and null mean themselves; a list or a quoted text is written as in YAML. Variables without a double underscore are
no settings: an orchestrator may set such names for its own purposes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, Field, PrivateAttr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from handoffwatch.boundary.settings import BoundarySettings
from handoffwatch.errors import ConfigError
from handoffwatch.handoffs.settings import HandoffSettings
from handoffwatch.ledger.settings import LedgerSettings
from handoffwatch.recording.settings import RecordingSettings
from handoffwatch.runtime.settings_sources import CONFIG_VARIABLE, read_environment, read_file
from handoffwatch.settlement.settings import SettlementSettings
from handoffwatch.tools.settings import ToolSettings
from handoffwatch.values.settings_problems import Places, joined, problems

Section = TypeVar("Section", bound=BaseModel)

_sources: Final[ContextVar[tuple[Mapping[str, object], ...]]] = ContextVar("handoffwatch_settings", default=())


class _Source(PydanticBaseSettingsSource):
    """Hands values that were read already to pydantic-settings, which merges them."""

    def __init__(self, settings_class: type[BaseSettings], values: Mapping[str, object]) -> None:
        super().__init__(settings_class)
        self._values = values

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[object, str, bool]:
        """Return one top-level value, its key, and that it needs no decoding."""
        return self._values.get(field_name), field_name, False

    def __call__(self) -> dict[str, object]:
        """Return all values, unknown ones included, so that they are refused by name."""
        return dict(self._values)


class Settings(BaseSettings):
    """The settings of a process. `Settings()` is the defaults; `Settings.load` reads the file and the environment."""

    model_config = SettingsConfigDict(strict=True, extra="forbid", frozen=True)

    tools: ToolSettings = Field(ToolSettings(), description="Tool calls: retries and waits.")
    handoffs: HandoffSettings = Field(HandoffSettings(), description="Handoffs: repairs.")
    handoff: BoundarySettings = Field(BoundarySettings(), description="The boundary: what must survive a crossing.")
    recording: RecordingSettings = Field(RecordingSettings(), description="Metrics and spans.")
    ledger: LedgerSettings = Field(LedgerSettings(), description="The durable store.")
    settlement: SettlementSettings = Field(SettlementSettings(), description="Reading claimed effects back.")
    exporter: dict[str, object] = Field(
        default_factory=dict, description="The exporter process, which checks this section itself."
    )

    _places: Places = PrivateAttr(default_factory=Places)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return what is given in code, then what `load` has read, first wins."""
        return init_settings, *(_Source(settings_cls, values) for values in _sources.get())

    @classmethod
    def load(
        cls,
        path: str | Path | None = None,
        *,
        sections: Mapping[str, type[BaseModel]] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Settings:
        """Return the settings of the file and the environment; the environment wins.

        Args:
            path: The file; None takes HANDOFFWATCH_CONFIG, and without it no file is read.
            sections: Models of the opaque sections that this process will also read, to report their errors too.
            environ: The environment; None takes that of the process.

        Raises:
            ConfigError: All errors at once, one line each: file and line, or the variable, then key and rule.
        """
        settings, errors = _read(path, sections or {}, os.environ if environ is None else environ)
        if settings is None or errors:
            raise joined(errors)
        return settings

    def section(self, name: str, model: type[Section]) -> Section:
        """Return an opaque section, checked by the model of the room that owns it.

        Raises:
            ConfigError: As in `load`.
        """
        found = _checked(getattr(self, name), name, model, self._places)
        if isinstance(found, list):
            raise joined(found)
        return found


def check_settings(
    path: str | Path | None,
    *,
    sections: Mapping[str, type[BaseModel]] | None = None,
    environ: Mapping[str, str] | None = None,
) -> list[ConfigError]:
    """Return every error of a file and the environment, each for itself; the arguments are those of `Settings.load`."""
    return _read(path, sections or {}, os.environ if environ is None else environ)[1]


def _read(
    path: str | Path | None, sections: Mapping[str, type[BaseModel]], environ: Mapping[str, str]
) -> tuple[Settings | None, list[ConfigError]]:
    file = path if path is not None else environ.get(CONFIG_VARIABLE)
    try:
        document = read_file(Path(file)) if file else None
    except ConfigError as error:
        return None, [error]
    in_environment = read_environment(environ, keys={name: list(_keys(name)) for name in Settings.model_fields})
    places = Places(document, in_environment.variables)
    errors = list(in_environment.errors)
    in_file = document.data if document and isinstance(document.data, dict) else {}
    settings: Settings | None = None
    try:
        opaque = settings = _merged(in_environment.values, in_file)
        settings._places = places
    except ValidationError as error:
        errors += problems(error, model=Settings, places=places)
        opaque = _merged(
            *({k: v[k] for k in sections if isinstance(v.get(k), dict)} for v in (in_environment.values, in_file))
        )
    for name, model in sections.items():
        found = _checked(getattr(opaque, name), name, model, places)
        errors += found if isinstance(found, list) else []
    return settings, errors


def _merged(*sources: Mapping[str, object]) -> Settings:
    token = _sources.set(sources)
    try:
        return Settings()
    finally:
        _sources.reset(token)


def _keys(section: str) -> tuple[str, ...]:
    model = Settings.model_fields[section].annotation
    return tuple(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else ()


def _checked(values: object, name: str, model: type[Section], places: Places) -> Section | list[ConfigError]:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        return problems(error, model=model, places=places, below=(name,))
