"""What the commands on the ledger share: opening it, the options that they take alike, and completing ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handoffwatch.cli.terminal import time_text
from handoffwatch.errors import HandoffwatchError

if TYPE_CHECKING:
    from handoffwatch.ledger import Case, Ledger

NOTE_LENGTH_MAX: Final = 2000

Pairs = list[tuple[str, str]]


def note_text(text: str) -> str:
    """Return a note as it is stored.

    Raises:
        typer.BadParameter: It says nothing, or too much.
    """
    if not text.strip() or len(text) > NOTE_LENGTH_MAX:
        raise typer.BadParameter(f"must say what was done or why, in at most {NOTE_LENGTH_MAX} characters")
    return text.strip().encode("utf-8", "backslashreplace").decode()


ConfigOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="The settings file; without it HANDOFFWATCH_CONFIG, or defaults.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
NoteOption = Annotated[
    str, typer.Option(parser=note_text, metavar="TEXT", help="What was done, or why.", show_default=False)
]


@contextmanager
def open_ledger(config: str | None) -> Iterator[Ledger]:
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


def case_text(case: Case) -> str:
    """Return kind and time of a case: words of ours, which a shell may be given."""
    return f"{case.kind} since {time_text(case.opened_unix_s)}"


def completing(found: Callable[[Ledger], Pairs]) -> Callable[[typer.Context, str], Pairs]:
    """Return what completes an id from the ledger, and is silent where the ledger cannot be read.

    A shell may evaluate what it is given, so an id that is more than letters and digits is left out.

    Args:
        found: Returns pairs of id and description; nothing that an agent wrote may stand in a description.
    """

    def complete(context: typer.Context, incomplete: str) -> Pairs:
        try:
            with open_ledger(context.params.get("config")) as ledger:
                pairs = found(ledger)
        except (HandoffwatchError, OSError):
            return []
        return [pair for pair in pairs if pair[0].startswith(incomplete) and pair[0].isascii() and pair[0].isalnum()]

    return complete
