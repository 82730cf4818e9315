"""Log records on stderr."""

from __future__ import annotations

import logging
import re

from handoffwatch.exporter.log_lines import OneLine


def _record(message: str, error: Exception | None = None) -> logging.LogRecord:
    raised = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("handoffwatch.settlement", logging.ERROR, __file__, 1, message, None, raised)


def test_log_line_is_one_when_the_message_has_several() -> None:
    """A message cannot forge a second line."""
    assert OneLine().format(_record("a\nERROR b")) == "ERROR handoffwatch.settlement: a ERROR b"


def test_log_line_names_kind_and_place_when_an_exception_is_logged() -> None:
    """The exception's own text stays out: it may hold a secret."""
    try:
        raise ValueError("token=hunter2")
    except ValueError as error:
        line = OneLine().format(_record("read-back failed", error))

    assert re.fullmatch(
        r"ERROR handoffwatch\.settlement: read-back failed \(ValueError at \S+test_log_lines\.py:\d+\)", line
    )
