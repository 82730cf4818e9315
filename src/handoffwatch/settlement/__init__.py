"""Settlement: reading back what operations did, until each has its final effect. Names load when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handoffwatch.settlement.settings import SettlementSettings
    from handoffwatch.settlement.settler import Settler
    from handoffwatch.settlement.verifiers.record import RecordVerifier

__all__ = ["RecordVerifier", "SettlementSettings", "Settler"]

_MODULES = {"RecordVerifier": "verifiers.record", "SettlementSettings": "settings", "Settler": "settler"}


def __getattr__(name: str) -> object:
    """Return a public name, importing its module now."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
