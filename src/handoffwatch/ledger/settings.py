"""Settings of the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from handoffwatch.values.settings_model import Number, SettingsModel

_SQLITE: Final = "sqlite:///"


def _names_a_file(url: str) -> str:
    path = url.removeprefix(_SQLITE)
    if path == url or path in ("", ":memory:") or "?" in path:
        raise ValueError("must be sqlite:///<file>")
    if "\0" in path or path != path.encode(errors="replace").decode():
        raise ValueError("must name a file in UTF-8, without NUL")
    return url


class LedgerSettings(SettingsModel):
    """The section `ledger`: where handoffs, cases, intents, claims and durable counters are kept, and how long."""

    url: Annotated[str, AfterValidator(_names_a_file)] = Field(
        _SQLITE + "handoffwatch-ledger.db",
        repr=False,
        description="URL of the database, a SQLite file; a relative path is taken from the working folder.",
    )
    busy_timeout_s: Number = Field(
        5.0, ge=0, le=300, description="Seconds that a write waits for the write of another process."
    )
    cases_kept_days: int = Field(
        30, ge=1, le=3650, description="Days that resolved cases are kept, with their evidence and reviews."
    )
    handoffs_kept_days: int = Field(
        30, ge=1, le=3650, description="Days that accepted handoffs and stops are remembered on durable routes."
    )

    @property
    def shown(self) -> str:
        """Where the ledger is, as people may see it: the file's absolute path."""
        return str(Path(self.url.removeprefix(_SQLITE)).absolute())
