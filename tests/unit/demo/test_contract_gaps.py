"""No required field of a Northwind contract can be lost, nulled, emptied or corrupted without a block that names it."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from handoffwatch import Clock, Contract, Decision, Watchdog
from handoffwatch.demo import contracts
from handoffwatch.demo.contracts import PLAN_ROUTE, REVIEW_ROUTE, WORK_ROUTE, Plan, Review, Work
from handoffwatch.handoffs.routes import Routes
from handoffwatch.values.paths import places
from handoffwatch.vocabulary import Criticality, Mode

CONTRACT_OF: Final[dict[str, type[Contract]]] = {PLAN_ROUTE: Plan, WORK_ROUTE: Work, REVIEW_ROUTE: Review}
STATUS_OF: Final = {PLAN_ROUTE: "ready", WORK_ROUTE: "completed", REVIEW_ROUTE: "completed"}

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]),
                                                                       max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def _models(kind: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the models that a field holds, each with the path from the field to it."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias) and issubclass(kind, BaseModel):
        yield "", kind
    for inner in typing.get_args(kind):
        step = ".0" if typing.get_origin(kind) is list else ""
        yield from ((step + below, model) for below, model in _models(inner))


def required_fields(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the type of every required field, at every depth."""
    for name, info in model.model_fields.items():
        if info.is_required():
            path = f"{above}.{name}" if above else name
            yield path, info.annotation
            for below, inner in _models(info.annotation):
                yield from required_fields(inner, path + below)


def good_value(kind: Any) -> Any:
    """Return a value of a type, with nothing empty in it."""
    if typing.get_origin(kind) is list:
        return [good_value(typing.get_args(kind)[0])]
    if issubclass(kind, BaseModel):
        return {name: good_value(info.annotation) for name, info in kind.model_fields.items() if info.is_required()}
    return {str: "once", int: 3800}[kind]


def good_handoff(route: str) -> dict[str, Any]:
    """Return a handoff that fits the contract of a route."""
    source, target = route.split("->")
    return {
        "handoff_id": "h-1",
        "task_id": "task-40001",
        "source_agent": source,
        "target_agent": target,
        "task_type": "refund",
        "status": STATUS_OF[route],
        "schema_version": "1",
        "payload": good_value(CONTRACT_OF[route]),
    }


def inspect(raw: dict[str, Any]) -> Decision:
    """Judge a handoff as the demo does."""
    routes = Routes()
    for name, contract in CONTRACT_OF.items():
        routes.add(name, contracts=[contract], criticality=Criticality.CRITICAL, mode=Mode.ENFORCE)
    return Watchdog(routes, clock=Clock()).inspect(raw)


FIELDS: Final = [
    (route, path, kind) for route, contract in CONTRACT_OF.items() for path, kind in required_fields(contract)
]
CASES = pytest.mark.parametrize(("route", "path", "kind"), FIELDS, ids=[f"{route}-{path}" for route, path, _ in FIELDS])
_GONE: Final = object()


def changed(route: str, path: str, value: object) -> dict[str, Any]:
    """Return the good handoff of a route with one field replaced, or removed."""
    raw = good_handoff(route)
    above, _, name = path.rpartition(".")
    ((_, container),) = places(raw["payload"], above) if above else [((), raw["payload"])]
    assert isinstance(container, dict)
    if value is _GONE:
        del container[name]
    else:
        container[name] = value
    return raw


def check_blocked(route: str, path: str, value: object) -> None:
    """Hold the decision about a handoff with one gap against what it must say."""
    decision = inspect(changed(route, path, value))
    where = f"payload.{path}"

    assert not decision.allowed
    assert decision.normalized_payload is None
    named = decision.paths
    assert named
    assert all(each == where or each.startswith(f"{where}.") for each in named), named
    assert [item for item in decision.findings if item.path not in item.sentence] == []


def test_every_contract_of_the_demo_is_among_those_that_are_damaged() -> None:
    """A contract that is added to the demo is damaged here too."""
    written = {each for each in vars(contracts).values() if isinstance(each, type) and issubclass(each, Contract)}

    assert written - {Contract} == set(CONTRACT_OF.values())
    assert {route for route, _, _ in FIELDS} == set(CONTRACT_OF)


@pytest.mark.parametrize("route", CONTRACT_OF)
def test_good_handoff_passes_when_nothing_is_damaged(route: str) -> None:
    """Each gap is the only thing that is wrong."""
    assert inspect(good_handoff(route)).reasons == []


@CASES
def test_handoff_is_blocked_and_the_path_named_when_a_required_field_is_removed(
    route: str, path: str, kind: Any
) -> None:
    """One field less."""
    check_blocked(route, path, _GONE)


@CASES
def test_handoff_is_blocked_and_the_path_named_when_a_required_field_is_null(route: str, path: str, kind: Any) -> None:
    """A field that is there and says nothing."""
    check_blocked(route, path, None)


@CASES
def test_handoff_is_blocked_and_the_path_named_when_a_required_field_is_empty(route: str, path: str, kind: Any) -> None:
    """Empty as its own type, or as a text where it has no empty form."""
    empty: Any = [] if typing.get_origin(kind) is list else "" if kind in (str, int) else {}

    check_blocked(route, path, empty)


@CASES
@settings(max_examples=25, deadline=None, database=None, derandomize=True)
@given(data=st.data())
def test_handoff_is_blocked_and_the_path_named_when_a_required_field_is_corrupted(
    route: str, path: str, kind: Any, data: st.DataObject
) -> None:
    """Anything else than the type that the contract names."""
    value = data.draw(JSON.filter(lambda value: not _fits(kind, value)))

    check_blocked(route, path, value)


def _fits(kind: Any, value: object) -> bool:
    """Return whether a value is of the field's type, as a strict reader sees it."""
    try:
        _adapter(kind).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
