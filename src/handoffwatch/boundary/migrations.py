"""Migrations: plain functions that take a state from one schema version to the next, and what must hold afterwards."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from handoffwatch.boundary.migration_steps import Migration, Step, bounded, failed, form_faults, wrong_version
from handoffwatch.boundary.policy import SCHEMA_VERSION
from handoffwatch.boundary.transforms import PostCondition, Transform
from handoffwatch.decision import Finding
from handoffwatch.errors import RegistrationError
from handoffwatch.values.canonical import CanonicalRules, canonical_form
from handoffwatch.values.json_text import kind_of
from handoffwatch.values.names import is_name
from handoffwatch.values.paths import is_path

SourceCheck = Callable[[Any], bool | Iterable[str]]
"""Called with the state before the step, as plain JSON data of its own: True when it is one of that version, else False
or the paths at which it is not."""

_RULES: Final = CanonicalRules()


class Migrated(NamedTuple):
    """What became of a state.

    Attributes:
        state: The state of the wanted version, which shares nothing with the one that was given; None with findings.
        findings: Why it could not be migrated; each is `migration_failed` and names no value.
    """

    state: Any
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class Migrations:
    """The steps between the schema versions of one kind of state; each version has one next version.

    Filled when the program starts; then safe for use in many threads.

    Attributes:
        version_path: Where a state says its version.
        rules: How states are read; `policy.rules` leaves out what is local.
    """

    version_path: str = SCHEMA_VERSION
    rules: CanonicalRules = _RULES
    _steps: dict[str, Step] = field(default_factory=dict, init=False)

    def add(
        self,
        from_version: str,
        to_version: str,
        function: Migration,
        *,
        keeps: Iterable[str] = (),
        moves: Mapping[str, str] | None = None,
        fills: Iterable[str] = (),
        source: SourceCheck | None = None,
        check: PostCondition | None = None,
    ) -> None:
        """Register the step from one version to the next.

        Nothing is filled in silently: where the source has nothing, null or an empty value, the result has the same,
        unless a path of `fills`, or a new path of `moves`, leads there.

        Args:
            from_version: That of the source, as text.
            to_version: That of the result; the function writes it into the state.
            function: The step.
            keeps: Paths that must be in the source, and the same in the result.
            moves: By path in the source the path in the result; what stood at the one must stand at the other.
            fills: Paths of the result that the source may lack.
            source: Whether a state is one of `from_version`; looked at before the function is called.
            check: What else must hold afterwards, called with the state before and after.

        Raises:
            RegistrationError: A version is none, or the steps would branch or lead in a circle; a path is none.
        """
        for version in (from_version, to_version):
            if not is_name(version):
                raise RegistrationError(
                    f"migration: version: must be a text of 1 to 100 printable characters, got {kind_of(version)}",
                    hint='migrations.add("1", "2", function)',
                )
        where = f"migration {from_version} to {to_version}"
        reached = {step.to_version for step in self._steps.values()}
        if from_version in self._steps or to_version in reached or from_version in self._from(to_version):
            raise RegistrationError(
                f"{where}: versions: must make one line with those of the other migrations",
                hint="register one migration from each version, to the version after it",
            )
        moved = dict(moves or {})
        self._steps[from_version] = Step(
            from_version,
            to_version,
            function,
            keeps=_paths(where, "keeps", keeps),
            moves=dict(zip(_paths(where, "moves", moved), _paths(where, "moves", moved.values()), strict=True)),
            fills=_paths(where, "fills", fills),
            source=Transform(f"the source check of {where}", (lambda before, _: source(before)) if source else _holds),
            check=Transform(f"the check of {where}", check or _holds),
        )

    def migrate(self, state: object, from_version: str, to_version: str) -> Migrated:
        """Return a state in a later version; the given one is not changed, and nothing is raised.

        Each step is judged for itself, and the first that breaks a condition ends it.

        Args:
            state: What arrived. It says its version at `version_path`; 1 and "1" are the same.
            from_version: The version that it must have.
            to_version: The version that is wanted: the same, or a later one.
        """
        form = canonical_form(state, rules=self.rules)
        line = self._from(from_version)
        found = bounded(form_faults(form))
        if not found and not (self._is_known(from_version) and to_version in line):
            found = (failed(self.version_path, f"{self.version_path} must be one that leads to the wanted version"),)
        found = found or bounded(wrong_version(form.tree, self.version_path, from_version))
        if found:
            return Migrated(None, found)
        try:
            mine = copy.deepcopy(state)
        except Exception as error:  # noqa: BLE001 - a foreign value may raise whatever is asked of it
            return Migrated(
                None, (failed("$", f"the state must be one that can be copied: it raised {kind_of(error)}"),)
            )
        for version in line[: line.index(to_version)]:
            taken = self._steps[version].taken(mine, form, version_path=self.version_path, rules=self.rules)
            if taken.findings:
                return Migrated(None, taken.findings)
            mine, form = taken.state, taken.form
        return Migrated(mine, ())

    def _from(self, version: str) -> list[str]:
        """Return a version and those after it, in their order."""
        line = [version]
        while line[-1] in self._steps:
            line.append(self._steps[line[-1]].to_version)
        return line

    def _is_known(self, version: str) -> bool:
        return version in self._steps or any(step.to_version == version for step in self._steps.values())


def _paths(where: str, what: str, given: Iterable[str]) -> tuple[str, ...]:
    paths = () if isinstance(given, str) else tuple(given)
    if isinstance(given, str) or not all(map(is_path, paths)):
        raise RegistrationError(
            f"{where}: {what}: must be paths, keys and indices with dots between them",
            hint=f'{what}=["task.id", "artifacts"]',
        )
    return paths


def _holds(_before: Any, _after: Any) -> bool:
    return True
