"""What a snapshot file holds: the canonical state without what is secret, local or omitted, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from handoffwatch.boundary.policy import SCHEMA_VERSION, BoundaryPolicy
from handoffwatch.values.canonical import Canonical
from handoffwatch.values.canonical_tree import BYTES, kinds_in
from handoffwatch.values.difference import Path
from handoffwatch.values.json_text import canonical
from handoffwatch.values.paths import Rests, dotted, is_reached, leads_to, names_or_leads_to, rests_below, rests_of
from handoffwatch.values.redaction import Redaction
from handoffwatch.values.secret_shapes import REDACTED

PLACES_MAX: Final = 100
"""Redacted places that are noted, so that a long list of them stays short."""

BYTES_TOLD_MIN: Final = 256
"""Bytes from which on their digest is written: what fewer bytes hold can be found by trying."""

_VERSION_CHARACTERS_MAX: Final = 100


class SnapshotText(NamedTuple):
    """What is written of a state.

    Attributes:
        json: The content of the file.
        schema_version: As it stands in the file; None when there is none.
        ignored: The ignored paths of the policy that stood in the state; at most 20 places of it were looked at.
        omitted: The omitted paths of the policy that stood in the state.
        redacted: Places at which something was redacted or cut off, at most 100.
    """

    json: bytes
    schema_version: str | int | None
    ignored: tuple[str, ...]
    omitted: tuple[str, ...]
    redacted: tuple[str, ...]


def snapshot_text(form: Canonical, policy: BoundaryPolicy) -> SnapshotText:
    """Return what is written of a state. The form is not changed, and equal forms give equal texts.

    Args:
        form: Of the state, by the rules of the policy, without faults.
        policy: Says what is redacted and omitted.
    """
    omit, redaction = policy.omit, policy.redaction
    if any(path.rpartition(".")[2].isdigit() for path in policy.ignore_paths):
        omit, redaction = _of_any_index(omit), Redaction(_of_any_index(redaction.paths))
    value = form.value
    written = _Written(omit, (path for path, kind in kinds_in(form.forms) if kind == BYTES))
    copy = written.of(value, redaction.redacted(value))
    version = copy.get(SCHEMA_VERSION) if type(copy) is dict else None
    if type(version) is str:
        version = version[:_VERSION_CHARACTERS_MAX]
    return SnapshotText(
        json=canonical(copy),
        schema_version=version if type(version) in (str, int) else None,
        ignored=_met(policy.ignore_paths, form.local),
        omitted=tuple(path for path in omit if path in written.omitted),
        redacted=tuple(dict.fromkeys(written.redacted)),
    )


class _Written:
    """One copy that is being cut down, and what was cut.

    Attributes:
        omitted: The paths that led somewhere.
        redacted: Where something was redacted, told by the keys that are written.
    """

    def __init__(self, omit: tuple[str, ...], bytes_at: Iterable[Path]) -> None:
        self.omitted: set[str] = set()
        self.redacted: list[str] = []
        self._omit = omit
        self._bytes_at = frozenset(bytes_at)

    def of(self, value: Any, copy: Any) -> Any:
        """Return a redacted copy of a canonical value without what is omitted."""
        return self._cut(value, copy, (), (), rests_of(self._omit))

    def _cut(self, value: Any, copy: Any, place: Path, shown: Path, rests: Rests) -> Any:
        if place in self._bytes_at and type(copy) is dict and value["length"] < BYTES_TOLD_MIN:
            self._note(shown)
            return {"length": value["length"], "sha256": REDACTED}
        if type(value) is not type(copy) or type(value) not in (dict, list):
            if copy != value or copy == REDACTED:
                self._note(shown)
            return copy
        kept = []
        for (key, child), (seen, written) in zip(_members(value), _members(copy), strict=False):
            here, below = (*place, key), rests_below(rests, key)
            if self._is_omitted(here, below):
                continue
            if key != seen:
                self._note((*shown, seen))
            kept.append((seen, self._cut(child, written, here, (*shown, seen), below)))
        return dict(kept) if type(value) is dict else [written for _, written in kept]

    def _is_omitted(self, place: Path, rests: Rests) -> bool:
        if not is_reached(rests):
            return False
        self.omitted.update(path for path in self._omit if path not in self.omitted and leads_to(path, place))
        return True

    def _note(self, shown: Path) -> None:
        if len(self.redacted) < PLACES_MAX:
            self.redacted.append(dotted(shown))


def _members(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if type(value) is dict else enumerate(value)


def _met(ignored: tuple[str, ...], local: tuple[Path, ...]) -> tuple[str, ...]:
    """Return the ignored paths that met something, as the policy has them: keys of a state may be secret."""
    return tuple(path for path in ignored if any(names_or_leads_to(path, place) for place in local))


def _of_any_index(paths: Iterable[str]) -> tuple[str, ...]:
    """Return paths that lead to every element of a list, not to one: where elements stay behind, the others move up."""
    return tuple(".".join("*" if part.isdigit() else part for part in path.split(".")) for path in paths)
