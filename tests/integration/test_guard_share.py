"""What the final-answer guard costs on recorded runs stands in its guide, and every failure of the runs is sorted."""

from __future__ import annotations

from pathlib import Path

from handoffwatch import Settings, Watch
from real_runs import agentrx
from real_runs.guard_share import table
from real_runs.recorded import declare, play
from support.requirements import ROOT
from support.telemetry import counted

GUIDE = ROOT / "docs" / "final-answer-guard.md"


def test_guide_says_what_the_guard_costs_on_recorded_runs(shared_folder: Path) -> None:
    """The table is printed by `tests/real_runs/guard_share.py`, and stands in the guide as it is."""
    lines = table(shared_folder / "data")
    print("\n".join(lines))
    assert "\n".join(lines) in GUIDE.read_text(encoding="utf-8")
    refused = {line.split("`")[1]: line.split("|")[3:5] for line in lines[2:5]}
    calling_nothing = [int(refused["required"][n].split()[0]) - int(refused["if_called"][n].split()[0]) for n in (0, 1)]
    assert f"of which {calling_nothing[1]} of {calling_nothing[0]} were right" in GUIDE.read_text(encoding="utf-8")


def test_every_failure_of_the_support_agent_is_a_refusal_of_its_arguments(shared_folder: Path) -> None:
    """All 34 are text without a code; by the rule of each tool none is repeated, and none goes to a person."""
    watch = Watch(settings=Settings())
    declare(watch, agentrx)
    calls = 0
    for recorded in agentrx.read_runs(shared_folder / "data" / "agentrx"):
        with watch.run(agentrx.WORKFLOW, task_id=recorded.task_id) as run:
            play(run, recorded)
            calls += len(recorded.calls)
            assert not run.tools.has_ambiguous

    failures = {name: count for name, count in counted(watch.registry, "tool_failures_total").items() if count}
    assert all('code="result",failure_class="rejected"' in name for name in failures)
    assert sum(failures.values()) == 34
    ended = counted(watch.registry, "tool_calls_ended_total")
    assert sum(count for name, count in ended.items() if 'outcome="ok"' in name) == calls - 34
    assert calls == 793
