"""The files that commands on the boundary read: its policy, and states."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from handoffwatch.cli.terminal import printable
from handoffwatch.errors import ConfigError

if TYPE_CHECKING:
    from handoffwatch.boundary.settings import BoundarySettings

POLICY_BYTES_MAX: Final = 1_048_576


def read_policy_file(file: str) -> BoundarySettings:
    """Return the policy that a file holds.

    Raises:
        ConfigError: It cannot be read, or says all that is wrong in it.
    """
    from handoffwatch.boundary.settings import read_policy

    return read_policy(read_bytes(file, bytes_max=POLICY_BYTES_MAX), name=printable(file))


def read_bytes(file: str, *, bytes_max: int) -> bytes:
    """Return what a file holds.

    Raises:
        ConfigError: It cannot be read, or is too large.
    """
    name = printable(file)
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(bytes_max + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError(f"{name}: file: cannot be read: {reason}", hint="name a file that you may read") from None
    except ValueError:
        raise ConfigError(f"{name}: file: must be the name of a file", hint="name a file that you may read") from None
    if len(text) > bytes_max:
        raise ConfigError(f"{name}: file: must be at most {bytes_max} bytes", hint="name another file")
    return text
