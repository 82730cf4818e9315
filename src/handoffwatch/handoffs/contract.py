"""Contracts: what a receiver needs of a handoff, as a class with typed fields for one route and schema version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic_core import SchemaSerializer, SchemaValidator

from handoffwatch.errors import RegistrationError
from handoffwatch.handoffs.closed import closed_validator
from handoffwatch.values.names import is_name


class Contract(BaseModel):
    """Base of a team's contracts: the payload of a handoff, only what the receiver needs.

    Strict on the wire: text is not turned into numbers, and unknown fields block. Class keywords, which a subclass
    inherits:

        version: The schema version, text or integer; "1" unless said.
        needs_results: Whether `payload.results` must hold at least one item (a search may find nothing elsewhere).
        identity: The path whose value says which attempts belong to one handoff; `task_id` unless said.

    Example:
        class Findings(Contract, version="2", needs_results=True):
            order_id: str
            results: list[Hit]

    Raises:
        RegistrationError: A class keyword has a value outside its set.
    """

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    contract_version: ClassVar[str] = "1"
    contract_needs_results: ClassVar[bool] = False
    contract_identity: ClassVar[str] = "task_id"

    def __init_subclass__(
        cls,
        *,
        version: str | int | None = None,
        needs_results: bool | None = None,
        identity: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if version is not None:
            if isinstance(version, bool) or not isinstance(version, str | int) or not is_name(str(version)):
                raise cls._refused("version", "a text of 1 to 100 printable characters", version, 'version="1"')
            cls.contract_version = str(version)
        if needs_results is not None:
            if not isinstance(needs_results, bool):
                raise cls._refused("needs_results", "True or False", needs_results, "needs_results=True")
            cls.contract_needs_results = needs_results
        if identity is not None:
            if not isinstance(identity, str) or not all(identity.split(".")):
                raise cls._refused("identity", "a path such as payload.order_id", identity, 'identity="task_id"')
            cls.contract_identity = identity

    @classmethod
    def _refused(cls, keyword: str, rule: str, got: object, example: str) -> RegistrationError:
        return RegistrationError(
            f"contract {cls.__name__}: {keyword}: must be {rule}, got {type(got).__name__}",
            hint=f"write `class {cls.__name__}(Contract, {example})`",
        )


class Envelope(BaseModel):
    """What every handoff carries around its payload. The optional fields are filled from the context."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    handoff_id: str = Field(min_length=1)
    task_id: str = Field(min_length=1)
    source_agent: str = Field(min_length=1)
    target_agent: str = Field(min_length=1)
    task_type: str = Field(min_length=1)
    status: Literal["ready", "completed", "failed"]
    schema_version: str = Field(min_length=1)
    payload: dict[str, Any]
    metadata: dict[str, str] = {}
    run_id: str | None = None
    context_version: int | None = None
    attempt: int | None = None
    produced_at: str | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class CompiledContract:
    """A contract ready to judge: the validators and the serialiser of the envelope around it.

    `closed` judges a dict as it is; None when only its JSON text can be judged.
    """

    version: str
    fields: frozenset[str]
    required: frozenset[str]
    needs_results: bool
    identity: tuple[str, ...]
    validator: SchemaValidator
    serializer: SchemaSerializer
    closed: SchemaValidator | None


def compile_contract(contract: type[Contract]) -> CompiledContract:
    """Return `contract` with the envelope around it, built once at registration.

    Raises:
        RegistrationError: It is no subclass of `Contract`.
    """
    if not (isinstance(contract, type) and issubclass(contract, Contract)):
        raise RegistrationError(
            f"contract: must be a subclass of handoffwatch.Contract, got {type(contract).__name__}",
            hint="derive the class from Contract and name its typed fields",
        )
    model = create_model(f"{contract.__name__}Handoff", __base__=Envelope, payload=(contract, ...))
    return CompiledContract(
        version=contract.contract_version,
        fields=frozenset(contract.model_fields),
        required=frozenset(name for name, field in contract.model_fields.items() if field.is_required()),
        needs_results=contract.contract_needs_results,
        identity=tuple(contract.contract_identity.split(".")),
        validator=model.__pydantic_validator__,  # type: ignore[arg-type]
        serializer=model.__pydantic_serializer__,
        closed=closed_validator(model),
    )


def compile_envelope() -> CompiledContract:
    """Return the contract that knows the envelope only: for handoffs whose route or version is unknown."""
    return CompiledContract(
        version="",
        fields=frozenset(),
        required=frozenset(),
        needs_results=False,
        identity=("task_id",),
        validator=Envelope.__pydantic_validator__,  # type: ignore[arg-type]
        serializer=Envelope.__pydantic_serializer__,
        closed=None,
    )
