"""Registrations: what a team declares is checked at start, with what to type, and a refusal leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter

from handoffwatch import Contract, RegistrationError, Settings, Watch
from support.telemetry import born, samples, unchanged

Declare = Callable[[Watch], Any]


class Plan(Contract, version="1"):
    """The first version."""

    result: str


class OtherPlan(Contract, version="1"):
    """Another contract that says it is the first version."""

    result: str


class NextPlan(Contract, version="2"):
    """The second version."""

    result: str


def _issue(order_id: str, amount_cents: int) -> dict[str, Any]:
    return {"order_id": order_id, "amount_cents": amount_cents}


def _registered() -> Watch:
    watch = Watch(settings=Settings())
    watch.operation("refund", key="order_id", compare=("amount_cents",))
    watch.workflow("refunds", operations=["refund"])
    watch.route("planner->executor", contract=Plan)
    watch.tool("find_order", safety="safe")
    return watch


_NAME_RULE = "the name must be a text of 1 to 100 printable characters without spaces around, and not 'other'"
_ROUTE_RULE = (
    "route: must be 'source->target' with two names of 1 to 100 printable characters\n"
    'hint: watch.route("planner->executor", contract=Plan)'
)
_LOOKALIKE_HINT = "spell one agent in one way everywhere; names must differ by more than case, space or punctuation"

_REFUSED: list[tuple[str, Declare, str]] = [
    (
        "a tool's safety is outside its set",
        lambda watch: watch.tool("find", safety="harmless"),
        "tool find: safety: must be one of safe, idempotent, unsafe, got 'harmless'\nhint: safety=\"safe\"",
    ),
    (
        "a tool's safety is None",
        lambda watch: watch.tool("find", safety=None),  # type: ignore[arg-type]
        'tool find: safety: must be one of safe, idempotent, unsafe, got NoneType\nhint: safety="safe"',
    ),
    (
        "a tool's name is taken",
        lambda watch: watch.tool("find_order", safety="unsafe"),
        "tool find_order: is registered already\nhint: register each tool once",
    ),
    (
        "a tool's operation is unknown",
        lambda watch: watch.tool("pay", safety="unsafe", operation="payout"),
        "tool pay: operation: no operation of the name 'payout' is registered\n"
        "hint: call watch.operation('payout', …) before watch.tool(…)",
    ),
    (
        "a tool lacks a parameter of its operation",
        lambda watch: watch.tool("pay", safety="unsafe", operation="refund")(lambda order_id: order_id),
        "tool pay: parameter amount_cents: must exist because operation refund needs it\n"
        "hint: add a parameter `amount_cents` to the tool, or name another field in watch.operation",
    ),
    (
        "a route is registered twice",
        lambda watch: watch.route("planner->executor", contract=NextPlan),
        "route planner->executor: is registered already\n"
        "hint: register each route once; give several schema versions as a list: contract=[V1, V2]",
    ),
    (
        "a contract is registered twice for a route and version",
        lambda watch: watch.route("executor->reviewer", contract=[Plan, OtherPlan]),
        "route executor->reviewer: two contracts have the schema version 1\n"
        'hint: give one of them another version: class OtherPlan(Contract, version="…")',
    ),
    (
        "a route has no contract",
        lambda watch: watch.route("executor->reviewer", contract=[]),
        "route executor->reviewer: contract: must name at least one, unless the route is unchecked\n"
        "hint: contract=YourContract, or unchecked=True",
    ),
    (
        "a route's contract is none",
        lambda watch: watch.route("executor->reviewer", contract=[NextPlan, dict]),
        "contract: must be a subclass of handoffwatch.Contract, got type\n"
        "hint: derive the class from Contract and name its typed fields",
    ),
    (
        "an agent differs from a registered one by case",
        lambda watch: watch.route("Planner->reviewer", contract=Plan),
        "route Planner->reviewer: agent 'Planner' collides with the registered agent 'planner'\n"
        f"hint: {_LOOKALIKE_HINT}",
    ),
    (
        "an agent differs from a registered one by punctuation",
        lambda watch: watch.route("planner->exe-cutor", contract=Plan),
        "route planner->exe-cutor: agent 'exe-cutor' collides with the registered agent 'executor'\n"
        f"hint: {_LOOKALIKE_HINT}",
    ),
    (
        "a route's two agents differ by case alone",
        lambda watch: watch.route("critic->Critic", contract=Plan),
        f"route critic->Critic: agent 'Critic' collides with the registered agent 'critic'\nhint: {_LOOKALIKE_HINT}",
    ),
    (
        "a route's mode is outside its set",
        lambda watch: watch.route("executor->reviewer", contract=Plan, mode="dry"),
        "route executor->reviewer: mode: must be one of enforce, shadow, got 'dry'\nhint: mode=\"enforce\"",
    ),
    (
        "a route's criticality is outside its set",
        lambda watch: watch.route("executor->reviewer", contract=Plan, criticality="high"),
        "route executor->reviewer: criticality: must be one of critical, routine, got 'high'\n"
        'hint: criticality="critical"',
    ),
    (
        "a workflow's need of tools is outside its set",
        lambda watch: watch.workflow("answers", tools="sometimes"),
        "workflow answers: tools: must be one of required, if_called, none, got 'sometimes'\nhint: tools=\"required\"",
    ),
    (
        "a workflow's guard is outside its set",
        lambda watch: watch.workflow("answers", guard="on"),
        "workflow answers: guard: must be one of enforce, shadow, got 'on'\nhint: guard=\"enforce\"",
    ),
    (
        "a workflow's name is taken",
        lambda watch: watch.workflow("refunds"),
        "workflow refunds: is registered already\nhint: register each workflow once",
    ),
    (
        "a workflow's operation is unknown",
        lambda watch: watch.workflow("payouts", operations=["refund", "payout"]),
        "workflow payouts: operations: no operation of the name 'payout' is registered\n"
        "hint: call watch.operation('payout', …) before watch.workflow(…)",
    ),
    (
        "an operation's name is taken",
        lambda watch: watch.operation("refund", key="order_id"),
        "operation refund: is registered already\nhint: register each operation once",
    ),
    (
        "an operation's criticality is outside its set",
        lambda watch: watch.operation("payout", key="order_id", criticality="high"),
        "operation payout: criticality: must be one of critical, routine, got 'high'\nhint: criticality=\"critical\"",
    ),
    (
        "an operation compares one text instead of a tuple",
        lambda watch: watch.operation("payout", key="order_id", compare="sum"),
        'operation payout: compare: must be a tuple of field names, got text\nhint: write ("sum",)',
    ),
]


@pytest.mark.parametrize(("declare", "message"), [row[1:] for row in _REFUSED], ids=[row[0] for row in _REFUSED])
def test_registration_is_refused_and_leaves_nothing_behind_when_it_is_wrong(declare: Declare, message: str) -> None:
    """The message says what to type, and no series of the refused name exists."""
    watch = _registered()

    with unchanged(watch.registry), pytest.raises(RegistrationError) as caught:
        declare(watch)

    assert str(caught.value) == message


def test_tool_is_refused_and_leaves_nothing_behind_when_it_has_no_safety() -> None:
    """Whether a call may be repeated has no default."""
    watch = _registered()

    with unchanged(watch.registry), pytest.raises(TypeError) as caught:
        watch.tool("find")  # type: ignore[call-arg]

    assert str(caught.value) == "Watch.tool() missing 1 required keyword-only argument: 'safety'"


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            lambda watch, name: watch.workflow(name),
            f'workflow: {_NAME_RULE}\nhint: watch.workflow("refunds", …)',
        ),
        (lambda watch, name: watch.tool(name, safety="safe"), f'tool: {_NAME_RULE}\nhint: watch.tool("refund", …)'),
        (
            lambda watch, name: watch.operation(name, key="order_id"),
            f'operation: {_NAME_RULE}\nhint: watch.operation("refund", …)',
        ),
        (lambda watch, name: watch.route(f"planner->{name}", contract=Plan), _ROUTE_RULE),
        (lambda watch, name: watch.route(f"{name}->executor", contract=Plan), _ROUTE_RULE),
    ],
    ids=["workflow", "tool", "operation", "target", "source"],
)
@pytest.mark.parametrize(
    "name",
    ["", " ", "other", " refunds", "refunds\n", "a\x00b", "a\x1b[31mb", "a\u202eb", "\udca0", "x" * 101],
    ids=["empty", "blank", "other", "space", "line break", "NUL", "escape", "bidi", "surrogate", "101 characters"],
)
def test_name_is_refused_and_leaves_nothing_behind_when_it_cannot_be_a_label(
    declare: Callable[[Watch, str], Any], message: str, name: str
) -> None:
    """A name becomes a label value, a log word and a line of a table."""
    watch = _registered()

    with unchanged(watch.registry), pytest.raises(RegistrationError) as caught:
        declare(watch, name)

    assert str(caught.value) == message


@pytest.mark.parametrize("name", [None, 7, ["refunds"]], ids=["None", "number", "list"])
def test_name_is_refused_when_it_is_no_text(name: Any) -> None:
    """Whatever stands there, the message is the same."""
    watch = _registered()

    with pytest.raises(RegistrationError, match=_NAME_RULE):
        watch.workflow(name)
    with pytest.raises(RegistrationError, match=_NAME_RULE):
        watch.tool(name, safety="safe")


def test_refusal_is_one_line_when_a_name_has_control_characters_and_another_value_is_wrong() -> None:
    """No message carries the control characters of what it refuses."""
    with pytest.raises(RegistrationError) as caught:
        _registered().workflow("re\x1b[31mfunds\n", tools="sometimes")

    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("attempts_max", 0, "tool find: attempts_max: must be at least 1, got 0"),
        ("attempts_max", -3, "tool find: attempts_max: must be at least 1, got -3"),
        ("deadline_s", 0.0, "tool find: deadline_s: must be above 0, got 0.0"),
        ("deadline_s", float("nan"), "tool find: deadline_s: must be above 0, got nan"),
    ],
)
def test_tool_is_refused_when_a_bound_breaks_its_rule(argument: str, value: float, message: str) -> None:
    """The bounds that the settings have hold for one tool too."""
    watch = _registered()

    with unchanged(watch.registry), pytest.raises(RegistrationError) as caught:
        watch.tool("find", safety="safe", **{argument: value})  # type: ignore[arg-type]

    assert caught.value.message == message


def test_registration_succeeds_when_it_is_corrected_after_a_refusal() -> None:
    """What was refused is not taken."""
    watch = _registered()
    for _, declare, _ in _REFUSED:
        with pytest.raises(RegistrationError):
            declare(watch)

    watch.tool("find", safety="safe")
    watch.tool("pay", safety="unsafe", operation="refund")(_issue)
    watch.route("executor->reviewer", contract=[Plan, NextPlan])
    watch.route("critic->planner", contract=Plan)
    watch.workflow("answers", tools="none")
    watch.workflow("payouts", operations=["refund"])
    watch.operation("payout", key="order_id", compare=("sum",))

    assert set(born(watch.registry, "tool_calls_total")) == {
        '{tool="find"}',
        '{tool="find_order"}',
        '{tool="other"}',
        '{tool="pay"}',
    }


def test_run_is_refused_when_its_workflow_is_not_registered() -> None:
    """A run without a workflow would count nowhere."""
    watch = _registered()

    with unchanged(watch.registry), pytest.raises(RegistrationError) as caught:
        watch.run("payouts")

    assert str(caught.value) == "workflow 'payouts': is not registered\nhint: call watch.workflow('payouts') at start"


def test_watches_do_not_meet_when_one_process_has_two() -> None:
    """Each has its own registry; importing or building the program twice is harmless."""
    first, second = _registered(), _registered()

    with first.run("refunds"):
        pass

    assert samples(first.registry)['handoffwatch_runs_started_total{workflow="refunds"}'] == 1
    assert samples(second.registry)['handoffwatch_runs_started_total{workflow="refunds"}'] == 0
    first.close()
    second.close()


def test_watch_lives_beside_the_hosts_metrics_when_they_have_the_same_name() -> None:
    """The registry of a watch is its own."""
    host = CollectorRegistry()
    Counter("handoffwatch_runs_started_total", "The host's own.", registry=host).inc(7)

    watch = _registered()

    assert samples(watch.registry)['handoffwatch_runs_started_total{workflow="refunds"}'] == 0


def test_watch_says_which_registry_to_use_when_one_is_used_by_another_watch() -> None:
    """A real clash is a clear message, and the registry stays as the first watch left it."""
    registry = CollectorRegistry()
    Watch(settings=Settings(), registry=registry)

    with unchanged(registry), pytest.raises(RegistrationError) as caught:
        Watch(settings=Settings(), registry=registry)

    assert str(caught.value) == (
        "metric handoffwatch_runs_started_total: the registry has one of this name already\n"
        "hint: give each Watch a registry of its own: leave `registry` out"
    )


def test_watch_leaves_the_registry_as_it_was_when_one_of_its_names_is_taken() -> None:
    """A clash half-way leaves no metrics of a watch that never was."""
    registry = CollectorRegistry()
    Counter("handoffwatch_tool_calls_total", "The host's own.", registry=registry)

    with unchanged(registry), pytest.raises(RegistrationError):
        Watch(settings=Settings(), registry=registry)
