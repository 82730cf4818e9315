"""`handoffwatch case`: the cases that wait for a person, and resolving them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handoffwatch.errors import ConfigError
from handoffwatch.vocabulary import CaseKind

if TYPE_CHECKING:
    from handoffwatch.ledger import Case, Ledger

NOTE_LENGTH_MAX: Final = 2000

_COLUMNS: Final = ("CASE", "KIND", "CRITICALITY", "OPENED", "RESOLVED", "RUN", "FACTS")
_GAP: Final = "  "

app = typer.Typer(help="List, show and resolve the cases that wait for a person.", no_args_is_help=True)

_Config = Annotated[
    str | None, typer.Option(metavar="FILE", help="The settings file; without it HANDOFFWATCH_CONFIG, or defaults.")
]
_Id = Annotated[str, typer.Argument(metavar="ID", help="The case, as `case list` names it.", show_default=False)]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def note_text(text: str) -> str:
    """Return a note as it is stored.

    Raises:
        typer.BadParameter: It says nothing, or too much.
    """
    if not text.strip() or len(text) > NOTE_LENGTH_MAX:
        raise typer.BadParameter(f"must say what was done, in at most {NOTE_LENGTH_MAX} characters")
    return text.strip().encode("utf-8", "backslashreplace").decode()


@app.command("list")
def list_cases(
    kind: Annotated[CaseKind | None, typer.Option(help="Only cases of this kind.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Resolved cases too.")] = False,
    config: _Config = None,
    as_json: _Json = False,
) -> None:
    """List the open cases, the oldest first."""
    with _ledger(config) as ledger:
        label = ledger.snapshot().label
        found = ledger.cases(kind=kind, open_only=not show_all)
    if as_json:
        typer.echo(json.dumps({"ledger": label, "cases": [asdict(case) for case in found]}, indent=2))
        return
    rows = [_COLUMNS, *map(_row, found)] if found else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo(_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    still_open = sum(case.resolved_unix_s is None for case in found)
    typer.echo(
        f"ledger {label}: {still_open} open" + (f", {len(found) - still_open} resolved" if show_all else ""), err=True
    )


@app.command("show")
def show_case(case_id: _Id, config: _Config = None, as_json: _Json = False) -> None:
    """Show everything that is stored about one case."""
    with _ledger(config) as ledger:
        case = _existing(ledger, case_id)
    if as_json:
        typer.echo(json.dumps(asdict(case), indent=2))
        return
    stored = {
        "case": case.case_id,
        "kind": case.kind,
        "criticality": case.criticality,
        "run": case.run_id,
        "subject": case.subject,
        **case.facts,
        "opened": _time(case.opened_unix_s),
        "resolved": _time(case.resolved_unix_s),
        "note": case.note or "-",
    }
    width = max(map(len, stored))
    for name, value in stored.items():
        typer.echo(f"{name.ljust(width)}{_GAP}{_printable(value)}")


@app.command("resolve")
def resolve_case(
    case_id: _Id,
    note: Annotated[str, typer.Option(parser=note_text, metavar="TEXT", help="What was done.", show_default=False)],
    config: _Config = None,
) -> None:
    """Resolve a case once what it shows has been put right; the alert on open cases ends with the last one."""
    with _ledger(config) as ledger:
        is_new = ledger.resolve_case(_existing(ledger, case_id).case_id, note=note)
        case = _existing(ledger, case_id)
    said = "resolved" if is_new else f"was resolved at {_time(case.resolved_unix_s)}, and keeps its note"
    typer.echo(f"case {case.case_id}: {said}")


@contextmanager
def _ledger(config: str | None) -> Iterator[Ledger]:
    """Open the ledger of the settings; it must exist, so that a wrong folder does not look like an empty ledger."""
    from handoffwatch.clock import Clock
    from handoffwatch.ledger import Ledger
    from handoffwatch.runtime.settings import Settings

    settings = Settings.load(config)
    ledger = Ledger(settings.ledger, policy=settings.settlement.policy(), clock=Clock(), must_exist=True)
    try:
        yield ledger
    finally:
        ledger.close()


def _existing(ledger: Ledger, case_id: str) -> Case:
    case = ledger.case(case_id) if case_id.isascii() else None
    if case is None:
        raise ConfigError(
            f"case {_printable(case_id)}: id: must name a case of ledger {ledger.snapshot().label}",
            hint="handoffwatch case list --all",
        )
    return case


def _row(case: Case) -> tuple[str, ...]:
    facts = " ".join(f"{name}={_printable(value)}" for name, value in case.facts.items())
    opened, resolved = _time(case.opened_unix_s), _time(case.resolved_unix_s)
    return case.case_id, case.kind, case.criticality, opened, resolved, _printable(case.run_id), facts


def _time(unix_s: float | None) -> str:
    if unix_s is None:
        return "-"
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _printable(value: object) -> str:
    """Return a stored value as text that cannot steer a terminal: an agent may have written it."""
    return "".join(character if character.isprintable() else "?" for character in str(value))
