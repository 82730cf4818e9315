"""How errors reach the person at the terminal."""

from __future__ import annotations

import sys
from typing import Final

from handoffwatch.errors import ConfigError, HandoffwatchError, RegistrationError

OK: Final = 0
RUNTIME_FAILURE: Final = 1
USAGE_OR_CONFIG: Final = 2
CHECK_SAID_NO: Final = 3


def report(error: HandoffwatchError) -> None:
    """Print an error and its hint on stderr; one that says several prints a line for each."""
    for line in error.message.splitlines():
        print(f"error: {line}", file=sys.stderr)
    for line in error.hint.splitlines():
        print(f"hint: {line}", file=sys.stderr)


def exit_code(error: HandoffwatchError) -> int:
    """Return the exit code of an error: 2 for what the user must correct, 1 for the rest."""
    return USAGE_OR_CONFIG if isinstance(error, ConfigError | RegistrationError) else RUNTIME_FAILURE
