"""The registered routes: refused with what to type, looked up by exact names."""

from __future__ import annotations

from typing import Any

import pytest

from handoffwatch import Contract, RegistrationError, Watch
from handoffwatch.decision import Finding
from handoffwatch.handoffs.routes import Routes
from handoffwatch.vocabulary import Criticality, Mode


class First(Contract):
    """Version 1."""


class Second(Contract, version="2"):
    """Version 2."""


class AlsoFirst(Contract, version=1, identity="payload.order_id"):
    """Version 1 again, as a number."""


class NotDerived:
    """No contract."""


BAD_NAME = (
    "route: must be 'source->target' with two names of 1 to 100 printable characters",
    'watch.route("planner->executor", contract=Plan)',
)


@pytest.mark.parametrize(
    ("name", "contract", "message", "hint"),
    [
        *((name, First, *BAD_NAME) for name in (
            "", "planner", "planner->", "->planner", "a->b->c", " a->b", "a-> b", "a ->b", "a->b\n", "a->\x00",
            "other->b", "a->other", "a->" + "b" * 101, "a—>b", None, 7, b"a->b",
        )),
        ("planner->executor", First, "route planner->executor: is registered already",
         "register each route once; give several schema versions as a list: contract=[V1, V2]"),
        ("a->b", [], "route a->b: contract: must name at least one, unless the route is unchecked",
         "contract=YourContract, or unchecked=True"),
        ("a->b", [First, AlsoFirst], "route a->b: two contracts have the schema version 1",
         'give one of them another version: class AlsoFirst(Contract, version="…")'),
        ("a->b", NotDerived, "contract: must be a subclass of handoffwatch.Contract, got type",
         "derive the class from Contract and name its typed fields"),
        ("a->b", NotDerived(), "contract: must be a subclass of handoffwatch.Contract, got NotDerived",
         "derive the class from Contract and name its typed fields"),
        ("a->b", None, "contract: must be a subclass of handoffwatch.Contract, got NoneType",
         "derive the class from Contract and name its typed fields"),
        ("a->b", First(), "contract: must be a subclass of handoffwatch.Contract, got First",
         "derive the class from Contract and name its typed fields"),
        ("Planner->b", First, "route Planner->b: agent 'Planner' collides with the registered agent 'planner'",
         "spell one agent in one way everywhere; names must differ by more than case, space or punctuation"),
    ],
)  # fmt: skip
def test_route_is_refused_with_what_to_type_when_it_is_declared_wrongly(
    name: Any, contract: Any, message: str, hint: str
) -> None:
    """A wrong declaration is refused at start and leaves nothing behind."""
    watch = Watch()
    watch.route("planner->executor", contract=First)

    with pytest.raises(RegistrationError) as refused:
        watch.route(name, contract=contract)

    assert (refused.value.message, refused.value.hint) == (message, hint)
    assert [route.name for route in watch.watchdog.routes] == ["planner->executor"]


def test_route_can_be_declared_rightly_when_it_was_refused_before() -> None:
    """A refused declaration does not occupy the names."""
    watch = Watch()
    with pytest.raises(RegistrationError):
        watch.route("a->b", contract=[First, AlsoFirst])

    watch.route("A->b", contract=[First, Second])

    assert [(route.name, list(route.contracts)) for route in watch.watchdog.routes] == [("A->b", ["1", "2"])]


def test_add_gives_the_route_when_it_is_declared_rightly() -> None:
    """A route knows its agents, its mode and its contracts; the newest contract says what identifies a handoff."""
    routes = Routes()

    route = routes.add(
        "a->b", contracts=[Second, AlsoFirst], criticality=Criticality.CRITICAL, mode=Mode.SHADOW
    )  # fmt: skip

    assert (route.name, route.source, route.target) == ("a->b", "a", "b")
    assert (route.criticality, route.mode, list(route.contracts)) == (Criticality.CRITICAL, Mode.SHADOW, ["2", "1"])
    assert route.identity == ("payload", "order_id")
    assert list(routes) == [route]
    assert routes.identity_path("a", "b") == ("payload", "order_id")
    assert routes.identity_path("b", "a") == ("task_id",)


@pytest.mark.parametrize(
    ("source", "target", "codes"),
    [
        ("a", "b", None),
        ("b", "a", ["unknown_route"]),
        ("a", "A", ["unknown_agent"]),
        ("x", "b", ["unknown_agent"]),
        ("x", "y", ["unknown_agent", "unknown_agent"]),
        (None, "b", []),
        ("a", 7, []),
        ("\ud83c", "b", ["unknown_agent"]),
        ("a", "b" * 1_000_000, ["unknown_agent"]),
        ("...", "!!!", ["unknown_agent", "unknown_agent"]),
    ],
    ids=lambda item: str(item)[:10].encode("ascii", "replace").decode(),
)
def test_resolve_says_why_there_is_no_route_when_two_names_lead_nowhere(
    source: object, target: object, codes: list[str] | None
) -> None:
    """An unknown name and an unknown route are findings; a name that is no text is left to the structure."""
    routes = Routes()
    route = routes.add("a->b", contracts=[First], criticality=Criticality.ROUTINE, mode=Mode.ENFORCE)
    found: list[Finding] = []

    assert routes.resolve(source, target, found) is (route if codes is None else None)
    assert [item.code for item in found] == (codes or [])
