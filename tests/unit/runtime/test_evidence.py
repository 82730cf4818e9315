"""Evidence: what stays of a handoff or an answer that went badly: all that a person needs, no secret, and bounded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handoffwatch import Contract, CriticAnswer, CriticPolicy, HandoffBlocked, Run
from handoffwatch.ledger import Case
from handoffwatch.runtime.evidence import LEFT_OUT
from handoffwatch.runtime.unstored import UNSTORED_MAX
from handoffwatch.vocabulary import Action, CaseKind, CriticResult, Mode, ReviewSelection, ReviewVerdict, Ruling
from support.flows import ROUTE, FlowDesk, answers, bad_plan, logged, plan
from support.telemetry import attributes, counted, exposition, ids

H = 'route="planner->executor",schema_version="1",source_agent="planner",target_agent="executor"'


def attempts_of(case: Case) -> list[dict[str, Any]]:
    """Return what a case keeps of the attempts."""
    assert case.record is not None
    attempts: Any = case.record["attempts"]
    return list(attempts)


def stop(desk: FlowDesk, raw: object = None, *, run_id: str = "r-1", **more: Any) -> None:
    """Send a handoff that is stopped."""
    begun = desk.watch.run("refunds", run_id=run_id, task_id="t-1")
    with pytest.raises(HandoffBlocked), begun as run:
        run.transfer("planner", "executor", bad_plan() if raw is None else raw, receiver=desk.receive, **more)


def deliver(desk: FlowDesk, raw: object = None, *, run_id: str = "r-1", **more: Any) -> None:
    """Send a handoff that is delivered."""
    with desk.watch.run("refunds", run_id=run_id, task_id="t-1") as run:
        run.transfer("planner", "executor", plan() if raw is None else raw, receiver=desk.receive, **more)


# what is kept


def test_case_holds_every_version_and_decision_when_a_handoff_was_repaired() -> None:
    """The original, each repaired version, the normalised object, all decisions, their numbers, the time, the trace."""
    desk = FlowDesk().route()
    versions = [bad_plan("h-1"), bad_plan("h-2", amount=None), plan("h-3")]
    given = answers(*versions[1:])

    def repair(step: object) -> object:
        desk.time.now_s += 3.75
        return given(step)

    deliver(desk, versions[0], repair=repair)

    case = desk.case_of("r-1")
    attempts = attempts_of(case)
    assert [each["attempt"] for each in attempts] == [1, 2, 3]
    assert [each["sent"] for each in attempts] == versions
    decisions = [each["decision"] for each in attempts]
    assert [(each["handoff_id"], each["attempt"], each["verdict"], each["reasons"]) for each in decisions] == [
        ("h-1", 1, "blocked", ["type_mismatch"]),
        ("h-2", 2, "blocked", ["null_field"]),
        ("h-3", 3, "allowed", []),
    ]
    assert [found["path"] for each in decisions for found in each["findings"]] == ["payload.amount_cents"] * 2
    assert case.record is not None
    assert case.record["delivered"] == desk.received[0]
    assert case.facts == {
        "handoff_id": "h-3",
        "task_id": "t-1",
        "source": "planner",
        "target": "executor",
        "route": ROUTE,
        "reasons": ["null_field"],
        "paths": ["payload.amount_cents"],
        "stage": "validate",
        "attempts": 3,
        "elapsed_s": 7.5,
        "outcome": "delivered",
        "trace_id": format(ids(desk.spans.one("invoke_workflow refunds"))[0], "032x"),
    }
    assert (case.kind, case.route, case.schema_version, case.mode) == (CaseKind.BLOCKED, ROUTE, "1", Mode.ENFORCE)
    assert (case.run_id, case.workflow) == ("r-1", "refunds")


@pytest.mark.parametrize(
    ("criticality", "is_repaired", "is_open"),
    [("critical", False, True), ("critical", True, False), ("routine", False, False)],
)
def test_case_waits_for_a_person_when_a_critical_handoff_was_stopped(
    criticality: str, is_repaired: bool, is_open: bool
) -> None:
    """One that was repaired, or is routine, is evidence and no work."""
    desk = FlowDesk().route(criticality=criticality)
    if is_repaired:
        deliver(desk, bad_plan(), repair=answers(plan()))
    else:
        stop(desk)
    (case,) = desk.cases()
    assert (case.resolved_unix_s is None) is is_open


def test_case_tells_how_the_handoff_ended_when_its_receiver_failed_or_never_started() -> None:
    """Also when nobody repaired it before the run was over."""
    desk = FlowDesk().route()

    def fail(_: object) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError), desk.watch.run("refunds", run_id="r-failed", task_id="t-1") as run:
        run.transfer("planner", "executor", bad_plan(), receiver=fail, repair=answers(plan()))
    with desk.watch.run("refunds", run_id="r-lost", task_id="t-2") as run:
        run.handoff("planner", "executor", bad_plan(task_id="t-2"))
        assert run.handoff("planner", "executor", plan(task_id="t-2")).action is Action.DELIVER
    with desk.watch.run("refunds", run_id="r-left", task_id="t-3") as run:
        assert run.handoff("planner", "executor", bad_plan(task_id="t-3")).action is Action.REPAIR

    assert {case.run_id: (case.kind, case.facts["outcome"]) for case in desk.cases()} == {
        "r-failed": ("blocked", "receiver_failed"),
        "r-lost": ("blocked", "not_delivered"),
        "r-left": ("blocked", "stopped"),
    }


@pytest.mark.parametrize(
    ("keep", "chance", "good_are_kept"),
    [
        ("blocked", 0.0, False),
        ("sampled", 0.0, True),
        ("sampled", 0.0999, True),
        ("sampled", 0.1, False),
        ("all", 0.9, True),
    ],
)
def test_good_handoffs_are_kept_when_their_route_says_so(keep: str, chance: float, good_are_kept: bool) -> None:
    """Those that are blocked are kept whatever the route says; a good one is no violation, no work, and no review."""
    desk = FlowDesk().route(keep=keep)
    desk.time.chance = chance

    deliver(desk, run_id="r-good")
    stop(desk, bad_plan("h-2"), run_id="r-bad")

    assert {case.run_id for case in desk.cases()} == {"r-bad", *(["r-good"] if good_are_kept else [])}
    if good_are_kept:
        case = desk.case_of("r-good")
        assert (case.kind, case.facts["outcome"], case.facts["reasons"]) == (CaseKind.ALLOWED, "delivered", [])
        assert case.resolved_unix_s is not None
        assert [each["sent"] for each in attempts_of(case)] == [plan()]
        assert case.record is not None
        assert case.record["delivered"] == desk.received[0]
        assert desk.watch.ledger.review(case.case_id) is None
    assert desk.watch.record_eval("r-good", passed=True)
    assert [line for line in counted(desk.watch.registry, "ledger_final_evals_total") if "violated" in line] == []


def test_warned_handoff_is_kept_like_a_good_one() -> None:
    """A warning is no reason to keep what a sender wrote."""
    for keep, kept in (("blocked", 0), ("all", 1)):
        desk = FlowDesk().route(keep=keep, reactions={"type_mismatch": "warn"})
        deliver(desk, bad_plan())
        assert len([case for case in desk.cases() if case.kind is CaseKind.ALLOWED]) == kept


def test_shadow_block_is_kept_with_its_mode_when_the_handoff_goes_on() -> None:
    """What would have been blocked is evidence, and a violation; nobody has to act."""
    desk = FlowDesk().route(mode="shadow", criticality="critical")

    deliver(desk, bad_plan())

    assert desk.received == [bad_plan()]
    case = desk.case_of("r-1")
    assert (case.kind, case.mode, case.facts["outcome"]) == (CaseKind.BLOCKED, Mode.SHADOW, "delivered")
    assert case.resolved_unix_s is not None
    assert [each["decision"]["mode"] for each in attempts_of(case)] == ["shadow"]
    desk.watch.record_eval("r-1", passed=True)
    assert list(counted(desk.watch.registry, "ledger_violations_before_eval_total").values()) == [1]


# secrets

PASSWORD = "CANARY-hunter2"
BEARER = "CANARYeyJhbGciOi51H8"
VENDOR_KEY = "sk-CANARY51H8xkFJ2eZvKYlo2C"
CUSTOMER = "CANARY Ada Lovelace"
CANARY = "CANARY"


class Login(Contract, version="1"):
    """A plan that carries more than it should."""

    order_id: str
    amount_cents: int
    password: str
    note: str
    customer: dict[str, str]


def with_secrets(handoff_id: str = "h-1", *, amount: object = 3800, **changes: Any) -> dict[str, Any]:
    """Return a handoff that is full of secrets."""
    payload = {
        "order_id": "4417",
        "amount_cents": amount,
        "password": PASSWORD,
        "note": f"I called with `Authorization: Bearer {BEARER}`, then with {VENDOR_KEY}.",
        "customer": {"name": CUSTOMER},
    }
    return plan(handoff_id, payload=payload, metadata={"api_key": VENDOR_KEY}, **changes)


SHAPES: dict[str, Callable[[dict[str, Any]], object]] = {
    "dict": lambda handoff: handoff,
    "text": json.dumps,
    "bytes": lambda handoff: json.dumps(handoff).encode(),
    "cut off": lambda handoff: json.dumps(handoff)[:-1],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", [{"keep": "all"}, {"criticality": "critical"}, {"approval": "required"}], ids=str)
def test_secrets_stay_out_of_all_that_is_written_when_handoffs_are_blocked_and_delivered(
    shape: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """A password field, a header in a text, a vendor's key, a path of the settings; only the receiver gets them."""
    desk = FlowDesk(tmp_path, redact=["payload.customer.name"]).route(contract=Login, **options)
    said: list[str] = []

    def repair(step: Any) -> object:
        said.append(step.text)
        return SHAPES[shape](with_secrets(amount=str(len(said))))

    first = SHAPES[shape](with_secrets(amount="x"))
    with logged() as lines:
        begun = desk.watch.run("refunds", run_id="r-1", task_id="t-1")
        with pytest.raises(HandoffBlocked) as stopped, begun as run:
            run.transfer("planner", "executor", first, receiver=desk.receive, repair=repair)
        desk.watch.reopen("t-1")
        with desk.watch.run("refunds", run_id="r-2", task_id="t-1") as run:
            step = run.submit("planner", "executor", with_secrets("h-2"))
            if step.action is Action.HOLD:
                assert desk.watch.ledger.rule_case(step.case_id, Ruling.APPROVED, "seen")
                step = run.approval(step)
            assert step.decision is not None
            assert step.decision.normalized_payload is not None
            run.ended(step)

    assert stopped.value.decision is not None
    said += [*lines, str(stopped.value), stopped.value.decision.to_json(), exposition(desk.watch.registry)]
    said += [f"{span.name} {attributes(span)} {span.status.description}" for span in desk.spans.ended]
    assert [text for text in said if CANARY in text] == []
    delivered = step.decision.normalized_payload["payload"]
    assert (delivered["password"], delivered["customer"]["name"]) == (PASSWORD, CUSTOMER)
    desk.watch.close()
    files = sorted(file.name for file in tmp_path.iterdir())
    assert "ledger.db" in files
    assert [name for name in files if CANARY.encode() in (tmp_path / name).read_bytes()] == []


def test_what_is_no_secret_stays_in_the_case_when_secrets_are_left_out() -> None:
    """A person can still judge the block."""
    desk = FlowDesk(redact=["payload.customer.name"]).route(contract=Login)

    stop(desk, with_secrets(amount="x"))

    sent = attempts_of(desk.case_of("r-1"))[0]["sent"]
    assert sent["payload"] == {
        "order_id": "4417",
        "amount_cents": "x",
        "password": "[redacted]",
        "note": "I called with `Authorization: Bearer [redacted]`, then with [redacted].",
        "customer": {"name": "[redacted]"},
    }


@pytest.mark.parametrize(
    ("redact", "sent"),
    [
        ([], '{"order_id": "4417", "note": "to Ada", "password": "[redacted]'),
        (["note"], '{"order_id": "4417", "note": "[redacted]", "password": "[redacted]'),
        (["payload.note"], "[left out: it is no JSON, so that no path of handoffs.redact leads into it]"),
    ],
    ids=["nothing", "a name", "a path"],
)
def test_text_that_is_no_json_stays_out_of_the_case_when_a_path_may_lead_into_it(redact: list[str], sent: str) -> None:
    """A cut-off answer is the case in point: names are found in it, and paths are not."""
    desk = FlowDesk(redact=redact, repairs_max=0).route()

    stop(desk, '{"order_id": "4417", "note": "to Ada", "password": "CANARY')

    assert [each["sent"] for each in attempts_of(desk.case_of("r-1"))] == [sent]


def test_secrets_of_a_refused_answer_stay_out_of_its_case(tmp_path: Path) -> None:
    """The answer itself is kept, for the review."""
    desk = FlowDesk(tmp_path)
    desk.watch.workflow("lookups")

    with logged() as lines, desk.watch.run("lookups", run_id="r-1") as run:
        run.answer(f"Use {VENDOR_KEY}, please.")

    case = desk.case_of("r-1")
    assert case.record == {"answer": "Use [redacted], please."}
    assert [line for line in lines if CANARY in line] == []


# critics

WORDS = "The amount is ten times that of the order, says CANARY."


@pytest.mark.parametrize("concern", [WORDS, None], ids=["a concern", "content"])
def test_critics_answer_is_kept_in_the_case_and_nowhere_else(concern: str | None, tmp_path: Path) -> None:
    """With its tokens, cost and duration; the model's own words stand in no span, line, sample or decision."""
    desk = FlowDesk(tmp_path)

    def critic(_: object) -> CriticAnswer:
        desk.time.now_s += 2.5
        return CriticAnswer(concern, tokens=900, cost_usd=0.002)

    desk.route(critic=critic)
    with logged() as lines:
        deliver(desk)

    case = desk.case_of("r-1")
    (attempt,) = attempts_of(case)
    assert attempt["critic"] == {
        "result": "no_concern" if concern is None else "concern",
        "concern": concern,
        "reaction": None if concern is None else "flag",
        "tokens": 900,
        "cost_usd": 0.002,
        "duration_s": 2.5,
        "note": "",
    }
    assert case.kind is CaseKind.ALLOWED
    said = [*lines, exposition(desk.watch.registry), json.dumps(dict(case.facts)), json.dumps(attempt["decision"])]
    said += [f"{span.name} {attributes(span)} {span.events}" for span in desk.spans.ended]
    said.append(str(desk.received))
    assert [text for text in said if CANARY in text] == []


def test_secrets_stay_out_of_the_case_when_a_critic_quotes_them() -> None:
    """Its words are a model's words."""
    desk = FlowDesk().route(critic=lambda _: CriticAnswer(f"It holds {VENDOR_KEY}, which it should not."))
    deliver(desk)
    (attempt,) = attempts_of(desk.case_of("r-1"))
    assert attempt["critic"]["concern"] == "It holds [redacted], which it should not."


def test_handoff_leaves_no_evidence_when_its_critic_was_not_asked() -> None:
    """Chance left it out, so there is no answer to keep, and the route keeps no good handoffs."""
    policy = CriticPolicy(signals=frozenset({"new_schema_version"}), sample=0.1)  # type: ignore[arg-type]
    desk = FlowDesk().route(critic=lambda _: CriticAnswer(WORDS), critique=policy)
    deliver(desk)
    assert desk.cases() == []
    assert list(counted(desk.watch.registry, "critic_checks_total")) == [
        f'critic_checks_total{{result="{CriticResult.SKIPPED}",route="{ROUTE}"}}'
    ]


# bounds

KIB_4 = 4_096


def stored_bytes(case: Case) -> int:
    """Return the size of a record as the ledger stores it."""
    return len(json.dumps(case.record))


def _wide(number: int) -> dict[str, Any]:
    """Return a handoff in which very much is wrong, at long paths."""
    return plan(payload={f"{'x' * 150}{number}-{each}": 1 for each in range(60)})


def _long(number: int) -> dict[str, Any]:
    """Return a handoff with one wrong field and one long text, that no encoder can make shorter."""
    return plan(payload={"order_id": "ä" * 2_000, "amount_cents": str(number)})


@pytest.mark.parametrize("attempts", [1, 3, 101])
@pytest.mark.parametrize("version", [_wide, _long])
def test_evidence_is_bounded_when_handoffs_are_large_or_many(
    version: Callable[[int], dict[str, Any]], attempts: int
) -> None:
    """It says what was left out; the facts stay whole."""
    repairs = attempts - 1
    desk = FlowDesk(evidence_bytes_max=KIB_4, repairs_max=repairs, repairs_per_run_max=repairs).route()

    stop(desk, version(1), repair=answers(*(version(number) for number in range(2, attempts + 1))))

    case = desk.case_of("r-1")
    assert stored_bytes(case) <= KIB_4
    assert LEFT_OUT in json.dumps(case.record)
    assert (case.facts["attempts"], case.facts["outcome"]) == (attempts, "stopped")
    assert attempts_of(case)[-1]["attempt"] == attempts


def test_evidence_leaves_out_the_oldest_first_when_not_all_fits() -> None:
    """What was sent last, and what was said of all, is worth more than what was sent first."""
    desk = FlowDesk(evidence_bytes_max=KIB_4).route()
    versions = [plan(payload={"order_id": "x" * 600, "amount_cents": f"{number}"}) for number in range(3)]

    stop(desk, versions[0], repair=answers(*versions[1:]))

    attempts = attempts_of(desk.case_of("r-1"))
    assert [each["sent"] for each in attempts] == [LEFT_OUT, versions[1], versions[2]]
    assert [each["decision"]["reasons"] for each in attempts] == [
        ["type_mismatch"],
        ["type_mismatch"],
        ["type_mismatch", "repair_exhausted"],
    ]


def test_evidence_of_an_answer_is_bounded_when_the_answer_is_long() -> None:
    """The mark stands in its place."""
    desk = FlowDesk(evidence_bytes_max=KIB_4)
    desk.watch.workflow("lookups")
    with desk.watch.run("lookups", run_id="r-1") as run:
        run.answer("long " * 2_000)
    assert desk.case_of("r-1").record == {"answer": LEFT_OUT}


@pytest.mark.parametrize("number", [2**63, 2**64, 2**70, -(2**70), 10**400])
@pytest.mark.parametrize("options", [{}, {"criticality": "critical"}, {"when_blocked": "hold", "hold_s": 1}], ids=str)
def test_handoff_is_delivered_once_when_a_number_before_its_repair_was_larger_than_encoders_take(
    number: int, options: dict[str, Any]
) -> None:
    """Its evidence is written like any other; a fault there would break a flow whose receiver has already acted."""
    desk = FlowDesk(stop_identical=True).route(**options)

    deliver(desk, bad_plan(amount=number), repair=answers(plan()))

    assert len(desk.received) == 1
    assert attempts_of(desk.case_of("r-1"))[0]["sent"]["payload"]["amount_cents"] == number
    assert counted(desk.watch.registry, "internal_errors_total") == {}


# reviews


@pytest.mark.parametrize(
    ("criticality", "chance", "selection"),
    [
        ("routine", 0.0999, ReviewSelection.RANDOM),
        ("routine", 0.1, None),
        ("critical", 0.0999, ReviewSelection.RANDOM),
        ("critical", 0.1, ReviewSelection.FORCED),
    ],
)
@pytest.mark.parametrize("mode", list(Mode))
def test_block_is_drawn_for_review_by_chance_and_forced_beside_it_when_it_is_critical(
    criticality: str, chance: float, selection: ReviewSelection | None, mode: Mode
) -> None:
    """Chance draws from all alike, the critical ones too, so that its share says something of all."""
    desk = FlowDesk().route(criticality=criticality, mode=mode)
    desk.time.chance = chance

    if mode is Mode.SHADOW:
        deliver(desk, bad_plan())
    else:
        stop(desk)

    review = desk.watch.ledger.review(desk.case_of("r-1").case_id)
    assert (None if review is None else review.selection) == selection


@pytest.mark.parametrize(("sample", "drawn"), [(0.0, False), (1.0, True)])
def test_blocks_are_drawn_for_review_as_often_as_the_setting_says(sample: float, drawn: bool) -> None:
    """None at 0, all at 1."""
    desk = FlowDesk(review_sample=sample).route()
    desk.time.chance = 0.0 if sample == 0 else 0.9999
    stop(desk)
    assert (desk.watch.ledger.review(desk.case_of("r-1").case_id) is not None) is drawn


@pytest.mark.parametrize(("chance", "is_drawn"), [(0.05, True), (0.5, False)])
@pytest.mark.parametrize("mode", list(Mode))
def test_guard_refusal_leaves_evidence_that_can_be_reviewed(mode: Mode, chance: float, is_drawn: bool) -> None:
    """In shadow mode too; the verdict is counted by workflow."""
    desk = FlowDesk()
    desk.watch.workflow("lookups", guard=mode)
    desk.time.chance = chance

    with desk.watch.run("lookups", run_id="r-1") as run:
        step = run.answer("The order is on its way.")

    assert step.action is (Action.REFUSE if mode is Mode.ENFORCE else Action.ANSWER)
    case = desk.case_of("r-1")
    assert (case.kind, case.workflow, case.route, case.mode) == (CaseKind.BLOCKED, "lookups", None, mode)
    assert case.facts == {
        "check": "guard",
        "reasons": ["no_tool_success"],
        "paths": ["answer"],
        "trace_id": format(ids(desk.spans.one("invoke_workflow lookups"))[0], "032x"),
    }
    assert case.record == {"answer": "The order is on its way."}
    assert case.resolved_unix_s is not None
    assert desk.watch.ledger.label_review(case.case_id, ReviewVerdict.FALSE_BLOCK, "it was") is is_drawn
    ledger_id = desk.watch.ledger.snapshot().label
    labels = f'ledger="{ledger_id}",selection="random",verdict="false_block",workflow="lookups"'
    assert counted(desk.watch.registry, "ledger_guard_reviews_total") == (
        {f"ledger_guard_reviews_total{{{labels}}}": 1} if is_drawn else {}
    )


# when it is written


@pytest.mark.parametrize("write", [Run.store, Run.finish], ids=["store", "finish"])
def test_evidence_of_primitives_is_written_when_the_program_says_so(write: Callable[[Run], None]) -> None:
    """The primitives themselves touch memory only."""
    desk = FlowDesk(repairs_max=0).route()
    run = desk.watch.run("refunds", run_id="r-1", task_id="t-1")

    assert run.handoff("planner", "executor", bad_plan()).action is Action.STOP
    assert desk.cases() == []
    write(run)

    assert desk.case_of("r-1").facts["reasons"] == ["type_mismatch"]
    run.store()
    run.finish()
    assert len(desk.cases()) == 1


def test_evidence_of_primitives_is_written_when_async_code_says_so() -> None:
    """Off the loop."""
    desk = FlowDesk(repairs_max=0).route()

    async def act() -> None:
        run = desk.watch.run("refunds", run_id="r-1", task_id="t-1")
        run.handoff("planner", "executor", bad_plan())
        await run.store_async()
        assert len(desk.cases()) == 1
        run.handoff("planner", "executor", bad_plan("h-2", task_id="t-2"))
        await run.finish_async()

    asyncio.run(act())
    assert len(desk.cases()) == 2


@pytest.mark.parametrize("write", [Run.store, Run.finish], ids=["store", "finish"])
def test_evidence_waits_when_the_ledger_is_down_and_is_written_once_it_is_back(write: Callable[[Run], None]) -> None:
    """Nothing is lost; meanwhile each thing that waits is counted as a bypass of its route, or of its workflow."""
    desk = FlowDesk(repairs_max=0).route()
    desk.watch.workflow("lookups")
    run = desk.watch.run("lookups", run_id="r-1")
    deliver(desk, run_id="r-before")
    desk.take_ledger_away()

    with pytest.raises(HandoffBlocked) as blocked:
        run.transfer("planner", "executor", bad_plan("h-2"), receiver=desk.receive)
    assert blocked.value.decision is not None
    assert blocked.value.decision.reasons == ["type_mismatch"]
    run.answer("The order is on its way.")
    write(run)
    assert counted(desk.watch.registry, "checks_bypassed_total", "label_overflow_total") == {
        f'checks_bypassed_total{{cause="ledger_down",check="ledger",name="{ROUTE}"}}': 2,
        'checks_bypassed_total{cause="ledger_down",check="ledger",name="lookups"}': 1,
    }

    desk.bring_ledger_back()
    assert desk.cases() == []
    run.store()
    assert sorted(str(case.facts["reasons"]) for case in desk.cases()) == ["['no_tool_success']", "['type_mismatch']"]
    run.store()
    run.finish()
    assert len(desk.cases()) == 2


def test_evidence_is_written_in_its_order_when_the_ledger_was_down_for_a_while() -> None:
    """A case that is written late is not taken for an early one, and only what is oldest makes room."""
    desk = FlowDesk(repairs_max=0).route()
    run = desk.watch.run("refunds", run_id="r-1")
    desk.watch.ledger.snapshot()
    desk.take_ledger_away()
    for number in range(3):
        with pytest.raises(HandoffBlocked):
            run.transfer("planner", "executor", bad_plan(f"h-{number}", task_id=f"t-{number}"), receiver=desk.receive)
    desk.bring_ledger_back()
    waiting: list[str] = []
    run.unstored.write(lambda closing: waiting.append(closing.handoff_id))
    assert waiting == ["h-0", "h-1", "h-2"]


def test_evidence_is_bounded_when_nobody_stores_it() -> None:
    """The oldest makes room, and is counted."""
    desk = FlowDesk(repairs_max=0).route()
    run = desk.watch.run("refunds", run_id="r-1")

    for number in range(UNSTORED_MAX + 5):
        run.handoff("planner", "executor", bad_plan(f"h-{number}", task_id=f"t-{number}"))

    assert counted(desk.watch.registry, "telemetry_dropped_total") == {
        'telemetry_dropped_total{cause="queue_full",signal="events"}': 5
    }
    waiting: list[str] = []
    run.unstored.write(lambda closing: waiting.append(closing.handoff_id))
    assert waiting == [f"h-{number}" for number in range(5, UNSTORED_MAX + 5)]
    run.finish()
