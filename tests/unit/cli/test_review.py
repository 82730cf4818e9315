"""`handoffwatch review`: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handoffwatch.cli import review as review_module
from handoffwatch.cli.stored import NOTE_LENGTH_MAX
from handoffwatch.ledger import Ledger
from handoffwatch.vocabulary import CaseKind, Mode, ReviewSelection, ReviewVerdict
from support.command_line import Ended, Run
from support.evidence import blocked, drawn, refused_answer
from support.flows import FlowDesk, answers, plan
from support.outcomes import StillClock

WITH = "--config handoffwatch.yaml"
RIGHT, FALSE = ReviewVerdict
DRAWN = "2001-09-09T01:46:40Z"


@pytest.fixture
def run(typed: Run) -> Run:
    """Run `handoffwatch review`."""
    return lambda *arguments, **options: typed("review", *arguments, **options)


def refusal(**changes: Any) -> Any:
    """Return the evidence of a refused answer that was drawn at random."""
    facts = {"check": "guard", "reasons": ["no_tool_success"], "paths": ["answer"], "trace_id": ""}
    return refused_answer(**{"facts": facts, "selection": ReviewSelection.RANDOM, **changes})


def test_review_list_prints_a_line_for_each_that_waits(run: Run, ledger: Ledger, time: StillClock) -> None:
    """A handoff by route and version, an answer by its workflow; what was not drawn is left out."""
    handoff = ledger.store_case(drawn(facts={"reasons": ["missing_result"], "paths": ["payload.result"]}))
    time.advance(1)
    answer = ledger.store_case(refusal())
    ledger.store_case(blocked("h-2"))
    assert run("list") == Ended(
        0,
        "CASE                              SELECTION  DRAWN                 WORKFLOW  ROUTE              VERSION  "
        "MODE     REASONS          PATHS\n"
        f"{handoff}  random     {DRAWN}  refunds   planner->executor  1        "
        "enforce  missing_result   payload.result\n"
        f"{answer}  random     2001-09-09T01:46:41Z  refunds   -                  -        "
        "enforce  no_tool_success  answer\n",
        f"ledger {ledger.snapshot().label}: 2 to review\nhint: handoffwatch review show ID {WITH}\n",
    )


def test_review_list_leaves_reviewed_ones_out_when_not_asked_for_all(run: Run, ledger: Ledger) -> None:
    """`--all` brings them back with their verdicts."""
    case_id = ledger.store_case(drawn())
    ledger.label_review(case_id, FALSE, "")
    label = ledger.snapshot().label
    assert run("list") == Ended(0, "", f"ledger {label}: 0 to review\n")
    ended = run("list", "--all")
    assert ended.err.splitlines()[0] == f"ledger {label}: 0 to review, 1 reviewed"
    assert f"{case_id}  random     {DRAWN}  false_block  refunds" in ended.out


def test_review_list_says_so_when_there_are_more_than_it_shows(
    run: Run, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes the first ones for all of them."""
    monkeypatch.setattr(review_module, "LISTED_MAX", 2)
    for number in range(3):
        ledger.store_case(drawn(f"h-{number}"))
    ended = run("list")
    assert len(ended.out.splitlines()) == 3
    assert ended.err.splitlines()[0].endswith(": 2 to review; the first 2 are shown")


def test_review_list_prints_json_when_asked(run: Run, ledger: Ledger) -> None:
    """One object with the ledger's label and, of each, the case without its record."""
    case_id = ledger.store_case(drawn(selection=ReviewSelection.FORCED))
    ended = run("list", "--json")
    assert (ended.code, ended.err) == (0, "")
    listed = json.loads(ended.out)
    (review,) = listed["reviews"]
    case = review.pop("case")
    assert listed["ledger"] == ledger.snapshot().label
    assert review == {
        "selection": "forced",
        "drawn_unix_s": 1_000_000_000.0,
        "verdict": None,
        "reviewed_unix_s": None,
        "note": None,
    }
    assert (case["case_id"], case["record"]) == (case_id, None)


def test_review_show_prints_the_named_fields_first(run: Run, tmp_path: Path) -> None:
    """What stood in each field of the last block, its code and what is asked for; then the case, then all else."""
    desk = FlowDesk(tmp_path, review_sample=1.0, repairs_max=1).route()
    first = plan(payload={"order_id": None, "amount_cents": 3800})
    last = plan(payload={"amount_cents": {"value": "3800"}, "password": "hunter2"})
    with desk.watch.run("refunds", run_id="r-1", task_id="t-1") as active:
        step = active.handoff("planner", "executor", first)
        active.handoff("planner", "executor", last)
    assert step.action == "repair"
    (case,) = desk.cases()

    ended = run("show", case.case_id)

    assert ended.code == 0
    blocks = ended.out.split("\n\n")
    assert blocks[:4] == [
        "payload.order_id\n"
        "  found  (nothing is there)\n"
        "  code   missing_field, block\n"
        "  rule   payload.order_id must be there",
        "payload.amount_cents\n"
        "  found  {\n"
        '           "value": "3800"\n'
        "         }\n"
        "  code   type_mismatch, block\n"
        "  rule   payload.amount_cents must be an integer, and is an object",
        "payload.password\n"
        '  found  "[redacted]"\n'
        "  code   unknown_field, block\n"
        "  rule   payload.password is not a field of the contract: remove it or correct its name",
        "$\n  found  (the whole handoff)\n  code   repair_exhausted, block\n  rule   no repair is left after attempt 2",
    ]
    assert blocks[4].startswith("selection       random\n")
    assert f"case            {case.case_id}\n" in blocks[4]
    assert blocks[5] == (
        "found in other attempts\n"
        "  ATTEMPT  PATH              CODE        REACTION  WHAT IS ASKED FOR\n"
        "  1        payload.order_id  null_field  block     payload.order_id must have a value, and is null"
    )
    assert [block.partition("\n")[0] for block in blocks[6:]] == [
        "sent in attempt 1, blocked",
        "sent in attempt 2, blocked",
    ]
    assert ended.err == "".join(
        f"hint: handoffwatch review label {case.case_id} {verdict} {WITH}\n"
        for verdict in ("right_block", "false_block")
    )


def test_review_show_prints_the_answer_first_when_the_guard_refused_it(run: Run, ledger: Ledger) -> None:
    """There is no route; the workflow and the reason say what was checked."""
    case_id = ledger.store_case(refusal(record={"answer": "Your order\nis on its way."}))
    out = run("show", case_id).out
    assert out.startswith(
        "answer\n"
        "  found  Your order\n"
        "         is on its way.\n"
        "  code   no_tool_success, block\n"
        "  rule   a tool call of the run must succeed before it may answer\n"
        "\n"
        "selection    random\n"
    )
    assert "workflow     refunds" in out.splitlines()
    assert "route" not in out


def test_review_show_prints_no_hint_when_it_was_labelled(run: Run, ledger: Ledger, time: StillClock) -> None:
    """The verdict, its time and its note stand there, beside those of the case."""
    case_id = ledger.store_case(drawn(is_open=True))
    time.advance(60)
    ledger.label_review(case_id, RIGHT, "nothing to review in it")
    ended = run("show", case_id)
    assert ended.err == ""
    for line in (
        "verdict         right_block",
        "reviewed        2001-09-09T01:47:40Z",
        "review note     nothing to review in it",
        "note            -",
    ):
        assert line in ended.out.splitlines()


def test_review_show_prints_all_as_json_when_asked(run: Run, ledger: Ledger) -> None:
    """With the record of the case."""
    case_id = ledger.store_case(drawn())
    shown = json.loads(run("show", case_id, "--json").out)
    assert shown["case"]["record"] == {"original": {"result": None}, "repaired": [{"result": ""}]}
    assert shown["selection"] == "random"


@pytest.mark.parametrize("note", [(), ("--note", " the receiver could not start ")], ids=["no note", "note"])
def test_review_label_writes_and_counts_the_verdict(run: Run, ledger: Ledger, note: tuple[str, ...]) -> None:
    """A note is welcome and not asked for."""
    case_id = ledger.store_case(drawn())
    assert run("label", case_id, "right_block", *note) == Ended(
        0, f"review {case_id}: right_block\n", f"hint: handoffwatch review list {WITH}\n"
    )
    review = ledger.review(case_id)
    assert review is not None
    assert (review.verdict, review.note) == ("right_block", "the receiver could not start" if note else "")
    labels = ("planner->executor", "1", "enforce", "random", "right_block")
    assert ledger.snapshot().counters == {("ledger_handoff_reviews_total", labels): 1}


def test_review_label_counts_the_guard_apart(run: Run, ledger: Ledger) -> None:
    """A refused answer is reviewed in the same way; as JSON it says what was written."""
    ended = run("label", ledger.store_case(refusal()), "false_block", "--json")
    assert (ended.code, ended.err, json.loads(ended.out)["verdict"]) == (0, "", "false_block")
    labels = ("refunds", "random", "false_block")
    assert ledger.snapshot().counters == {("ledger_guard_reviews_total", labels): 1}


@pytest.mark.parametrize("again", ["right_block", "false_block"])
def test_review_label_exits_2_when_there_was_one_before(run: Run, ledger: Ledger, time: StillClock, again: str) -> None:
    """The first verdict is counted and stays, and the error says when it was given."""
    case_id = ledger.store_case(drawn())
    time.advance(60)
    ledger.label_review(case_id, FALSE, "")
    assert run("label", case_id, again) == Ended(
        2,
        "",
        f"error: review {case_id}: verdict: is final, got a review that was labelled false_block at "
        "2001-09-09T01:47:40Z\n"
        f"hint: handoffwatch review show {case_id} {WITH}\n",
    )
    assert sum(ledger.snapshot().counters.values()) == 1


@pytest.mark.parametrize("case_id", ["none", "", "\udcff", "a\x1b[31mb", "not drawn"])
@pytest.mark.parametrize("command", [("show",), ("label",)])
def test_review_exits_2_when_the_case_was_not_drawn(
    run: Run, ledger: Ledger, command: tuple[str, ...], case_id: str
) -> None:
    """Neither a case that nobody drew nor one that is not there."""
    asked = ledger.store_case(blocked()) if case_id == "not drawn" else case_id
    shown = asked.replace("\udcff", "?").replace("\x1b", "?")
    verdict = ("false_block",) if command == ("label",) else ()
    assert run(*command, asked, *verdict) == Ended(
        2,
        "",
        f"error: review {shown}: id: must name a case of ledger {ledger.snapshot().label} that was drawn\n"
        f"hint: handoffwatch review list --all {WITH}\n",
    )


@pytest.mark.parametrize(
    "arguments", [("wrong",), (), ("right_block", "--note", ""), ("right_block", "--note", "x" * (NOTE_LENGTH_MAX + 1))]
)
def test_review_label_exits_2_when_used_wrongly(run: Run, ledger: Ledger, arguments: tuple[str, ...]) -> None:
    """Another word, no word, a note that says nothing or too much."""
    case_id = ledger.store_case(drawn())
    ended = run("label", case_id, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ledger.snapshot().counters == {}


def test_review_share_counts_those_that_chance_drew(run: Run, tmp_path: Path, ledger: Ledger) -> None:
    """Forced ones are left out, and that is said; what was not reviewed yet has no share."""
    FlowDesk(tmp_path).route().watch.ledger.snapshot()
    for number in range(10):
        ledger.label_review(ledger.store_case(drawn(f"h-{number}", schema_version="2")), (RIGHT, FALSE)[number < 1], "")
    for number in range(20, 25):
        forced = drawn(f"h-{number}", ReviewSelection.FORCED, schema_version="2", mode=Mode.SHADOW)
        ledger.label_review(ledger.store_case(forced), FALSE, "")
    assert run("share") == Ended(
        0,
        "ROUTE              VERSION  MODE     REVIEWED  FALSE  SHARE  95 % INTERVAL\n"
        "planner->executor  1        enforce  0         0      -      -\n"
        "planner->executor  2        enforce  10        1      10.0%  1.8% to 40.4%\n"
        "planner->executor  2        shadow   0         0      -      -\n",
        f"ledger {ledger.snapshot().label}: false blocks among those drawn at random; forced reviews are left out\n"
        "The true share lies in the interval (Wilson, 95 %); few reviews leave it wide.\n"
        f"hint: handoffwatch review list {WITH}\n",
    )


def test_review_share_prints_json_when_asked(run: Run, ledger: Ledger) -> None:
    """It says which reviews are counted, and of which kind the interval is."""
    ledger.label_review(ledger.store_case(drawn()), FALSE, "")
    ended = run("share", "--json")
    assert (ended.code, ended.err) == (0, "")
    said = json.loads(ended.out)
    (share,) = said.pop("shares")
    assert said == {"ledger": ledger.snapshot().label, "selection": "random", "interval": "wilson_95"}
    low = share.pop("low")
    assert low == pytest.approx(0.2065, abs=0.0001)
    assert share == {
        "route": "planner->executor",
        "schema_version": "1",
        "mode": "enforce",
        "reviewed": 1,
        "false_blocks": 1,
        "share": 1.0,
        "high": 1.0,
    }


def test_reviewed_false_block_is_in_the_share_when_it_came_from_a_run(run: Run, tmp_path: Path) -> None:
    """From the block over the queue and the verdict to the number, nothing is done by hand."""
    desk = FlowDesk(tmp_path, review_sample=1.0).route()
    with desk.watch.run("refunds", task_id="t-1") as active:
        raw = plan(payload={"order_id": "4417"})
        active.transfer("planner", "executor", raw, receiver=desk.receive, repair=answers(plan()))
    (waiting,) = json.loads(run("list", "--json").out)["reviews"]
    assert waiting["case"]["kind"] == CaseKind.BLOCKED
    assert run("label", waiting["case"]["case_id"], "false_block").code == 0
    (share,) = json.loads(run("share", "--json").out)["shares"]
    assert (share["route"], share["reviewed"], share["false_blocks"]) == ("planner->executor", 1, 1)


def test_review_commands_are_harmless_when_stored_names_hold_control_characters(run: Run, ledger: Ledger) -> None:
    """Values, paths, codes, sentences, names and the answer of a model cannot steer the terminal."""
    evil = "\x1b[2J\u202e\x9b31m\ud800\nok"
    finding = dict.fromkeys(("path", "code", "reaction", "sentence"), evil)
    attempt = {"attempt": 1, "sent": {evil: evil}, "decision": {"verdict": "blocked", "findings": [finding]}}
    facts = {"reasons": [evil], "paths": [evil]}
    handoff = drawn(route="a\x1b->b", schema_version="\x1b", facts=facts, record={"attempts": [attempt]})
    answer = refusal(workflow="\x1b[2J", run_id="\x1b[2J", record={"answer": evil}, facts=facts | {"check": "guard"})
    for case_id in (ledger.store_case(handoff), ledger.store_case(answer)):
        for command in (("list",), ("show", case_id)):
            out = run(*command).out
            assert all(line.isprintable() for line in out.splitlines())
            assert "ok" not in out.splitlines()
        assert run("show", case_id, "--json").out.isascii()
        assert run("label", case_id, "false_block").code == 0
    assert run("share").out.splitlines()[1].startswith("a?->b")


def test_review_exits_1_when_the_ledger_is_damaged(run: Run, tmp_path: Path) -> None:
    """A fault of the ledger is no wrong usage."""
    (tmp_path / "ledger.db").write_bytes(b"no database" * 100)
    ended = run("list")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: ledger: database: must be read, got ")
