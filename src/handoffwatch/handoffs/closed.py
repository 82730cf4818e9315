"""Contracts that say everything about the values they take, so that a dict can be judged without encoding it first.

A contract is closed when all its fields, at every depth, are texts, numbers, truth values, lists, dicts, models or
choices of them. Then strict validation of a dict and of its JSON text agree, and both visit only what the contract
names. A field of any type, a recursive model, or a validator that runs before the types are checked opens it.

A closed contract is plain when, besides, what its models dump is what they were given: no aliases, no serializers, no
choices. Then its dict can be judged without building the models, and comes out normalised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import SchemaValidator

from handoffwatch.values.json_text import INTEGER_MAX, PLAIN_TYPES

_KINDS: Final = frozenset(
    {"model", "model-fields", "model-field", "default", "nullable", "union", "tagged-union", "literal",
     "str", "int", "float", "bool", "none", "list", "dict"}
)  # fmt: skip
_STRICTER: Final[dict[object, dict[str, object]]] = {
    "model": {"revalidate_instances": "always"},
    "float": {"allow_inf_nan": False},
}
_MODEL_KEYS: Final = frozenset({"type", "cls", "schema", "config", "ref", "metadata", "strict"})
_FIELD_KEYS: Final = frozenset({"type", "schema", "metadata"})
_PLAIN_DEFAULTS: Final = PLAIN_TYPES - {dict, list}
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


def plain_validator(model: type[BaseModel]) -> SchemaValidator | None:
    """Return a validator whose answer is the JSON-mode dump of a closed model; None when the model is not plain.

    It takes dicts where the model takes its own instances too, and is as strict as that of `closed_validator`.
    """
    schema = model.__pydantic_core_schema__
    if not (_is_made_of(schema, _KINDS) and _is_plain(schema)):
        return None
    return SchemaValidator(_without_models(_strictest(schema)), _use_prebuilt=False)


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


def _is_plain(node: Any) -> bool:
    """Return whether a closed schema dumps what it takes, and takes every value in one way only."""
    if isinstance(node, list | tuple):
        return all(map(_is_plain, node))
    if not isinstance(node, Mapping):
        return True
    kind = node.get("type")
    if kind in {"union", "tagged-union"} or "serialization" in node:
        return False
    if kind == "literal":
        return all(type(value) in PLAIN_TYPES for value in node["expected"])
    if kind == "model-fields":
        return not node.get("computed_fields") and all(map(_is_plain, node["fields"].values()))
    if kind == "model" and not {key for key, value in node.items() if value is not False} <= _MODEL_KEYS:
        return False
    if kind == "model-field" and not node.keys() <= _FIELD_KEYS:
        return False
    if kind == "default" and not (_is_plain_default(node)):
        return False
    return all(_is_plain(part) for key, part in node.items() if key not in _OPAQUE)


def _is_plain_default(node: Mapping[str, Any]) -> bool:
    """Return whether what stands in for a missing value is a scalar or empty; what a function makes is not known."""
    if "default" not in node:
        return False
    default = node["default"]
    return type(default) in _PLAIN_DEFAULTS or (type(default) in PLAIN_TYPES and not default)


def _without_models(node: Any) -> Any:
    """Return a plain schema with each model as a dict of its fields."""
    if isinstance(node, list | tuple):
        return type(node)(map(_without_models, node))
    if not isinstance(node, Mapping):
        return node
    if node.get("type") != "model":
        return {key: part if key in _OPAQUE else _without_models(part) for key, part in node.items()}
    fields = {
        name: {
            "type": "typed-dict-field",
            "schema": _without_models(field["schema"]),
            "required": field["schema"]["type"] != "default",
        }
        for name, field in node["schema"]["fields"].items()
    }
    return {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid", "config": node.get("config", {})}
