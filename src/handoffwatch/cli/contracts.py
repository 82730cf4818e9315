"""`handoffwatch contracts`: checking contracts against cases, comparing two versions of them, and their map."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handoffwatch.cli.registry import METAVAR, load_registry
from handoffwatch.cli.report import CHECK_SAID_NO

if TYPE_CHECKING:
    from rich.console import Console

    from handoffwatch.testing.cases import Case, CaseResult
    from handoffwatch.testing.route_map import Transition

WIDTH: Final = 100
CASES_WITHOUT_PROGRESS: Final = 100

_STYLES: Final = {"  -": "red", "  +": "green", "  ~": "yellow"}

app = typer.Typer(help="Check contracts against cases, compare two versions, map the routes.", no_args_is_help=True)

_Registry = Annotated[
    str, typer.Argument(metavar=METAVAR, help="A Watch or Watchdog: module:name or file.py:name.", show_default=False)
]
_Cases = Annotated[str, typer.Argument(metavar="CASES", help="The folder of case files.", show_default=False)]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class MapFormat(StrEnum):
    """How the map is printed."""

    TABLE = "table"
    JSON = "json"
    MERMAID = "mermaid"


@app.command()
def check(
    registry: _Registry,
    cases: _Cases,
    update: Annotated[
        bool, typer.Option("--update", help="Write the verdicts and codes of now into the case files.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Judge every case, and print what is not as expected.

    Exit codes: 0 when all is as expected or was updated, 3 when something is not, 2 for wrong usage.
    """
    from handoffwatch.testing.case_files import read_cases
    from handoffwatch.testing.checking import summary

    watch = load_registry(registry, where=METAVAR)
    results = [case.result(watch) for case in _with_progress(read_cases(cases))]
    wrong = [result for result in results if not result.is_as_expected]
    if update:
        _update(wrong)
    if as_json:
        key = "updated" if update else "changed"
        _print_json({"cases": len(results), key: [result.to_json() for result in wrong]})
    else:
        _print_lines(line for result in wrong for line in result.lines())
        said = summary(results)
        _print_lines([f"{said}; {len(wrong)} updated" if update and wrong else said])
    if wrong and not update:
        if not as_json:
            typer.echo("hint: --update writes what was found into the case files", err=True)
        raise typer.Exit(CHECK_SAID_NO)


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The version now in use.", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The version to come.", show_default=False)],
    cases: _Cases,
    as_json: _Json = False,
) -> None:
    """Print which cases two versions judge or normalise differently, whatever the cases expect.

    OLD and NEW are MODULE:REGISTRY or FILE.py:REGISTRY. Exit codes: 0 when no case differs, 3 when some do, 2 for
    wrong usage.
    """
    from handoffwatch.testing.case_files import read_cases
    from handoffwatch.testing.comparison import compare

    before, after = load_registry(old, where="OLD"), load_registry(new, where="NEW")
    compared = [compare(case, before, after) for case in _with_progress(read_cases(cases))]
    different = [comparison for comparison in compared if not comparison.is_equal]
    if as_json:
        _print_json({"cases": len(compared), "different": [comparison.to_json() for comparison in different]})
    else:
        _print_lines(line for comparison in different for line in comparison.lines())
        noun = "case" if len(compared) == 1 else "cases"
        _print_lines([f"{len(compared)} {noun}: {len(different) or 'none'} judged differently"])
    if different:
        raise typer.Exit(CHECK_SAID_NO)


@app.command("map")
def print_map(
    registry: _Registry,
    format_: Annotated[
        MapFormat, typer.Option("--format", help="A table, JSON, or a Mermaid flowchart.")
    ] = MapFormat.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print who may hand what to whom."""
    from handoffwatch.testing.route_map import mermaid, transitions

    rows = transitions(load_registry(registry, where=METAVAR))
    if as_json or format_ is MapFormat.JSON:
        _print_json({"transitions": [row.to_json() for row in rows]})
    elif format_ is MapFormat.MERMAID:
        typer.echo(mermaid(rows))
    else:
        _print_table(rows)


def _update(wrong: Sequence[CaseResult]) -> None:
    from handoffwatch.testing.case_files import update_case
    from handoffwatch.testing.cases import Expectation

    for result in wrong:
        update_case(result.case, Expectation.of(result.decision))


def _with_progress(cases: Sequence[Case]) -> Iterable[Case]:
    """Return the cases one by one, with a bar on stderr when they are many and a person looks on."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    is_quiet = len(cases) <= CASES_WITHOUT_PROGRESS or not console.is_terminal
    return track(cases, "judging cases", console=console, transient=True, disable=is_quiet)


def _print_json(data: object) -> None:
    typer.echo(json.dumps(data, indent=2))


def _print_lines(lines: Iterable[str]) -> None:
    """Print lines as they are, never folded; what went and what came has its colour."""
    from rich.text import Text

    console = _console()
    for line in lines:
        console.print(Text(line, style=_STYLES.get(line[:3], "")), soft_wrap=True)


def _print_table(rows: Sequence[Transition]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in ("from", "to", "type", "version", "accepts", "required", "mode", "criticality"):
        table.add_column(column)
    for row in rows:
        checked = (row.type or "-", row.version, ", ".join(row.accepts), ", ".join(row.required) or "-", row.mode)
        middle = checked if row.version is not None else ("-", "-", "any", "-", "unchecked")
        table.add_row(*(Text(str(cell)) for cell in (row.source, row.target, *middle, row.criticality)))
    _console().print(table)


def _console() -> Console:
    """Return the console of stdout; what is no terminal is as wide as the documents show it."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDTH)
