"""The policy of a boundary: which paths must arrive as they left, which may change or stay behind, and what follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from handoffwatch.boundary.transforms import Transform
from handoffwatch.errors import RegistrationError
from handoffwatch.values.canonical import BYTES_MAX, CanonicalRules
from handoffwatch.values.json_text import kind_of
from handoffwatch.values.names import is_name
from handoffwatch.values.paths import (
    Rests,
    dotted,
    is_bare_name,
    is_path,
    is_reached,
    names_or_leads_to,
    rests_below,
    rests_of,
)
from handoffwatch.values.redaction import Redaction
from handoffwatch.vocabulary import OnFailure

SCHEMA_VERSION: Final = "schema_version"
"""The path that must always arrive as it left."""

REST: Final = "**"
"""The pattern of everything that no other pattern of a policy names."""


class ExactPaths(NamedTuple):
    """The exact paths, sorted by how they are looked up.

    Attributes:
        patterns: All of them, `schema_version` first.
        top: Those of one key.
        deep: The keys and indices of those that lead to one place further down.
        wild: Those that lead to many places.
    """

    patterns: tuple[str, ...]
    top: frozenset[str]
    deep: tuple[tuple[str, ...], ...]
    wild: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoundaryPolicy:
    """What must survive the crossings of one route. Made once, never changed, safe for use in many threads.

    Paths are keys and indices with dots; `*` stands for every key or index of one level, `**` for any number of levels.
    In `ignore_paths`, `redact` and `secret` a path without a dot is a name and matches at any depth; everywhere else it
    stands at the top. What no path names is compared too: everything that is not ignored must arrive.

    Attributes:
        schema_version: The version that states must have, as text; None takes any.
        exact_paths: Must be there on both sides, and equal. `schema_version` always is, and comes first.
        ignore_paths: Local: never compared, and a warning where found on the far side.
        sets: Lists without an order.
        times: Texts that are times.
        non_finite: Numbers that may be NaN or infinite.
        transforms: What may become of a path, by path.
        artifacts: Lists of artefacts.
        secret: Compared, and left out of what is written and of digests that leave the process.
        redact: Compared, and left out of what is written.
        omit: Compared, and left out of snapshots altogether.
        on_failure: What follows a divergence.
        bytes_max: The most bytes of a canonical state; at least 1.

    Raises:
        RegistrationError: A path is none, or two categories contradict each other.

    Source: DESIGN section 8.
    """

    schema_version: str | None = None
    exact_paths: tuple[str, ...] = ()
    ignore_paths: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    non_finite: tuple[str, ...] = ()
    transforms: Mapping[str, Transform] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    redact: tuple[str, ...] = ()
    omit: tuple[str, ...] = ()
    on_failure: OnFailure = OnFailure.STOP
    bytes_max: int = BYTES_MAX
    exact: ExactPaths = field(init=False, repr=False, compare=False)
    rules: CanonicalRules = field(init=False, repr=False, compare=False)
    redaction: Redaction = field(init=False, repr=False, compare=False)
    transformed_places: Rests = field(init=False, repr=False, compare=False)
    named_places: Rests = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in _PATH_FIELDS:
            object.__setattr__(self, name, _paths(name, getattr(self, name)))
        _paths("transforms", tuple(self.transforms))
        if self.schema_version is not None and not is_name(self.schema_version):
            raise RegistrationError(
                f"policy: schema_version: must be a text of 1 to 100 printable characters, got "
                f"{kind_of(self.schema_version)}",
                hint='schema_version="1"',
            )
        exact = tuple(dict.fromkeys((SCHEMA_VERSION, *self.exact_paths)))
        contradiction = contradiction_in(exact, self.ignore_paths, self.transforms)
        if contradiction is not None:
            raise RegistrationError(f"policy: {contradiction}", hint="name the path in one of the two")
        object.__setattr__(self, "transforms", MappingProxyType(dict(self.transforms)))
        object.__setattr__(self, "exact", _sorted(exact))
        object.__setattr__(
            self,
            "rules",
            CanonicalRules(self.ignore_paths, self.sets, self.times, self.non_finite, bytes_max=self.bytes_max),
        )
        object.__setattr__(self, "redaction", Redaction((*self.redact, *self.secret)))
        object.__setattr__(self, "transformed_places", rests_of(self.transforms))
        object.__setattr__(self, "named_places", rests_of((*exact, *self.transforms)))

    def shown(self, place: Sequence[str | int]) -> str:
        """Return a place of a state as a path that may be shown: without what stands below a secret, or is one."""
        hidden = (*self.redact, *self.secret)
        for length in range(1, len(place)):
            if any(names_or_leads_to(each, tuple(place[:length])) for each in hidden):
                place = place[:length]
                break
        return dotted(self.redaction.redacted_text(str(part)) for part in place)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns that a divergence can break, each once; `**` is everything that no other names."""
        return tuple(dict.fromkeys((*self.exact.patterns, *self.transforms, *self.artifacts, REST)))


_PATH_FIELDS: Final = (
    "exact_paths", "ignore_paths", "sets", "times", "non_finite", "artifacts", "secret", "redact", "omit",
)  # fmt: skip


def contradiction_in(exact: Iterable[str], ignored: Iterable[str], transformed: Iterable[str]) -> str | None:
    """Return which rule of the categories is broken, naming the path; None when they agree.

    An exact or transformed path must not lead into what is ignored, and no path may be both exact and transformed.
    """
    ignored, transformed = tuple(ignored), tuple(transformed)
    rests = rests_of(f"**.{path}" if is_bare_name(path) else path for path in ignored)
    for category, patterns in (("exact_paths", tuple(exact)), ("transforms", transformed)):
        for pattern in patterns:
            left = rests
            for part in pattern.split("."):
                left = rests_below(left, part)
                if is_reached(left):
                    return f"{category}: {pattern}: must not lead to what ignore_paths leaves out"
            if category == "exact_paths" and pattern in transformed:
                return f"{category}: {pattern}: must not be in transforms as well"
    return None


def _sorted(patterns: tuple[str, ...]) -> ExactPaths:
    parts = {pattern: tuple(pattern.split(".")) for pattern in patterns}
    wild = tuple(pattern for pattern in patterns if not {"*", "**"}.isdisjoint(parts[pattern]))
    plain = [parts[pattern] for pattern in patterns if pattern not in wild]
    return ExactPaths(
        patterns,
        frozenset(path[0] for path in plain if len(path) == 1),
        tuple(path for path in plain if len(path) > 1),
        wild,
    )


def _paths(name: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise RegistrationError(
            f"policy: {name}: must be a list of paths, got {kind_of(given)}", hint=f'{name}=("task.id", "artifacts")'
        )
    paths = tuple(given)
    wrong = [path for path in paths if not is_path(path)]
    if wrong:
        raise RegistrationError(
            f"policy: {name}: must be keys and indices with dots between them, got {kind_of(wrong[0])}",
            hint=f'{name}=("task.id", "artifacts")',
        )
    return tuple(dict.fromkeys(paths))
