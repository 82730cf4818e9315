"""The message histories of 100 recorded runs are whole, and losing any one result of their 793 calls is found."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from handoffwatch.handoffs.history import judge_history


@pytest.fixture(scope="module")
def histories(shared_folder: Path) -> list[list[dict[str, Any]]]:
    """The chat messages of each run."""
    path = shared_folder / "data" / "agentrx" / "tau_retail_runs.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [run["traj"] for run in json.load(file)]


def _found(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    found: list[Any] = []
    judge_history(found, messages, path="payload.messages")
    return [(item.code, item.path) for item in found]


def test_judge_history_finds_nothing_when_a_recorded_run_is_whole(histories: list[list[dict[str, Any]]]) -> None:
    """No run that a provider accepted is blocked."""
    assert len(histories) == 100
    assert [_found(messages) for messages in histories] == [[]] * 100


def test_judge_history_names_the_call_when_a_recorded_result_is_lost(histories: list[list[dict[str, Any]]]) -> None:
    """Each of the 793 results is missed, at the call that it answered."""
    missed = 0
    for messages in histories:
        for place, message in enumerate(messages):
            if message["role"] == "tool":
                ((code, path),) = _found(messages[:place] + messages[place + 1 :])
                assert (code, path) == ("orphaned_tool_call", f"payload.messages.{place - 1}.tool_calls.0")
                missed += 1
    assert missed == 793
