"""One step between two schema versions: what must hold before it, during it and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from handoffwatch.boundary.comparison import PLACES_MAX
from handoffwatch.boundary.findings import finding_of
from handoffwatch.boundary.transforms import Transform
from handoffwatch.decision import Finding
from handoffwatch.values.canonical import Canonical, CanonicalRules, canonical_form
from handoffwatch.values.canonical_tree import Tree
from handoffwatch.values.difference import Difference, Path, bare, differences, differences_at, trace
from handoffwatch.values.json_text import kind_of
from handoffwatch.values.paths import Rests, dotted, is_reached, rests_below, rests_of
from handoffwatch.vocabulary import DivergenceKind, Stage

Migration = Callable[[Any], Any]
"""Called with a copy of the state, which it must not change; returns the state of the next version."""


class Taken(NamedTuple):
    """What a step made of a state.

    Attributes:
        state: What its function returned; None with findings.
        form: The canonical form of that.
        findings: Which of its conditions do not hold.
    """

    state: Any
    form: Canonical
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A function between two neighbouring versions, and what must hold.

    Attributes:
        from_version: That of the source.
        to_version: That of the result.
        function: What takes a state from the one to the other.
        keeps: Paths that must be in the source, and the same in the result.
        moves: By path in the source the path in the result.
        fills: Paths of the result that the source may lack.
        source: What else must hold of the source.
        check: What else must hold of source and result.
    """

    from_version: str
    to_version: str
    function: Migration
    keeps: tuple[str, ...]
    moves: Mapping[str, str]
    fills: tuple[str, ...]
    source: Transform
    check: Transform

    def taken(self, state: Any, form: Canonical, *, version_path: str, rules: CanonicalRules) -> Taken:
        """Return what the step makes of a state; nothing is raised.

        Args:
            state: A copy that nobody else holds, of `from_version`.
            form: Its canonical form.
            version_path: Where a state says its version.
            rules: How states are read.
        """
        found = bounded(self._source_faults(form))
        if found:
            return Taken(None, form, found)
        try:
            result = self.function(state)
        except Exception as error:  # noqa: BLE001 - a step that raises proves nothing: it fails closed
            return Taken(None, form, (failed("$", f"{self.name} raised {kind_of(error)}"),))
        after = canonical_form(result, rules=rules)
        found = bounded(self._result_faults(state, form, after, version_path, rules))
        return Taken(None if found else result, after, found)

    @property
    def name(self) -> str:
        """The step in words."""
        return f"the migration from {self.from_version} to {self.to_version}"

    def _source_faults(self, form: Canonical) -> Iterator[Finding]:
        yield from _broken(self.source, form.value, None)
        tree = form.tree
        for pattern in (*self.keeps, *self.moves):
            for place in trace(tree, pattern).absent:
                yield failed(dotted(place), f"{dotted(place)} must be there before {self.name}")

    def _result_faults(
        self, state: Any, before: Canonical, after: Canonical, version_path: str, rules: CanonicalRules
    ) -> Iterator[Finding]:
        if canonical_form(state, rules=rules).digest != before.digest:
            yield failed("$", f"{self.name} must not change the state that it is given")
        yield from form_faults(after)
        if after.faults:
            return
        old, new = before.tree, after.tree
        yield from wrong_version(new, version_path, self.to_version)
        elsewhere = rests_of((version_path, *self.moves, *self.moves.values()))
        for pattern in self.keeps:
            for each in differences_at(trace(old, pattern), trace(new, pattern), but=elsewhere):
                if not self._may_fill(each, new):
                    yield failed(dotted(each.path), f"{dotted(each.path)} must be kept by {self.name}")
        for source, target in self.moves.items():
            yield from self._moved(old, new, source, target)
        for each in differences(old, new, but=elsewhere):
            if _is_filled(each) and not self._may_fill(each, new):
                yield failed(dotted(each.path), f"{dotted(each.path)} must not be filled in by {self.name}")
        yield from _broken(self.check, before.value, after.value)

    def _moved(self, old: Tree, new: Tree, source: str, target: str) -> Iterator[Finding]:
        there, here = trace(old, source).found, trace(new, target).found
        is_kept = len(there) == len(here) and not any(
            next(differences(*pair), None) for pair in zip(there.values(), here.values(), strict=True)
        )
        if not is_kept:
            yield failed(target, f"{dotted((target,))} must have what {dotted((source,))} had before {self.name}")

    def _may_fill(self, each: Difference, new: Tree) -> bool:
        """Return whether all that is new at a place is declared to be filled in, or moved there."""
        declared = rests_of((*self.fills, *self.moves.values()))
        return _is_filled(each) and all(_is_under(declared, place) for place in _leaves(new, each.path))


def failed(path: str, sentence: str) -> Finding:
    """Return the finding that a state could not be migrated."""
    return finding_of("migration_failed", path, sentence, stage=Stage.DESERIALIZE)


def form_faults(form: Canonical) -> Iterator[Finding]:
    """Yield where a state has no canonical form."""
    for fault in form.faults:
        path = dotted(fault.path)
        yield failed(path, fault.sentence(path))


def wrong_version(tree: Tree, path: str, version: str) -> Iterator[Finding]:
    """Yield that a state does not say the version; 1 and "1" are the same."""
    said = list(trace(tree, path).found.values())
    if len(said) != 1 or type(said[0]) not in (str, int) or str(said[0]) != version:
        yield failed(path, f"{dotted((path,))} must be {version}")


def bounded(findings: Iterator[Finding]) -> tuple[Finding, ...]:
    """Return the first findings, one for each path."""
    by_path: dict[str, Finding] = {}
    for finding in findings:
        by_path.setdefault(finding.path, finding)
        if len(by_path) == PLACES_MAX:
            break
    return tuple(by_path.values())


def _broken(condition: Transform, before: Any, after: Any) -> Iterator[Finding]:
    try:
        broken = condition.broken_at(before, after)
    except Exception as error:  # noqa: BLE001 - a condition that raises proves nothing: it fails closed
        yield failed("$", f"{condition.name} raised {kind_of(error)}")
        return
    for below in broken or ():
        path = dotted((below,) if below else ())
        yield failed(path, f"{path} must be as {condition.name} asks")


def _is_filled(each: Difference) -> bool:
    """Return whether something stands where nothing, null or an empty value stood."""
    if each.kind is DivergenceKind.MISSING:
        return False
    return each.kind is DivergenceKind.ADDED or each.before == "null" or each.before.startswith("an empty")


def _is_under(declared: Rests, place: Path) -> bool:
    """Return whether a path leads to a place or to what it stands in."""
    for key in place:
        declared = rests_below(declared, key)
        if is_reached(declared):
            return True
    return False


def _leaves(tree: Tree, place: Path) -> Iterator[Path]:
    """Yield the places at and below one that hold no further ones."""
    for key in place:
        tree = bare(tree)[key]
    stack = [(place, tree)]
    while stack:
        here, value = stack.pop()
        below = bare(value)
        children = list(below.items() if type(below) is dict else enumerate(below) if type(below) is list else ())
        stack += [((*here, key), child) for key, child in reversed(children)]
        if not children:
            yield here
