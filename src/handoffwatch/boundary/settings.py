"""The policy file of the boundary: the section `handoff` of the settings, or a file of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, ValidationInfo, field_validator

from handoffwatch.boundary.policy import SCHEMA_VERSION, BoundaryPolicy, contradiction_in
from handoffwatch.boundary.transforms import Transforms
from handoffwatch.errors import ConfigError
from handoffwatch.values.names import is_name
from handoffwatch.values.paths import is_path
from handoffwatch.values.settings_model import Number, SettingsModel
from handoffwatch.values.settings_problems import Places, joined, problems
from handoffwatch.vocabulary import OnFailure

M = TypeVar("M", bound=SettingsModel)


def _path(text: str) -> str:
    if not is_path(text):
        raise ValueError("must be keys and indices with dots between them")
    return text


def _version(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError("must be 1 to 100 printable characters without white space around them")
    return text


def _refuse_contradiction(fields: Mapping[str, Any], *, where: str = "") -> None:
    exact = (SCHEMA_VERSION, *fields.get("exact_paths", ()))
    contradiction = contradiction_in(exact, fields.get("ignore_paths", ()), fields.get("transforms", ()))
    if contradiction is not None:
        raise ValueError(f"{where}{contradiction}")


Path = Annotated[str, AfterValidator(_path)]
Name = Annotated[str, AfterValidator(_name)]
Version = Annotated[str, BeforeValidator(_version), AfterValidator(_name)]


def _paths(description: str) -> Any:
    return Field((), strict=False, description=description)


class SnapshotSettings(SettingsModel):
    """Which states are written, where, and what is left out of them."""

    enabled: bool = Field(False, description="Whether states are written before and after a crossing.")
    directory: str = Field("./handoff-snapshots", min_length=1, description="The folder of the snapshots.")
    retention_days: Number = Field(14.0, gt=0, le=3_650, description="Days after which a snapshot is removed.")
    max_bytes: int = Field(
        1_073_741_824, ge=1_048_576, le=1_099_511_627_776, description="The size of all snapshots together."
    )
    redact: tuple[Path, ...] = _paths("Paths, and names at any depth, that are written as [redacted].")
    omit: tuple[Path, ...] = _paths("Paths that are compared and not written.")


class ValidationSettings(SettingsModel):
    """What must arrive as it left, and what follows when it does not."""

    fail_closed: bool | None = Field(
        None, description="Whether a divergence stops the handoff; false is on_failure: pass."
    )
    on_failure: OnFailure | None = Field(
        None, strict=False, description="What follows a divergence: stop, quarantine (stop with a case) or pass."
    )
    schema_version: Version | None = Field(None, description="The version that states must have; 1 and '1' are one.")
    exact_paths: tuple[Path, ...] = _paths("Paths that must be there on both sides, and equal.")
    ignore_paths: tuple[Path, ...] = _paths("Paths, and names at any depth, that are local and never compared.")
    sets: tuple[Path, ...] = _paths("Paths of lists without an order.")
    times: tuple[Path, ...] = _paths("Paths of texts that are times.")
    transforms: dict[Path, Name] = Field({}, description="By path, the transform that it may go through.")
    artifacts: tuple[Path, ...] = _paths("Paths of lists of artefacts.")
    secret: tuple[Path, ...] = _paths("Paths, and names at any depth, that are compared and never leave the process.")

    @field_validator("on_failure")
    @classmethod
    def _is_alone(cls, on_failure: OnFailure | None, info: ValidationInfo) -> OnFailure | None:
        if on_failure is not None and info.data.get("fail_closed") is not None:
            raise ValueError("must not be given beside fail_closed")
        return on_failure

    @field_validator("ignore_paths", "transforms")
    @classmethod
    def _agrees(cls, given: Any, info: ValidationInfo) -> Any:
        _refuse_contradiction({**info.data, str(info.field_name): given})
        return given


class RouteBoundarySettings(SettingsModel):
    """What is different on one route: each key that is given replaces that of all routes."""

    snapshot: SnapshotSettings = Field(SnapshotSettings(), description="Which states are written.")
    validation: ValidationSettings = Field(ValidationSettings(), description="What must arrive as it left.")


class BoundarySettings(RouteBoundarySettings):
    """The section `handoff`: what must survive a crossing, what is written, and what is different on some routes."""

    routes: dict[str, RouteBoundarySettings] = Field({}, description="By route, such as planner->executor.")

    @field_validator("routes")
    @classmethod
    def _routes_agree(
        cls, routes: dict[str, RouteBoundarySettings], info: ValidationInfo
    ) -> dict[str, RouteBoundarySettings]:
        for name, route in routes.items():
            if "validation" in info.data:
                validation = _validation(info.data["validation"], route.validation)
                _refuse_contradiction(dict(validation), where=f"{name}: ")
        return routes

    def snapshot_of(self, route: str) -> SnapshotSettings:
        """Return what is written of the states of a route."""
        return _overridden(self.snapshot, self.routes[route].snapshot) if route in self.routes else self.snapshot

    def validation_of(self, route: str) -> ValidationSettings:
        """Return what must arrive as it left on a route."""
        return _validation(self.validation, self.routes[route].validation) if route in self.routes else self.validation

    def policy_of(self, route: str, *, transforms: Transforms) -> BoundaryPolicy:
        """Return the policy of a route.

        Args:
            route: Such as planner->executor; one that the settings do not name has the policy of all routes.
            transforms: Those that the policy may name.

        Raises:
            RegistrationError: The policy names a transform that nobody registered.
        """
        validation, snapshot = self.validation_of(route), self.snapshot_of(route)
        return BoundaryPolicy(
            schema_version=validation.schema_version,
            exact_paths=validation.exact_paths,
            ignore_paths=validation.ignore_paths,
            sets=validation.sets,
            times=validation.times,
            transforms={path: transforms.named(name) for path, name in validation.transforms.items()},
            artifacts=validation.artifacts,
            secret=validation.secret,
            redact=snapshot.redact,
            omit=snapshot.omit,
            on_failure=validation.on_failure or (OnFailure.PASS if validation.fail_closed is False else OnFailure.STOP),
        )


class _PolicyFile(SettingsModel):
    handoff: BoundarySettings = Field(BoundarySettings(), description="The policy of the boundary.")


def read_policy(source: bytes | str, *, name: str) -> BoundarySettings:
    """Return the policy that a file of its own holds, under its one key `handoff`.

    Args:
        source: YAML as `read_yaml` takes it.
        name: The file's name for messages.

    Raises:
        ConfigError: All errors at once, one line each: file and line, key, and the rule that is broken.
    """
    from handoffwatch.values.yaml_text import read_yaml

    document = read_yaml(source, name=name)
    if not isinstance(document.data, dict):
        raise ConfigError(f"{name}:1: document: must be a mapping of keys", hint="start with the key: handoff:")
    try:
        return _PolicyFile.model_validate(document.data).handoff
    except ValidationError as error:
        raise joined(problems(error, model=_PolicyFile, places=Places(document))) from None


def _validation(base: ValidationSettings, own: ValidationSettings) -> ValidationSettings:
    if not own.model_fields_set.isdisjoint({"fail_closed", "on_failure"}):
        base = base.model_copy(update={"fail_closed": None, "on_failure": None})
    return _overridden(base, own)


def _overridden(base: M, own: M) -> M:
    return base.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})
