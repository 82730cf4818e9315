"""`handoffwatch demo`: Northwind's refund desk, its faults, and what handoffwatch saw of them."""

from __future__ import annotations

import re
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handoffwatch.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from handoffwatch.demo.northwind import Northwind, Progress
    from handoffwatch.demo.report import DemoReport

RUNS_DEFAULT: Final = 60
WIDTH: Final = 100
ROWS_MAX: Final = 20

_NEEDED: Final = ("httpx", "starlette", "uvicorn", "rich")
_DURATION: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(s|m|h)?")
_UNIT_S: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """Return the seconds of a duration such as `60s`, `2m` or `90`.

    Raises:
        typer.BadParameter: It is none, or not above 0.
    """
    found = _DURATION.fullmatch(text.strip())
    value = float(found.group(1)) * _UNIT_S[found.group(2) or "s"] if found else 0.0
    if value <= 0:
        raise typer.BadParameter("must be a duration above 0 such as 60s, 2m or 1h")
    return value


def demo(
    runs: Annotated[
        int | None, typer.Option(min=1, max=100_000, help=f"Refund requests to run; {RUNS_DEFAULT} without --for.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the fault plan; equal seeds break the same things.")] = 1,
    for_: Annotated[
        float | None,
        typer.Option("--for", metavar="DURATION", parser=seconds, help="Go on for so long, such as 60s or 2m."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the servers running until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Run a small multi-agent system with seeded faults, and compare what its agents said with what happened.

    Exit codes: 0 when handoffwatch's numbers equal the demo's own record, 3 when they do not.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(f"demo: {', '.join(missing)}: must be installed", hint='pip install "handoffwatch[demo]"')
    from handoffwatch.demo.northwind import Northwind
    from handoffwatch.demo.run import DemoOptions, run_demo

    options = DemoOptions(runs=runs if runs or for_ else RUNS_DEFAULT, for_s=for_)
    with (
        _sigterm_as_interrupt(),
        tempfile.TemporaryDirectory(prefix="northwind-") as folder,
        Northwind(Path(folder), seed=seed) as northwind,
    ):
        with _progress(options.runs) as progress:
            report = run_demo(northwind, options, progress)
        typer.echo(report.to_json()) if as_json else _show(report)
        if keep:
            _keep(northwind)
    if report.differences:
        raise typer.Exit(3)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end the demo as Ctrl-C does, so that its servers end too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _progress(runs: int | None) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("running refund requests"), BarColumn(), TextColumn("{task.completed} runs"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=runs)
        yield lambda ended: bar.update(task, completed=ended)


def _keep(northwind: Northwind) -> None:
    """Show where the servers are, and wait for Ctrl-C."""
    typer.echo(f"workload  {northwind.workload_url}/metrics", err=True)
    typer.echo(f"exporter  {northwind.exporter_url}/metrics", err=True)
    typer.echo(f"files     {northwind.folder}", err=True)
    typer.echo("Ctrl-C ends the demo.", err=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        typer.echo("", err=True)


def _show(report: DemoReport) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal or console.width > WIDTH:
        console = Console(highlight=False, width=WIDTH)
    console.print(f"\nNorthwind, seed {report.seed}: {report.runs} runs in {report.took_s:.1f} s\n")
    for table in (_outcomes(report), _false_successes(report), _handoffs(report), _tools(report)):
        console.print(table)
        console.print()
    console.print(f"Final answers: {report.answers} checked, {report.refusals} refused by the guard.")
    _verdict(console, report)


def _table(title: str, *columns: str, numbers: int = 0) -> Table:
    """Return an empty table whose last `numbers` columns hold numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place >= len(columns) - numbers else "left")
    return table


def _outcomes(report: DemoReport) -> Table:
    table = _table("What the agents said, and what happened", "the agent said", "and the refund", "runs", numbers=1)
    claimed = report.claimed
    table.add_row("done", "is there", str(report.verified))
    table.add_row("done", "is not there: a false success", str(len(report.false_successes)))
    if report.open_claims:
        table.add_row("done", "is not settled yet", str(report.open_claims))
    table.add_row("not done", "is there all the same", str(report.unclaimed_effects))
    table.add_row("not done", "is not there", str(claimed["not_done"] - report.unclaimed_effects))
    table.add_row("nothing: the run was stopped", "", str(claimed["none"]))
    return table


def _false_successes(report: DemoReport) -> Table:
    table = _table("False successes", "run", "order", "what is wrong with the refund", "truth lost in")
    for false in report.false_successes[:ROWS_MAX]:
        table.add_row(false.run_id, false.order_id, false.cause, false.origin)
    if len(report.false_successes) > ROWS_MAX:
        table.add_row(f"and {len(report.false_successes) - ROWS_MAX} more")
    return table


def _handoffs(report: DemoReport) -> Table:
    names = ("route", "attempts", "blocked", "block rate", "repaired", "stopped")
    table = _table("Handoffs", *names, numbers=5)
    for line in report.routes:
        counts = (line.attempts, line.blocked, f"{line.block_rate:.1%}", line.repaired, line.stopped)
        table.add_row(line.route, *map(str, counts))
    return table


def _tools(report: DemoReport) -> Table:
    table = _table("Failed tool calls", "tool", "code", "class", "calls", numbers=1)
    for line in report.failures:
        table.add_row(line.tool, line.code, line.failure_class, str(line.failures))
    return table


def _verdict(console: Console, report: DemoReport) -> None:
    if not report.differences:
        numbers = f"All {report.compared} numbers, {report.above_zero} of them above 0,"
        console.print(f"{numbers} equal Northwind's own record of what it broke.", style="green")
        return
    console.print(
        f"{len(report.differences)} of {report.compared} numbers differ from Northwind's own record:", style="red"
    )
    for sentence in report.differences:
        console.print(f"  {sentence}")
