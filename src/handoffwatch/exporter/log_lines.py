"""Log records as single lines on stderr, an exception by its kind and place."""

from __future__ import annotations

import logging
import sys
import traceback
from types import TracebackType
from typing import Final

FORMAT: Final = "%(levelname)s %(name)s: %(message)s"

_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class OneLine(logging.Formatter):
    """Formats a record as one line. An exception's text stays out of it: it may hold what a log must not."""

    def __init__(self) -> None:
        super().__init__(FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return " ".join(super().format(record).splitlines())

    def formatException(self, ei: _Raised) -> str:
        """Return the kind of an exception and where it was raised."""
        kind, _, trace = ei
        frames = traceback.extract_tb(trace)
        place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        return f"({kind.__name__}{place})" if kind else ""


def log_to_stderr() -> None:
    """Send warnings and errors to stderr, unless the program has set logging up by itself."""
    if logging.root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    logging.root.addHandler(handler)
