"""The command line: the only room that prints and exits."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

__all__ = ["main"]

_NEEDED: Final = ("typer", "rich")


def main() -> None:
    """Run the command that `sys.argv` names and exit: 0 ok, 1 runtime failure, 2 usage or config, 3 a check said no."""
    if any(find_spec(name) is None for name in _NEEDED):
        print("error: the command line is not installed", file=sys.stderr)
        print('hint: pip install "handoffwatch[exporter]"', file=sys.stderr)
        sys.exit(2)
    from handoffwatch.cli.app import run

    run()
