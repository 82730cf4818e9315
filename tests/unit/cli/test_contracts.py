"""`handoffwatch contracts`: what it prints, where, and with which exit code."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handoffwatch.cli.contracts import CASES_WITHOUT_PROGRESS
from support.command_line import Ended, Run, command_line
from support.contract_cases import handoff, write_case

DESK = """\
from handoffwatch import Contract, Watch

class Work(Contract):
    order_id: str
    amount_cents: int
    result: str
    currency: str {default}

watch = Watch()
watch.route("executor->reviewer", contract=Work)
watch.route("reviewer->archive", unchecked=True)
"""
UPDATE_HINT = "hint: --update writes what was found into the case files\n"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """Run `handoffwatch contracts` in a folder with a desk and three cases."""
    (tmp_path / "desk.py").write_text(DESK.format(default="| None = None"), encoding="utf-8")
    write_case(tmp_path / "cases", "good.json", expect={"verdict": "allowed"})
    null = handoff(order_id=None)
    write_case(tmp_path / "cases", "null.json", handoff=null, expect={"verdict": "blocked", "codes": ["null_field"]})
    write_case(tmp_path / "cases", "usd.json", handoff=handoff(currency="USD"), expect={"verdict": "allowed"})
    with command_line(monkeypatch, capsys, tmp_path) as run:
        yield lambda *arguments: run("contracts", *arguments)


def test_contracts_check_exits_0_when_all_is_as_expected(run: Run) -> None:
    """One line, and nothing on stderr."""
    assert run("check", "desk:watch", "cases") == Ended(0, "3 cases: as expected\n", "")
    assert run("check", "desk.py:watch", "cases/null.json") == Ended(0, "1 case: as expected\n", "")


def test_contracts_check_prints_what_changed_when_a_case_is_not_as_expected(run: Run) -> None:
    """The lines are never folded, whatever the width, and not taken for markup."""
    note = "a note [red] that is longer than the terminal is wide, so that it would be folded if anything were folded"
    write_case(Path("cases"), "null.json", note=note, handoff=handoff(order_id=None), expect={"verdict": "warned"})
    ended = run("check", "desk:watch", "cases")
    assert ended == Ended(
        3,
        f"null.json: {note}\n"
        "  verdict: expected warned, got blocked\n"
        "  + null_field at payload.order_id: payload.order_id must have a value, and is null\n"
        "3 cases: 2 as expected, 1 changed\n",
        UPDATE_HINT,
    )


def test_contracts_check_prints_json_when_asked(run: Run) -> None:
    """All counts and all that changed; the exit code is the same."""
    assert json.loads(run("check", "desk:watch", "cases", "--json").out) == {"cases": 3, "changed": []}
    write_case(Path("cases"), "null.json", handoff=handoff(order_id=None), expect={"verdict": "warned"})
    ended = run("check", "desk:watch", "cases", "--json")
    assert (ended.code, ended.err) == (3, "")
    assert json.loads(ended.out) == {
        "cases": 3,
        "changed": [
            {
                "case": "null.json",
                "expected": {"verdict": "warned", "codes": []},
                "actual": {"verdict": "blocked", "codes": ["null_field at payload.order_id"]},
                "missing": [],
                "unexpected": ["null_field at payload.order_id"],
            }
        ],
    }


def test_contracts_check_rewrites_the_expectations_when_told_to_update(run: Run) -> None:
    """Only of the cases that are not as expected; afterwards all are."""
    good = Path("cases/good.json").read_bytes()
    null = write_case(Path("cases"), "null.json", handoff=handoff(order_id=None))
    ended = run("check", "desk:watch", "cases", "--update")
    assert ended == Ended(
        0,
        "null.json\n"
        "  verdict: blocked, and nothing is expected yet\n"
        "  + null_field at payload.order_id: payload.order_id must have a value, and is null\n"
        "3 cases: 2 as expected, 1 without an expectation; 1 updated\n",
        "",
    )
    assert json.loads(null.read_text())["expect"] == {"verdict": "blocked", "codes": ["null_field at payload.order_id"]}
    assert Path("cases/good.json").read_bytes() == good
    assert run("check", "desk:watch", "cases", "--update") == Ended(0, "3 cases: as expected\n", "")
    write_case(Path("cases"), "null.json", handoff=handoff(order_id=None))
    updated = json.loads(run("check", "desk:watch", "cases", "--update", "--json").out)
    assert [case["case"] for case in updated["updated"]] == ["null.json"]


def test_contracts_diff_exits_0_when_no_case_differs(run: Run) -> None:
    """A module and its own file are two versions that say the same."""
    assert run("diff", "desk:watch", "desk.py:watch", "cases") == Ended(0, "3 cases: none judged differently\n", "")


def test_contracts_diff_prints_what_differs_when_two_files_have_one_name(run: Run) -> None:
    """Verdicts, codes and normal forms, whatever the cases expect."""
    for folder, default in (("defaulted", '= "EUR"'), ("required", "")):
        Path(folder).mkdir()
        Path(folder, "desk.py").write_text(DESK.format(default=default), encoding="utf-8")
    assert run("diff", "desk.py:watch", "defaulted/desk.py:watch", "cases") == Ended(
        3, 'good.json\n  ~ payload.currency: null -> "EUR"\n3 cases: 1 judged differently\n', ""
    )
    ended = run("diff", "defaulted/desk.py:watch", "required/desk.py:watch", "cases")
    assert ended == Ended(
        3,
        "good.json\n"
        "  verdict: allowed -> blocked\n"
        "  + missing_field at payload.currency\n"
        "null.json\n"
        "  + missing_field at payload.currency\n"
        "3 cases: 2 judged differently\n",
        "",
    )


def test_contracts_diff_prints_json_when_asked(run: Run) -> None:
    """The old and the new side of each case that differs."""
    Path("new.py").write_text(DESK.format(default='= "EUR"'), encoding="utf-8")
    ended = run("diff", "desk:watch", "new:watch", "cases", "--json")
    assert (ended.code, ended.err) == (3, "")
    assert json.loads(ended.out) == {
        "cases": 3,
        "different": [
            {
                "case": "good.json",
                "old": {"allowed": True, "mode": "enforce", "verdict": "allowed", "codes": []},
                "new": {"allowed": True, "mode": "enforce", "verdict": "allowed", "codes": []},
                "gone": [],
                "come": [],
                "normalized": [{"path": "payload.currency", "old": None, "new": "EUR"}],
            }
        ],
    }


def test_contracts_map_prints_a_table_when_nothing_else_is_asked(run: Run) -> None:
    """A row for each route and version."""
    ended = run("map", "desk:watch")
    assert (ended.code, ended.err) == (0, "")
    cells = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert cells[0] == "from to type version accepts required mode criticality"
    assert cells[2].startswith("executor reviewer Work 1 ready,")
    assert cells[-1] == "reviewer archive - - any - unchecked routine"


@pytest.mark.parametrize("options", [("--json",), ("--format", "json")])
def test_contracts_map_prints_json_when_asked(run: Run, options: tuple[str, ...]) -> None:
    """Both spellings say the same."""
    assert json.loads(run("map", "desk:watch", *options).out) == {
        "transitions": [
            {
                "source": "executor",
                "target": "reviewer",
                "type": "Work",
                "version": "1",
                "accepts": ["ready", "completed"],
                "required": ["amount_cents", "order_id", "result"],
                "mode": "enforce",
                "criticality": "routine",
            },
            {
                "source": "reviewer",
                "target": "archive",
                "type": None,
                "version": None,
                "accepts": [],
                "required": [],
                "mode": "enforce",
                "criticality": "routine",
            },
        ]
    }


def test_contracts_map_prints_a_flowchart_when_mermaid_is_asked(run: Run) -> None:
    """As it is pasted into a document."""
    out = run("map", "desk:watch", "--format", "mermaid").out
    assert out.startswith('flowchart LR\n    a0["executor"]\n')
    assert out.endswith('    a1 -.->|"unchecked, routine"| a2\n')


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("check", "disk:watch", "cases"), "error: MODULE:REGISTRY: disk: no such module\n"),
        (("check", "desk:wacht", "cases"), "error: MODULE:REGISTRY: desk:wacht: the module has no attribute wacht\n"),
        (
            ("check", "desk:watch", "none"),
            "error: none: folder: does not exist\nhint: name the folder that holds the case files\n",
        ),
        (("check", "desk:watch", "empty"), "error: empty: folder: must hold a case file (*.json, *.yaml), got none\n"),
        (
            ("check", "desk:watch", "bad"),
            "error: bad/a.yaml:2: expect.verdict: is required\nerror: bad/b.json:2: not valid JSON: ",
        ),
        (("check", "desk:watch", "bad", "--update"), "error: bad/a.yaml:2: expect.verdict: is required\n"),
        (("diff", "desk:watch", "cases"), "Missing argument 'CASES'"),
        (("diff", "none.py:watch", "desk:watch", "cases"), "error: OLD: none.py: no such file\n"),
        (
            ("diff", "desk:watch", "broken.py:watch", "cases"),
            "error: NEW: broken.py: importing it raised ZeroDivisionError at broken.py:2\n"
            "hint: python broken.py shows the whole error\n",
        ),
        (
            ("map", "desk:Work"),
            "error: MODULE:REGISTRY: desk:Work: must be a Watch or a Watchdog, got a ModelMetaclass\n",
        ),
        (("map", "desk:watch", "--format", "xml"), "Invalid value for '--format'"),
    ],
)
def test_contracts_exit_2_when_used_wrongly(run: Run, arguments: tuple[str, ...], error: str) -> None:
    """stdout stays empty, and the error says where to look."""
    Path("empty").mkdir()
    Path("bad").mkdir()
    Path("bad/a.yaml").write_text("handoff: {}\nexpect: {}\n", encoding="utf-8")
    Path("bad/b.json").write_text('{"handoff": {},\n}', encoding="utf-8")
    Path("broken.py").write_text("secret = 'hunter2'\nwatch = 1 / 0", encoding="utf-8")
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert error in ended.err


@pytest.mark.parametrize(("cases", "shown"), [(CASES_WITHOUT_PROGRESS, False), (CASES_WITHOUT_PROGRESS + 1, True)])
def test_contracts_check_shows_progress_when_cases_are_many_and_a_person_looks_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, cases: int, shown: bool
) -> None:
    """On stderr only, and not in a log."""
    for number in range(cases):
        write_case(Path("many"), f"{number}.json", expect={"verdict": "allowed"})
    assert run("check", "desk:watch", "many") == Ended(0, f"{cases} cases: as expected\n", "")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert run("check", "desk:watch", "many").out == f"{cases} cases: as expected\n"
    assert ("judging cases" in terminal.getvalue()) is shown
