"""Reactions: what a route does about a code, in what order, and what of it stands in the metrics."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from handoffwatch import Clock, Contract, HandoffBlocked, RegistrationError, Settings, Watch, rule
from handoffwatch.handoffs.routes import Routes
from handoffwatch.vocabulary import Criticality, Mode, Reaction, Severity, Verdict
from support.one_route import found, judged, only
from support.refund_handoffs import FORMS, handoff
from support.telemetry import born, counted


class Order(Contract, confidence_min=0.5):
    """A contract with one rule of each kind."""

    amount_cents: int
    confidence: float = 1.0

    @rule("amount_too_high", "the reviewer may approve up to 500.00 only", path="payload.amount_cents", reaction="hold")
    def within_limit(self) -> bool:
        return self.amount_cents <= 50_000


LOW: dict[str, Any] = {"amount_cents": 1, "confidence": 0.1}
HIGH: dict[str, Any] = {"amount_cents": 50_001}


@pytest.mark.parametrize(
    ("payload", "code", "reaction", "verdict", "severity", "retryable"),
    [
        (LOW, "low_confidence", None, Verdict.WARNED, Severity.WARNING, False),
        (LOW, "low_confidence", Reaction.WARN, Verdict.WARNED, Severity.WARNING, False),
        (LOW, "low_confidence", Reaction.HOLD, Verdict.HELD, Severity.WARNING, False),
        (LOW, "low_confidence", Reaction.BLOCK, Verdict.BLOCKED, Severity.ERROR, True),
        (HIGH, "amount_too_high", None, Verdict.HELD, Severity.WARNING, False),
        (HIGH, "amount_too_high", Reaction.BLOCK, Verdict.BLOCKED, Severity.ERROR, True),
        (HIGH, "amount_too_high", Reaction.FLAG, Verdict.WARNED, Severity.WARNING, False),
    ],
)
def test_inspect_reacts_as_the_route_says_when_it_differs_from_the_code_or_the_contract(
    payload: dict[str, Any],
    code: str,
    reaction: Reaction | None,
    verdict: Verdict,
    severity: Severity,
    retryable: bool,
) -> None:
    """What blocks is an error, what only warns a warning; path and sentence stay."""
    plain = only(judged(Order, payload))

    decision = judged(Order, payload, reactions={code: reaction} if reaction else None)

    assert (decision.verdict, decision.severity, decision.retryable) == (verdict, severity, retryable)
    assert decision.allowed is (verdict is Verdict.WARNED)
    assert (decision.normalized_payload is not None) is (decision.allowed or decision.verdict == "held")
    assert only(decision) == plain._replace(reaction=reaction or plain.reaction, severity=severity)


@pytest.mark.parametrize("reaction", [Reaction.HOLD, Reaction.FLAG, Reaction.WARN])
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"handoff_id": ""}, "missing_handoff_id"),
        ({"status": "completed", "payload": LOW | {"amount_cents": 50_001}}, "low_confidence"),
    ],
    ids=["no id", "two codes"],
)
def test_inspect_leaves_other_codes_alone_when_one_has_another_reaction(
    changes: dict[str, Any], code: str, reaction: Reaction
) -> None:
    """A reaction is about one code."""
    changes = {"payload": HIGH} | changes
    plain = judged(Order, **changes)

    decision = judged(Order, reactions={code: reaction}, **changes)

    assert [item for item in decision.findings if item.code != code] == [
        item for item in plain.findings if item.code != code
    ]
    assert {item.reaction for item in decision.findings if item.code == code} == {reaction}


def test_inspect_blocks_without_an_id_when_the_route_says_so() -> None:
    """A mild code of the product can be made a block, on the way that is taken for what looks right too."""
    decision = judged(Order, {"amount_cents": 1}, handoff_id="", reactions={"missing_handoff_id": Reaction.BLOCK})

    assert (decision.verdict, decision.reasons, decision.severity) == (
        Verdict.BLOCKED,
        ["missing_handoff_id"],
        Severity.ERROR,
    )


def test_inspect_lets_a_broken_shape_pass_when_the_route_only_warns_of_it() -> None:
    """A team may decide that unknown fields do not stop its handoffs; the receiver then gets what was sent, parsed."""
    decision = judged(Order, {"amount_cents": 1, "more": 2}, reactions={"unknown_field": Reaction.WARN})

    assert (decision.verdict, decision.allowed, found(decision)) == (
        Verdict.WARNED,
        True,
        [("unknown_field", "payload.more")],
    )
    assert decision.normalized_payload == handoff(payload={"amount_cents": 1, "more": 2})


@pytest.mark.parametrize(
    ("reactions", "message", "hint"),
    [
        ({"low_confidense": "block"},
         "route executor->reviewer: reactions: low_confidense is no reason code of this route",
         "did you mean low_confidence?"),
        ({"zzz": "block"}, "route executor->reviewer: reactions: zzz is no reason code of this route",
         "the codes stand in docs/reasons"),
        ({"low_confidence": "stop"},
         "route executor->reviewer: reactions: low_confidence: must be one of block, hold, flag, warn, got 'stop'",
         'reactions: low_confidence="block"'),
    ],
)  # fmt: skip
def test_route_is_refused_when_a_reaction_is_for_nothing(reactions: dict[str, str], message: str, hint: str) -> None:
    """A reaction to a code that the route cannot yield would do nothing."""
    watch = Watch(settings=Settings())

    with pytest.raises(RegistrationError) as refused:
        watch.route("executor->reviewer", contract=Order, reactions=reactions)

    assert (refused.value.message, refused.value.hint) == (message, hint)
    assert list(watch.watchdog.routes) == []


@pytest.mark.parametrize(
    ("payload", "verdict", "reactions"),
    [
        (HIGH, Verdict.HELD, {}),
        (HIGH, Verdict.BLOCKED, {"amount_too_high": Reaction.BLOCK}),
        (LOW, Verdict.BLOCKED, {"low_confidence": Reaction.BLOCK}),
        ({"amount_cents": "3"}, Verdict.WARNED, {"type_mismatch": Reaction.FLAG}),
    ],
)
def test_shadow_says_what_enforcing_would_and_lets_it_pass_when_the_route_has_reactions(
    payload: dict[str, Any], verdict: Verdict, reactions: dict[str, Reaction]
) -> None:
    """The verdict, the reasons and the findings are those of enforcement; only `allowed` is not."""
    shadow = judged(Order, payload, mode=Mode.SHADOW, reactions=reactions)
    enforced = judged(Order, payload, reactions=reactions)

    assert (shadow.verdict, shadow.allowed, shadow.mode) == (verdict, True, Mode.SHADOW)
    assert (shadow.reasons, shadow.severity, shadow.retryable) == (
        enforced.reasons,
        enforced.severity,
        enforced.retryable,
    )
    assert shadow.findings == enforced.findings
    assert shadow.normalized_payload == handoff(payload=payload)


# metrics


def _run_of(watch: Watch) -> Any:
    watch.workflow("orders", tools="none")
    return watch.run("orders", task_id="t-1")


def _findings(watch: Watch, route: str) -> dict[tuple[str, str, str], float]:
    """Return the samples of a route's findings by version, code and reaction."""
    label = f'route="{route}"'
    samples = {}
    for line, value in born(watch.registry, "handoff_findings_total").items():
        if label in line:
            labels = dict(part.split("=", 1) for part in line.strip("{}").split(","))
            values = {name: text.strip('"') for name, text in labels.items()}
            samples[values["schema_version"], values["reason"], values["reaction"]] = value
    return samples


def test_own_code_is_born_at_zero_with_the_reaction_that_applies_on_each_route() -> None:
    """The same code holds on one route and blocks on the other, and each series is there before it counts."""
    watch = Watch(settings=Settings())
    watch.route("planner->executor", contract=Order)
    watch.route("executor->reviewer", contract=Order, reactions={"amount_too_high": "block", "low_confidence": "block"})

    holds, blocks = _findings(watch, "planner->executor"), _findings(watch, "executor->reviewer")

    for version in ("1", "other"):
        assert holds[version, "amount_too_high", "hold"] == 0
        assert blocks[version, "amount_too_high", "block"] == 0
        assert holds[version, "low_confidence", "flag"] == 0
        assert blocks[version, "low_confidence", "block"] == 0
    assert ("1", "amount_too_high", "block") not in holds
    assert ("1", "amount_too_high", "hold") not in blocks


def test_own_code_is_counted_where_it_was_born_when_two_routes_react_differently() -> None:
    """No series is born by its first event."""
    watch = Watch(settings=Settings())
    watch.route("planner->executor", contract=Order)
    watch.route("executor->reviewer", contract=Order, reactions={"amount_too_high": "warn"})
    before = set(born(watch.registry, "handoff_findings_total"))
    run = _run_of(watch)

    run.handoff("planner", "executor", handoff(source_agent="planner", target_agent="executor", payload=HIGH))
    run.handoff("executor", "reviewer", handoff(payload=HIGH))

    assert set(born(watch.registry, "handoff_findings_total")) == before
    assert _findings(watch, "planner->executor")["1", "amount_too_high", "hold"] == 1
    assert _findings(watch, "executor->reviewer")["1", "amount_too_high", "warn"] == 1


class First(Contract, version="1"):
    """A version whose rule warns."""

    @rule("no_plan", "the executor needs a plan", reaction="warn")
    def planned(self) -> bool:
        return False


class Second(Contract, version="2", deprecated_from="2027-01-31"):
    """A version whose rule of the same code blocks, and which ends on a day."""

    @rule("no_plan", "the executor needs a plan")
    def planned(self) -> bool:
        return False


def test_every_series_is_born_when_two_versions_react_differently_to_one_code() -> None:
    """What a contract can yield is there at 0, in every version with the reaction of that version."""
    watch = Watch(settings=Settings())
    watch.route("executor->reviewer", contract=[First, Second])
    before = set(born(watch.registry, "handoff_findings_total"))
    run = _run_of(watch)

    run.handoff("executor", "reviewer", handoff(payload={}, schema_version="1"), key="one")
    run.handoff("executor", "reviewer", handoff(payload={}, schema_version="2"), key="two")

    assert set(born(watch.registry, "handoff_findings_total")) == before


def test_every_series_is_born_when_a_deprecated_version_begins_to_block() -> None:
    """From the day on the code blocks, and `increase()` sees the first time too."""
    day = datetime.datetime(2027, 1, 31, tzinfo=datetime.UTC)
    watch = Watch(settings=Settings(), clock=Clock(wall_s=day.timestamp))
    watch.route("executor->reviewer", contract=Second)
    before = set(born(watch.registry, "handoff_findings_total"))

    step = _run_of(watch).handoff("executor", "reviewer", handoff(payload={}, schema_version="2"))

    assert step.decision.reasons == ["deprecated_schema_version", "no_plan"]
    assert set(born(watch.registry, "handoff_findings_total")) == before


# routes without a contract


ANYTHING: list[object] = [
    handoff(), {}, {"a": float("nan")}, {"a": {1, 2}}, [1], 5, None, object(), "not json", "{", b"\xff", "\ud83c",
    handoff(target_agent="nobody", status="done", payload="x"), '{"payload": 1}', "x" * 2_000_000,
]  # fmt: skip


@pytest.mark.parametrize("raw", ANYTHING, ids=lambda raw: str(type(raw).__name__))
@pytest.mark.parametrize("mode", Mode)
def test_unchecked_route_passes_anything_when_it_is_declared(raw: object, mode: Mode) -> None:
    """Nothing is found, nothing is proven, and the decision says so."""
    watch = Watch(settings=Settings())
    watch.route("executor->reviewer", unchecked=True, mode=mode)

    decision = watch.watchdog.inspect(raw, expected_source="executor", expected_target="reviewer")

    assert (decision.allowed, decision.verdict, decision.findings) == (True, Verdict.ALLOWED, ())
    assert (decision.route, decision.schema_version, decision.skipped) == ("executor->reviewer", "other", ("contract",))
    assert decision.handoff_id
    assert decision.mode is mode


@pytest.mark.parametrize("raw", ANYTHING, ids=lambda raw: str(type(raw).__name__))
def test_unchecked_route_counts_as_bypassed_when_a_handoff_passes(raw: object) -> None:
    """The receiver gets what was sent, and the pass without a check is a number from 0 on."""
    watch = Watch(settings=Settings())
    watch.route("executor->reviewer", unchecked=True)
    watch.route("planner->executor", contract=Order)
    bypassed = '{cause="unchecked",check="contract",name="executor->reviewer"}'
    assert born(watch.registry, "checks_bypassed_total")[bypassed] == 0
    received: list[object] = []

    with _run_of(watch) as run:
        run.transfer("executor", "reviewer", raw, receiver=received.append)

    assert counted(watch.registry, "checks_bypassed_total") == {f"checks_bypassed_total{bypassed}": 1}
    (got,) = received
    assert got is raw or isinstance(got, dict)
    if isinstance(raw, dict) and "handoff_id" in raw:
        assert got == raw


@pytest.mark.parametrize("form", FORMS)
def test_unchecked_route_keeps_the_id_of_the_handoff_when_it_can_be_read(form: str) -> None:
    """The decision can be found by the id that the sender gave."""
    watch = Watch(settings=Settings())
    watch.route("executor->reviewer", unchecked=True)

    assert watch.watchdog.inspect(FORMS[form](handoff())).handoff_id == "h-1842"


@pytest.mark.parametrize("contract", [(), [], Order])
def test_route_is_checked_or_unchecked_when_it_is_registered(contract: Any) -> None:
    """A route without a contract says so by name, and one with a contract cannot say so."""
    unchecked = contract is Order

    with pytest.raises(RegistrationError):
        Watch(settings=Settings()).route("executor->reviewer", contract=contract, unchecked=unchecked)


def test_checked_route_counts_nothing_as_bypassed_when_a_handoff_is_blocked() -> None:
    """Only what passes without a check is a bypass."""
    watch = Watch(settings=Settings())
    watch.route("executor->reviewer", contract=Order)

    with _run_of(watch) as run, pytest.raises(HandoffBlocked):
        run.transfer("executor", "reviewer", handoff(payload={}), receiver=lambda _: None)

    assert counted(watch.registry, "checks_bypassed_total") == {}


def test_unknown_route_blocks_when_a_neighbour_is_unchecked() -> None:
    """What is declared on one route holds for that one only."""
    routes = Routes()
    options: dict[str, Any] = {"criticality": Criticality.ROUTINE, "mode": Mode.ENFORCE}
    routes.add("executor->reviewer", contracts=(), unchecked=True, **options)
    found_here: list[Any] = []

    assert routes.resolve("reviewer", "executor", found_here) is None
    assert [item.code for item in found_here] == ["unknown_route"]
