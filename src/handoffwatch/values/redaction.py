"""Redaction: what is secret in a state, and the copy of the state that may be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from handoffwatch.values.json_text import kind_of
from handoffwatch.values.names import folded
from handoffwatch.values.paths import Rests, is_bare_name, is_path, rests_of
from handoffwatch.values.redacted_copy import RedactedCopy
from handoffwatch.values.secret_names import is_secret_name

TEXT_CHARACTERS_MAX: Final = 262_144
VALUES_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is secret in a state, and the copy of the state that may be written.

    Secret is what a path leads to; what stands under a secret name, at any depth; and what has the shape of a secret,
    in every text and key. A text that is JSON is read as JSON, and paths lead into it. Null and what is empty stay,
    because they say nothing. Compiled once, never changed, safe for use in many threads.

    Args:
        paths: Keys and indices with dots; `*` for every key or index of one level, `**` for any number of levels. A
            path without a dot is one of `names`.
        names: Names that are secret beside the built-in ones (`is_secret_name`), whatever their case and punctuation.
        text_characters_max: The most characters of one text that are read and kept; at least 1.
        values_max: The most values that are read and kept, each 64 characters of text counted as one; at least 1.

    Raises:
        ValueError: A path or a name is none, or a limit is less than 1.

    Source: DESIGN section 3 rule 10 and section 8.
    """

    paths: Iterable[str] = ()
    names: Iterable[str] = field(default=(), kw_only=True)
    text_characters_max: int = field(default=TEXT_CHARACTERS_MAX, kw_only=True)
    values_max: int = field(default=VALUES_MAX, kw_only=True)
    _rests: Rests = field(init=False, repr=False, compare=False)
    _own_names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        paths = _texts("paths", self.paths, is_path, "must be keys and indices with dots between them")
        names = _texts("names", self.names, _is_name, "must be texts that are not empty")
        for limit in ("text_characters_max", "values_max"):
            if getattr(self, limit) < 1:
                raise ValueError(f"redaction: {limit}: must be at least 1, got {getattr(self, limit)}")
        bare = {path for path in paths if is_bare_name(path)}
        object.__setattr__(self, "paths", paths)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_rests", rests_of(path for path in paths if path not in bare))
        object.__setattr__(self, "_own_names", frozenset(map(folded, bare.union(names))))

    def redacted(self, value: object) -> Any:
        """Return a plain JSON copy of a value without its secrets; the value is not changed.

        Numbers stay; enums become their values, dates and times RFC 3339 text, halves of characters their escapes.
        What has no JSON form, contains itself, is nested more than 64 levels deep or exceeds a limit becomes a mark
        that says so, never its text form. Keys that become the same are numbered. Nothing is raised, whatever the
        value does, and time and memory are linear in what the limits let through.
        """
        copy = RedactedCopy(
            self._rests,
            is_secret=self._is_secret,
            text_characters_max=self.text_characters_max,
            values_max=self.values_max,
        )
        return copy.of(value)

    def redacted_text(self, text: str) -> str:
        """Return a text without its secrets; a text of JSON stays one."""
        return str(self.redacted(text))

    def _is_secret(self, name: str) -> bool:
        return is_secret_name(name) or (bool(self._own_names) and folded(name) in self._own_names)


def _texts(what: str, given: object, is_right: Callable[[object], bool], rule: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"redaction: {what}: must be a list of texts, got {kind_of(given)}")
    texts = tuple(given)
    wrong = [text for text in texts if not is_right(text)]
    if wrong:
        raise ValueError(f"redaction: {what}: {rule}, got {kind_of(wrong[0])}")
    return texts


def _is_name(text: object) -> bool:
    return isinstance(text, str) and bool(text)
