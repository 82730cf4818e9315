"""The canonical form: one JSON text for all states that are equal, whatever made them.

The text is JSON in UTF-8 without white space. States that differ have another text, or another digest.

========================= ==================================================================================
what stands in the state  its canonical form
========================= ==================================================================================
dict, mapping             object, keys in code-point order; OrderedDict, defaultdict, Counter are objects too
list, tuple               list, in its order; at a path of `sets` ordered by the canonical text of its elements
set, frozenset            list, ordered likewise; kind `set`, but none at a path of `sets`
str                       text, exactly; at a path of `times` one way to write a time of RFC 3339
int                       number; beyond 64 bits its digits as text, kind `int`; beyond 2,048 bits a fault
float                     number with a point or an exponent, so 1 and 1.0 differ; -0.0 is 0.0
NaN, infinities           a fault; at a path of `non_finite` `NaN`, `Infinity`, `-Infinity`, kind `float`
bool, None                true, false, null
datetime                  text of RFC 3339, +00:00 as `Z`, naive without a zone; kind `datetime`, but none at a
                          path of `times`
date, time                text of ISO 8601, kind `date`, `time`
timedelta                 microseconds as a number, kind `timedelta`
Decimal                   its digits and exponent as text (1.10 is not 1.1, -0 is 0), kind `Decimal`
UUID                      text in lower case with hyphens, kind `UUID`
bytes, bytearray          object of length and sha256, kind `bytes`
enumeration               the member's value, kind: the name of its class
dataclass, pydantic model object of its fields, kind: the name of its class
named tuple               list, kind: the name of its class
anything else             a fault with its path and the name of its class, never a text form
========================= ==================================================================================

A subclass of a type without a kind counts as that type. The kind is no part of the text, so that equal states are
equal files; it is part of the digest, so that a datetime is not its text and a model is not the bare dict of its
fields. A key that is no text, half a character, a value that contains itself, more than 64 levels, and more than
`bytes_max` are faults. The same instant with another offset is another time.

Where this is not RFC 8785 (JCS): floats keep their point (10.0, not 10), numbers from 1e16 on have an exponent, below
1e-5 too, integers keep all their digits, and keys are ordered by code points, not by UTF-16 units.

Source: DESIGN section 3 rule 9; RFC 8785; RFC 3339.
"""

from __future__ import annotations

import gc
import hashlib
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson
import ormsgpack

from handoffwatch.values.canonical_tree import NOWHERE, CanonicalTree, Places, Tree, json_of, kinds_in
from handoffwatch.values.json_text import DEPTH_MAX, Fault, canonical, kind_of
from handoffwatch.values.paths import is_bare_name, rests_of

BYTES_MAX: Final = 67_108_864
"""The most bytes of a canonical text unless the rules say otherwise."""

_STRICT: Final = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
"""Refuses all that is not a dict, list, text, number, true, false or null itself; orjson alone bends it silently."""

_LEVELS_BEYOND: Final = 255 - DEPTH_MAX
"""Levels that ormsgpack takes beyond those that are read here."""

_SMALL: Final = 4_096
"""Values up to which a state is counted, to know its depth and that its parts do not stand in it many times."""

_ODD_FLOAT: Final = re.compile(rb"\xcb(?:[\x7f\xff][\xf0-\xff]|\x80\x00{7})", re.DOTALL)
"""NaN, the infinities and -0.0 as MessagePack has them. Source: the MessagePack specification, float 64; IEEE 754."""

_QUOTES_SAMPLED: Final = 65_536
_QUOTES_FEW: Final = 2_000


def _marks(ignored: Iterable[str]) -> tuple[bytes, ...] | None:
    """Return of each ignored path its last key as JSON has it; None when a path has none, so that all is walked."""
    marks = []
    for path in ignored:
        keys = [part for part in path.split(".") if part.strip("*") and not part.isdigit()]
        if not keys:
            return None
        marks.append(orjson.dumps(keys[-1]) + b":")
    return tuple(dict.fromkeys(marks))


@dataclass(frozen=True, slots=True)
class CanonicalRules:
    """What the canonical form of a state leaves out and what stands at some of its paths.

    Paths are keys and indices with dots; `*` stands for every key or index of one level, `**` for any number of levels.
    Made once, never changed, safe for use in many threads.

    Attributes:
        ignored: Paths that are never read. One without a dot is a name, and is left out wherever it stands.
        sets: Paths whose lists have no order.
        times: Paths whose texts are times.
        non_finite: Paths whose numbers may be NaN or infinite.
        bytes_max: The most bytes of the canonical text; at least 1.
    """

    ignored: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    non_finite: tuple[str, ...] = ()
    bytes_max: int = BYTES_MAX
    _names: frozenset[str] = field(init=False, repr=False, compare=False)
    _places: Places = field(init=False, repr=False, compare=False)
    _marks: tuple[bytes, ...] | None = field(init=False, repr=False, compare=False)
    _any_mark: re.Pattern[bytes] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = frozenset(path for path in self.ignored if is_bare_name(path))
        below = rests_of(path for path in self.ignored if path not in names)
        places = Places(below, rests_of(self.sets), rests_of(self.times), rests_of(self.non_finite))
        marks = _marks(self.ignored)
        alternatives = b"|".join(map(re.escape, (mark[1:] for mark in marks or ())))
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_places", places if any(places) else NOWHERE)
        object.__setattr__(self, "_marks", None if self.sets or self.times else marks)
        object.__setattr__(self, "_any_mark", re.compile(b'"(?:' + alternatives + b")") if marks else None)


class Canonical(NamedTuple):
    """The canonical form of a state: a finished copy that shares nothing with the state.

    Attributes:
        json: The canonical text; empty when there are faults.
        digest: SHA-256 in hexadecimal of the text and of where which kinds stand; of the text alone when there are no
            kinds. Empty when there are faults.
        faults: Where the state has no canonical form, at most 20 places.
        local: Places that were left out because the rules ignore them, at most 20.
        forms: The tree with its kinds; None when the state was plain JSON values, so that `json` says all.
    """

    json: bytes
    digest: str
    faults: tuple[Fault, ...] = ()
    local: tuple[tuple[str | int, ...], ...] = ()
    forms: Tree = None

    @property
    def value(self) -> Any:
        """The canonical value as plain JSON data, made anew each time; None when there are faults."""
        return orjson.loads(self.json) if self.json else None

    @property
    def tree(self) -> Tree:
        """The canonical value in which each kind is told; not to be changed."""
        return self.value if self.forms is None else self.forms


_PLAIN: Final = CanonicalRules()


def canonical_form(state: object, *, rules: CanonicalRules = _PLAIN, like: Canonical | None = None) -> Canonical:
    """Return the canonical form of a state; nothing is raised, whatever the state does.

    A state of plain JSON values is read by the encoders alone, unless the rules declare sets or times. No other thread
    may change the state meanwhile; when this returns, nobody can change the form.

    Args:
        state: Anything.
        rules: What is left out and what stands at some paths.
        like: A form by the same rules that this one probably equals, such as that of the other side of a crossing: what
            is known of the same text, its digest above all, is not found out again.
    """
    plain = _plain_form(state, rules, like)
    if plain is not None:
        return plain
    tree = CanonicalTree(rules._places, rules._names, bytes_max=rules.bytes_max)
    forms = tree.of(state)
    text = b"" if tree.faults else json_of(forms)
    if len(text) > rules.bytes_max:
        tree.faults.append(Fault("too_large", (), kind_of(state)))
    if tree.faults:
        return Canonical(b"", "", tuple(tree.faults), tuple(tree.local))
    kinds = kinds_in(forms)
    seal = hashlib.sha256(text)
    if kinds:
        seal.update(b"\n" + orjson.dumps(kinds))
    return Canonical(text, seal.hexdigest(), (), tuple(tree.local), forms)


def _plain_form(state: Any, rules: CanonicalRules, like: Canonical | None) -> Canonical | None:
    """Return the form of a state of plain JSON values; None when it must be walked."""
    if rules._marks is None:
        return None
    local: tuple[tuple[str | int, ...], ...] = ()
    try:
        if type(state) is dict and not rules._names.isdisjoint(state):
            local = tuple((name,) for name in sorted(rules._names.intersection(state)))
            state = {key: value for key, value in state.items() if key not in rules._names}
        text = _plain_text(state)
    except Exception:  # noqa: BLE001 - a foreign key may raise whatever is asked of it: the walk names it
        return None
    if text is None:
        return None
    if like is not None and like.forms is None and like.json == text:
        return like if like.local == local else like._replace(local=local)
    if len(text) > rules.bytes_max or _holds_a_mark(text, rules):
        return None
    return Canonical(text, hashlib.sha256(text).hexdigest(), (), local)


def _plain_text(state: object) -> bytes | None:
    """Return the JSON of a state of plain values; None when it is anything else, too deep, or holds an odd number."""
    is_small = _is_small(state)
    if is_small is None:
        return None
    packed = ormsgpack.packb(state if is_small else _deep(state), option=_STRICT)
    text = canonical(state)
    is_odd = _ODD_FLOAT.search(packed) is not None and (b"null" in text or b"-0.0" in text)
    return None if is_odd else text


def _is_small(state: object) -> bool | None:
    """Return whether a state is known to be small and not too deep; None when it must be walked.

    The parts of a large state are not all looked at. That one of the first stands there twice is a sign that they stand
    there so often that no encoder comes to an end.
    """
    level: list[object] = [state]
    seen = 0
    for _ in range(DEPTH_MAX):
        level = gc.get_referents(*level)
        seen += len(level)
        if not level:
            return True
        if seen > _SMALL:
            parts = [id(part) for part in itertools.islice(level, _SMALL) if type(part) is dict or type(part) is list]
            return False if len(set(parts)) == len(parts) else None
    return None if any(isinstance(part, dict | list | tuple) for part in level) else True


def _deep(state: object) -> object:
    """Return a state in so many lists that the strict encoder refuses it when it is too deep."""
    for _ in range(_LEVELS_BEYOND):
        state = [state]
    return state


def _holds_a_mark(text: bytes, rules: CanonicalRules) -> bool:
    """Return whether a key stands in a text at which an ignored path may end.

    The one pattern stops at every quote, so for many short texts a search for each key is faster.
    """
    if not rules._marks or rules._any_mark is None:
        return False
    if len(text) < _QUOTES_FEW or text.count(b'"', 0, _QUOTES_SAMPLED) < _QUOTES_FEW:
        return rules._any_mark.search(text) is not None
    return any(mark in text for mark in rules._marks)
