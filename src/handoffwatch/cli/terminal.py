"""What reaches the terminal: texts that cannot steer it, times, JSON, tables, and what to type next."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import typer

NOTHING: Final = "-"
"""What stands where there is nothing to say."""

GAP: Final = "  "
ITEMS_LISTED_MAX: Final = 3


def printable(value: object) -> str:
    """Return a stored value as one line that cannot steer a terminal: an agent may have written it."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "".join(character if character.isprintable() else "?" for character in text)


def listed(value: object) -> str:
    """Return a stored value as one line for a list: of many items the first few, and how many more there are."""
    if not isinstance(value, list):
        return printable(value)
    shown = ",".join(map(printable, value[:ITEMS_LISTED_MAX]))
    more = len(value) - ITEMS_LISTED_MAX
    return f"{shown},+{more}" if more > 0 else shown


def time_text(unix_s: float | None) -> str:
    """Return a time in UTC to the second, as RFC 3339 writes it; `-` for none."""
    if unix_s is None:
        return NOTHING
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def json_lines(value: object) -> list[str]:
    """Return a value as indented JSON for a person: readable in any language, and unable to steer a terminal."""
    return ["".join(map(_shown, line)) for line in json.dumps(value, ensure_ascii=False, indent=2).split("\n")]


def print_json(value: object) -> None:
    """Print a value as JSON for a program, on stdout."""
    typer.echo(json.dumps(value, indent=2))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return aligned lines, the columns' names first; a column that says nothing is left out, and all without rows.

    Args:
        columns: The names.
        rows: Printable cells, one for each column.
    """
    kept = [column for column in zip(columns, *rows, strict=True) if set(column[1:]) - {NOTHING}]
    widths = [max(map(len, column)) for column in kept]
    return [
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*kept, strict=True)
    ]


def fields(named: Mapping[str, object]) -> list[str]:
    """Return a line for each value, with its name before it."""
    shown = {printable(name): printable(value) or NOTHING for name, value in named.items()}
    width = max(map(len, shown), default=0)
    return [f"{name.ljust(width)}{GAP}{value}" for name, value in shown.items()]


def section(heading: str, lines: Iterable[str]) -> list[str]:
    """Return a heading with printable lines set in below it."""
    return [heading, *(f"{GAP}{line}".rstrip() for line in lines)]


def print_blocks(blocks: Iterable[Sequence[str]]) -> None:
    """Print blocks of lines on stdout with an empty line between them; an empty block is left out."""
    texts = ["\n".join(block) for block in blocks if block]
    if texts:
        typer.echo("\n\n".join(texts))


def say(sentence: str) -> None:
    """Print what is no data, on stderr."""
    typer.echo(sentence, err=True)


def say_next(*commands: str) -> None:
    """Say on stderr what to type next."""
    for command in commands:
        say(f"hint: {command}")


def to_type(command: str, *, config: str | None) -> str:
    """Return what to type for a command, with the settings file that was named this time."""
    return f"handoffwatch {printable(command)}" + (f" --config {shlex.quote(printable(config))}" if config else "")


def _shown(character: str) -> str:
    """Return a character of JSON text, or the escape that JSON has for it."""
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else json.dumps(character)[1:-1]
