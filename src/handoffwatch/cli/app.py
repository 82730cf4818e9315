"""The Typer application; each command imports what it needs only when it runs, so that `--help` is fast."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from handoffwatch.cli import case, compare, contracts, demo, inspect, mixin, review, snapshots
from handoffwatch.cli.report import exit_code, report
from handoffwatch.errors import HandoffwatchError

app = typer.Typer(
    help="Makes the silent failures of multi-agent LLM systems visible, countable and pageable.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.add_typer(case.app, name="case")
app.add_typer(contracts.app, name="contracts")
app.add_typer(mixin.app, name="mixin")
app.add_typer(review.app, name="review")
app.add_typer(snapshots.app, name="snapshots")


def run() -> None:
    """Run the command line and exit with its code."""
    try:
        app(prog_name="handoffwatch")
    except HandoffwatchError as error:
        report(error)
        sys.exit(exit_code(error))


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"handoffwatch {installed_version('handoffwatch')}")
        raise typer.Exit


@app.callback()
def handoffwatch(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Makes the silent failures of multi-agent LLM systems visible, countable and pageable."""


@app.command()
def version() -> None:
    """Print the version."""
    _show_version(True)


@app.command()
def serve(
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="The settings file; without it HANDOFFWATCH_CONFIG, or defaults.")
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(metavar="MODULE:ATTR", help="Your Watch; with it this process also settles claimed effects."),
    ] = None,
    address: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.", show_default="15470")
    ] = None,
) -> None:
    """Serve metrics, health and a landing page until SIGTERM or Ctrl-C."""
    from handoffwatch.exporter.process import ServeOptions
    from handoffwatch.exporter.process import serve as serve_until_stopped

    options = ServeOptions(config=config, app=app, address=address, port=port)
    serve_until_stopped(options, say=lambda line: print(line, file=sys.stderr, flush=True))


app.command()(demo.demo)
app.command("inspect")(inspect.inspect_handoff)
app.command("compare")(compare.compare_states)


@app.command("check-config")
def check_config(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The settings file to check.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check a settings file, all of it at once; variables of the environment are left out."""
    import json

    from handoffwatch.exporter.served import SECTIONS
    from handoffwatch.runtime.settings import check_settings

    errors = check_settings(file, sections=SECTIONS, environ={})
    if as_json:
        found = [{"error": error.message, "hint": error.hint} for error in errors]
        print(json.dumps({"file": file, "ok": not errors, "errors": found}, indent=2))
    elif not errors:
        print(f"ok: {file}")
    else:
        for error in errors:
            report(error)
    if errors:
        raise typer.Exit(2)
