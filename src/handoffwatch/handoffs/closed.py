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

    It looks into instances of models too, and refuses NaN and infinities at every depth: it is built anew, because the
    validators that nested models bring along are less strict.
    """
    schema = model.__pydantic_core_schema__
    if not _is_closed(schema):
        return None
    return SchemaValidator(_strictest(schema), _use_prebuilt=False)


def _is_closed(node: object) -> bool:
    if isinstance(node, list | tuple):
        return all(_is_closed(part) for part in node)
    if not isinstance(node, Mapping):
        return True
    kind = node.get("type")
    if isinstance(kind, str) and kind not in _KINDS:
        return False
    return all(_is_closed(part) for key, part in node.items() if key not in _OPAQUE)


def _strictest(node: Any) -> Any:
    if isinstance(node, list | tuple):
        return type(node)(_strictest(part) for part in node)
    if not isinstance(node, Mapping):
        return node
    changed = {key: part if key in _OPAQUE else _strictest(part) for key, part in node.items()}
    return changed | _STRICTER.get(node.get("type"), {})
