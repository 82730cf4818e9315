"""Small valid values from a JSON Schema, and the place that has none."""

from __future__ import annotations

from typing import Any

import pytest

from handoffwatch.values.schema_examples import NoExample, SchemaExamples

VALUES: list[tuple[dict[str, Any], object]] = [
    ({"type": "string"}, "x"),
    ({"type": "string", "minLength": 3}, "xxx"),
    ({"type": "string", "maxLength": 0}, ""),
    ({"type": "string", "pattern": r"^\d+$", "minLength": 4}, "0000"),
    ({"type": "string", "pattern": r"^a?$"}, "a"),
    ({"type": "string", "format": "uuid4"}, "00000000-0000-4000-8000-000000000000"),
    ({"type": "string", "format": "date"}, "2000-01-01"),
    ({"type": "string", "format": "of our own"}, "x"),
    ({"type": "integer"}, 0),
    ({"type": "integer", "minimum": 3}, 3),
    ({"type": "integer", "exclusiveMinimum": 3}, 4),
    ({"type": "integer", "maximum": -3}, -3),
    ({"type": "integer", "exclusiveMaximum": 0}, -1),
    ({"type": "integer", "exclusiveMinimum": 3, "multipleOf": 5}, 5),
    ({"type": "integer", "minimum": 1, "multipleOf": 2.5}, 5),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ({"type": "number", "minimum": 0.25, "maximum": 0.25}, 0.25),
    ({"type": "number", "minimum": 0.3, "multipleOf": 0.1}, 0.3),
    ({"type": "number", "exclusiveMinimum": 5, "maximum": 5.5}, 5.25),
    ({"type": "number", "minimum": -9, "maximum": -2.5}, -3),
    ({"type": "boolean"}, False),
    ({"type": "null"}, None),
    ({"type": ["null", "integer"]}, 0),
    ({"const": 7}, 7),
    ({"enum": ["b", "a"]}, "b"),
    ({"type": "string", "examples": ["4417", "4418"]}, "4417"),
    ({"anyOf": [{"type": "null"}, {"type": "integer"}], "minimum": 2}, 2),
    ({"oneOf": [{"type": "string", "pattern": "(?=x)"}, {"type": "integer"}]}, 0),
    ({"allOf": [{"minimum": 2}, {"type": "integer"}]}, 2),
    ({"type": "array"}, []),
    ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [0, 0]),
    ({"type": "array", "minItems": 3, "prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 9}}, [1, 2, 9]),
    ({"type": "array", "minItems": 1, "prefixItems": [{"const": 1}, {"const": 2}]}, [1]),
    ({"type": "object"}, {}),
    ({"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}}, {"0": 0, "1": 0}),
    ({"type": "object", "minProperties": 1, "propertyNames": {"enum": ["k"]}}, {"k": "x"}),
    ({"properties": {"a": {"minimum": 1}, "b": {}}, "required": ["a", "c"]}, {"a": 1, "c": "x"}),
    ({"$ref": "#/properties/deep~1er", "title": "A"}, "xx"),
]


def _example(schema: dict[str, Any]) -> object:
    value = SchemaExamples({"properties": {"a": schema, "deep/er": {"minLength": 2}}, "required": ["a"]}).example()
    assert isinstance(value, dict)
    return value["a"]


@pytest.mark.parametrize(("schema", "value"), VALUES, ids=lambda case: str(case)[:60])
def test_example_is_the_least_valid_value_when_a_schema_has_constraints(schema: dict[str, Any], value: object) -> None:
    """Examples first, then the value nearest to nothing that the constraints allow; a text says something."""
    assert _example(schema) == value


NONE: list[tuple[dict[str, Any], str]] = [
    ({"type": "integer", "minimum": 3, "maximum": 2}, "a"),
    ({"type": "integer", "minimum": 3, "maximum": 4, "multipleOf": 5}, "a"),
    ({"type": "number", "exclusiveMinimum": 1, "maximum": 1}, "a"),
    ({"type": "number", "minimum": float("inf")}, "a"),
    ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, "a"),
    ({"type": "string", "pattern": "(?=x)"}, "a"),
    ({"type": "string", "pattern": "^ab$", "minLength": 3}, "a"),
    ({"type": "string", "minLength": 1_000_000_000}, "a"),
    ({"type": "array", "minItems": 2, "uniqueItems": True}, "a"),
    ({"type": "array", "minItems": 1_000_000_000}, "a"),
    ({"type": "array", "minItems": 1, "items": False}, "a.0"),
    ({"required": ["b"], "properties": {"b": False}}, "a.b"),
    ({"$ref": "#/nowhere"}, "a"),
    ({"$ref": "#/properties/a"}, "a"),
    ({"anyOf": [False]}, "a"),
]


@pytest.mark.parametrize(("schema", "path"), NONE, ids=lambda case: str(case)[:60])
def test_example_names_the_place_when_it_has_no_value(schema: dict[str, Any], path: str) -> None:
    """The person who must give an example is told for which field."""
    with pytest.raises(NoExample, match=f"^{path}$"):
        _example(schema)


def test_example_has_the_fields_that_are_asked_for_when_they_are_optional() -> None:
    """A field that must say something is there, and its lists have an item; one that the schema lacks is left out."""
    schema = {
        "properties": {
            "results": {"type": "array", "items": {"properties": {"tags": {"type": "array"}}, "required": ["tags"]}},
            "note": {"type": "string"},
            "id": {"type": "string"},
        },
        "required": ["id"],
    }
    assert SchemaExamples(schema).example(filled={"results", "other"}) == {"id": "x", "results": [{"tags": ["x"]}]}
    assert SchemaExamples(schema).example() == {"id": "x"}


def test_example_ends_when_a_schema_refers_to_itself() -> None:
    """A tree has no children where it may have none, and null where it may be null."""
    node = {
        "properties": {
            "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        },
        "required": ["next", "children"],
    }
    schema = {"$defs": {"node": node}, "properties": {"tree": {"$ref": "#/$defs/node"}}, "required": ["tree"]}
    assert SchemaExamples(schema).example() == {"tree": {"next": None, "children": []}}
    assert SchemaExamples(schema).example(filled={"tree"}) == {"tree": {"next": None, "children": []}}


def test_example_has_its_tag_when_the_union_is_tagged_and_the_tag_has_a_default() -> None:
    """A tag that a model fills in by itself must stand in the text."""
    card = {
        "properties": {"kind": {"const": "card", "default": "card"}, "last": {"type": "string"}},
        "required": ["last"],
    }
    schema = {
        "$defs": {"card": card},
        "properties": {"by": {"discriminator": {"propertyName": "kind"}, "oneOf": [{"$ref": "#/$defs/card"}]}},
        "required": ["by"],
    }
    assert SchemaExamples(schema).example() == {"by": {"kind": "card", "last": "x"}}
