"""The public names, held against a frozen list."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import handoffwatch

FROZEN = Path(__file__).with_name("public_names.txt")


def _public_names() -> list[str]:
    modules = [handoffwatch]
    for info in pkgutil.iter_modules(handoffwatch.__path__):
        if info.ispkg:
            modules.append(importlib.import_module(f"handoffwatch.{info.name}"))
    return sorted(f"{module.__name__}.{name}" for module in modules for name in getattr(module, "__all__", ()))


def test_public_names_are_those_of_the_frozen_list() -> None:
    """A name joins or leaves the public surface only together with its line in the list."""
    assert _public_names() == FROZEN.read_text().split()


def test_public_names_exist_and_are_sorted() -> None:
    """Everything that `__all__` names can be imported."""
    assert handoffwatch.__all__ == sorted(handoffwatch.__all__)
    assert [name for name in handoffwatch.__all__ if not hasattr(handoffwatch, name)] == []


def test_lazy_names_are_the_public_ones() -> None:
    """The table of lazy names and `__all__` agree, and another name is an AttributeError."""
    assert sorted(handoffwatch._MODULES) == handoffwatch.__all__
    assert not hasattr(handoffwatch, "Nothing")
