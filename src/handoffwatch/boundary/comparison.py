"""The comparison: what left against what arrived, and what a policy says about it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import orjson

from handoffwatch.boundary.findings import finding_of
from handoffwatch.boundary.policy import REST, SCHEMA_VERSION, BoundaryPolicy, ExactPaths
from handoffwatch.decision import Finding, reacting
from handoffwatch.values.canonical import Canonical, canonical_form
from handoffwatch.values.canonical_tree import Form, Tree, json_of
from handoffwatch.values.difference import NOTHING, Difference, Path, Traced, differences, differences_at, trace
from handoffwatch.values.json_text import kind_of
from handoffwatch.values.paths import leads_to, names_or_leads_to, rests_of
from handoffwatch.vocabulary import DivergenceKind, Reaction, Stage

PLACES_MAX: Final = 20
"""Findings of one pattern, so that one lost list does not hide the other patterns."""

_CODES: Final = {
    DivergenceKind.MISSING: "value_missing",
    DivergenceKind.ADDED: "value_added",
    DivergenceKind.CHANGED: "value_changed",
    DivergenceKind.TYPE: "type_changed",
    DivergenceKind.ORDER: "order_changed",
}


class Capture(NamedTuple):
    """A state on one side of a crossing, as a finished copy that shares nothing with it.

    Attributes:
        form: Its canonical form by the rules of the policy.
        is_whole: Whether every exact path leads somewhere.
        schema_version: The text or number at that path; None when nothing is there, empty when it is something else.
    """

    form: Canonical
    is_whole: bool
    schema_version: str | int | None


class Comparison(NamedTuple):
    """What a policy says about a crossing.

    Attributes:
        findings: In the order of the policy: what could not be captured, the exact paths, the transforms, the rest,
            then a warning for each local path that was found on the far side.
        patterns: Of each finding the pattern of the policy that it broke; `**` for the rest.
    """

    findings: tuple[Finding, ...]
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, found: Iterable[tuple[Finding, str]]) -> Comparison:
        """Return findings, each with the pattern that it broke, as a comparison."""
        pairs = tuple(found)
        return cls(tuple(finding for finding, _ in pairs), tuple(pattern for _, pattern in pairs))

    @property
    def diverged(self) -> tuple[str, ...]:
        """The patterns of the findings that block, each once: the labels `path` of handoff_divergences_total."""
        pairs = zip(self.findings, self.patterns, strict=True)
        return tuple(dict.fromkeys(pattern for found, pattern in pairs if found.reaction is Reaction.BLOCK))


Found = Iterator[tuple[Finding, str]]
"""Findings, each with the pattern that it broke."""

_EQUAL: Final = Comparison((), ())
_ABSENT: Final = object()


def capture(state: object, policy: BoundaryPolicy, *, like: Capture | None = None) -> Capture:
    """Return a state as it is now, for the comparison; nothing is raised, whatever the state does.

    No other thread may change the state meanwhile; when this returns, nobody can change the capture.

    Args:
        state: Anything.
        policy: That of the route.
        like: On the far side the capture of the state that left, under the same policy: a state that survived takes
            half the time then.
    """
    form = canonical_form(state, rules=policy.rules, like=like.form if like else None)
    if like is not None and form.json is like.form.json and form.forms is None and not form.faults:
        return like._replace(form=form)
    if form.faults:
        return Capture(form, False, None)
    tree = state if form.forms is None else form.forms
    top = tree.value if type(tree) is Form else tree
    if type(top) is not dict:
        return Capture(form, False, None)
    version = top.get(SCHEMA_VERSION, _ABSENT)
    says = None if version is _ABSENT else version if type(version) in (str, int) else ""
    return Capture(form, _is_whole(top, form, policy.exact), says)


def _is_whole(top: dict[str, Tree], form: Canonical, exact: ExactPaths) -> bool:
    """Return whether every exact path leads somewhere; the wild ones ask the form, which holds nothing local."""
    if not top.keys() >= exact.top or not all(_is_there(top, parts) for parts in exact.deep):
        return False
    if not exact.wild:
        return True
    whole = form.tree
    return not any(trace(whole, pattern).absent for pattern in exact.wild)


def compare(before: Capture, after: Capture, policy: BoundaryPolicy) -> Comparison:
    """Return what a policy says about a crossing.

    Equal digests end it at once. Else the exact paths are compared one by one, in the order of the policy, then the
    transforms, then everything else. Sentences name paths and kinds, never values. What could not be captured blocks:
    nothing else is compared then.

    Args:
        before: The state that left the sender.
        after: The state that reached the receiver, captured under the same policy.
        policy: That of the route.
    """
    is_right = _is_version_right(before, policy)
    is_equal = before.form.digest == after.form.digest != ""
    if is_equal and is_right and before.is_whole and not after.form.local:
        return _EQUAL
    found = [*_faults(before, policy, Stage.CAPTURE_BEFORE), *_faults(after, policy, Stage.CAPTURE_AFTER)]
    if not found:
        found += () if is_right else [_wrong_version(Stage.CAPTURE_BEFORE)]
        found += _divergences(before.form.tree, after.form.tree, policy)
    return Comparison.of(_once((*found, *_local(after, policy))))


def found_alone(side: Capture, policy: BoundaryPolicy) -> Found:
    """Yield what a policy says of a state that arrived, whatever left: its faults, a wrong version, local values."""
    version = () if _is_version_right(side, policy) else (_wrong_version(Stage.CAPTURE_AFTER),)
    yield from _once((*_faults(side, policy, Stage.CAPTURE_AFTER), *version, *_local(side, policy)))


def _once(found: Iterable[tuple[Finding, str]]) -> Found:
    first: dict[tuple[str, str], tuple[Finding, str]] = {}
    for pair in found:
        first.setdefault((pair[0].code, pair[0].path), pair)
    return iter(first.values())


def _is_version_right(side: Capture, policy: BoundaryPolicy) -> bool:
    return None in (policy.schema_version, side.schema_version) or str(side.schema_version) == policy.schema_version


def _is_there(tree: Tree, parts: tuple[str, ...]) -> bool:
    for index, part in enumerate(parts):
        if type(tree) is not dict:
            return not trace(tree, ".".join(parts[index:])).absent
        if part not in tree:
            return False
        tree = tree[part]
    return True


def _divergences(before: Tree, after: Tree, policy: BoundaryPolicy) -> Found:
    for pattern in policy.exact.patterns:
        both = trace(before, pattern), trace(after, pattern)
        found = differences_at(*both, but=policy.transformed_places)
        for difference in itertools.islice(found, PLACES_MAX):
            yield _of(difference, policy), pattern
    for pattern in policy.transforms:
        both = trace(before, pattern), trace(after, pattern)
        for finding in itertools.islice(_transformed(*both, pattern, policy), PLACES_MAX):
            yield finding, pattern
    for difference in itertools.islice(differences(before, after, but=policy.named_places), PLACES_MAX):
        yield _of(difference, policy)._replace(code="rest_changed"), REST


def _transformed(before: Traced, after: Traced, pattern: str, policy: BoundaryPolicy) -> Iterator[Finding]:
    """Yield where a path was lost or is new, and where it changed and the post-condition does not hold."""
    for difference in differences_at(before, after, but=rests_of((pattern,))):
        if difference.before != difference.after:
            yield _of(difference, policy)
    for place, old in before.found.items():
        if place in after.found and next(differences(old, after.found[place]), None) is not None:
            yield from _not_kept(place, old, after.found[place], pattern, policy)


def _not_kept(place: Path, before: Tree, after: Tree, pattern: str, policy: BoundaryPolicy) -> Iterator[Finding]:
    transform = policy.transforms[pattern]
    try:
        broken = transform.broken_at(_plain(before), _plain(after))
    except Exception as error:  # noqa: BLE001 - a post-condition that raises proves nothing: it fails closed
        path = policy.shown(place)
        sentence = f"{path}: the transform {transform.name} raised {kind_of(error)}, so nothing was proven"
        yield finding_of("check_failed", path, sentence)
        return
    for below in broken or ():
        path = policy.shown((*place, below) if below else place)
        yield finding_of("value_changed", path, f"{path} must be kept by the transform {transform.name}")


def _plain(tree: Tree) -> Any:
    return orjson.loads(json_of(tree))


def _faults(side: Capture, policy: BoundaryPolicy, stage: Stage) -> Found:
    for fault in side.form.faults:
        path = policy.shown(fault.path)
        yield finding_of(fault.code, path, fault.sentence(path), stage=stage), _pattern_of(fault.path, policy)


def _pattern_of(place: Path, policy: BoundaryPolicy) -> str:
    """Return the exact path that a place stands at or below."""
    above = [place[:length] for length in range(len(place) + 1)]
    exact = policy.exact.patterns
    return next((pattern for pattern in exact if any(leads_to(pattern, each) for each in above)), REST)


def _wrong_version(stage: Stage) -> tuple[Finding, str]:
    sentence = f"{SCHEMA_VERSION} must be the version that the policy names"
    return finding_of("unknown_schema_version", SCHEMA_VERSION, sentence, stage=stage), SCHEMA_VERSION


def _local(after: Capture, policy: BoundaryPolicy) -> Found:
    for place in after.form.local:
        path = policy.shown(place)
        pattern = next(each for each in policy.ignore_paths if names_or_leads_to(each, place))
        finding = finding_of("value_added", path, f"{path} is local and must stay behind", stage=Stage.CAPTURE_AFTER)
        yield reacting(finding, Reaction.WARN), pattern


def _of(difference: Difference, policy: BoundaryPolicy) -> Finding:
    path = policy.shown(difference.path)
    return finding_of(_CODES[difference.kind], path, _sentence(difference, path))


def _sentence(difference: Difference, path: str) -> str:
    if difference.kind is DivergenceKind.MISSING:
        if difference.before == NOTHING:
            return f"{path} must be there, and is on neither side"
        return f"{path} must arrive as it left, and is not there"
    if difference.kind is DivergenceKind.ADDED:
        return f"{path} must not be there: it was not sent"
    if difference.kind is DivergenceKind.TYPE:
        return f"{path} must be {difference.before} as before, and is {difference.after}"
    if difference.kind is DivergenceKind.ORDER:
        return f"{path} must keep the order that it had"
    emptied = f", and is {difference.after}" if difference.after.startswith("an empty") else ""
    return f"{path} must have the value that it had{emptied}"
