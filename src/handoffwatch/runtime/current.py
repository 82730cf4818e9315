"""Which run the code is in: a context variable, for decorated tools that are called without naming their run."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from handoffwatch.runtime.run import Run

current_run: Final[ContextVar[Run | None]] = ContextVar("handoffwatch_run", default=None)
