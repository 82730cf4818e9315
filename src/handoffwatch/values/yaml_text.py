"""A YAML text as plain data: only mappings, lists, text, numbers, true, false and null, and the line of every key.

YAML is read from files that people write, so a text stays a text wherever YAML 1.1 would bend it: `no`, `1.10`, `0o17`,
`12e3`, `+49` and dates are texts. Only `true`, `false`, `null`, `~`, an empty value, and decimal numbers that look the
same when written back are anything else. Tags are refused, size, depth, aliases and expanded nodes are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import yaml
from yaml.composer import Composer
from yaml.events import AliasEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from handoffwatch.errors import ConfigError

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the top of the document; the empty path is the document itself."""

Plain = dict[str, "Plain"] | list["Plain"] | str | int | float | bool | None
"""What a document is made of."""

BYTES_MAX: Final = 262_144
DEPTH_MAX: Final = 32
ALIASES_MAX: Final = 100
NODES_MAX: Final = 20_000

_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER: Final = re.compile(r"-?[0-9]{1,30}")
_FLOAT: Final = re.compile(r"-?[0-9]{1,30}\.[0-9]{1,30}")
_PLAIN_TAG: Final = "plain"
_STANDARD: Final = "tag:yaml.org,2002:"
_QUOTED: Final = re.compile(r"'([^']*)'")


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document.

    Attributes:
        name: The file's name as messages show it.
        data: The plain data.
        lines: The 1-based line of every key and list entry; an entry that an alias repeats has the alias's target line.
    """

    name: str
    data: Plain
    lines: Mapping[KeyPath, int]


def read_yaml(source: bytes | str, *, name: str) -> YamlDocument:
    """Return the one document in `source` as plain data.

    Args:
        source: UTF-8 text, at most 256 KiB, nested at most 32 levels deep, at most 100 aliases that expand to at most
            20,000 nodes.
        name: The file's name for messages.

    Raises:
        ConfigError: The text is no YAML, breaks a bound, has a tag, a duplicate key, a merge key or a key that is no
            text. The message reads `file:line: key: what` and holds no value.
    """
    text = _decoded(source, name)
    loader = _Loader(text, name)
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = _QUOTED.sub(_without_text, error.problem or "cannot be read")
        raise ConfigError(f"{name}:{line}: not valid YAML: {problem}", hint="check indentation and quotes") from None
    finally:
        loader.dispose()
    builder = _Builder(name)
    data = builder.build(node, ()) if node is not None else None
    return YamlDocument(name, data, builder.lines)


def resolve_scalar(text: str) -> str | int | float | bool | None:
    """Return what an unquoted YAML scalar means under the rules of this module."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text) and str(int(text)) == text:
        return int(text)
    if _FLOAT.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    return text


def dotted(path: KeyPath) -> str:
    """Return a key path as messages show it: `settlement.polls_s.2`, or `document` for the top."""
    return ".".join(map(str, path)) or "document"


def _decoded(source: bytes | str, name: str) -> str:
    size = len(source)
    if size > BYTES_MAX:
        raise ConfigError(f"{name}: file: must be at most {BYTES_MAX} bytes, got {size}", hint="split the file")
    if isinstance(source, str):
        return source
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: file: must be UTF-8 text", hint="save the file as UTF-8") from None


def _without_text(quoted: re.Match[str]) -> str:
    """Return a quoted character or token of YAML as it is, and `a text` for anything of the author's."""
    return quoted[0] if len(quoted[1]) <= 2 or quoted[1].startswith("<") else "a text"


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """Composes nodes with bounds, and leaves the meaning of unquoted scalars to the builder."""

    def __init__(self, text: str, name: str) -> None:
        try:
            Reader.__init__(self, text)
        except ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise ConfigError(
                f"{name}:{line}: file: a control character is not allowed", hint="remove the character"
            ) from None
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self._name = name
        self._depth = 0
        self._aliases = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """Return the next node; called once for every entry, by the composer."""
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, AliasEvent):
            self._aliases += 1
            if event.anchor not in self.anchors:
                raise self._refused(event, "an alias must follow its anchor", "quote a text that starts with *")
            if self._aliases > ALIASES_MAX:
                raise self._refused(event, f"must have at most {ALIASES_MAX} aliases", "write the values out")
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._refused(event, f"must be nested at most {DEPTH_MAX} levels deep", "flatten the document")
        node: Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def resolve(self, kind: type[Node], value: str | None, implicit: object) -> str:
        """Return the tag of a node that has none of its own."""
        if kind is ScalarNode and isinstance(implicit, tuple) and implicit[0]:
            return _PLAIN_TAG
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]

    def _refused(self, event: yaml.Event, rule: str, hint: str) -> ConfigError:
        line = event.start_mark.line + 1 if event.start_mark else 1
        return ConfigError(f"{self._name}:{line}: document: {rule}", hint=hint)


@dataclass(slots=True)
class _Builder:
    """Turns nodes into plain data, counts what aliases multiply, and notes the lines."""

    name: str
    lines: dict[KeyPath, int] = field(default_factory=dict)
    _nodes: int = 0
    _open: set[int] = field(default_factory=set)

    def build(self, node: Node, path: KeyPath) -> Plain:
        """Return the plain data below `node`.

        Raises:
            ConfigError: A rule of `read_yaml` is broken.
        """
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise self._refused(node, path, f"aliases must expand to at most {NODES_MAX} nodes", "write the values out")
        if id(node) in self._open:
            raise self._refused(node, path, "an alias must not contain itself", "write the value out")
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode) and node.tag == f"{_STANDARD}map":
                return self._mapping(node, path)
            if isinstance(node, SequenceNode) and node.tag == f"{_STANDARD}seq":
                return [self.build(entry, (*path, index)) for index, entry in enumerate(node.value)]
            if isinstance(node, ScalarNode) and node.tag in (_PLAIN_TAG, f"{_STANDARD}str"):
                return resolve_scalar(node.value) if node.tag == _PLAIN_TAG else str(node.value)
        finally:
            self._open.discard(id(node))
        raise self._refused(node, path, "tags are not allowed", "remove the tag; quote a value that must stay a text")

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Plain]:
        result: dict[str, Plain] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key in result:
                first = self.lines[(*path, key)]
                raise self._refused(
                    key_node, (*path, key), f"must be given once, got it on line {first} too", "remove one of the two"
                )
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            result[key] = self.build(value_node, (*path, key))
        return result

    def _key(self, node: Node, path: KeyPath) -> str:
        is_text = isinstance(node, ScalarNode) and node.tag in (_PLAIN_TAG, f"{_STANDARD}str")
        if not is_text or (node.tag == _PLAIN_TAG and node.value == ""):
            raise self._refused(node, path, "a key must be a text", "quote the key")
        if node.value == "<<" and node.tag == _PLAIN_TAG:
            raise self._refused(node, (*path, "<<"), "merge keys are not supported", "write the keys out")
        return str(node.value)

    def _refused(self, node: Node, path: KeyPath, rule: str, hint: str) -> ConfigError:
        return ConfigError(f"{self.name}:{node.start_mark.line + 1}: {dotted(path)}: {rule}", hint=hint)
