"""A team's own rules: what they are given, what they may answer, and what happens when they break."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field

from handoffwatch import Contract, Finding, HandoffContext, RegistrationError, rule
from handoffwatch.handoffs.contract import compile_contract
from handoffwatch.vocabulary import Reaction, Severity, Verdict
from support.one_route import found, judged, only, watchdog_of
from support.refund_handoffs import handoff

SECRET = "hunter2"


class Item(BaseModel):
    """A line of an order."""

    price: int


class Order(Contract):
    """A contract with rules of each kind."""

    amount_cents: int
    items: list[Item] = Field(default_factory=list)
    note: str = "x"

    @rule("amount_too_high", "the reviewer may approve up to 500.00 only", path="payload.amount_cents", reaction="hold")
    def within_limit(self) -> bool:
        return self.amount_cents <= 50_000

    @rule("negative_price", "the reviewer needs prices of 0 or more")
    def prices(self) -> Iterator[str]:
        return (f"payload.items.{place}.price" for place, item in enumerate(self.items) if item.price < 0)

    @rule("no_note", "the reviewer reads the note first", path="payload.note", reaction="warn", severity="info")
    def has_note(self) -> bool:
        return self.note != ""


def test_inspect_allows_when_every_rule_holds() -> None:
    """True, and no path at all, are the two ways to say that a rule holds."""
    assert judged(Order, {"amount_cents": 50_000, "items": [{"price": 0}]}).verdict is Verdict.ALLOWED


def test_inspect_holds_when_a_rule_asks_for_a_person() -> None:
    """The finding has the rule's code, path, reaction and reason; a held handoff is kept for the person's decision."""
    decision = judged(Order, {"amount_cents": 50_001})

    assert (decision.verdict, decision.allowed) == (Verdict.HELD, False)
    assert decision.normalized_payload is not None
    assert decision.normalized_payload["payload"]["amount_cents"] == 50_001
    assert decision.retryable is False
    assert only(decision) == Finding(
        "amount_too_high",
        "payload.amount_cents",
        "payload.amount_cents: the reviewer may approve up to 500.00 only",
        Reaction.HOLD,
        Severity.WARNING,
        True,
    )


def test_inspect_names_every_path_when_a_rule_gives_paths() -> None:
    """One finding for each place that breaks the rule."""
    decision = judged(Order, {"amount_cents": 1, "items": [{"price": -1}, {"price": 1}, {"price": -2}]})

    assert found(decision) == [
        ("negative_price", "payload.items.0.price"),
        ("negative_price", "payload.items.2.price"),
    ]
    assert (decision.verdict, decision.severity, decision.retryable) == (Verdict.BLOCKED, Severity.ERROR, True)


def test_inspect_gives_the_findings_of_all_rules_at_once_when_several_are_broken() -> None:
    """A block outweighs a hold, and the warning is still told."""
    decision = judged(Order, {"amount_cents": 50_001, "items": [{"price": -1}], "note": ""})

    assert decision.reasons == ["amount_too_high", "negative_price", "no_note"]
    assert decision.verdict is Verdict.BLOCKED


def test_inspect_passes_with_a_warning_when_only_a_mild_rule_is_broken() -> None:
    """A warning never becomes a block."""
    decision = judged(Order, {"amount_cents": 1, "note": ""})

    assert (decision.verdict, decision.allowed, decision.severity) == (Verdict.WARNED, True, Severity.INFO)


def test_inspect_calls_no_rule_when_the_shape_is_wrong() -> None:
    """A rule may rely on the types of its contract."""
    asked: list[object] = []

    class Asked(Contract):
        amount: int

        @rule("asked", "the reviewer needs it")
        def ask(self) -> bool:
            asked.append(self)
            return True

    assert judged(Asked, {"amount": "3"}).reasons == ["type_mismatch"]
    assert asked == []


def test_inspect_gives_a_rule_the_handoff_and_the_context_when_it_takes_them() -> None:
    """Both are what the default rules see: the envelope as a dict, and what the orchestrator knows."""
    given: list[tuple[str, object]] = []

    class Given(Contract):
        amount: int

        @rule("first", "the reviewer needs it")
        def one(self, handoff: dict[str, Any]) -> bool:
            given.append((handoff["task_id"], handoff["payload"]))
            return True

        @rule("second", "the reviewer needs it")
        def two(self, context: HandoffContext, handoff: dict[str, Any]) -> bool:
            given.append((handoff["status"], context.context_version))
            return context.context_version == 5 and self.amount == 3

    context = HandoffContext(task_id="t-1", context_version=5)

    assert judged(Given, {"amount": 3}, context=context).allowed
    assert set(map(str, given)) == {str(("t-1", {"amount": 3})), str(("ready", 5))}


def test_delivered_handoff_is_what_was_judged_when_a_rule_writes_into_what_it_is_given() -> None:
    """A rule judges: whatever it does to its arguments, the receiver gets what the sender sent."""

    class Writes(Contract):
        amount: int

        @rule("writes", "the reviewer needs it")
        def write(self, handoff: dict[str, Any]) -> bool:
            self.amount = 7
            handoff["payload"]["amount"] = 7
            return True

    decision = judged(Writes, {"amount": 3})

    assert decision.normalized_payload is not None
    assert decision.normalized_payload["payload"] == {"amount": 3}


def answering(answer: Callable[[], Any], *, path: str = "payload.note") -> type[Contract]:
    """Return a contract whose rule gives this answer."""

    class Answering(Contract):
        note: str = SECRET

        @rule("answers", "the reviewer needs it", path=path)
        def answer(self) -> Any:
            return answer()

    return Answering


def _raise(error: BaseException) -> Any:
    raise error


async def _later() -> bool:
    return True


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lambda: _raise(KeyError(SECRET)), "KeyError"),
        (lambda: _raise(RecursionError()), "RecursionError"),
        (lambda: _raise(TimeoutError()), "TimeoutError"),
        (lambda: None, "TypeError"),
        (lambda: 1, "TypeError"),
        (lambda: 0, "TypeError"),
        (lambda: "payload.note", "TypeError"),
        (lambda: b"payload", "TypeError"),
        (lambda: [None], "TypeError"),
        (lambda: ["payload.note", 7], "TypeError"),
        (lambda: object(), "TypeError"),
        (lambda: (_raise(ValueError(SECRET)) for _ in range(1)), "ValueError"),
    ],
    ids=["raises", "recursion", "timeout", "none", "one", "zero", "text", "bytes", "no text", "late nonsense", "object",
         "raises late"],
)  # fmt: skip
def test_inspect_blocks_with_check_failed_when_a_rule_breaks(answer: Callable[[], Any], kind: str) -> None:
    """A rule that raises or answers nonsense proves nothing: its name and the kind of error are told, never a value."""
    decision = judged(answering(answer), {})

    assert (decision.verdict, decision.severity, decision.retryable) == (Verdict.BLOCKED, Severity.CRITICAL, False)
    assert only(decision)[:3] == (
        "check_failed",
        "payload.note",
        f"the rule answers raised {kind}, so nothing was proven",
    )
    assert SECRET not in repr(decision)


@pytest.mark.parametrize("answer", [lambda: [], lambda: (), lambda: set(), lambda: {}, lambda: iter(())])
def test_inspect_allows_when_a_rule_names_no_path(answer: Callable[[], Any]) -> None:
    """No path is no finding, in any kind of iterable."""
    assert judged(answering(answer), {}).verdict is Verdict.ALLOWED


def test_inspect_goes_on_with_the_other_rules_when_one_breaks() -> None:
    """One broken rule hides nothing that another finds."""

    class Broken(Contract):
        @rule("breaks", "the reviewer needs it")
        def one(self) -> bool:
            raise RuntimeError

        @rule("speaks", "the reviewer needs it", reaction="warn")
        def two(self) -> bool:
            return False

    assert judged(Broken, {}).reasons == ["check_failed", "speaks"]


def test_inspect_reads_a_bounded_number_of_paths_when_a_rule_gives_them_without_end() -> None:
    """A rule that never stops does not stop the program: it is read for twenty paths, and a few more at most."""
    read = 0

    def paths() -> Iterator[str]:
        nonlocal read
        while read < 100_000:
            read += 1
            yield "payload.note"

    decision = watchdog_of(answering(paths)).inspect(handoff(payload={}))

    assert decision.reasons == ["answers"]
    assert len(decision.findings) <= 20
    assert read <= 100


@pytest.mark.parametrize(
    "path", ["x" * 5_000, "", "line\nbreak", "\x1b[31mred", "\ud83c"], ids=["long", "empty", "line", "escape", "half"]
)
def test_inspect_gives_bounded_printable_paths_when_a_rule_names_a_wild_one(path: str) -> None:
    """A path of a rule may come from keys of the payload; it can stand in a log line and in JSON."""
    decision = judged(answering(lambda: [path]), {})

    assert decision.reasons == ["answers"]
    assert all(0 < len(item.path) <= 200 and item.path.isprintable() for item in decision.findings)
    assert decision.to_json().encode()


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        *(
            (
                {"code": code},
                "rule: code: must be a snake_case word of at most 50 characters",
                '@rule("amount_too_high", "the reviewer may approve up to 500.00 only")',
            )
            for code in ("", "Amount", "amount-high", "1st", "a b", "a\n", "x" * 51, None, 7)
        ),
        *(
            (
                {"reason": reason},
                "rule too_high: reason: must be one line of 1 to 200 characters that says what the receiver needs",
                '@rule("too_high", "the reviewer needs …")',
            )
            for reason in ("", "  ", "two\nlines", "x" * 201, None, 7)
        ),
        (
            {"reaction": "stop"},
            "rule too_high: reaction: must be one of block, hold, flag, warn, got str",
            'reaction="block"',
        ),
        (
            {"severity": "fatal"},
            "rule too_high: severity: must be one of info, warning, error, critical, got str",
            'severity="info"',
        ),
    ],
)
def test_rule_is_refused_with_what_to_type_when_it_is_declared_wrongly(
    arguments: dict[str, Any], message: str, hint: str
) -> None:
    """A rule without a code and a reason of one line is no rule."""
    with pytest.raises(RegistrationError) as refused:
        rule(**{"code": "too_high", "reason": "the reviewer needs less"} | arguments)

    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_rule_is_refused_when_it_has_no_reason() -> None:
    """The reason has no default."""
    with pytest.raises(TypeError):
        rule("too_high")  # type: ignore[call-arg]


def _with(function: Callable[..., Any]) -> type[Contract]:
    made = rule("too_high", "the reviewer needs less")(function)
    return type(Contract)("Wrong", (Contract,), {"__module__": __name__, "checked": made})


@pytest.mark.parametrize(
    "function",
    [lambda: True, lambda self, payload: True, lambda self, limit=5: True, lambda self, *rest: True,
     lambda self, **rest: True],
    ids=["nothing", "payload", "default", "rest", "keywords"],
)  # fmt: skip
def test_contract_is_refused_when_a_rule_takes_what_no_rule_is_given(function: Callable[..., Any]) -> None:
    """A rule gets the payload, the handoff and the context."""
    with pytest.raises(RegistrationError) as refused:
        compile_contract(_with(function))

    assert refused.value.message == (
        "contract Wrong: rule checked: may take the payload, and `handoff` and `context` beside it"
    )
    assert refused.value.hint == "def checked(self, handoff, context) -> bool: …"


def test_contract_is_refused_when_a_rule_is_a_coroutine() -> None:
    """An answer that must be awaited would never come."""

    async def later(self: Any) -> bool:
        return True

    with pytest.raises(RegistrationError):
        compile_contract(_with(later))


@pytest.mark.parametrize("wrapper", [staticmethod, classmethod, property])
def test_contract_never_drops_a_rule_when_it_is_wrapped(wrapper: Any) -> None:
    """A rule that is a static method, a class method or a property is refused or applied, never left out."""
    made = rule("too_high", "the reviewer needs less")(lambda self: False)
    contract = type(Contract)("Wrapped", (Contract,), {"__module__": __name__, "checked": wrapper(made)})

    try:
        compiled = compile_contract(contract)
    except RegistrationError:
        return
    assert [each.reasons[0].code for each in compiled.rules] == ["too_high"]


def test_contract_has_the_rules_of_its_bases_when_it_is_derived() -> None:
    """A derived contract keeps the rules, and may say one anew."""

    class Strict(Order):
        @rule("amount_too_high", "the reviewer may approve up to 100.00 only", path="payload.amount_cents")
        def within_limit(self) -> bool:
            return self.amount_cents <= 10_000

    decision = judged(Strict, {"amount_cents": 10_001, "items": [{"price": -1}]})

    assert decision.reasons == ["amount_too_high", "negative_price"]
    assert decision.findings[0].reaction is Reaction.BLOCK


@pytest.mark.parametrize(
    ("arguments", "severity", "retryable"),
    [
        ({}, Severity.ERROR, True),
        ({"reaction": "hold"}, Severity.WARNING, True),
        ({"reaction": "flag"}, Severity.WARNING, True),
        ({"reaction": "warn"}, Severity.WARNING, True),
        ({"severity": "critical"}, Severity.CRITICAL, True),
        ({"retryable": False}, Severity.ERROR, False),
        ({"code": "missing_operation_id"}, Severity.ERROR, False),
        ({"code": "missing_operation_id", "retryable": True}, Severity.ERROR, True),
    ],
    ids=str,
)
def test_rule_has_the_severity_and_the_retryability_of_its_kind_when_they_are_not_named(
    arguments: dict[str, Any], severity: Severity, retryable: bool
) -> None:
    """A block is an error and the rest a warning; one of the product's codes says whether the sender can repair it."""
    made = rule(**{"code": "too_high", "reason": "the reviewer needs less"} | arguments)(lambda self: False)
    contract = type(Contract)("Told", (Contract,), {"__module__": __name__, "checked": made})

    (reason,) = compile_contract(contract).rules[0].reasons

    assert (reason.severity, reason.retryable) == (severity, retryable)


def test_decision_is_not_retryable_when_a_critical_rule_blocks() -> None:
    """Severity critical stops, whatever the rule says about repair."""

    class Grave(Contract):
        @rule("grave", "the reviewer needs it", severity="critical", retryable=True)
        def never(self) -> bool:
            return False

    decision = judged(Grave, {})

    assert (decision.verdict, decision.severity, decision.retryable) == (Verdict.BLOCKED, Severity.CRITICAL, False)
