"""`handoffwatch inspect`: the decision it prints, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handoffwatch import Decision
from support.command_line import Ended, Run, command_line
from support.contract_cases import handoff

DESK = """\
from handoffwatch import Contract, Watch, rule

print("said at import")

class Work(Contract):
    order_id: str
    amount_cents: int
    result: str

    @rule("amount_too_high", "the reviewer may approve up to 500.00 only", path="payload.amount_cents", reaction="hold")
    def within_limit(self) -> bool:
        return self.amount_cents <= 50_000

watch = Watch()
watch.route("executor->reviewer", contract=Work)
watch.route("executor->auditor", contract=Work, mode="shadow")
watchdog = watch.watchdog
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """Run a command in a folder with a desk."""
    (tmp_path / "desk.py").write_text(DESK, encoding="utf-8")
    with command_line(monkeypatch, capsys, tmp_path) as run:
        yield run


def _inspected(run: Run, raw: object, *options: str, registry: str = "desk:watch") -> tuple[Ended, dict[str, Any]]:
    Path("handoff.json").write_text(raw if isinstance(raw, str) else json.dumps(raw), encoding="utf-8")
    ended = run("inspect", "--contracts", registry, *options, "handoff.json")
    return ended, json.loads(ended.out)


@pytest.mark.parametrize("registry", ["desk:watch", "desk:watchdog", "desk.py:watch", "./desk.py:watchdog"])
def test_inspect_prints_the_decision_and_exits_0_when_it_is_allowed(run: Run, registry: str) -> None:
    """All its fields in their order; what the module prints does not get between them."""
    ended, decision = _inspected(run, handoff(), registry=registry)
    assert (ended.code, ended.err) == (0, "said at import\n")
    assert list(decision) == list(Decision._fields)
    assert decision["verdict"] == "allowed"
    assert decision["normalized_payload"]["payload"] == handoff()["payload"]
    assert ended.out == json.dumps(decision, indent=2) + "\n"


@pytest.mark.parametrize(
    ("raw", "code", "verdict", "reasons"),
    [
        (handoff(order_id=None), 3, "blocked", ["null_field"]),
        (handoff(amount_cents=90_000), 3, "held", ["amount_too_high"]),
        (handoff() | {"handoff_id": ""}, 0, "warned", ["missing_handoff_id"]),
        (handoff(order_id=None) | {"target_agent": "auditor"}, 0, "blocked", ["null_field"]),
        ("Sure! Here is the handoff you asked for", 3, "blocked", None),
        ("", 3, "blocked", None),
        ("[" * 10_000, 3, "blocked", None),
        (" " * 5_000_000, 3, "blocked", None),
    ],
    ids=["blocked", "held", "warned", "shadow", "prose", "nothing", "deep", "large"],
)
def test_inspect_exits_by_what_the_program_may_do(
    run: Run, raw: object, code: int, verdict: str, reasons: list[str] | None
) -> None:
    """In shadow mode it may always go on; text that is no handoff is a decision, not an error."""
    ended, decision = _inspected(run, raw)
    assert (ended.code, decision["verdict"]) == (code, verdict)
    assert decision["allowed"] is (code == 0)
    if reasons is not None:
        assert decision["reasons"] == reasons


def test_inspect_reads_stdin_when_the_file_is_a_dash(run: Run) -> None:
    """Byte for byte: half a handoff, and bytes that are no text."""
    text = json.dumps(handoff()).encode()
    assert run("inspect", "--contracts", "desk:watch", "-", stdin=text).code == 0
    assert "truncated_payload" in run("inspect", "--contracts", "desk:watch", "-", stdin=text[:-9]).out
    assert run("inspect", "--contracts", "desk:watch", "-", stdin=b"\xff\xfe{}").code == 3


def test_inspect_judges_by_what_the_orchestrator_knows_when_it_is_said(run: Run) -> None:
    """Sender, receiver, and a context of JSON or YAML."""
    Path("context.yaml").write_text("task_id: t-2\ncontext_version: 3\n", encoding="utf-8")
    Path("context.json").write_text('{"task_id": "t-1"}', encoding="utf-8")
    assert _inspected(run, handoff(), "--context", "context.yaml")[1]["reasons"] == ["foreign_task"]
    assert _inspected(run, handoff(), "--context", "context.json", "--target", "reviewer")[0].code == 0
    for options in (("--target", "auditor"), ("--source", "planner")):
        assert "route_mismatch" in _inspected(run, handoff(), *options)[1]["reasons"]


def test_inspect_prints_plain_ascii_when_the_handoff_holds_control_characters(run: Run) -> None:
    """What a model wrote cannot steer the terminal."""
    ended, decision = _inspected(run, handoff(result="\x1b[2J\x9b31m\u202eä"))
    assert ended.out.isascii()
    assert "\x1b" not in ended.out
    assert decision["normalized_payload"]["payload"]["result"] == "\x1b[2J\x9b31m\u202eä"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("--contracts", "disk:watch", "desk.py"),
            "error: --contracts: disk: no such module\n"
            "hint: name a Watch or a Watchdog, as in shop.agents:watch, or shop/agents.py:watch\n",
        ),
        (
            ("--contracts", "desk:wacht", "desk.py"),
            "error: --contracts: desk:wacht: the module has no attribute wacht\n",
        ),
        (
            ("--contracts", "desk:Work", "desk.py"),
            "error: --contracts: desk:Work: must be a Watch or a Watchdog, got a ModelMetaclass\n",
        ),
        (
            ("--contracts", "desk.py:watch", "none.json"),
            "error: none.json: file: cannot be read: no such file or directory\nhint: name a file, or - for stdin\n",
        ),
        (("--contracts", "desk.py:watch", "."), "error: .: file: cannot be read: is a directory\n"),
        (
            ("--contracts", "desk.py:watch", "--context", "none.yaml", "-"),
            "error: none.yaml: file: cannot be read: no such file or directory\n",
        ),
        (
            ("--contracts", "desk.py:watch", "--context", "bad.yaml", "-"),
            "error: bad.yaml:2: tasc_id: unknown key\nhint: did you mean task_id? known keys: ",
        ),
        (
            ("--contracts", "desk.py:watch", "--context", "list.json", "-"),
            "error: list.json:1: document: must be a mapping of keys\nhint: the fields of a context are: ",
        ),
        (("-",), "Missing option '--contracts'"),
        (("--contracts", "desk:watch"), "Missing argument 'FILE|-'"),
    ],
)
def test_inspect_exits_2_when_used_wrongly(run: Run, arguments: tuple[str, ...], error: str) -> None:
    """stdout stays empty, and the error says what to correct."""
    Path("bad.yaml").write_text("run_id: r-1\ntasc_id: t-1\n", encoding="utf-8")
    Path("list.json").write_text("[]", encoding="utf-8")
    ended = run("inspect", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert error in ended.err.removeprefix("said at import\n")
