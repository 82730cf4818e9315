"""`handoffwatch inspect`: the decision about one handoff."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from handoffwatch.cli.registry import METAVAR, load_registry
from handoffwatch.cli.report import CHECK_SAID_NO
from handoffwatch.errors import ConfigError

HANDOFF_BYTES_READ: Final = 1024 * 1024 * 1024 + 1
"""One more than `handoffs.payload_bytes_max` may be, so that the watchdog says itself that a handoff is too large."""

_STDIN: Final = "-"


def inspect_handoff(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="The handoff as the model wrote it; - is stdin.", show_default=False)
    ],
    contracts: Annotated[
        str,
        typer.Option(metavar=METAVAR, help="The Watch or Watchdog whose contracts judge it.", show_default=False),
    ],
    context: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON or YAML with the fields of a HandoffContext.")
    ] = None,
    source: Annotated[str | None, typer.Option(metavar="NAME", help="The agent that is known to be sending.")] = None,
    target: Annotated[str | None, typer.Option(metavar="NAME", help="The agent that is about to start.")] = None,
) -> None:
    """Print the decision about one handoff as JSON.

    Exit codes: 0 when the program may go on, 3 when it may not, 2 for wrong usage.
    """
    from handoffwatch.testing.documents import read_context
    from handoffwatch.testing.registry import watchdog_of

    watchdog = watchdog_of(load_registry(contracts, where="--contracts"))
    known = read_context(Path(context)) if context is not None else None
    decision = watchdog.inspect(_read(file), expected_source=source, expected_target=target, context=known)
    typer.echo(json.dumps(json.loads(decision.to_json()), indent=2))
    if not decision.allowed:
        raise typer.Exit(CHECK_SAID_NO)


def _read(file: str) -> bytes:
    if file == _STDIN:
        return sys.stdin.buffer.read(HANDOFF_BYTES_READ)
    try:
        with Path(file).open("rb") as opened:
            return opened.read(HANDOFF_BYTES_READ)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError(f"{file}: file: cannot be read: {reason}", hint="name a file, or - for stdin") from None
