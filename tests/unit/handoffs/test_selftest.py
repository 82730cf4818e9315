"""The self-test: what is derived from a contract's fields passes it, and what is damaged is stopped."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, Field, HttpUrl, PlainSerializer, create_model, field_validator
from typing_extensions import TypedDict

from handoffwatch import Contract, contract_from_function, contract_from_json_schema, rule
from handoffwatch.demo.contracts import Plan, Review, Work
from handoffwatch.handoffs.contract import AnyContract
from handoffwatch.handoffs.known_handoffs import bad_handoff, good_handoff
from handoffwatch.handoffs.routes import Route, Routes
from handoffwatch.handoffs.selftest import Problem, SelfTest
from handoffwatch.handoffs.watchdog import Watchdog
from handoffwatch.vocabulary import Criticality, Mode, Reaction
from support.watched import Time

NOW_S = 1_790_000_000.0


class Colour(enum.StrEnum):
    """An enumeration."""

    RED = "red"
    BLUE = "blue"


class Card(BaseModel):
    """One way to pay, with a tag that has a default."""

    kind: Literal["card"] = "card"
    last: str = Field(pattern=r"^\d{4}$")


class Cash(BaseModel):
    """Another way to pay."""

    kind: Literal["cash"] = "cash"


class Node(BaseModel):
    """A model that holds itself."""

    next: Node | None
    children: list[Node]


class Hit(TypedDict):
    """A dict with known keys."""

    id: str


FIELDS: dict[str, Any] = {
    "text": str,
    "text_with_bounds": Annotated[str, Field(min_length=3, max_length=3)],
    "text_with_pattern": Annotated[str, Field(pattern=r"^ORD-\d+$", min_length=8)],
    "integer": int,
    "integer_with_bounds": Annotated[int, Field(gt=3, lt=11, multiple_of=5)],
    "negative": Annotated[int, Field(le=-2)],
    "number": Annotated[float, Field(gt=0, lt=1)],
    "truth": bool,
    "nothing": type(None),
    "literal": Literal["a", 3],
    "enumeration": Colour,
    "model": Card,
    "optional": str | None,
    "union": int | str,
    "tagged": Annotated[Card | Cash, Field(discriminator="kind")],
    "recursive": Node,
    "typed_dict": Hit,
    "list": list[Card],
    "list_with_bounds": Annotated[list[Card], Field(min_length=2)],
    "tuple": tuple[int, str],
    "set": Annotated[set[int], Field(min_length=1)],
    "dict_of_numbers": Annotated[dict[str, int], Field(min_length=2)],
    "dict_by_number": Annotated[dict[int, str], Field(min_length=1)],
    "dict_by_enumeration": Annotated[dict[Colour, int], Field(min_length=1)],
    "time": AwareDatetime,
    "date": datetime.date,
    "time_of_day": datetime.time,
    "duration": datetime.timedelta,
    "decimal": Annotated[decimal.Decimal, Field(gt=1, max_digits=4, decimal_places=2)],
    "uuid": uuid.UUID,
    "url": HttpUrl,
    "bytes": bytes,
    "anything": Any,
    "example": Annotated[str, Field(pattern=r"^\x37$", examples=["7"])],
}


def _watched(contract: AnyContract, **keywords: Any) -> tuple[Watchdog, Route]:
    routes = Routes()
    route = routes.add(
        "planner->executor", contracts=[contract], criticality=Criticality.ROUTINE, mode=Mode.ENFORCE, **keywords
    )
    return Watchdog(routes, clock=Time(now_s=NOW_S).clock()), route


def _problem(contract: AnyContract, **keywords: Any) -> Problem | None:
    watchdog, route = _watched(contract, **keywords)
    (compiled,) = route.contracts.values()
    return SelfTest(watchdog).judge(route, compiled, now_unix_s=NOW_S)


def _contract(fields: dict[str, Any], **keywords: Any) -> type[Contract]:
    return create_model("Made", __base__=Contract, __cls_kwargs__=keywords, **fields)


@pytest.mark.parametrize("name", FIELDS)
def test_selftest_is_right_when_a_field_is_of_any_common_type(name: str) -> None:
    """Nothing has to be given for types and constraints that say what is valid."""
    assert _problem(_contract({name: (FIELDS[name], ...)})) is None


@given(
    required=st.dictionaries(st.sampled_from(sorted(FIELDS)), st.booleans(), min_size=1, max_size=6),
    status=st.sampled_from(["ready", "completed", "failed"]),
    needs=st.booleans(),
)
def test_derived_good_is_allowed_and_derived_bad_is_blocked_when_fields_are_combined(
    required: dict[str, bool], status: str, needs: bool
) -> None:
    """For every contract, required and optional fields mixed."""
    made = {name: (FIELDS[name], ...) if must else (FIELDS[name] | None, None) for name, must in required.items()}
    made |= {"results": (list[Card], ...)} if needs else {}
    watchdog, route = _watched(_contract(made, accepts=(status,), needs_results=needs))
    (compiled,) = route.contracts.values()
    good = good_handoff(route, compiled)
    bad = bad_handoff(good, compiled)

    allowed = watchdog.inspect(good.handoff, context=good.context)
    blocked = watchdog.inspect(bad.handoff, context=bad.context)

    assert (allowed.allowed, allowed.reasons) == (True, [])
    assert not blocked.allowed
    assert blocked.paths == [bad.wrong_at]


@given(
    low=st.integers(-10, 10), width=st.integers(0, 12), step=st.integers(1, 6), texts=st.integers(0, 5),
    items=st.integers(0, 4),
)  # fmt: skip
def test_derived_good_is_allowed_when_bounds_are_tight(low: int, width: int, step: int, texts: int, items: int) -> None:
    """Where the bounds leave one value, that is the one; where they leave none, the field is named."""
    problem = _problem(
        _contract(
            {
                "number": (Annotated[int, Field(ge=low, le=low + width, multiple_of=step)], ...),
                "text": (Annotated[str, Field(min_length=texts, max_length=texts)], ...),
                "items": (Annotated[list[int], Field(min_length=items, max_length=items)], ...),
            }
        )
    )
    if any(value % step == 0 for value in range(low, low + width + 1)):
        assert problem is None
    else:
        assert problem == Problem("no good handoff can be derived: no value for payload.number", untested=True)


class Demanding(
    Contract,
    requires_context=True,
    needs_results=True,
    irreversible=True,
    ready_needs=("plan",),
    age_s_max=5,
    confidence_min=0.8,
    choices={"selected": "candidates.*.id"},
    same_task=("about", "cited.*"),
    merged="parts",
    messages="history",
    accepts=("ready", "completed", "failed"),
):
    """Asks for everything that a contract can ask for."""

    selected: str
    candidates: list[Hit] = Field([])
    about: str = Field(pattern=r"^T-\d+$")
    cited: Annotated[list[str], Field(min_length=1)]
    plan: str | None = None
    operation_id: str | None = None
    results: list[Hit] = Field([])
    confidence: float
    parts: list[dict[str, int]]
    history: list[dict[str, str]]


class DemandingWhenDone(Demanding, accepts=("completed",)):
    """The same of completed work."""

    result: dict[str, str]
    count: int


class DemandingWhenFailed(Demanding, accepts=("failed",)):
    """The same of failed work, which brings an error and no more."""


class FailedWithError(Contract, accepts=("failed",)):
    """Failed work whose contract has an error of its own."""

    error: str | None
    seen: int


class Empty(Contract):
    """Needs nothing."""


class Renamed(Contract):
    """Its names on the wire are others."""

    order_id: str = Field(alias="orderId")


class Ends(Contract, deprecated_from="2020-01-01"):
    """Its last day has gone."""

    order_id: str


class EndsLater(Contract, deprecated_from="2999-01-01"):
    """Its last day will come."""

    order_id: str


DEMANDS = (Plan, Work, Review, Demanding, DemandingWhenDone, DemandingWhenFailed, FailedWithError, Empty, Renamed, Ends)


@pytest.mark.parametrize("contract", [*DEMANDS, EndsLater])
def test_selftest_is_right_when_a_contract_has_demands_of_its_own(contract: type[Contract]) -> None:
    """The demo's contracts and every class keyword; a version that has ended stops everything, and that is right."""
    assert _problem(contract) is None


def test_bad_handoff_lacks_a_required_field_when_there_is_one() -> None:
    """The first required field goes; without one there is a field too many."""
    for contract, path in [
        (Plan, "payload.task"),
        (Empty, "payload.selftest_unknown_field"),
        (DemandingWhenFailed, "payload.error"),
    ]:
        _, route = _watched(contract)
        (compiled,) = route.contracts.values()
        assert bad_handoff(good_handoff(route, compiled), compiled).wrong_at == path


class Limited(Contract):
    """Has a rule that nothing derived can know."""

    amount_cents: int

    @rule("amount_too_low", "the reviewer needs an amount", path="payload.amount_cents")
    def some(self) -> bool:
        """Return whether there is an amount."""
        return self.amount_cents > 0


class LimitedWithExample(Limited, good_example={"amount_cents": 3800}):
    """Says what is good."""


class LimitedWithFieldExample(Limited):
    """Says what is good for the field."""

    amount_cents: int = Field(examples=[3800])


class LimitedWithWrongExample(Limited, good_example={"amount_cents": 0}):
    """Says what is not good."""


class Odd(Contract):
    """Has a validator that nothing derived can know."""

    order_id: str

    @field_validator("order_id")
    @classmethod
    def _checked(cls, value: str) -> str:
        if not value.startswith("4"):
            raise ValueError("must begin with 4")
        return value


class Ruled(Contract, accepts=("completed", "ready"), ready_needs=("plan",), good_example={"order_id": "4417"}):
    """Its example is of completed work: ready work would need a plan."""

    order_id: str
    plan: str | None = None


class Referring(Contract, same_task=("about",), irreversible=True, good_example={"about": "t-9", "operation_id": "o"}):
    """Its example speaks of a task and an operation of its own."""

    about: str
    operation_id: str


@pytest.mark.parametrize("contract", [LimitedWithExample, LimitedWithFieldExample, Ruled, Referring])
def test_selftest_is_right_when_a_good_example_is_given(contract: type[Contract]) -> None:
    """What a rule asks for, only its owner can say; the envelope is made to fit."""
    assert _problem(contract) is None


UNTESTED = {
    Limited: "no good handoff can be derived: the good handoff was stopped: amount_too_low at payload.amount_cents",
    Odd: "no good handoff can be derived: the good handoff was stopped: bad_format at payload.order_id",
}


@pytest.mark.parametrize(("contract", "text"), UNTESTED.items())
def test_selftest_says_what_stops_it_when_a_rule_refuses_what_was_derived(contract: type[Contract], text: str) -> None:
    """That is no failure of the contract: its owner is asked for an example."""
    assert _problem(contract) == Problem(text, untested=True)


def test_selftest_fails_when_the_given_example_is_stopped() -> None:
    """An example that its own contract refuses shows that one of them is wrong."""
    assert _problem(LimitedWithWrongExample) == Problem(
        "the good handoff was stopped: amount_too_low at payload.amount_cents"
    )


def test_selftest_fails_when_a_rule_breaks_after_it_was_right() -> None:
    """A rule that begins to refuse or to raise is seen, and the contract is right again when it is."""
    mood: dict[str, bool] = {}

    class Moody(Contract):
        order_id: str

        @rule("moody", "the receiver needs luck")
        def lucky(self) -> bool:
            return mood["good"]

    watchdog, route = _watched(Moody)
    (compiled,) = route.contracts.values()
    test = SelfTest(watchdog)
    told: list[Problem | None] = []

    for now in ({"good": True}, {"good": False}, {}, {"good": True}):
        mood.clear()
        mood.update(now)
        told.append(test.judge(route, compiled, now_unix_s=NOW_S))

    assert told == [
        None,
        Problem("the good handoff was stopped: moody at payload"),
        Problem("the good handoff was stopped: check_failed at payload"),
        None,
    ]


def test_selftest_fails_when_the_bad_handoff_passes() -> None:
    """A watchdog that went blind is seen: here the contract is taken out of its route and a wider one put in."""
    watchdog, route = _watched(Plan)
    (compiled,) = route.contracts.values()
    test = SelfTest(watchdog)
    assert test.judge(route, compiled, now_unix_s=NOW_S) is None

    _, wide = _watched(contract_from_function(lambda payload: True, code="anything", reason="it needs nothing"))
    route.contracts.update(wide.contracts)

    assert test.judge(route, compiled, now_unix_s=NOW_S) == Problem(
        "the bad handoff was allowed, and payload.task was not named"
    )


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("reaction", list(Reaction))
def test_selftest_is_right_when_a_route_reacts_in_its_own_way(mode: Mode, reaction: Reaction) -> None:
    """What is missing must be named; what follows from it, and whether the program obeys, is the route's to say."""
    routes = Routes()
    route = routes.add(
        "a->b", contracts=[Plan], criticality=Criticality.ROUTINE, mode=mode, reactions={"missing_field": reaction}
    )
    watchdog = Watchdog(routes, clock=Time(now_s=NOW_S).clock())
    assert SelfTest(watchdog).judge(route, route.contracts["1"], now_unix_s=NOW_S) is None


SCHEMA = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": r"^\d{4}$"},
        "amount_cents": {"$ref": "#/$defs/cents"},
    },
    "required": ["order_id"],
    "$defs": {"cents": {"type": "integer", "minimum": 1}},
}


def test_selftest_is_right_when_the_contract_is_a_json_schema() -> None:
    """The schema says what is valid as fields do; one that requires nothing still needs a payload."""
    pytest.importorskip("jsonschema")
    assert _problem(contract_from_json_schema(SCHEMA)) is None
    assert _problem(contract_from_json_schema({**SCHEMA, "required": []})) is None
    assert _problem(contract_from_json_schema({"not": {"type": "object"}})) == Problem(
        "no good handoff can be derived: no value for payload", untested=True
    )


def test_schema_is_left_alone_when_an_example_in_it_is_made_to_fit() -> None:
    """What is derived belongs to the self-test: the examples in a schema stay the team's own."""
    pytest.importorskip("jsonschema")
    about: dict[str, Any] = {"type": "object", "examples": [{"order": {"task": 1}}]}
    schema = {"properties": {"about": about, "task": {"type": "string"}}, "required": ["task", "about"]}
    assert _problem(contract_from_json_schema(schema, same_task=("task", "about.order.task"))) is None
    assert about["examples"] == [{"order": {"task": 1}}]


def test_selftest_writes_no_warnings_when_a_default_has_no_json_form() -> None:
    """A host's log is not the place for what a schema leaves out."""

    class Opaque:
        pass

    shown = Annotated[Any, PlainSerializer(lambda value: "opaque")]
    assert _problem(_contract({"order_id": (str, ...), "opaque": (shown, Opaque())})) is None


def test_selftest_needs_an_example_when_the_contract_is_a_function() -> None:
    """A function does not say what it accepts."""

    def has_order(payload: dict[str, Any]) -> bool:
        payload["seen"] = True
        return "order_id" in payload and len(payload) == 2

    def contract(**keywords: Any) -> AnyContract:
        return contract_from_function(has_order, code="no_order", reason="it needs an order", **keywords)

    example = {"order_id": "4417"}
    assert _problem(contract()) == Problem("no good handoff can be derived: no value for payload", untested=True)
    assert _problem(contract(good_example=example)) is None
    assert example == {"order_id": "4417"}
