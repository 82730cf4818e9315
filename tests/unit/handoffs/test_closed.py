"""Closed contracts: what a dict may hide in nested models is seen without encoding it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field, field_serializer

from handoffwatch import Contract
from handoffwatch.handoffs.contract import compile_contract
from support.refund_handoffs import handoff


class Part(BaseModel):
    """A model of a team's own, less strict than a contract."""

    weight: float = 0.0


class Order(Contract):
    """A contract with a nested model."""

    parts: list[Part]


@pytest.mark.parametrize(
    "part",
    [{"weight": float("nan")}, {"weight": float("inf")}, {"weight": "1"}, {"weight": 1.0, "colour": "red"},
     Part.model_construct(weight="heavy")],
    ids=["NaN", "infinity", "text", "unknown field", "unchecked instance"],
)  # fmt: skip
def test_closed_validator_refuses_what_a_nested_model_would_take(part: Any) -> None:
    """The strictness of the contract reaches into models that do not share it."""
    closed = compile_contract(Order).closed
    assert closed is not None

    with pytest.raises(ValueError, match="validation error"):
        closed.validate_python(handoff(payload={"parts": [part]}), strict=True, extra="forbid")


def test_contract_is_open_when_a_field_takes_anything() -> None:
    """What the contract does not name must be encoded before it is judged."""

    class Loose(Contract):
        note: Any = None

    assert compile_contract(Loose).closed is None


class Parcel(BaseModel):
    """A nested model with bounds, defaults and a config of its own."""

    model_config = ConfigDict(str_max_length=3)

    name: str
    kind: Literal["box", 1] = "box"
    weight: float | None = None
    tags: dict[str, list[bool]] = {}


class Shipment(Contract):
    """A plain contract."""

    parcels: list[Parcel] = Field(default=[], max_length=2)
    count: int = Field(0, ge=0)
    note: Annotated[str, Field(pattern="^[a-z]*$")] = ""


_SCALARS = st.none() | st.booleans() | st.integers(-2, 2**54) | st.floats() | st.sampled_from(["", "box", "abcd", "ü"])
_PARCELS = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "abcd", 3])},
    optional={
        "kind": st.sampled_from(["box", 1, True, 1.0]), "weight": _SCALARS, "more": _SCALARS,
        "tags": st.dictionaries(st.sampled_from(["a", "b"]), st.lists(_SCALARS, max_size=2), max_size=2),
    },
)  # fmt: skip


@given(
    payload=st.fixed_dictionaries(
        {}, optional={"parcels": st.lists(_PARCELS, max_size=3), "count": _SCALARS, "note": _SCALARS, "more": _SCALARS}
    )
)
@example(payload={})
@example(payload={"parcels": [{"name": "a", "kind": 1, "weight": 1, "tags": {"a": [True]}}], "count": 1, "note": "a"})
def test_plain_validator_says_what_the_models_say(payload: dict[str, Any]) -> None:
    """A dict judged without its models comes out as their dump, key by key, or with the same objections."""
    compiled = compile_contract(Shipment)
    assert compiled.plain is not None
    assert compiled.closed is not None
    sent = handoff(payload=payload)
    errors: list[object] = []
    dumps: list[object] = []
    try:
        model = compiled.closed.validate_python(sent, strict=True, extra="forbid")
        dumps.append(repr(compiled.serializer.to_python(model, mode="json")))
    except ValidationError as error:
        errors.append([(item["type"], item["loc"], repr(item["input"])) for item in error.errors()])
    try:
        dumps.append(repr(compiled.plain.validate_python(sent, strict=True, extra="forbid")))
    except ValidationError as error:
        errors.append([(item["type"], item["loc"], repr(item["input"])) for item in error.errors()])

    assert len(dumps) in (0, 2)
    assert dumps[1:] == dumps[:1]
    assert errors[1:] == errors[:1]


class Aliased(Contract):
    """A field is sent under another name."""

    order_id: str = Field(alias="orderId")


class Excluded(Contract):
    """A field is not delivered."""

    note: str = Field("", exclude=True)


class Serialized(Contract):
    """A field is delivered as another value."""

    cents: int

    @field_serializer("cents")
    def _as_text(self, cents: int) -> str:
        return str(cents)


class Computed(Contract):
    """A field is delivered that nobody sent."""

    cents: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def euros(self) -> float:
        """The amount in euros."""
        return self.cents / 100


class Chosen(Contract):
    """A value may be one of two."""

    order: int | str


class Made(Contract):
    """A default is made by a function."""

    stamps: list[int] = Field(default_factory=lambda: [1])


class Paired(Contract):
    """A default has no JSON form."""

    pair: list[int] = (1, 2)  # type: ignore[assignment]


class Initialised(Contract):
    """The model has an initialiser of its own."""

    cents: int

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)


@pytest.mark.parametrize("contract", [Aliased, Excluded, Serialized, Computed, Chosen, Made, Paired, Initialised])
def test_contract_is_not_plain_when_its_models_say_more_than_their_fields(contract: type[Contract]) -> None:
    """What a model adds, hides or renames is its own to dump."""
    assert compile_contract(contract).plain is None
