"""Contracts that say everything about the values they take, so that a dict can be judged without encoding it first.

A contract is closed when all its fields, at every depth, are texts, numbers, truth values, lists, dicts, models or
choices of them. Then strict validation of a dict and of its JSON text agree, and both visit only what the contract
names. A field of any type, a recursive model, or a validator that runs before the types are checked opens it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import SchemaValidator

from handoffwatch.values.json_text import INTEGER_MAX

_KINDS: Final = frozenset(
    {"model", "model-fields", "model-field", "default", "nullable", "union", "tagged-union", "literal",
     "str", "int", "float", "bool", "none", "list", "dict"}
)  # fmt: skip
_STRICTER: Final[dict[object, dict[str, object]]] = {
    "model": {"revalidate_instances": "always"},
    "float": {"allow_inf_nan": False},
}
_OPAQUE: Final = frozenset({"metadata", "config", "cls", "default", "expected", "serialization", "ref"})


def closed_validator(model: type[BaseModel]) -> SchemaValidator | None:
    """Return a validator of a closed model; None when the model is open.

    It looks into instances of models too, and refuses NaN, infinities and numbers beyond 2^53-1 at every depth: it is
    built anew, because the validators that nested models bring along are less strict.
    """
    schema = model.__pydantic_core_schema__
    if not _is_made_of(schema, _KINDS):
        return None
    return SchemaValidator(_strictest(schema), _use_prebuilt=False)


def is_tagged(model: type[BaseModel]) -> bool:
    """Return whether the places of a model's errors may hold names that stand nowhere in what it judged."""
    return not _is_made_of(model.__pydantic_core_schema__, _KINDS - {"union", "tagged-union"})


def _is_made_of(node: object, kinds: frozenset[str]) -> bool:
    if isinstance(node, list | tuple):
        return all(_is_made_of(part, kinds) for part in node)
    if not isinstance(node, Mapping):
        return True
    kind = node.get("type")
    if isinstance(kind, str) and kind not in kinds:
        return False
    if kind == "dict" and node.get("keys_schema", {}).get("type", "str") != "str":
        return False
    return all(_is_made_of(part, kinds) for key, part in node.items() if key not in _OPAQUE)


def _strictest(node: Any) -> Any:
    if isinstance(node, list | tuple):
        return type(node)(_strictest(part) for part in node)
    if not isinstance(node, Mapping):
        return node
    changed = {key: part if key in _OPAQUE else _strictest(part) for key, part in node.items()}
    kind = node.get("type")
    if kind in {"int", "float"}:
        changed["ge"] = max(changed.get("ge", -INTEGER_MAX), -INTEGER_MAX)
        changed["le"] = min(changed.get("le", INTEGER_MAX), INTEGER_MAX)
    return changed | _STRICTER.get(kind, {})
