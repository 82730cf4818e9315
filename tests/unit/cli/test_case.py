"""`handoffwatch case`: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from handoffwatch import HandoffBlocked, HandoffHeld
from handoffwatch.cli.stored import NOTE_LENGTH_MAX
from handoffwatch.ledger import Case, Ledger
from handoffwatch.outcomes import Claim
from handoffwatch.vocabulary import Cause, Ruling, VerificationResult
from support.command_line import Ended, Run
from support.evidence import blocked, held, refused_answer
from support.flows import ROUTE, FlowDesk, answers, plan
from support.outcomes import StillClock, refund_intent
from support.requirements import ROOT

WITH = "--config handoffwatch.yaml"
LATER_UNIX_S = 4_000_000_000.0


@pytest.fixture
def run(typed: Run) -> Run:
    """Run `handoffwatch case`."""
    return lambda *arguments, **options: typed("case", *arguments, **options)


def false_success(ledger: Ledger, time: StillClock, run_id: str, key: str = "4417") -> Case:
    """Settle a refund of this run as false and return its case."""
    ledger.open_operation(refund_intent(key, run_id=run_id))
    ledger.record_claim(run_id, "refunds", Claim.of("done"))
    (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
    ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING)
    return next(case for case in ledger.cases() if case.run_id == run_id)


def test_case_list_prints_a_line_for_each_when_cases_are_open(run: Run, ledger: Ledger, time: StillClock) -> None:
    """The lines are data on stdout; which ledger they are from, and what to type next, is said on stderr."""
    first = false_success(ledger, time, "r-1")
    time.advance(60)
    second = false_success(ledger, time, "run-2", key="4418")
    facts = "workflow=refunds operation=refund business_key={} claimed=done cause=missing origin=unknown"
    assert run("list") == Ended(
        0,
        "CASE                              KIND           CRITICALITY  OPENED                RUN    FACTS\n"
        f"{first.case_id}  false_success  critical     2001-09-09T01:46:40Z  r-1    {facts.format(4417)}\n"
        f"{second.case_id}  false_success  critical     2001-09-09T01:47:40Z  run-2  {facts.format(4418)}\n",
        f"ledger {ledger.snapshot().label}: 2 open\nhint: handoffwatch case show ID {WITH}\n",
    )


def test_case_list_prints_no_line_when_nothing_is_open(run: Run, ledger: Ledger) -> None:
    """Nothing to do is said once, on stderr."""
    assert run("list") == Ended(0, "", f"ledger {ledger.snapshot().label}: 0 open\n")


def test_case_list_leaves_resolved_ones_out_when_not_asked_for_all(run: Run, ledger: Ledger, time: StillClock) -> None:
    """`--all` brings them back."""
    case = false_success(ledger, time, "r-1")
    ledger.resolve_case(case.case_id, note="refunded by hand")
    label = ledger.snapshot().label
    assert run("list") == Ended(0, "", f"ledger {label}: 0 open\n")
    ended = run("list", "--all")
    assert ended.err.splitlines()[0] == f"ledger {label}: 0 open, 1 resolved"
    assert f"{case.case_id}  false_success  critical     2001-09-09T01:46:40Z  2001-09-09T01:46:40Z  r-1" in ended.out


def test_case_list_keeps_to_the_kind_when_one_is_named(run: Run, ledger: Ledger, time: StillClock) -> None:
    """Another kind is another person's work."""
    case = false_success(ledger, time, "r-1")
    assert case.case_id in run("list", "--kind", "false_success").out
    assert run("list", "--kind", "blocked").out == ""


def test_case_list_prints_json_when_asked(run: Run, ledger: Ledger, time: StillClock) -> None:
    """One object with the ledger's label and every stored field."""
    case = false_success(ledger, time, "r-1")
    ended = run("list", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == {
        "ledger": ledger.snapshot().label,
        "cases": [
            {
                "case_id": case.case_id,
                "kind": "false_success",
                "subject": case.subject,
                "criticality": "critical",
                "run_id": "r-1",
                "facts": dict(case.facts),
                "opened_unix_s": 1_000_000_000.0,
                "resolved_unix_s": None,
                "note": None,
                "workflow": "refunds",
                "route": None,
                "schema_version": None,
                "mode": None,
                "ruling": None,
                "ruled_unix_s": None,
                "expires_unix_s": None,
                "record": None,
            }
        ],
    }


def test_case_show_prints_every_field_when_it_is_open(run: Run, ledger: Ledger, time: StillClock) -> None:
    """One field a line."""
    case = false_success(ledger, time, "r-1")
    assert run("show", case.case_id) == Ended(
        0,
        f"case          {case.case_id}\n"
        "kind          false_success\n"
        "criticality   critical\n"
        "run           r-1\n"
        f"subject       {case.subject}\n"
        "workflow      refunds\n"
        "operation     refund\n"
        "business_key  4417\n"
        "claimed       done\n"
        "cause         missing\n"
        "origin        unknown\n"
        "opened        2001-09-09T01:46:40Z\n"
        "resolved      -\n"
        "note          -\n",
        f"hint: handoffwatch case resolve {case.case_id} --note TEXT {WITH}\n",
    )
    assert json.loads(run("show", case.case_id, "--json").out)["facts"] == case.facts


def test_case_resolve_closes_it_once_when_it_is_called_twice(run: Run, ledger: Ledger, time: StillClock) -> None:
    """The second call changes nothing, says so, and is no failure."""
    case = false_success(ledger, time, "r-1")
    assert run("resolve", case.case_id, "--note", " refunded by hand ") == Ended(
        0, f"case {case.case_id}: resolved\n", ""
    )
    stored = ledger.case(case.case_id)
    assert stored is not None
    assert stored.note == "refunded by hand"
    again = run("resolve", case.case_id, "--note", "something else")
    assert again.code == 0
    assert again.out.startswith(f"case {case.case_id}: was resolved at 2")
    assert again.out.endswith("Z, and keeps its note\n")
    assert ledger.case(case.case_id) == stored


@pytest.mark.parametrize("case_id", ["none", "", "\udcff", "a\x1b[31mb", "x' OR 1=1 --"])
@pytest.mark.parametrize(
    "command", [("show",), *((verb, "--note", "seen") for verb in ("resolve", "approve", "reject"))]
)
def test_case_exits_2_when_the_id_is_unknown(run: Run, ledger: Ledger, command: tuple[str, ...], case_id: str) -> None:
    """The error names the ledger in which it looked, and how to see what is there."""
    shown = case_id.replace("\udcff", "?").replace("\x1b", "?")
    assert run(*command, case_id) == Ended(
        2,
        "",
        f"error: case {shown}: id: must name a case of ledger {ledger.snapshot().label}\n"
        f"hint: handoffwatch case list --all {WITH}\n",
    )


@pytest.mark.parametrize("note", ["", "  ", "x" * (NOTE_LENGTH_MAX + 1)])
def test_case_resolve_exits_2_when_the_note_is_empty_or_long(
    run: Run, ledger: Ledger, time: StillClock, note: str
) -> None:
    """A case is not closed without a word."""
    case = false_success(ledger, time, "r-1")
    ended = run("resolve", case.case_id, "--note", note)
    assert (ended.code, ended.out) == (2, "")
    assert "must say what was done or why, in at most 2000" in ended.err
    assert ledger.cases() == [case]


def test_case_resolve_stores_a_note_that_is_no_text_when_the_terminal_sent_it(
    run: Run, ledger: Ledger, time: StillClock
) -> None:
    """Bytes that are no UTF-8 are written out, never a crash."""
    case = false_success(ledger, time, "r-1")
    assert run("resolve", case.case_id, "--note", "caf\udce9").code == 0
    stored = ledger.case(case.case_id)
    assert stored is not None
    assert stored.note == "caf\\udce9"


def test_case_list_is_harmless_when_a_key_holds_control_characters(run: Run, ledger: Ledger, time: StillClock) -> None:
    """What an agent wrote cannot steer the operator's terminal, nor begin a line of its own."""
    case = false_success(ledger, time, "r-1", key="\x1b[2J44\n17")
    for command in (("list",), ("show", case.case_id)):
        out = run(*command).out
        assert "\x1b" not in out
        assert "?[2J44?17" in out


def test_case_commands_of_the_runbook_work_when_they_are_typed(run: Run, ledger: Ledger, time: StillClock) -> None:
    """Whoever is paged types what stands there, and the open cases are gone."""
    case = false_success(ledger, time, "r-1")
    text = (ROOT / "docs/runbooks/HandoffwatchFalseSuccessOpen.md").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    handoffwatch case ")]
    commands = [shlex.split(line.replace(" ID", f" {case.case_id}"))[2:] for line in lines]
    assert [command[0] for command in commands] == ["list", "show", "resolve"]
    for command in commands:
        assert command[-2:] == ["--config", "handoffwatch.yaml"]
        assert run(*command[:-2]).code == 0
    assert ledger.cases() == []


def test_case_list_says_until_when_a_run_waits_when_cases_are_held(run: Run, ledger: Ledger) -> None:
    """A route that does not wait has no such time; facts that only `show` has room for are left out."""
    waits = ledger.store_case(held("h-1", approval=True, expires_unix_s=1_000_000_900.0))
    sent_again = ledger.store_case(
        held("h-2", route="executor->reviewer", run_id="r-22", expires_unix_s=1_000_000_000.0)
    )
    opened = "held  critical     2001-09-09T01:46:40Z"
    title, *lines = run("list").out.splitlines()
    assert title.endswith("OPENED                WAITS UNTIL           ROUTE               RUN")
    assert sorted(lines) == sorted(
        [
            f"{waits}  {opened}  2001-09-09T02:01:40Z  planner->executor   r-1",
            f"{sent_again}  {opened}  -                     executor->reviewer  r-22",
        ]
    )


def test_case_list_is_short_when_there_is_much_to_say(run: Run, ledger: Ledger) -> None:
    """Of many reasons and paths the first three, and how many more there are."""
    facts = {"reasons": ["a", "b"], "paths": [f"payload.{number}" for number in range(20)], "stage": "validate"}
    ledger.store_case(blocked(is_open=True, facts=facts | {"handoff_id": "h-1", "trace_id": "", "attempts": 2}))
    assert (
        run("list")
        .out.splitlines()[1]
        .endswith("planner->executor  r-1  reasons=a,b paths=payload.0,payload.1,payload.2,+17 attempts=2")
    )


def test_case_show_prints_findings_then_what_was_sent_and_delivered(run: Run, tmp_path: Path) -> None:
    """What was found stands first, then each attempt, then what the receiver got; secrets are not stored."""
    desk = FlowDesk(tmp_path).route()
    bad = plan(payload={"amount_cents": "3800", "order_id": "4417", "password": "hunter2"})
    with desk.watch.run("refunds", run_id="r-1", task_id="t-1") as active:
        active.transfer("planner", "executor", bad, receiver=desk.receive, repair=answers(plan()))
    (case,) = desk.cases()

    ended = run("show", case.case_id)

    assert (ended.code, ended.err) == (0, "")
    head, findings, first, second, delivered = ended.out.split("\n\n")
    assert head.splitlines()[:4] == [
        f"case            {case.case_id}",
        "kind            blocked",
        "criticality     routine",
        "run             r-1",
    ]
    assert "route           planner->executor" in head.splitlines()
    assert findings.splitlines() == [
        "ATTEMPT  PATH                  CODE           REACTION  WHAT IS ASKED FOR",
        "1        payload.amount_cents  type_mismatch  block     payload.amount_cents must be an integer, and is text",
        "1        payload.password      unknown_field  block     "
        "payload.password is not a field of the contract: remove it or correct its name",
    ]
    assert first.splitlines()[:2] == ["sent in attempt 1, blocked", "  {"]
    assert '      "password": "[redacted]"' in first.splitlines()
    assert "hunter2" not in ended.out
    assert second.splitlines()[0] == "sent in attempt 2, allowed"
    assert delivered.splitlines()[0] == "delivered"
    assert json.loads(delivered.partition("\n")[2])["payload"] == {"order_id": "4417", "amount_cents": 3800}


def test_case_show_prints_the_answer_when_the_guard_refused_it(run: Run, ledger: Ledger) -> None:
    """Its lines stay lines; a code without a sentence is shown all the same."""
    facts = {
        "check": "guard",
        "reasons": ["no_tool_success", "no_rule_of_ours"],
        "paths": ["answer"],
        "trace_id": "ab12",
    }
    evidence = refused_answer(facts=facts, record={"answer": "Your order\nis on its way."})
    ended = run("show", ledger.store_case(evidence))
    assert ended.out.split("\n\n")[1:] == [
        "PATH    CODE             REACTION  WHAT IS ASKED FOR\n"
        "answer  no_tool_success  block     a tool call of the run must succeed before it may answer\n"
        "answer  no_rule_of_ours  block     -",
        "answer\n  Your order\n  is on its way.\n",
    ]
    assert "trace_id     ab12" in ended.out.splitlines()


def test_case_show_says_what_to_type_when_it_is_held(run: Run, ledger: Ledger) -> None:
    """A held handoff is decided, not resolved; once decided there is nothing to type, and the ruling is shown."""
    case_id = ledger.store_case(held(expires_unix_s=1_000_000_900.0))
    ended = run("show", case_id)
    assert ended.err == "".join(
        f"hint: handoffwatch case {verb} {case_id} --note TEXT {WITH}\n" for verb in ("approve", "reject")
    )
    assert "waits until     2001-09-09T02:01:40Z\nruling          -\nresolved        -\n" in ended.out
    ledger.rule_case(case_id, Ruling.REJECTED, "too much")
    ended = run("show", case_id)
    assert ended.err == ""
    assert "ruling          rejected\nresolved        2001-09-09T01:46:40Z\nnote            too much\n" in ended.out


def test_case_show_prints_the_record_as_json_when_asked(run: Run, ledger: Ledger) -> None:
    """Nothing of what is stored is left out."""
    case_id = ledger.store_case(held(expires_unix_s=1_000_000_900.0))
    shown = json.loads(run("show", case_id, "--json").out)
    assert shown["record"] == {"original": {"result": None}, "repaired": [{"result": ""}]}
    assert (shown["route"], shown["schema_version"], shown["mode"]) == ("planner->executor", "1", "enforce")
    assert shown["expires_unix_s"] == 1_000_000_900.0


@pytest.mark.parametrize(
    ("outcome", "expires_unix_s", "command", "said"),
    [
        ("held", LATER_UNIX_S, "approve", "approved; the run that waits for it goes on"),
        ("held", LATER_UNIX_S, "reject", "rejected; the run that waits for it stops there"),
        ("held", 1_000_000_000.0, "approve",
         "approved; no run waits for it: the same handoff is delivered when it is sent again"),
        ("stopped", LATER_UNIX_S, "reject",
         "rejected; no run waits for it: the same handoff is stopped when it is sent again"),
        ("delivered", LATER_UNIX_S, "approve",
         "approved; its receiver was started before, when the time for a decision was over"),
    ],
)  # fmt: skip
def test_case_ruling_says_what_follows(
    run: Run, ledger: Ledger, outcome: str, expires_unix_s: float, command: str, said: str
) -> None:
    """Whether a run still waits makes the difference between waiting for it and sending again."""
    case_id = ledger.store_case(held(facts={"outcome": outcome}, expires_unix_s=expires_unix_s))
    assert run(command, case_id, "--note", " seen ") == Ended(0, f"case {case_id}: {said}\n", "")
    stored = ledger.case(case_id)
    assert stored is not None
    assert (stored.ruling, stored.note) == (said.partition(";")[0], "seen")


def test_case_ruling_prints_the_case_as_json_when_asked(run: Run, ledger: Ledger) -> None:
    """As `show` does, and as resolving does."""
    ruled, resolved = ledger.store_case(held()), ledger.store_case(blocked(is_open=True))
    for case_id, command, ruling in ((ruled, "approve", "approved"), (resolved, "resolve", None)):
        ended = run(command, case_id, "--note", "seen", "--json")
        shown = json.loads(ended.out)
        assert (ended.code, ended.err, shown["case_id"], shown["ruling"]) == (0, "", case_id, ruling)
        assert shown == json.loads(run("show", case_id, "--json").out)


def test_held_handoff_goes_on_when_it_is_approved_and_sent_again(run: Run, tmp_path: Path) -> None:
    """What the command writes is what the run reads, and what the run's error says to do."""
    desk = FlowDesk(tmp_path).route(approval="required", hold_s=0)

    def transfer() -> object:
        with desk.watch.run("refunds", task_id="t-1") as active:
            return active.transfer("planner", "executor", plan(), receiver=desk.receive)

    with pytest.raises(HandoffHeld) as waiting:
        transfer()
    assert run("approve", waiting.value.case_id, "--note", "it is the customer's own order").code == 0
    assert transfer() == "received"
    assert len(desk.received) == 1


def test_held_handoff_is_stopped_when_it_is_rejected_and_sent_again(run: Run, tmp_path: Path) -> None:
    """A rejection needs no second one."""
    desk = FlowDesk(tmp_path).route(approval="required", hold_s=0)
    for _ in range(2):
        with pytest.raises(HandoffBlocked), desk.watch.run("refunds", task_id="t-1") as active:
            active.transfer("planner", "executor", plan(), receiver=desk.receive)
        for case in desk.watch.ledger.cases():
            assert run("reject", case.case_id, "--note", "not the customer's order").code == 0
    assert desk.received == []
    assert len(desk.cases()) == 1


@pytest.mark.parametrize("command", ["approve", "reject"])
@pytest.mark.parametrize("before", ["approved", "rejected", "resolved without one"])
def test_case_ruling_exits_2_when_there_was_one_before(
    run: Run, ledger: Ledger, time: StillClock, command: str, before: str
) -> None:
    """The first word of a person is the last, and the error says when it was given."""
    case_id = ledger.store_case(held())
    time.advance(60)
    if before == "resolved without one":
        ledger.resolve_case(case_id, note="seen")
    else:
        ledger.rule_case(case_id, Ruling(before), "seen")
    stored = ledger.case(case_id)
    assert run(command, case_id, "--note", "once more") == Ended(
        2,
        "",
        f"error: case {case_id}: ruling: is final, got a case that was {before} at 2001-09-09T01:47:40Z\n"
        f"hint: handoffwatch case show {case_id} {WITH}\n",
    )
    assert ledger.case(case_id) == stored


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_case_ruling_exits_2_when_the_case_is_not_held(
    run: Run, ledger: Ledger, time: StillClock, command: str
) -> None:
    """There is nothing to let go on."""
    case = false_success(ledger, time, "r-1")
    assert run(command, case.case_id, "--note", "seen") == Ended(
        2,
        "",
        f"error: case {case.case_id}: kind: must be held, got false_success\n"
        f"hint: handoffwatch case list --kind held {WITH}\n",
    )
    assert ledger.cases() == [case]


def test_case_resolve_exits_2_when_the_case_is_held(run: Run, ledger: Ledger) -> None:
    """Closed without a ruling it could never be decided, and its handoff would be held for ever."""
    case_id = ledger.store_case(held())
    assert run("resolve", case_id, "--note", "seen") == Ended(
        2,
        "",
        f"error: case {case_id}: kind: must not be held: a person decides whether its handoff goes on\n"
        f"hint: handoffwatch case approve {case_id} --note TEXT {WITH}\n"
        f"hint: handoffwatch case reject {case_id} --note TEXT {WITH}\n",
    )
    assert [case.case_id for case in ledger.cases()] == [case_id]


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_case_ruling_exits_2_when_it_has_no_note(run: Run, ledger: Ledger, command: str) -> None:
    """Whoever asks later finds out why."""
    case_id = ledger.store_case(held())
    for note in ((), ("--note", " ")):
        ended = run(command, case_id, *note)
        assert (ended.code, ended.out) == (2, "")
        assert "--note" in ended.err
    assert len(ledger.cases()) == 1


def test_case_commands_are_harmless_when_stored_names_hold_control_characters(run: Run, ledger: Ledger) -> None:
    """Names, facts and records cannot steer the terminal; as JSON they are escaped, and nothing is lost."""
    evil = "\x1b[2J\u202e\x9b31m\ud800\nok"
    case_id = ledger.store_case(
        held(
            run_id="r\x1b[2J",
            route="a\x1b[2J->b",
            facts={evil: evil, "reasons": [evil], "handoff_id": evil},
            record={
                "attempts": [{"attempt": evil, "sent": {evil: evil}, evil: evil, "decision": {"verdict": evil}}],
                evil: [evil],
            },
        )
    )
    for command in (("list",), ("show", case_id)):
        out = run(*command).out
        assert all(line.isprintable() for line in out.splitlines())
        assert "ok" not in out.splitlines()
    assert "\\u001b[2J\\u202e\\u009b31m\\ud800\\nok" in run("show", case_id).out
    for command in (("list", "--json"), ("show", case_id, "--json")):
        assert run(*command).out.isascii()
    assert json.loads(run("show", case_id, "--json").out)["record"][evil] == [evil]


def test_case_list_shows_the_names_of_the_host_when_the_route_is_unknown(run: Run, tmp_path: Path) -> None:
    """`other` would say nothing to the person who has to look."""
    desk = FlowDesk(tmp_path).route()
    with desk.watch.run("refunds", task_id="t-1") as active:
        active.handoff("planner", "auditor", plan(route="planner->auditor"))
    assert "planner->auditor" in run("list").out
    assert ROUTE not in run("list").out
