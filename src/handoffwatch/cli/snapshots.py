"""`handoffwatch snapshots`: the states before and after the crossings, as they were written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handoffwatch.cli.boundary_files import read_policy_file
from handoffwatch.cli.stored import JsonOption
from handoffwatch.cli.terminal import (
    NOTHING,
    fields,
    json_lines,
    print_blocks,
    print_json,
    printable,
    say,
    say_next,
    section,
    table,
    time_text,
)
from handoffwatch.vocabulary import SnapshotStage

if TYPE_CHECKING:
    from handoffwatch.boundary.snapshot_names import SnapshotName
    from handoffwatch.boundary.snapshots import SnapshotEntry, Snapshots

LISTED_MAX: Final = 1_000

_COLUMNS: Final = ("HANDOFF", "ATTEMPT", "STAGE", "WRITTEN", "BYTES", "FILES")
_HASHED: Final = re.compile(r"~[0-9a-f]{64}")

app = typer.Typer(help="List, show and prune the states that were written.", no_args_is_help=True)

PolicyOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="The policy of the boundary, which names the folder; without it the defaults."),
]
DirectoryOption = Annotated[str | None, typer.Option(metavar="DIR", help="The folder, whatever the policy names.")]


@app.command("list")
def list_snapshots(policy: PolicyOption = None, directory: DirectoryOption = None, as_json: JsonOption = False) -> None:
    """List the snapshots, the newest first."""
    found = _snapshots(policy, directory).list_snapshots()[::-1]
    shown = found[:LISTED_MAX]
    if as_json:
        print_json({"snapshots": [_fields(entry) for entry in shown], "all": len(found)})
        return
    print_blocks([table(_COLUMNS, map(_row, shown))])
    cut = f"; the newest {LISTED_MAX} are shown" if len(found) > LISTED_MAX else ""
    say(f"{len(found)} snapshots of {sum(entry.size_bytes for entry in found)} bytes{cut}")
    if shown:
        say_next("handoffwatch snapshots show HANDOFF STAGE")


@app.command("show")
def show_snapshot(
    handoff: Annotated[
        str, typer.Argument(metavar="HANDOFF", help="The id, or what `list` calls it.", show_default=False)
    ],
    stage: Annotated[SnapshotStage, typer.Argument(help="On which side of the crossing.", show_default=False)],
    attempt: Annotated[int, typer.Option(min=1, help="The try.")] = 1,
    policy: PolicyOption = None,
    directory: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a snapshot and what was left out of it. One that was edited since is refused."""
    stored = _snapshots(policy, directory).read_entry(_name(handoff, stage, attempt))
    meta = stored.meta.model_dump(mode="json")
    if as_json:
        print_json({"meta": meta, "state": stored.state})
        return
    told = meta | {"written_unix_s": time_text(stored.meta.written_unix_s)}
    said = {name.removesuffix("_unix_s"): NOTHING if value in (None, []) else value for name, value in told.items()}
    print_blocks([fields(said), section("state", json_lines(stored.state))])


@app.command("prune")
def prune_snapshots(
    policy: PolicyOption = None, directory: DirectoryOption = None, as_json: JsonOption = False
) -> None:
    """Remove the snapshots that are older than the policy keeps them, or too many, the oldest first."""
    from handoffwatch.clock import Clock

    snapshots, now_unix_s = _snapshots(policy, directory), Clock().wall_s()
    removed = removed_bytes = 0
    while True:
        pruned = snapshots.prune(now_unix_s)
        removed, removed_bytes = removed + pruned.removed, removed_bytes + pruned.removed_bytes
        if pruned.is_done or not pruned.removed:
            break
    if as_json:
        kept = {"kept": pruned.kept, "kept_bytes": pruned.kept_bytes}
        print_json({"removed": removed, "removed_bytes": removed_bytes, **kept})
    else:
        say(f"{removed} removed ({removed_bytes} bytes), {pruned.kept} kept ({pruned.kept_bytes} bytes)")


def _snapshots(policy: str | None, directory: str | None) -> Snapshots:
    from handoffwatch.boundary.settings import BoundarySettings
    from handoffwatch.boundary.snapshots import Snapshots

    settings = (BoundarySettings() if policy is None else read_policy_file(policy)).snapshot
    return Snapshots(
        directory or settings.directory, retention_days=settings.retention_days, max_bytes=settings.max_bytes
    )


def _name(handoff: str, stage: SnapshotStage, attempt: int) -> SnapshotName:
    from handoffwatch.boundary.snapshot_names import SnapshotName, snapshot_name

    if _HASHED.fullmatch(handoff):
        return SnapshotName(handoff, attempt, stage)
    return snapshot_name(handoff, stage=stage, attempt=attempt)


def _row(entry: SnapshotEntry) -> tuple[str, ...]:
    name = entry.name
    files = NOTHING if entry.is_whole else "unfinished"
    written = time_text(entry.written_unix_s)
    return printable(name.stem), str(name.attempt), str(name.stage), written, str(entry.size_bytes), files


def _fields(entry: SnapshotEntry) -> dict[str, object]:
    return entry.name._asdict() | {
        "size_bytes": entry.size_bytes,
        "written_unix_s": entry.written_unix_s,
        "is_whole": entry.is_whole,
    }
