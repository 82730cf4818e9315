"""126 recorded group chats pass through a generic message contract; what is flagged is what their file holds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from handoffwatch.vocabulary import Verdict
from real_runs import who_and_when
from support.requirements import ROOT

COUNTING_SCRIPT = Path(__file__).parents[1] / "real_runs" / "count_who_and_when.py"
DOCS = ROOT / "docs" / "who-and-when.md"

COUNTED = {
    "runs": 126,
    "messages": 1099,
    "handoffs": 823,
    "blank_messages": 2,
    "blank_handoffs": 0,
    "executions": 236,
    "failed_executions": 90,
    "failed_executions_handed_on": 85,
    "runs_with_failed_execution_handed_on": 65,
    "runs_without_successful_execution": 44,
    "mistakes_handed_on": 108,
    "mistakes_that_are_failed_executions": 1,
}


@pytest.fixture(scope="module")
def folder(shared_folder: Path) -> Path:
    """The data set's folder."""
    return shared_folder / "data" / who_and_when.FOLDER


@pytest.fixture(scope="module")
def counted(folder: Path) -> dict[str, int]:
    """What the separate script prints; -I keeps the project off its path."""
    command = [sys.executable, "-I", str(COUNTING_SCRIPT), str(folder)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return cast("dict[str, int]", json.loads(printed))


def test_counting_script_finds_the_known_numbers_when_it_reads_the_file(counted: dict[str, int]) -> None:
    """The data set is the one that the docs tell of."""
    assert counted == COUNTED


@pytest.mark.parametrize(
    ("reading", "flagged", "flagged_runs", "flagged_mistakes"),
    [
        ("as_text", {"bad_format": "blank_handoffs"}, None, None),
        (
            "with_exit_codes",
            {"bad_format": "blank_handoffs", "status_not_accepted": "failed_executions_handed_on"},
            "runs_with_failed_execution_handed_on",
            "mistakes_that_are_failed_executions",
        ),
    ],
    ids=who_and_when.READINGS,
)
def test_watchdog_flags_what_the_file_holds_when_recorded_conversations_pass_through(
    reading: str,
    flagged: dict[str, str],
    flagged_runs: str | None,
    flagged_mistakes: str | None,
    folder: Path,
    counted: dict[str, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No handoff raises, each code is found as often as an independent count says, and the docs state the share."""
    monkeypatch.chdir(tmp_path)

    judged = [
        each
        for conversation in who_and_when.read_conversations(folder)
        for each in who_and_when.judge(conversation, reading=reading)
    ]

    codes = Counter(code for each in judged for code in each.decision.reasons)
    hits = [each for each in judged if each.decision.verdict is not Verdict.ALLOWED]
    runs = len({each.conversation.task_id for each in hits})
    mistakes = sum(each.step == each.conversation.mistake_step for each in hits)
    assert len(judged) == counted["handoffs"]
    assert all(each.decision.allowed for each in judged), "a route in shadow mode stopped a handoff"
    assert codes == +Counter({code: counted[name] for code, name in flagged.items()})
    assert runs == (counted[flagged_runs] if flagged_runs else 0)
    assert mistakes == (counted[flagged_mistakes] if flagged_mistakes else 0)

    share = 100 * len(hits) / len(judged)
    named = ", ".join(f"`{code}`" for code in codes) or "none"
    row = (
        f"| {reading.replace('_', ' ')} | {len(judged)} | {len(hits)} | {share:.1f} % | {named} "
        f"| {runs} of {counted['runs']} | {mistakes} of {counted['runs']} |"
    )
    print(f"\n{row}")
    assert row in DOCS.read_text(encoding="utf-8").splitlines()


def test_watchdog_flags_a_handoff_when_a_recorded_message_is_blanked(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contract that finds nothing in the recording as text does find a message that says nothing."""
    monkeypatch.chdir(tmp_path)
    recorded = next(who_and_when.read_conversations(folder))
    blank = tuple({**message, "content": " \n"} for message in recorded.messages)

    whole = who_and_when.judge(recorded, reading="as_text")
    blanked = who_and_when.judge(replace(recorded, messages=blank), reading="as_text")

    assert [each.decision.reasons for each in whole] == [[]] * len(whole)
    assert [each.decision.reasons for each in blanked] == [["bad_format"]] * len(whole)
    assert {path for each in blanked for path in each.decision.paths} == {"payload.content"}


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("Two of the {:,} messages are blank", ["messages"]),
        ("the {} failed executions that were handed", ["failed_executions_handed_on"]),
        ("In {} of the {} runs the decisive mistake was handed on", ["mistakes_handed_on", "runs"]),
        ("in {} of these runs no execution succeeded", ["runs_without_successful_execution"]),
    ],
)
def test_docs_state_the_counted_numbers_when_they_tell_of_the_runs(
    sentence: str, names: list[str], counted: dict[str, int]
) -> None:
    """Each number in the text is one that the script counts."""
    assert sentence.format(*(counted[name] for name in names)) in " ".join(DOCS.read_text(encoding="utf-8").split())
