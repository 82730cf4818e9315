"""The tree of canonical values: what any value becomes, type by type, without recursion."""

from __future__ import annotations

import datetime
import decimal
import enum
import hashlib
import itertools
import math
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Optional

import orjson

from handoffwatch.values.json_text import (
    DEPTH_MAX,
    FAULTS_MAX,
    INTEGER_BITS_MAX,
    PLAIN_TYPES,
    Fault,
    children_of,
    is_encodable,
    is_list,
    kind_of,
)
from handoffwatch.values.paths import Rests, is_reached, rests_below
from handoffwatch.values.times import time_text, written

LOCAL_MAX: Final = 20
"""Places of ignored paths that are noted, so that a long list of them stays short."""

_INTEGERS: Final = range(-(2**63), 2**64)
"""The integers that the encoder writes as numbers."""

_NON_FINITE: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}
_LEAVES: Final = PLAIN_TYPES - {dict, list}
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


BYTES: Final = "bytes"
"""The kind of bytes, whose form is no value that stands in the state but only says which they are."""


class Form(NamedTuple):
    """The canonical value of something whose type JSON does not have, and the name of that type."""

    kind: str
    value: Any


Tree = Any
"""Dicts with text keys, lists, text, 64-bit integers, finite floats, true, false, null, and forms of such."""


class Places(NamedTuple):
    """What is left of the paths that change what stands where they lead."""

    ignored: Rests = frozenset()
    sets: Rests = frozenset()
    times: Rests = frozenset()
    non_finite: Rests = frozenset()

    def below(self, key: str | int) -> Places:
        """Return what is left of them one level further down."""
        if self is NOWHERE:
            return self
        below = Places(*(rests_below(rests, key) for rests in self))
        return below if any(below) else NOWHERE


NOWHERE: Final = Places()


class _Refused(Exception):
    """A value has no canonical form: the code that says why, and what was found."""

    def __init__(self, code: str, found: str) -> None:
        super().__init__(code)
        self.code = code
        self.found = found


class _Above(NamedTuple):
    """A container that is being read, its key in the one that it stands in, and how many that are."""

    item: object
    key: str | int
    above: Optional[_Above]  # noqa: UP045 - a class that is being made has no `|`
    levels: int


class _Task(NamedTuple):
    """A value that is still to be read, and where its form goes."""

    item: object
    key: str | int
    into: Any
    at: Any
    places: Places
    above: _Above | None

    @property
    def path(self) -> tuple[str | int, ...]:
        steps: list[str | int] = []
        key, above = self.key, self.above
        while above is not None:
            steps.append(key)
            key, above = above.key, above.above
        return tuple(reversed(steps))


class CanonicalTree:
    """One tree that is being made, level by level and without recursion.

    Args:
        places: The paths that change what stands where they lead.
        ignored_names: Keys that are left out wherever they stand.
        bytes_max: The most bytes of canonical JSON.

    Attributes:
        faults: Where the value has no canonical form, at most 20 places.
        local: The places that were left out, at most 20.
    """

    def __init__(self, places: Places, ignored_names: frozenset[str], *, bytes_max: int) -> None:
        self.faults: list[Fault] = []
        self.local: list[tuple[str | int, ...]] = []
        self._places = places
        self._ignored_names = ignored_names
        self._bytes_left = bytes_max
        self._tasks: list[_Task] = []
        self._unordered: list[list[Tree]] = []

    def of(self, value: object) -> Tree:
        """Return the tree of a value; to be called once, and worth nothing when there are faults."""
        top: list[Tree] = [None]
        self._tasks.append(_Task(value, "", top, 0, self._places, None))
        while self._tasks and len(self.faults) < FAULTS_MAX:
            task = self._tasks.pop()
            try:
                task.into[task.at] = self._form(task)
            except _Refused as refused:
                self.faults.append(Fault(refused.code, task.path[:DEPTH_MAX], refused.found))
            except Exception:  # noqa: BLE001 - a foreign value may raise whatever is asked of it: its class says enough
                self.faults.append(Fault("not_serialisable", task.path[:DEPTH_MAX], kind_of(task.item)))
            if self._bytes_left < 0:
                self.faults.append(Fault("too_large", (), kind_of(value)))
                break
        for members in reversed(self._unordered):
            members.sort(key=tree_text)
        return top[0]

    def _form(self, task: _Task) -> Tree:
        item = task.item
        if type(item) in _LEAVES:
            return self._leaf(item, task.places)
        if isinstance(item, enum.Enum):
            if type(item.value) not in _LEAVES:
                raise _Refused("not_serialisable", kind_of(item))
            return Form(kind_of(item), self._leaf(item.value, NOWHERE))
        children = children_of(item)
        if children is not None:
            return self._container(item, children, task)
        if isinstance(item, set | frozenset):
            base = set if isinstance(item, set) else frozenset
            return self._container(item, (("*", each) for each in base.__iter__(item)), task)  # type: ignore[arg-type]
        return self._leaf(item, task.places)

    def _container(self, item: object, children: Iterable[tuple[object, object]], task: _Task) -> Tree:
        here = _Above(item, task.key, task.above, task.above.levels + 1 if task.above else 1)
        if here.levels > DEPTH_MAX:
            raise _Refused("too_deep", kind_of(item))
        if _stands_in(item, task.above):
            raise _Refused("cyclic_value", kind_of(item))
        members = list(itertools.islice(children, max(self._bytes_left, 0) // 2 + 1))
        self._bytes_left -= 2 * len(members)
        if is_list(item):
            form = self._list(members, task, here)
            if is_reached(task.places.sets):
                self._unordered.append(form)
            return Form(kind_of(item), form) if hasattr(type(item), "_fields") else form
        if isinstance(item, set | frozenset):
            form = self._list(members, task, here)
            self._unordered.append(form)
            return form if is_reached(task.places.sets) else Form("set", form)
        fields = self._object(members, task, here)
        return fields if isinstance(item, Mapping) else Form(kind_of(item), fields)

    def _list(self, members: list[tuple[Any, object]], task: _Task, here: _Above) -> list[Tree]:
        form: list[Tree] = []
        tasks = []
        for key, child in members:
            below = task.places.below(key)
            if is_reached(below.ignored):
                self._leave_out(key, task)
            else:
                tasks.append(_Task(child, key, form, len(form), below, here))
                form.append(None)
        self._tasks += reversed(tasks)
        return form

    def _object(self, members: list[tuple[Any, object]], task: _Task, here: _Above) -> dict[str, Tree]:
        form: dict[str, Tree] = {}
        tasks = []
        for key, child in members:
            name = self._name(key, task)
            if name is None:
                continue
            below = task.places.below(name)
            if name in self._ignored_names or is_reached(below.ignored):
                self._leave_out(name, task)
                continue
            if name in form:
                self._refuse_key("not_serialisable", key, task)
            form[name] = None
            tasks.append(_Task(child, name, form, name, below, here))
        self._tasks += reversed(tasks)
        return form

    def _leave_out(self, key: str | int, task: _Task) -> None:
        if len(self.local) < LOCAL_MAX:
            self.local.append((*task.path, key))

    def _name(self, key: object, task: _Task) -> str | None:
        if not isinstance(key, str):
            self._refuse_key("not_serialisable", key, task)
            return None
        name = str.__str__(key)
        if not is_encodable(name):
            self._refuse_key("invalid_text", key, task)
            return None
        self._bytes_left -= len(name) + 2
        return name

    def _refuse_key(self, code: str, key: object, task: _Task) -> None:
        if len(self.faults) < FAULTS_MAX:
            self.faults.append(Fault(code, task.path, f"{kind_of(key)} as a key"))

    def _leaf(self, item: object, places: Places) -> Tree:
        if item is None or isinstance(item, bool):
            return item
        if isinstance(item, str):
            text = str.__str__(item)
            if not is_encodable(text):
                raise _Refused("invalid_text", kind_of(item))
            self._bytes_left -= len(text)
            return time_text(text) if is_reached(places.times) else text
        if isinstance(item, int):
            return _integer(int.__int__(item))
        if isinstance(item, float):
            return _real(float.__float__(item), may_be_non_finite=is_reached(places.non_finite))
        if isinstance(item, datetime.datetime):
            text = written(item)
            return text if is_reached(places.times) else Form("datetime", text)
        if isinstance(item, decimal.Decimal):
            return _decimal(item, may_be_non_finite=is_reached(places.non_finite))
        return _other(item)


def _integer(whole: int) -> Tree:
    if whole in _INTEGERS:
        return whole
    if whole.bit_length() > INTEGER_BITS_MAX:
        raise _Refused("unsafe_integer", "int")
    return Form("int", str(whole))


def _real(real: float, *, may_be_non_finite: bool) -> Tree:
    if math.isfinite(real):
        return real + 0.0
    if not may_be_non_finite:
        raise _Refused("non_finite_number", "float")
    return Form("float", _NON_FINITE.get(real, "NaN"))


def _decimal(number: decimal.Decimal, *, may_be_non_finite: bool) -> Form:
    if not decimal.Decimal.is_finite(number):
        if not may_be_non_finite:
            raise _Refused("non_finite_number", "Decimal")
        if decimal.Decimal.is_nan(number):
            return Form("Decimal", "NaN")
    elif decimal.Decimal.is_zero(number):
        number = decimal.Decimal.copy_abs(number)
    return Form("Decimal", decimal.Decimal.__str__(number))


def _other(item: object) -> Form:
    if isinstance(item, datetime.date):
        return Form("date", datetime.date.isoformat(item))
    if isinstance(item, datetime.time):
        text = datetime.time.isoformat(item)
        return Form("time", f"{text[:-6]}Z" if text.endswith("+00:00") else text)
    if isinstance(item, datetime.timedelta):
        return Form("timedelta", _integer(item // _MICROSECOND))
    if isinstance(item, uuid.UUID):
        return Form("UUID", uuid.UUID.__str__(item))
    if isinstance(item, bytes | bytearray | memoryview):
        raw = bytes(item)
        return Form(BYTES, {"length": len(raw), "sha256": hashlib.sha256(raw).hexdigest()})
    raise _Refused("not_serialisable", kind_of(item))


def _stands_in(item: object, above: _Above | None) -> bool:
    while above is not None:
        if above.item is item:
            return True
        above = above.above
    return False


def tree_text(tree: Tree) -> bytes:
    """Return a text that is equal for equal trees; each form is told by its kind."""
    return orjson.dumps(tree, default=list, option=orjson.OPT_SORT_KEYS)


def json_of(tree: Tree) -> bytes:
    """Return a tree as JSON with its keys in code-point order; of each form stands its value."""
    return orjson.dumps(tree, default=_value, option=orjson.OPT_SORT_KEYS)


def kinds_in(tree: Tree) -> list[tuple[tuple[str | int, ...], str]]:
    """Return where the forms stand in a tree, and of which kind they are, in the order of their places."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    stack: list[tuple[tuple[str | int, ...], Tree]] = [((), tree)]
    while stack:
        path, item = stack.pop()
        if type(item) is Form:
            found.append((path, item.kind))
            item = item.value
        if type(item) is dict:
            stack += [((*path, key), item[key]) for key in sorted(item, reverse=True)]
        elif type(item) is list:
            stack += [((*path, index), item[index]) for index in range(len(item) - 1, -1, -1)]
    return found


def _value(form: Form) -> Tree:
    return form.value
