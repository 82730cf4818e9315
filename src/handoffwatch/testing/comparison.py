"""What two versions of a registry say about the same handoffs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from handoffwatch.decision import Decision
from handoffwatch.testing.cases import Case, Expectation

if TYPE_CHECKING:
    from handoffwatch.testing.registry import Registry

CHANGES_SHOWN: Final = 20
VALUE_CHARACTERS_SHOWN: Final = 60

_GENERATED_ID: Final = "missing_handoff_id"


class Change(NamedTuple):
    """A value of the normalised handoff that differs; the side that lacks it has `is_in_old` or `is_in_new` false."""

    path: str
    old: object
    new: object
    is_in_old: bool = True
    is_in_new: bool = True

    def line(self) -> str:
        """Return the change for a person; the values are those of the case and of the contract's defaults."""
        old = _shown(self.old) if self.is_in_old else "absent"
        new = _shown(self.new) if self.is_in_new else "absent"
        return f"  ~ {self.path}: {old} -> {new}"

    def to_json(self) -> dict[str, Any]:
        """Return the change as plain data; the side that lacks the value has no key."""
        sides = {"old": self.old} if self.is_in_old else {}
        return {"path": self.path, **sides, **({"new": self.new} if self.is_in_new else {})}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The decisions of two registries about one case."""

    case: Case
    old: Decision
    new: Decision

    @property
    def gone(self) -> list[str]:
        """The codes, with their paths, that only the old one found."""
        return _without(self.old, self.new)

    @property
    def come(self) -> list[str]:
        """The codes, with their paths, that only the new one found."""
        return _without(self.new, self.old)

    @property
    def normalized(self) -> list[Change]:
        """What differs in the normalised handoff; nothing when either has none, or only one route is in shadow mode."""
        old, new = self.old.normalized_payload, self.new.normalized_payload
        if old is None or new is None or self.old.mode is not self.new.mode:
            return []
        if _GENERATED_ID in self.old.reasons and _GENERATED_ID in self.new.reasons:
            old, new = dict(old), dict(new)
            old.pop("handoff_id", None)
            new.pop("handoff_id", None)
        return list(_changes(old, new, ()))

    @property
    def is_equal(self) -> bool:
        """Whether verdict, mode, codes and the normalised handoff are the same."""
        is_same = (self.old.verdict, self.old.mode) == (self.new.verdict, self.new.mode)
        return is_same and not self.gone and not self.come and not self.normalized

    def lines(self) -> list[str]:
        """Return what changes, for a person."""
        lines = [self.case.name]
        if self.old.verdict is not self.new.verdict:
            lines.append(f"  verdict: {self.old.verdict} -> {self.new.verdict}")
        if self.old.mode is not self.new.mode:
            lines.append(f"  mode: {self.old.mode} -> {self.new.mode}")
        lines += [f"  - {code}" for code in self.gone] + [f"  + {code}" for code in self.come]
        changes = self.normalized
        lines += [change.line() for change in changes[:CHANGES_SHOWN]]
        if len(changes) > CHANGES_SHOWN:
            lines.append(f"  ~ and {len(changes) - CHANGES_SHOWN} more")
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return both decisions in short and what changes, as plain data."""
        return {
            "case": self.case.name,
            "old": _in_short(self.old),
            "new": _in_short(self.new),
            "gone": self.gone,
            "come": self.come,
            "normalized": [change.to_json() for change in self.normalized],
        }


def compare(case: Case, old: Registry, new: Registry) -> Comparison:
    """Return what two registries say about one case.

    Raises:
        TypeError: A registry is neither a Watch nor a Watchdog.
    """
    return Comparison(case, case.judge(old), case.judge(new))


def _without(these: Decision, those: Decision) -> list[str]:
    known = set(Expectation.of(those).codes)
    return [code for code in Expectation.of(these).codes if code not in known]


def _changes(old: object, new: object, path: tuple[str, ...]) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _member(old, new, key, (*path, str(key)))
    elif isinstance(old, list) and isinstance(new, list):
        before, after = dict(enumerate(old)), dict(enumerate(new))
        for index in range(max(len(old), len(new))):
            yield from _member(before, after, index, (*path, str(index)))
    elif type(old) is not type(new) or old != new:
        yield Change(_dotted(path), old, new)


def _member(old: dict[Any, Any], new: dict[Any, Any], key: object, path: tuple[str, ...]) -> Iterator[Change]:
    if key in old and key in new:
        yield from _changes(old[key], new[key], path)
    else:
        yield Change(_dotted(path), old.get(key), new.get(key), is_in_old=key in old, is_in_new=key in new)


def _dotted(path: tuple[str, ...]) -> str:
    text = ".".join(path) or "$"
    return "".join(character if character.isprintable() else "?" for character in text)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= VALUE_CHARACTERS_SHOWN else f"{text[:VALUE_CHARACTERS_SHOWN]}…"


def _in_short(decision: Decision) -> dict[str, Any]:
    return {"allowed": decision.allowed, "mode": str(decision.mode), **Expectation.of(decision).to_json()}
