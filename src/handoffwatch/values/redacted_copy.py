"""The plain JSON copy of any value, in which fixed marks stand where the secrets stood."""

from __future__ import annotations

import enum
import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Optional

from handoffwatch.values.json_marks import CYCLIC, LEFT_OUT, TOO_DEEP, json_form, key_text, mark_of_kind
from handoffwatch.values.json_text import DEPTH_MAX, children_of, decode, is_encodable, is_list
from handoffwatch.values.names import NAME_CHARACTERS_MAX
from handoffwatch.values.paths import Rests, is_reached, rests_below
from handoffwatch.values.secret_shapes import REDACTED, without_secrets

CHARACTERS_PER_VALUE: Final = 64
"""How much text counts as one value, so that one limit bounds both."""

_TAIL_CHARACTERS: Final = 256
_JSON_ENDS: Final = {"{": "}", "[": "]", '"': '"'}
_SAYS_ITS_NAME: Final = frozenset({"name", "key", "header"})


class _Above(NamedTuple):
    """A container that is being read, the one it stands in, and how many that are."""

    item: object
    above: Optional[_Above]  # noqa: UP045 - a class that is being made has no `|`
    levels: int


class _Task(NamedTuple):
    """A value that is still to be read, and where its copy goes."""

    item: object
    into: Any
    at: Any
    rests: Rests
    above: _Above | None


class RedactedCopy:
    """One copy that is being made, level by level and without recursion.

    Args:
        rests: The paths that lead to secrets.
        is_secret: Whether what stands under a name is secret.
        text_characters_max: The most characters of one text.
        values_max: The most values, each 64 characters of text counted as one.
    """

    def __init__(
        self, rests: Rests, *, is_secret: Callable[[str], bool], text_characters_max: int, values_max: int
    ) -> None:
        self._rests = rests
        self._asked = is_secret
        self._known_names: dict[str, bool] = {}
        self._shown_keys: dict[str, str] = {}
        self._text_characters_max = text_characters_max
        self._values_left = values_max
        self._tasks: list[_Task] = []
        self._json_texts: list[tuple[_Task, str, object, list[Any]]] = []

    def of(self, value: object) -> Any:
        """Return the copy of a value; to be called once.

        What was JSON in a text becomes text when all else is done, inner texts first. A text of JSON without a secret
        stays as it was written.
        """
        top: list[Any] = [None]
        self._put(_Task(value, top, 0, self._rests, None), is_secret=False)
        while self._tasks:
            task = self._tasks.pop()
            try:
                task.into[task.at] = self._copied(task)
            except Exception:  # noqa: BLE001 - a foreign value may raise whatever is asked of it: its class says enough
                task.into[task.at] = mark_of_kind(task.item)
        for task, text, decoded, copied in reversed(self._json_texts):
            is_clean = [decoded] == copied and _is_all_of(text)
            task.into[task.at] = text if is_clean else json.dumps(copied[0], ensure_ascii=False)
        return top[0]

    def _put(self, task: _Task, *, is_secret: bool) -> None:
        if (is_secret or is_reached(task.rests)) and not _says_nothing(task.item):
            task.into[task.at] = REDACTED
        else:
            self._tasks.append(task)

    def _copied(self, task: _Task) -> Any:
        item = task.item.value if isinstance(task.item, enum.Enum) else task.item
        if isinstance(item, str):
            return self._copied_text(str.__str__(item), task)
        children = children_of(item)
        return json_form(item) if children is None else self._copied_container(item, children, task)

    def _copied_text(self, text: str, task: _Task) -> str | None:
        self._values_left -= min(len(text), self._text_characters_max) // CHARACTERS_PER_VALUE
        if self._values_left < 0:
            return LEFT_OUT
        decoded = _decoded(text) if len(text) <= self._text_characters_max else None
        if decoded is None:
            return self._scanned(text)
        copied: list[Any] = [None]
        self._json_texts.append((task, text, decoded, copied))
        self._tasks.append(_Task(decoded, copied, 0, task.rests, task.above))
        return None

    def _copied_container(self, item: object, children: Iterable[tuple[Any, object]], task: _Task) -> Any:
        above = _Above(item, task.above, task.above.levels + 1 if task.above else 0)
        if above.levels > DEPTH_MAX:
            return TOO_DEEP
        if _stands_in(item, task.above):
            return CYCLIC
        left = max(self._values_left, 0)
        members = list(itertools.islice(children, left + 1))
        is_cut = len(members) > left
        del members[left:]
        self._values_left -= len(members)
        if is_list(item):
            return self._copied_list(members, task, above, is_cut=is_cut)
        return self._copied_dict(members, task.rests, above, is_cut=is_cut)

    def _copied_list(self, members: list[tuple[int, object]], task: _Task, above: _Above, *, is_cut: bool) -> list[Any]:
        copy: list[Any] = [LEFT_OUT] * (len(members) + is_cut)
        is_pair = len(members) == 2 and task.above is not None and is_list(task.above.item)
        for index, child in reversed(members):
            before = members[index - 1][1] if index else None
            is_secret = (is_pair or _is_option(before)) and self._says_secret_name(before)
            self._put(_Task(child, copy, index, rests_below(task.rests, index), above), is_secret=is_secret)
        return copy

    def _copied_dict(
        self, members: list[tuple[object, object]], rests: Rests, above: _Above, *, is_cut: bool
    ) -> dict[str, Any]:
        names = [key_text(key) for key, _ in members]
        shown = _distinct([*map(self._shown, names), *[LEFT_OUT] * is_cut])
        copy: dict[str, Any] = dict.fromkeys(shown, LEFT_OUT)
        is_named = any(
            name.casefold() in _SAYS_ITS_NAME and self._says_secret_name(child)
            for name, (_, child) in zip(names, members, strict=True)
        )
        for name, at, (_, child) in reversed(list(zip(names, shown, members, strict=False))):
            is_secret = self._is_secret(name) or (is_named and name.casefold() == "value")
            self._put(_Task(child, copy, at, rests_below(rests, name), above), is_secret=is_secret)
        return copy

    def _says_secret_name(self, value: object) -> bool:
        is_name = type(value) is str and len(value) <= NAME_CHARACTERS_MAX and " " not in value
        return is_name and self._is_secret(str(value))

    def _is_secret(self, name: str) -> bool:
        known = self._known_names.get(name)
        if known is None:
            known = self._known_names[name] = self._asked(name)
        return known

    def _shown(self, key: str) -> str:
        shown = self._shown_keys.get(key)
        if shown is None:
            shown = self._shown_keys[key] = self._scanned(key)
        return shown

    def _scanned(self, text: str) -> str:
        kept = text if len(text) <= self._text_characters_max else _beginning(text[: self._text_characters_max])
        left_out = len(text) - len(kept)
        if not is_encodable(kept):
            kept = kept.encode(errors="backslashreplace").decode()
        scanned = without_secrets(kept, is_secret=self._is_secret)
        return f"{scanned}[{left_out} characters left out]" if left_out else scanned


def _beginning(text: str) -> str:
    """Return a text up to the last white space near its end, so that no half of a secret stays, which has no shape."""
    tail = text[-_TAIL_CHARACTERS:]
    kept = 1 + max(map(tail.rfind, " \n\t"))
    return text[: len(text) - len(tail) + kept]


def _decoded(text: str) -> Any:
    """Return the object, list or text that a text of JSON holds; None for any other text."""
    bare = text.strip() if text[:1].isspace() or text[-1:].isspace() else text
    if len(bare) < 2 or _JSON_ENDS.get(bare[0]) != bare[-1]:
        return None
    try:
        return decode(bare)
    except ValueError:
        return None


def _is_all_of(text: str) -> bool:
    """Return whether a text of JSON says nothing that its value does not say: no key stands there twice."""
    try:
        json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return False
    return True


def _unique(members: list[tuple[str, object]]) -> None:
    if len({key for key, _ in members}) < len(members):
        raise ValueError("a key stands there twice")


def _is_option(value: object) -> bool:
    return type(value) is str and value.startswith("--")


def _distinct(keys: list[str]) -> list[str]:
    """Return keys, those that are there already with a number behind them."""
    if len(set(keys)) == len(keys):
        return keys
    taken: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for key in keys:
        number, new = numbers.get(key, 1), key
        while new in taken:
            number += 1
            new = f"{key} {number}"
        numbers[key] = number
        taken[new] = None
    return list(taken)


def _stands_in(item: object, above: _Above | None) -> bool:
    while above is not None:
        if above.item is item:
            return True
        above = above.above
    return False


def _says_nothing(value: object) -> bool:
    return value is None or (type(value) in (str, list, tuple, dict) and not value)
