"""The ledger: the durable store of intents, claims, cases and durable counters, and its collector.

Names load when they are first used: the database library is imported with the first operation, not before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handoffwatch.ledger.collector import FED, LedgerCollector
    from handoffwatch.ledger.facts import Case, IdentityViolation, OpenOperation, Settled, Snapshot
    from handoffwatch.ledger.ledger import Ledger
    from handoffwatch.ledger.settings import LedgerSettings

__all__ = [
    "FED",
    "Case",
    "IdentityViolation",
    "Ledger",
    "LedgerCollector",
    "LedgerSettings",
    "OpenOperation",
    "Settled",
    "Snapshot",
]

_MODULES = {
    "Case": "facts",
    "FED": "collector",
    "IdentityViolation": "facts",
    "Ledger": "ledger",
    "LedgerCollector": "collector",
    "LedgerSettings": "settings",
    "OpenOperation": "facts",
    "Settled": "facts",
    "Snapshot": "facts",
}


def __getattr__(name: str) -> object:
    """Return a public name, importing its module now."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
