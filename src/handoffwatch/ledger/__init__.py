"""The ledger: the durable store of handoffs, cases, reviews, intents, claims and counters, and its collector.

Names load when they are first used: the database library is imported with the first operation, not before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handoffwatch.ledger.collector import FED, LedgerCollector
    from handoffwatch.ledger.facts import (
        Admission,
        Case,
        Evidence,
        FalseBlockShare,
        IdentityViolation,
        OpenOperation,
        Review,
        Settled,
        Snapshot,
        Wait,
    )
    from handoffwatch.ledger.ledger import Ledger
    from handoffwatch.ledger.settings import LedgerSettings

__all__ = [
    "FED",
    "Admission",
    "Case",
    "Evidence",
    "FalseBlockShare",
    "IdentityViolation",
    "Ledger",
    "LedgerCollector",
    "LedgerSettings",
    "OpenOperation",
    "Review",
    "Settled",
    "Snapshot",
    "Wait",
]

_MODULES = {
    "Admission": "facts",
    "Case": "facts",
    "Evidence": "facts",
    "FED": "collector",
    "FalseBlockShare": "facts",
    "IdentityViolation": "facts",
    "Ledger": "ledger",
    "LedgerCollector": "collector",
    "LedgerSettings": "settings",
    "OpenOperation": "facts",
    "Review": "facts",
    "Settled": "facts",
    "Snapshot": "facts",
    "Wait": "facts",
}


def __getattr__(name: str) -> object:
    """Return a public name, importing its module now."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
