"""Contracts: what a receiver needs of a handoff, as a class with typed fields for one route and schema version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic_core import SchemaSerializer, SchemaValidator

from handoffwatch.errors import RegistrationError
from handoffwatch.handoffs.closed import closed_validator, is_tagged, plain_validator
from handoffwatch.handoffs.options import Options
from handoffwatch.handoffs.own_rules import Rule, rules_of


class Contract(BaseModel):
    """Base of a team's contracts: the payload of a handoff, only what the receiver needs.

    Strict on the wire: text is not turned into numbers, and unknown fields block. What else the receiver asks for
    stands in the class keywords, which are the attributes of `Options` and are inherited, and in methods marked with
    `rule`.

    Example:
        class Findings(Contract, version="2", needs_results=True):
            order_id: str
            results: list[Hit]

            @rule("too_many_results", "the reviewer reads ten results at most", path="payload.results")
            def few_enough(self) -> bool:
                return len(self.results) <= 10

    Raises:
        RegistrationError: A class keyword is unknown or its value breaks its rule.
    """

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    contract_options: ClassVar[Options] = Options()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__()
        cls.contract_options = cls.contract_options.changed(keywords, contract=cls.__name__)


class FailedWork(Contract, accepts=("failed",)):
    """The payload of a failed handoff whose contract has no `error` of its own: what failed, and facts about it."""

    error: str | None = None
    details: dict[str, Any] = {}


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
class LooseContract:
    """A contract without a class: its rules judge the payload as a dict. See `contract_from_function`."""

    name: str
    options: Options
    rules: tuple[Rule, ...]
    required: frozenset[str] = frozenset()
    schema: Mapping[str, Any] | None = None


AnyContract = type[Contract] | LooseContract
"""What a route takes as its contract."""


@dataclass(frozen=True, slots=True)
class CompiledContract:
    """A contract ready to judge.

    Attributes:
        options: What it asks for beside its fields.
        fields: The names of the payload's fields.
        required: Those without a default.
        counts: Integer fields that count something, by their names.
        rules: The team's own rules.
        validator: Judges the JSON text of the whole handoff.
        serializer: Dumps the validated handoff.
        closed: Judges a dict as it is; None when only its JSON text can be judged.
        plain: Judges a dict as it is and returns it normalised; None when that takes the models.
        is_tagged: Whether the places of its errors may hold names of union members.
        failed: Judges failed work instead; None when the contract has an `error` of its own.
        is_questioned: Whether there is more to ask of a payload than whether it fits its status.
        origin: What it was compiled from; None for the bare envelope.
    """

    options: Options
    fields: frozenset[str]
    required: frozenset[str]
    counts: tuple[str, ...]
    rules: tuple[Rule, ...]
    validator: SchemaValidator
    serializer: SchemaSerializer
    closed: SchemaValidator | None
    plain: SchemaValidator | None
    is_tagged: bool
    failed: CompiledContract | None = None
    origin: AnyContract | None = None

    is_questioned: bool = False

    def promises(self, name: str, payload: Mapping[str, Any]) -> bool:
        """Whether a payload has a field by contract; where no fields are known beforehand, whether it has it at all."""
        return name in (payload if isinstance(self.origin, LooseContract) else self.fields)

    @property
    def version(self) -> str:
        """The schema version."""
        return self.options.version

    @property
    def accepts(self) -> tuple[str, ...]:
        """The statuses that the receiver takes."""
        return self.options.accepts

    @property
    def good_example(self) -> Mapping[str, Any] | None:
        """A payload that the contract accepts, when its owner gave one."""
        return self.options.good_example


def compile_contract(contract: AnyContract) -> CompiledContract:
    """Return `contract` with the envelope around it, built once at registration.

    Raises:
        RegistrationError: It is no contract, or one of its rules cannot be called.
    """
    if isinstance(contract, LooseContract):
        return _compiled(
            Envelope, contract.options, rules=contract.rules, required=contract.required, failed=None, origin=contract
        )
    if not (isinstance(contract, type) and issubclass(contract, Contract)):
        raise RegistrationError(
            f"contract: must be a subclass of handoffwatch.Contract, got {type(contract).__name__}",
            hint="derive the class from Contract and name its typed fields",
        )
    failed = None if "error" in contract.model_fields else _compiled_class(FailedWork, contract.contract_options, None)
    return _compiled_class(contract, contract.contract_options, failed)


def compile_envelope() -> CompiledContract:
    """Return the contract that knows the envelope only: for handoffs whose route or version is unknown."""
    options = Options(version="other", accepts=("ready", "completed", "failed"))
    return _compiled(Envelope, options, rules=(), required=frozenset(), failed=None)


def _compiled_class(contract: type[Contract], options: Options, failed: CompiledContract | None) -> CompiledContract:
    if contract is not FailedWork:
        options.refuse_unknown_fields(contract.model_fields, contract=contract.__name__)
    model = create_model(f"{contract.__name__}Handoff", __base__=Envelope, payload=(contract, ...))
    fields = contract.model_fields
    rules = rules_of(contract)
    return _compiled(
        model,
        options,
        rules=rules,
        required=frozenset(name for name, info in fields.items() if info.is_required()),
        failed=failed,
        fields=frozenset(fields),
        counts=tuple(name for name, info in fields.items() if _is_integer(info.annotation) and _counts(name)),
        closed=closed_validator(model),
        plain=None if rules else plain_validator(model),
        origin=contract,
    )


def _compiled(
    model: type[BaseModel],
    options: Options,
    *,
    rules: tuple[Rule, ...],
    required: frozenset[str],
    failed: CompiledContract | None,
    fields: frozenset[str] = frozenset(),
    counts: tuple[str, ...] = (),
    closed: SchemaValidator | None = None,
    plain: SchemaValidator | None = None,
    origin: AnyContract | None = None,
) -> CompiledContract:
    asked = options.confidence_min is not None or options.merged is not None or options.irreversible
    return CompiledContract(
        options=options,
        fields=fields,
        required=required,
        counts=counts,
        rules=rules,
        validator=model.__pydantic_validator__,  # type: ignore[arg-type]
        serializer=model.__pydantic_serializer__,
        closed=closed,
        plain=plain,
        is_tagged=is_tagged(model),
        is_questioned=bool(asked or counts or options.choices or options.same_task),
        failed=failed,
        origin=origin,
    )


def _is_integer(annotation: object) -> bool:
    return annotation is int or set(get_args(annotation)) == {int, type(None)}


def _counts(name: str) -> bool:
    return name == "count" or name.endswith("_count")
