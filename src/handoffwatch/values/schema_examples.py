"""Small valid values, derived from a JSON Schema: the examples it gives, else the least that its constraints allow."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from handoffwatch.values.pattern_text import text_matching

ITEMS_MAX: Final = 1_000
"""The most items or characters that a constraint may ask for and still get."""

_FORMATS: Final = {
    "date": "2000-01-01",
    "date-time": "2000-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "email": "someone@example.org",
    "hostname": "example.org",
    "uri": "https://example.org/",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "ipvanyaddress": "192.0.2.1",
    "ipv4network": "192.0.2.0/24",
    "ipv6network": "2001:db8::/32",
    "ipvanynetwork": "192.0.2.0/24",
    "base64": "eA==",
    "base64url": "eA==",
    "json-string": "{}",
    **{f"uuid{version}": f"00000000-0000-{version or 4}000-8000-000000000000" for version in ("", 1, 3, 4, 5, 6, 7, 8)},
}
_NULL: Final = {"type": "null"}
_TYPE_OF_KEYWORD: Final = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "pattern": "string",
    "minLength": "string",
    "minimum": "number",
    "exclusiveMinimum": "number",
    "multipleOf": "number",
}

Path = tuple[str | int, ...]


class NoExample(Exception):
    """No value can be derived for a place of the schema; `path` says for which."""

    def __init__(self, path: Path) -> None:
        super().__init__(".".join(map(str, path)))
        self.path = path


class SchemaExamples:
    """Derives values from one JSON Schema. What it derives is a proposal: only the contract says whether it is valid.

    Args:
        schema: The schema of an object; references lead to places inside it.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema

    def example(self, *, filled: Collection[str] = ()) -> object:
        """Return a small value: the required fields, and those that are asked for.

        Args:
            filled: Fields of the outermost object that must be there and say something: lists in them have an item.

        Raises:
            NoExample: A place has no value that can be derived.
        """
        node, opened = self._resolved(self._root, (), frozenset())
        if node.get("examples") or not filled:
            return self._value(node, (), opened, fill=False)
        required = [name for name in node.get("required", ()) if name not in filled]
        value = self._object({**node, "required": required}, (), opened)
        for name, field in node.get("properties", {}).items():
            if name in filled:
                value[name] = self._value(field, (name,), opened, fill=True)
        return value

    def _value(self, schema: object, path: Path, opened: frozenset[str], *, fill: bool) -> Any:
        """Return a value; `opened` are the references that lead here, and `fill` asks for an item in every list."""
        if schema is False:
            raise NoExample(path)
        node, opened = self._resolved(schema, path, opened)
        examples = node.get("examples")
        if isinstance(examples, list) and examples:
            return examples[0]
        if "const" in node:
            return node["const"]
        if node.get("enum"):
            return node["enum"][0]
        for keyword in ("anyOf", "oneOf"):
            if node.get(keyword):
                return self._first(node, node[keyword], path, opened, fill=fill)
        kind = _kind(node)
        if kind == "object":
            return self._object(node, path, opened, fill=fill)
        if kind == "array":
            return list(self._items(node, path, opened, fill=fill))
        if kind in ("integer", "number"):
            return _number(node, path, whole=kind == "integer")
        if kind == "boolean":
            return False
        return None if kind == "null" else _text(node, path)

    def _resolved(self, schema: object, path: Path, opened: frozenset[str]) -> tuple[dict[str, Any], frozenset[str]]:
        """Return a schema with the schemas that it refers to or joins laid into it."""
        node = dict(schema) if isinstance(schema, Mapping) else {}
        while "$ref" in node or "allOf" in node:
            parts = list(node.pop("allOf", ()))
            if "$ref" in node:
                reference = str(node.pop("$ref"))
                if reference in opened and not node.get("examples"):
                    raise NoExample(path)
                opened |= {reference}
                parts.append(self._at(reference, path))
            for part in parts:
                node = _laid_over(part, node) if isinstance(part, Mapping) else node
        return node, opened

    def _at(self, reference: str, path: Path) -> object:
        here: Any = self._root
        for part in reference.removeprefix("#").split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(here, Mapping) or part not in here:
                raise NoExample(path)
            here = here[part]
        return here

    def _first(
        self, node: Mapping[str, Any], choices: list[Any], path: Path, opened: frozenset[str], *, fill: bool
    ) -> Any:
        """Return a value of the first alternative that has one; null only when no other has."""
        failed: NoExample | None = None
        common = {key: part for key, part in node.items() if key not in ("anyOf", "oneOf", "discriminator", "default")}
        for choice in sorted(choices, key=lambda choice: choice == _NULL):
            try:
                laid = _laid_over(choice, common) if isinstance(choice, Mapping) else choice
                value = self._value(laid, path, opened, fill=fill)
            except NoExample as error:
                failed = failed or error
                continue
            tag = node.get("discriminator", {}).get("propertyName")
            if isinstance(value, dict) and tag is not None and tag not in value:
                known, opened = self._resolved(choice, path, opened)
                value[tag] = self._value(known.get("properties", {}).get(tag), (*path, tag), opened, fill=False)
            return value
        raise failed or NoExample(path)

    def _object(
        self, node: Mapping[str, Any], path: Path, opened: frozenset[str], *, fill: bool = False
    ) -> dict[str, Any]:
        known = node.get("properties", {})
        value = {
            name: self._value(known.get(name), (*path, name), opened, fill=fill) for name in node.get("required", ())
        }
        missing = _count(node.get("minProperties", 0), path) - len(value)
        more = node.get("additionalProperties")
        keys, _ = self._resolved(node.get("propertyNames"), path, opened)
        names = keys.get("enum") or [str(number) for number in range(missing)]
        for name in [name for name in names if name not in value][: max(missing, 0)]:
            value[name] = self._value(more, (*path, name), opened, fill=fill)
        return value

    def _items(self, node: Mapping[str, Any], path: Path, opened: frozenset[str], *, fill: bool) -> Iterator[Any]:
        least = _count(node.get("minItems", 0), path)
        if least > 1 and node.get("uniqueItems"):
            raise NoExample(path)
        places = list(node.get("prefixItems", ()))[:least]
        for index, place in enumerate(places):
            yield self._value(place, (*path, index), opened, fill=fill)
        if least > len(places):
            item = self._value(node.get("items"), (*path, len(places)), opened, fill=fill)
            yield from [item] * (least - len(places))
        elif fill and not places and node.get("maxItems", 1) > 0:
            try:
                yield self._value(node.get("items"), (*path, 0), opened, fill=fill)
            except NoExample:
                return


def _kind(node: Mapping[str, Any]) -> str:
    kind = node.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if isinstance(kind, str):
        return kind
    return next((each for keyword, each in _TYPE_OF_KEYWORD.items() if keyword in node), "string")


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return both schemas as one; where they speak of the same, `above` wins, and fields add up."""
    both = {**below, **above}
    if "properties" in below and "properties" in above:
        both["properties"] = {**below["properties"], **above["properties"]}
    if "required" in below or "required" in above:
        both["required"] = list(dict.fromkeys([*below.get("required", ()), *above.get("required", ())]))
    return both


def _count(value: object, path: Path) -> int:
    if not isinstance(value, int) or value > ITEMS_MAX:
        raise NoExample(path)
    return value


def _text(node: Mapping[str, Any], path: Path) -> str:
    if node.get("format") in _FORMATS:
        return _FORMATS[node["format"]]
    most = node.get("maxLength", math.inf)
    least = max(_count(node.get("minLength", 0), path), 1 if most else 0)
    pattern = node.get("pattern")
    if pattern is None:
        return "x" * least
    for repeats in (*range(1, least + 1), 0):
        try:
            text = text_matching(str(pattern), repeats=repeats)
        except ValueError:
            break
        if node.get("minLength", 0) <= len(text) <= most:
            return text
    raise NoExample(path)


def _number(node: Mapping[str, Any], path: Path, *, whole: bool) -> int | float:
    """Return the number nearest to 0 within the bounds, of two the one that is not negative."""
    least = _exact(node, ("minimum", "exclusiveMinimum"), path, max)
    most = _exact(node, ("maximum", "exclusiveMaximum"), path, min)
    step = _exact(node, ("multipleOf",), path, max)
    open_below = least is not None and least == _exact(node, ("exclusiveMinimum",), path, max)
    open_above = most is not None and most == _exact(node, ("exclusiveMaximum",), path, min)
    if whole:
        step = Fraction(1) if step is None else Fraction(step.numerator)
    if step is None:
        step = _step_between(least, most)
    times = Fraction(0)
    if least is not None:
        first = math.floor(least / step) + 1 if open_below else math.ceil(least / step)
        times = max(times, Fraction(first))
    if most is not None:
        last = math.ceil(most / step) - 1 if open_above else math.floor(most / step)
        times = min(times, Fraction(last))
    value = times * step
    if least is not None and (value < least or (open_below and value == least)):
        raise NoExample(path)
    return int(value) if value.denominator == 1 else float(value)


def _step_between(least: Fraction | None, most: Fraction | None) -> Fraction:
    """Return a step of which some multiple lies between two bounds; 1 when they leave room for it."""
    if least is None or most is None or most - least > 1:
        return Fraction(1)
    return (most - least) / 2 or abs(most) or Fraction(1)


def _exact(node: Mapping[str, Any], keywords: tuple[str, ...], path: Path, choose: Any) -> Fraction | None:
    """Return the strictest of these bounds, without rounding; None when there is none."""
    given = [node[keyword] for keyword in keywords if keyword in node]
    if not all(type(value) in (int, float) and math.isfinite(value) for value in given):
        raise NoExample(path)
    return choose((Fraction(Decimal(str(value))) for value in given), default=None)  # type: ignore[no-any-return]
