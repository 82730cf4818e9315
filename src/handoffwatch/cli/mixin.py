"""`handoffwatch mixin`: rendering the Prometheus rules and the Grafana dashboards."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

_NEEDED: Final = ("grafana_foundation_sdk", "jinja2")

app = typer.Typer(help="Render the Prometheus rules and the Grafana dashboards.", no_args_is_help=True)


@app.callback()
def mixin() -> None:
    """Keep `render` a command of its own, also while it is the only one."""


@app.command()
def render(
    values: Annotated[
        Path | None,
        typer.Option(help="YAML file of thresholds, windows, selectors and links; without it, the defaults."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder that gets dashboards/ and deploy/prometheus/rules/.")] = Path(),
    docs: Annotated[bool, typer.Option("--docs", help="Also write docs/metrics.md and docs/reasons.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 3 if a file differs.")] = False,
) -> None:
    """Write the rules and dashboards, or say which of them are not as they would be written."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        typer.echo(f"error: mixin: {', '.join(missing)}: must be installed", err=True)
        typer.echo("hint: pip install 'handoffwatch[exporter,mixin]'", err=True)
        raise typer.Exit(2)
    from handoffwatch import mixin

    files = mixin.render(mixin.load_values(values), docs=docs)
    if not check:
        mixin.write(files, out)
        typer.echo("\n".join(str(out / path) for path in files))
        return
    found = mixin.drift(files, out)
    for sentence in found:
        typer.echo(f"error: {sentence}", err=True)
    if found:
        typer.echo("hint: handoffwatch mixin render", err=True)
        raise typer.Exit(3)
