"""What all commands on a ledger share: none makes one, and the shell completes ids from the one there is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handoffwatch.cli import main
from handoffwatch.ledger import Ledger
from handoffwatch.ledger.schema import CASES
from handoffwatch.vocabulary import ReviewVerdict
from support.command_line import Ended, Run
from support.evidence import blocked, drawn, held

COMMANDS = [
    ("case", "list"),
    ("case", "show", "c1"),
    ("case", "approve", "c1", "--note", "seen"),
    ("case", "reject", "c1", "--note", "seen"),
    ("case", "resolve", "c1", "--note", "seen"),
    ("review", "list"),
    ("review", "show", "c1"),
    ("review", "label", "c1", "right_block"),
    ("review", "share"),
]
WITH_ID = [command[:2] for command in COMMANDS if "c1" in command]

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """Return what a shell is offered behind these words."""

    def call(*words: str, shell: str = "bash") -> list[str]:
        monkeypatch.setenv("_HANDOFFWATCH_COMPLETE", f"complete_{shell}")
        monkeypatch.setenv("COMP_WORDS", " ".join(("handoffwatch", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", " ".join(("handoffwatch", *words)))
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        monkeypatch.setattr(sys, "argv", ["handoffwatch"])
        with pytest.raises(SystemExit):
            main()
        said = capsys.readouterr()
        assert said.err == ""
        return [line for line in said.out.splitlines() if line]

    return call


@pytest.fixture
def default(monkeypatch: pytest.MonkeyPatch, ledger: Ledger, tmp_path: Path) -> Ledger:
    """Return the ledger that a command uses when nothing is named."""
    monkeypatch.setenv("HANDOFFWATCH_LEDGER__URL", f"sqlite:///{tmp_path / 'ledger.db'}")
    return ledger


@pytest.mark.parametrize("command", [*COMMANDS, *((*command, "--json") for command in COMMANDS)], ids=" ".join)
def test_command_makes_no_ledger_when_there_is_none(typed: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    """An empty list from a wrong folder would say that all is well; and no file is left behind."""
    assert typed(*command) == Ended(
        1,
        "",
        "error: ledger: database: must exist, got no file\n"
        "hint: name the settings of the process that writes the ledger, and start in its folder\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["handoffwatch.yaml"]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_command_exits_2_when_the_settings_are_wrong(typed: Run, command: tuple[str, ...]) -> None:
    """The same settings as `serve`, checked alike."""
    ended = typed(*command, config="none.yaml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: none.yaml: file: does not exist\nhint: ")


def test_shell_completes_the_ids_that_the_command_is_for(complete: Complete, default: Ledger) -> None:
    """Open ones only: held cases to decide, others to resolve, blocks to review."""
    waiting, bad = default.store_case(held()), default.store_case(blocked("h-2", is_open=True))
    block, labelled = default.store_case(drawn("h-3")), default.store_case(drawn("h-4"))
    default.label_review(labelled, ReviewVerdict.RIGHT_BLOCK, "")
    offered = {command: complete(*command, "") for command in WITH_ID}
    assert {command: sorted(ids) for command, ids in offered.items()} == {
        ("case", "show"): sorted([waiting, bad]),
        ("case", "approve"): [waiting],
        ("case", "reject"): [waiting],
        ("case", "resolve"): [bad],
        ("review", "show"): [block],
        ("review", "label"): [block],
    }
    assert complete("case", "show", bad[:6]) == [bad]
    assert complete("review", "label", block, "") == ["right_block", "false_block"]


def test_shell_shows_kind_and_time_beside_an_id(complete: Complete, default: Ledger) -> None:
    """Words of ours: what an agent wrote may not stand in what a shell evaluates."""
    case_id = default.store_case(held(run_id="$(reboot)", facts={"handoff_id": "`reboot`"}))
    (line,) = complete("case", "show", case_id[:30], shell="fish")
    assert line == f"{case_id}\theld since 2001-09-09T01:46:40Z"
    assert "reboot" not in "".join(complete("case", "show", case_id[:30], shell="zsh"))


@pytest.mark.parametrize("case_id", ["$(reboot)", "a b", "é", "a\nb", ""])
def test_shell_is_not_offered_an_id_that_it_could_evaluate(complete: Complete, default: Ledger, case_id: str) -> None:
    """Whoever can write the ledger gets no say in the operator's shell."""
    default.store_case(held())
    with default._database.write() as connection:
        connection.execute(CASES.update().values(case_id=case_id))
    for shell in ("bash", "fish"):
        assert complete("case", "show", "", shell=shell) == []


@pytest.mark.parametrize("state", ["no file", "no database", "wrong settings"])
@pytest.mark.parametrize("command", WITH_ID, ids=" ".join)
def test_shell_gets_nothing_and_no_ledger_is_made_when_it_cannot_be_read(
    complete: Complete, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], state: str
) -> None:
    """A key press is no place for an error."""
    if state == "no database":
        (tmp_path / "handoffwatch-ledger.db").write_bytes(b"no database" * 100)
    if state == "wrong settings":
        monkeypatch.setenv("HANDOFFWATCH_CONFIG", "none.yaml")
    before = sorted(tmp_path.iterdir())
    assert complete(*command, "") == []
    assert sorted(tmp_path.iterdir()) == before
