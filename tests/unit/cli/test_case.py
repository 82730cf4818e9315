"""`handoffwatch case`: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from handoffwatch.cli import main
from handoffwatch.cli.case import NOTE_LENGTH_MAX
from handoffwatch.ledger import Case, Ledger
from handoffwatch.outcomes import Claim
from handoffwatch.vocabulary import Cause, VerificationResult
from support.outcomes import StillClock, open_ledger, refund_intent
from support.requirements import ROOT

CONFIG = "ledger: {url: sqlite:///ledger.db}\n"


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left behind."""

    code: object
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def time() -> StillClock:
    """Time that stands still, at 2001-09-09."""
    return StillClock(1_000_000_000.0)


@pytest.fixture
def ledger(tmp_path: Path, time: StillClock) -> Iterator[Ledger]:
    """The ledger that the commands work on."""
    opened = open_ledger(tmp_path / "ledger.db", time)
    opened.snapshot()
    yield opened
    opened.close()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run `handoffwatch case` in the ledger's folder and return what it left behind."""
    monkeypatch.chdir(tmp_path)
    Path("handoffwatch.yaml").write_text(CONFIG, encoding="utf-8")

    def call(*arguments: str, config: str = "handoffwatch.yaml") -> Ended:
        monkeypatch.setattr(sys, "argv", ["handoffwatch", "case", *arguments, "--config", config])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Ended(ended.value.code, said.out, said.err)

    return call


def false_success(ledger: Ledger, time: StillClock, run_id: str, key: str = "4417") -> Case:
    """Settle a refund of this run as false and return its case."""
    ledger.open_operation(refund_intent(key, run_id=run_id))
    ledger.record_claim(run_id, "refunds", Claim.of("done"))
    (operation,) = ledger.due(time.now_s, limit=10, kinds=("refund",))
    ledger.record_verification(operation, VerificationResult.NOT_LANDED, cause=Cause.MISSING)
    return next(case for case in ledger.cases() if case.run_id == run_id)


def test_case_list_prints_a_line_for_each_when_cases_are_open(run: Run, ledger: Ledger, time: StillClock) -> None:
    """The lines are data on stdout; which ledger they are from is said on stderr."""
    first = false_success(ledger, time, "r-1")
    time.advance(60)
    second = false_success(ledger, time, "run-2", key="4418")
    facts = "workflow=refunds operation=refund business_key={} claimed=done cause=missing origin=unknown"
    assert run("list") == Ended(
        0,
        "CASE                              KIND           CRITICALITY  OPENED                RESOLVED  RUN    FACTS\n"
        f"{first.case_id}  false_success  critical     2001-09-09T01:46:40Z  -         r-1    {facts.format(4417)}\n"
        f"{second.case_id}  false_success  critical     2001-09-09T01:47:40Z  -         run-2  {facts.format(4418)}\n",
        f"ledger {ledger.snapshot().label}: 2 open\n",
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
    assert ended.err == f"ledger {label}: 0 open, 1 resolved\n"
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
        "",
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
@pytest.mark.parametrize("command", [("show",), ("resolve", "--note", "refunded by hand")])
def test_case_exits_2_when_the_id_is_unknown(run: Run, ledger: Ledger, command: tuple[str, ...], case_id: str) -> None:
    """The error names the ledger in which it looked, and how to see what is there."""
    shown = case_id.replace("\udcff", "?").replace("\x1b", "?")
    assert run(*command, case_id) == Ended(
        2,
        "",
        f"error: case {shown}: id: must name a case of ledger {ledger.snapshot().label}\n"
        "hint: handoffwatch case list --all\n",
    )


@pytest.mark.parametrize("note", ["", "  ", "x" * (NOTE_LENGTH_MAX + 1)])
def test_case_resolve_exits_2_when_the_note_is_empty_or_long(
    run: Run, ledger: Ledger, time: StillClock, note: str
) -> None:
    """A case is not closed without a word."""
    case = false_success(ledger, time, "r-1")
    ended = run("resolve", case.case_id, "--note", note)
    assert (ended.code, ended.out) == (2, "")
    assert "must say what was done, in at most 2000" in ended.err
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


def test_case_exits_1_when_the_ledger_is_not_there(run: Run, tmp_path: Path) -> None:
    """An empty list from a wrong folder would say that all is well; and no file is left behind."""
    assert run("list") == Ended(
        1,
        "",
        "error: ledger: database: must exist, got no file\n"
        "hint: name the settings of the process that writes the ledger, and start in its folder\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["handoffwatch.yaml"]


def test_case_exits_2_when_the_settings_are_wrong(run: Run) -> None:
    """The same settings as `serve`, checked alike."""
    ended = run("list", config="none.yaml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: none.yaml: file: does not exist\nhint: ")
