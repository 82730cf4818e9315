"""`handoffwatch snapshots`: what is listed, shown and removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handoffwatch.vocabulary import SnapshotStage
from support.command_line import Run, command_line
from support.outcomes import StillClock
from support.snapshots import SnapshotDesk

STATE: dict[str, Any] = {"schema_version": 1, "task": {"id": "t-1", "pin": "493817"}, "note": "a\x1b[2Jb"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """Run a command in a folder with a policy."""
    policy = "handoff: {snapshot: {directory: states, retention_days: 1}}\n"
    (tmp_path / "policy.yaml").write_text(policy, encoding="utf-8")
    with command_line(monkeypatch, capsys, tmp_path) as run:
        yield lambda *arguments, options=("--policy", "policy.yaml"): run("snapshots", *arguments, *options)


@pytest.fixture
def desk(tmp_path: Path) -> SnapshotDesk:
    """The folder that the policy names."""
    return SnapshotDesk(tmp_path / "states", time=StillClock(1_000_000_000.0))


def test_snapshots_lists_the_newest_first(run: Run, desk: SnapshotDesk) -> None:
    """With their size, and which were not finished; an id that is no safe name is listed by its hash."""
    desk.write(STATE)
    desk.time.now_s += 60.0
    desk.write(STATE, handoff_id="../x\x1b", attempt=2, stage=SnapshotStage.AFTER)
    (desk.directory / "h-1.before.meta.json").unlink()
    ended = run("list")
    newest, oldest = json.loads(run("list", "--json").out)["snapshots"]
    size = len(str(newest["size_bytes"]))
    assert ended.out.splitlines() == [
        f"HANDOFF{' ' * 60}ATTEMPT  STAGE   WRITTEN               {'BYTES'.ljust(max(size, 5))}  FILES",
        f"{newest['stem']}  2        after   2001-09-09T01:47:40Z  {str(newest['size_bytes']).ljust(5)}  -",
        f"{'h-1'.ljust(65)}  1        before  2001-09-09T01:46:40Z  {str(oldest['size_bytes']).ljust(5)}  unfinished",
    ]
    total = newest["size_bytes"] + oldest["size_bytes"]
    assert ended.err == f"2 snapshots of {total} bytes\nhint: handoffwatch snapshots show HANDOFF STAGE\n"
    assert (newest["is_whole"], oldest["is_whole"], ended.code) == (True, False, 0)


def test_snapshots_lists_nothing_when_there_is_no_folder(run: Run) -> None:
    """A folder that was never written is no error, and none is made."""
    assert run("list") == type(run("list"))(0, "", "0 snapshots of 0 bytes\n")
    assert not Path("states").exists()


def test_snapshots_shows_a_state_and_what_was_left_out(run: Run, desk: SnapshotDesk) -> None:
    """As it was written, so without its secrets, and unable to steer a terminal."""
    desk.write(STATE)
    ended = run("show", "h-1", "before")
    assert (ended.code, ended.err) == (0, "")
    told = dict(line.split(maxsplit=1) for line in ended.out.split("\n\n")[0].splitlines())
    assert (told["redacted_paths"], told["omitted_paths"]) == ("task.pin", "-")
    assert told["written"] == "2001-09-09T01:46:40Z"
    assert ended.out.endswith(
        "state\n"
        "  {\n"
        '    "note": "a\\u001b[2Jb",\n'
        '    "schema_version": 1,\n'
        '    "task": {\n'
        '      "id": "t-1",\n'
        '      "pin": "[redacted]"\n'
        "    }\n"
        "  }\n"
    )
    assert "493817" not in ended.out
    shown = json.loads(run("show", "h-1", "before", "--json").out)
    assert shown["state"]["task"] == {"id": "t-1", "pin": "[redacted]"}
    assert shown["meta"]["handoff_id"] == "h-1"


@pytest.mark.parametrize("handoff_id", ["h-1", "../../etc/passwd", "ABC", ""])
def test_snapshots_shows_one_by_its_id_and_by_its_name(run: Run, desk: SnapshotDesk, handoff_id: str) -> None:
    """What the list calls it can be typed; no id leads out of the folder."""
    desk.write(STATE, handoff_id=handoff_id, attempt=2, stage=SnapshotStage.AFTER)
    (listed,) = json.loads(run("list", "--json").out)["snapshots"]
    shown = [run("show", name, "after", "--attempt", "2", "--json").out for name in (handoff_id, listed["stem"])]
    assert shown[0] == shown[1]
    assert json.loads(shown[0])["meta"]["handoff_id"] == handoff_id


def test_snapshots_show_refuses_a_state_when_it_is_gone_or_edited(run: Run, desk: SnapshotDesk) -> None:
    """A runtime failure: exit code 1, and nothing of it is shown."""
    desk.write(STATE)
    gone = run("show", "h-2", "before")
    assert (gone.code, gone.out) == (1, "")
    assert gone.err.startswith("error: snapshots: ")
    state = desk.directory / "h-1.before.json"
    state.write_text(state.read_text().replace("t-1", "t-2"))
    edited = run("show", "h-1", "before")
    assert (edited.code, edited.out) == (1, "")
    assert edited.err.startswith("error: snapshots: h-1.before.json: must be as it was written")


@pytest.mark.parametrize(
    "arguments", [("show", "h-1"), ("show", "h-1", "middle"), ("show", "h-1", "before", "--attempt", "0")]
)
def test_snapshots_show_exits_2_when_it_is_used_wrongly(run: Run, arguments: tuple[str, ...]) -> None:
    """The stage is before or after, and attempts count from 1."""
    assert run(*arguments).code == 2


def test_snapshots_prune_removes_what_the_policy_keeps_no_longer(run: Run, desk: SnapshotDesk) -> None:
    """Those of 2001 go, and one of today stays."""
    desk.write(STATE)
    desk.write(STATE, stage=SnapshotStage.AFTER)
    SnapshotDesk(desk.directory, is_real=True).write(STATE, handoff_id="h-2")
    ended = run("prune", "--json")
    pruned = json.loads(ended.out)
    assert (ended.code, pruned["removed"], pruned["kept"]) == (0, 2, 1)
    assert desk.files() == ["h-2.before.json", "h-2.before.meta.json"]
    again = run("prune")
    assert again.err == f"0 removed (0 bytes), 1 kept ({pruned['kept_bytes']} bytes)\n"


def test_snapshots_takes_a_folder_when_it_is_named(run: Run, desk: SnapshotDesk) -> None:
    """With the policy's other settings, or the defaults; without either it is the default folder."""
    desk.write(STATE)
    for options in (("--directory", "states"), ("--policy", "policy.yaml", "--directory", "states")):
        assert len(json.loads(run("list", "--json", options=options).out)["snapshots"]) == 1
    assert json.loads(run("list", "--json", options=()).out) == {"snapshots": [], "all": 0}
