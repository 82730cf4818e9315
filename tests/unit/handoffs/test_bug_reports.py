"""Public bug reports that one decision of the watchdog can catch, each named by its number."""

from __future__ import annotations

import json
import logging
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, SecretStr

from handoffwatch import Contract, Decision, HandoffBlocked, RegistrationError, Watch, Watchdog
from handoffwatch.handoffs.routes import Routes
from handoffwatch.vocabulary import Criticality, Mode, Verdict
from support.refund_handoffs import HANDOFF_ID, handoff, payload, refund_watchdog, ticking_clock


def watchdog_of(*contracts: type[Contract], route: str = "executor->reviewer", mode: Mode = Mode.ENFORCE) -> Watchdog:
    """Return a watchdog with one route."""
    routes = Routes()
    routes.add(route, contracts=contracts, criticality=Criticality.ROUTINE, mode=mode)
    return Watchdog(routes, clock=ticking_clock())


class Anything(Contract):
    """A contract without fields."""


@pytest.mark.parametrize("second", ["billing agent", "Billing-Agent", "billing.agent", "BillingAgent", "billing_agent"])
def test_route_refuses_an_agent_when_its_name_only_looks_different(second: str) -> None:
    """BR-005: names that differ in case, space or punctuation collide, and the message names both."""
    watch = Watch()
    watch.route("triage->Billing Agent", contract=Anything)

    with pytest.raises(RegistrationError) as refused:
        watch.route(f"triage->{second}", contract=Anything)

    assert refused.value.message == (
        f"route triage->{second}: agent {second!r} collides with the registered agent 'Billing Agent'"
    )
    assert refused.value.hint == (
        "spell one agent in one way everywhere; names must differ by more than case, space or punctuation"
    )
    assert [route.name for route in watch.watchdog.routes] == ["triage->Billing Agent"]


def test_route_refuses_both_agents_when_they_collide_with_each_other() -> None:
    """BR-005: the two ends of one route are held against each other too."""
    with pytest.raises(RegistrationError, match="'billing-agent' collides with the registered agent 'Billing Agent'"):
        Watch().route("Billing Agent->billing-agent", contract=Anything)


def test_routes_stay_reachable_by_exact_name_when_an_agent_hands_to_itself() -> None:
    """BR-005: the same name twice is one agent, and no collision."""
    watch = Watch()
    watch.route("worker->worker", contract=Anything)

    decision = watch.watchdog.inspect(handoff(source_agent="worker", target_agent="worker", payload={}))

    assert (decision.allowed, decision.route) == (True, "worker->worker")


@pytest.mark.parametrize(
    ("target", "reasons"),
    [
        ("RefundsAgent", ["unknown_agent"]),
        ("", ["unknown_agent", "empty_field"]),
        (None, ["null_field"]),
        (" reviewer ", ["unknown_agent"]),
        ("Reviewer", ["unknown_agent"]),
        ("reviewer\n", ["unknown_agent"]),
        (["reviewer"], ["type_mismatch"]),
        ({"name": "reviewer"}, ["type_mismatch"]),
    ],
)
@pytest.mark.parametrize("form", [dict, json.dumps], ids=["dict", "json text"])
def test_inspect_blocks_as_usual_when_the_target_does_not_exist(target: object, reasons: list[str], form: Any) -> None:
    """BR-007: a made-up, empty, null or padded target is a normal blocked decision, and padding is not trimmed."""
    decision = refund_watchdog().inspect(form(handoff(target_agent=target)))

    assert (decision.allowed, decision.reasons, decision.route) == (False, reasons, "other")
    assert (decision.paths, decision.retryable, decision.handoff_id) == (["target_agent"], True, HANDOFF_ID)


def test_inspect_names_every_extra_argument_when_the_model_adds_its_own() -> None:
    """BR-009: the two arguments that the model made up are named at once, and it may repair them."""
    raw = handoff(payload=payload(prompt="do it", user_request="refund me"))

    decision = refund_watchdog().inspect(raw)

    assert (decision.reasons, decision.retryable) == (["unknown_field"], True)
    assert decision.paths == ["payload.prompt", "payload.user_request"]


class Brief(Contract):
    """What a writer needs, so that it need not ask."""

    task_id: str
    task_description: str
    upstream_refs: list[str]


@pytest.mark.parametrize("form", [dict, json.dumps], ids=["dict", "json text"])
def test_inspect_lists_all_missing_paths_when_the_payload_is_empty(form: Any) -> None:
    """BR-016: three missing fields are one answer, not three rounds of repair."""
    decision = watchdog_of(Brief).inspect(form(handoff(payload={})))

    assert (decision.reasons, decision.retryable) == (["missing_field"], True)
    assert decision.paths == ["payload.task_id", "payload.task_description", "payload.upstream_refs"]


class Approval(Contract):
    """Fields that lax parsing would bend."""

    approved: bool = True
    count: int = 0
    id: str = "a"
    share: float = 0.0


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"approved": "no"}, "payload.approved must be true or false, and is text"),
        ({"approved": "false"}, "payload.approved must be true or false, and is text"),
        ({"approved": 1}, "payload.approved must be true or false, and is an integer"),
        ({"count": True}, "payload.count must be an integer, and is true or false"),
        ({"count": "3"}, "payload.count must be an integer, and is text"),
        ({"count": 3.0}, "payload.count must be an integer, and is a number"),
        ({"id": False}, "payload.id must be a text, and is true or false"),
        ({"share": "0.5"}, "payload.share must be a number, and is text"),
        ({"share": True}, "payload.share must be a number, and is true or false"),
    ],
)
@pytest.mark.parametrize("form", [dict, json.dumps], ids=["dict", "json text"])
def test_inspect_blocks_with_type_mismatch_when_lax_parsing_would_bend_the_value(
    fields: dict[str, object], sentence: str, form: Any
) -> None:
    """BR-018: strict on the wire, with the path, and nothing is coerced."""
    decision = watchdog_of(Approval).inspect(form(handoff(payload=fields)))

    assert [(finding.code, finding.sentence) for finding in decision.findings] == [("type_mismatch", sentence)]
    assert decision.coerced == ()


@pytest.mark.parametrize("fields", [{"approved": False}, {"count": 0}, {"share": 3}, {"share": 0.5}, {"id": "0"}])
def test_inspect_allows_when_the_value_has_the_type_of_the_contract(fields: dict[str, object]) -> None:
    """BR-018: strictness refuses no honest value; an integer is a number."""
    assert watchdog_of(Approval).inspect(handoff(payload=fields)).allowed


@pytest.mark.parametrize("depth", [1_000, 10_000, 1_000_000])
def test_inspect_never_recurses_when_the_text_is_nested_without_end(depth: int) -> None:
    """BR-020: objects in objects, as text and as Python values, closed or cut off, are blocked without an error."""
    watchdog = refund_watchdog()
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    inputs = ['{"a":' * depth + "1" + "}" * depth, '{"a":' * depth, "[" * depth, value]

    decisions = [watchdog.inspect(item) for item in inputs]
    while value:
        value = value.popitem()[1]

    assert {decision.verdict for decision in decisions} == {Verdict.BLOCKED}
    assert {code for decision in decisions for code in decision.reasons} <= {
        "too_deep", "too_large", "truncated_payload", "missing_handoff_id",
    }  # fmt: skip
    assert decisions[-1].reasons[0] == "too_deep"


@pytest.mark.parametrize("dirt", ["\ud83c", "\udc97"])  # noqa: PT014 - two halves, which the linter takes for one
@pytest.mark.parametrize(
    "place",
    ["value", "key", "task_id", "source_agent", "target_agent", "status", "schema_version", "envelope key"],
)
@pytest.mark.parametrize("target", ["reviewer", "auditor"], ids=["enforce", "shadow"])
def test_inspect_blocks_with_invalid_text_when_half_a_character_is_anywhere(place: str, dirt: str, target: str) -> None:
    """BR-021: one policy, block; the decision about it can be encoded."""
    raw = handoff(target_agent=target)
    if place == "value":
        raw["payload"]["note"] = f"refund {dirt}"
    elif place == "key":
        raw["payload"][dirt] = 1
    elif place == "envelope key":
        raw[dirt] = 1
    else:
        raw[place] = dirt

    decision = refund_watchdog().inspect(raw)

    assert "invalid_text" in decision.reasons
    assert decision.verdict is Verdict.BLOCKED
    assert json.loads(decision.to_json().encode())["verdict"] == "blocked"


@pytest.mark.parametrize("note", ["\\ud83c", "\\udc97", "\\ud83c\\ud83c", "x\\udc97\\ud83c"])
def test_inspect_blocks_when_half_a_character_is_written_as_an_escape(note: str) -> None:
    """BR-021: the escape in JSON text does not smuggle it past the check."""
    raw = json.dumps(handoff(payload=payload(note="HERE"))).replace("HERE", note)

    decision = refund_watchdog().inspect(raw)

    assert decision.verdict is Verdict.BLOCKED
    assert decision.to_json().encode()


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"amout": 50}, "payload.amout"),
        ({"raw_output": "secret text"}, "payload.raw_output"),
        ({"hits": [{"id": "a", "scroe": 1.0}]}, "payload.hits.0.scroe"),
        ({"paid_by": {"kind": "card", "digits": "4", "cvc": "123"}}, "payload.paid_by.cvc"),
    ],
)
@pytest.mark.parametrize("form", [dict, json.dumps], ids=["dict", "json text"])
def test_inspect_blocks_with_unknown_field_when_a_name_is_not_in_the_contract(
    fields: dict[str, Any], path: str, form: Any
) -> None:
    """BR-022: a typo or raw output is never dropped without a word, in nested models neither."""
    decision = refund_watchdog().inspect(form(handoff(payload=payload(**fields))))

    assert ("unknown_field", path) in {(finding.code, finding.path) for finding in decision.findings}
    assert decision.verdict is Verdict.BLOCKED


def test_inspect_judges_each_route_by_its_own_contract_when_many_ask_at_once() -> None:
    """BR-029: two routes whose contracts contradict each other, 200 inspections from eight threads."""

    class Text(Contract):
        value: str

    class Number(Contract):
        value: int

    routes = Routes()
    routes.add("a->text", contracts=[Text], criticality=Criticality.ROUTINE, mode=Mode.ENFORCE)
    routes.add("a->number", contracts=[Number], criticality=Criticality.ROUTINE, mode=Mode.ENFORCE)
    watchdog = Watchdog(routes, clock=ticking_clock())
    asked = [(target, value) for target in ("text", "number") for value in ("1", 1)] * 50

    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda item: watchdog.inspect(
                    handoff(source_agent="a", target_agent=item[0], payload={"value": item[1]})
                ),
                asked,
            )
        )

    assert [answer.allowed for answer in answers] == [
        (target == "text") is isinstance(value, str) for target, value in asked
    ]
    assert [answer.route for answer in answers] == [f"a->{target}" for target, _ in asked]


SECRET = "hunter2"


def _refuse(value: str) -> str:
    raise ValueError(f"{value} is too weak")


def _break(value: str) -> str:
    raise KeyError(value)


class Inner(BaseModel):
    """A nested place for a secret."""

    pin: int


class Login(Contract):
    """A secret beside a missing neighbour, in every kind of field that can object to it."""

    username: str
    password: str | None = None
    number: int = 0
    short: Annotated[str, Field(max_length=3)] = ""
    shaped: Annotated[str, Field(pattern="^[0-9]+$")] = "1"
    chosen: Literal["a", "b"] = "a"
    refused: Annotated[str, AfterValidator(_refuse)] = ""
    broken: Annotated[str, AfterValidator(_break)] = ""
    inner: Inner | None = None
    many: list[int] = Field(default_factory=list)
    either: int | Inner | None = None
    hidden: SecretStr | None = None


SECRET_PLACES: dict[str, dict[str, Any]] = {
    "beside a missing field": {"password": SECRET},
    "in a number": {"number": SECRET},
    "too long": {"short": SECRET},
    "wrong pattern": {"shaped": SECRET},
    "none of the choices": {"chosen": SECRET},
    "refused by a validator that quotes it": {"refused": SECRET},
    "in a validator that breaks on it": {"broken": SECRET},
    "in a nested model": {"inner": {"pin": SECRET}},
    "instead of a nested model": {"inner": SECRET},
    "in a list": {"many": [1, SECRET]},
    "in a union": {"either": SECRET},
    "in an unknown field": {"extra": SECRET},
    "in a hidden field": {"hidden": {"value": SECRET}},
    "beside what json cannot hold": {"password": SECRET, "extra": {1, 2}},
    "beside a broken text": {"password": SECRET + "\ud83c"},
}


def _said(decision: Decision) -> str:
    """Return everything a decision says, apart from the handoff itself."""
    bare = decision._replace(normalized_payload=None)
    return f"{bare!r} {bare} {bare.to_json()}"


@pytest.mark.parametrize("place", SECRET_PLACES)
@pytest.mark.parametrize("mode", Mode)
def test_decision_never_quotes_a_value_when_it_is_refused(place: str, mode: Mode) -> None:
    """BR-125: codes, paths, sentences and text forms hold place and type only."""
    decision = watchdog_of(Login, mode=mode).inspect(handoff(payload=SECRET_PLACES[place]))

    assert decision.verdict is Verdict.BLOCKED
    assert SECRET not in _said(decision)


@pytest.mark.parametrize("field", ["task_id", "status", "schema_version", "target_agent", "source_agent", "task_type"])
def test_decision_never_quotes_the_envelope_when_it_is_refused(field: str) -> None:
    """BR-125: what the model wrote into the envelope is quoted as little as what it wrote into the payload."""
    watchdog = refund_watchdog()
    raw = handoff(**{field: SECRET}, payload={})

    decision = watchdog.inspect(raw, expected_source="executor", expected_target="reviewer")

    assert decision.verdict is Verdict.BLOCKED
    assert SECRET not in _said(decision)


@pytest.mark.parametrize(
    "raw", [f'{{"password": "{SECRET}"', SECRET, f'"{SECRET}"', [SECRET], {SECRET}, SECRET.encode()]
)
def test_decision_never_quotes_the_input_when_it_is_no_handoff(raw: object) -> None:
    """BR-125: text that does not parse is not quoted either."""
    decision = refund_watchdog().inspect(raw)

    assert decision.verdict is Verdict.BLOCKED
    assert SECRET not in repr(decision)


@pytest.mark.parametrize("place", [place for place in SECRET_PLACES if place != "beside a broken text"])
def test_transfer_never_quotes_a_value_when_it_raises(place: str, caplog: pytest.LogCaptureFixture) -> None:
    """BR-125: the exception that stops the flow, its chain and the log hold nothing of the input."""
    caplog.set_level(logging.DEBUG)
    watch = Watch()
    watch.workflow("logins", tools="none")
    watch.route("executor->reviewer", contract=Login)

    with watch.run("logins", task_id="t-1") as run, pytest.raises(HandoffBlocked) as stopped:
        run.transfer("executor", "reviewer", handoff(payload=SECRET_PLACES[place]), receiver=lambda _: None)

    told = "".join(traceback.format_exception(stopped.value, chain=True))
    links, link = [], stopped.value
    while link is not None:
        links.append(repr(link) + str(link))
        link = link.__cause__ or link.__context__  # type: ignore[assignment]
    assert SECRET not in told + "".join(links) + caplog.text
