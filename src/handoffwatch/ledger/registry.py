"""What this process has registered: workflows with their operations and how each is read back, and routes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from handoffwatch.errors import RegistrationError
from handoffwatch.ledger.facts import RegisteredRows, Registration, RouteRegistration
from handoffwatch.outcomes import OperationKind, SettlementPolicy
from handoffwatch.vocabulary import OTHER, Criticality, Mode


class DeclaredWorkflow(Protocol):
    """A workflow as its owner declared it."""

    @property
    def name(self) -> str:
        """The label."""
        ...

    @property
    def operations(self) -> Collection[str]:
        """The names of the operations that its runs may claim."""
        ...


class DeclaredRoute(Protocol):
    """A route as its owner declared it."""

    @property
    def name(self) -> str:
        """The label."""
        ...

    @property
    def versions(self) -> Collection[str]:
        """The schema versions of its contracts; none on a route that is not checked."""
        ...

    @property
    def mode(self) -> Mode:
        """Whether the program obeys its checks."""
        ...

    @property
    def criticality(self) -> Criticality:
        """What a wrong handoff costs."""
        ...


@dataclass(frozen=True, slots=True)
class RegisteredKind:
    """An operation's kind with its own policy in place of the settings; `key` names the field of its business key."""

    name: str
    key: str
    criticality: Criticality
    policy: SettlementPolicy


@dataclass(slots=True)
class Registry:
    """What is registered. Not thread-safe: it is filled before the runs begin.

    Attributes:
        workflows: The kinds of the operations of each workflow that has some, by name.
        names: All workflows, with operations and without.
        routes: Every route with each of its schema versions.
    """

    workflows: dict[str, dict[str, RegisteredKind]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    routes: dict[tuple[str, str], RouteRegistration] = field(default_factory=dict)

    def add(
        self, workflows: Iterable[DeclaredWorkflow], kinds: Iterable[OperationKind], policy: SettlementPolicy
    ) -> None:
        """Add workflows with their operations.

        Raises:
            RegistrationError: A workflow names an operation that is not among `kinds`.
        """
        known = {kind.name: kind for kind in kinds}
        for workflow in workflows:
            self.names.add(workflow.name)
            for name in workflow.operations:
                kind = known.get(name)
                if kind is None:
                    raise RegistrationError(
                        f"workflow {workflow.name}: operation {name}: must be registered",
                        hint=f'call watch.operation("{name}", key=...) first',
                    )
                registered = RegisteredKind(name, kind.key, kind.criticality, kind.policy(policy))
                self.workflows.setdefault(workflow.name, {})[name] = registered

    def add_routes(self, routes: Iterable[DeclaredRoute]) -> None:
        """Add routes; one that is registered again has the mode and the criticality that it has now."""
        for route in routes:
            for version in route.versions or (OTHER,):
                registered = RouteRegistration(route.name, version, route.mode, route.criticality)
                self.routes[route.name, version] = registered

    def kind(self, workflow: str, name: str) -> RegisteredKind:
        """Return the kind of an operation of a workflow.

        Raises:
            RegistrationError: The workflow did not declare it, so that its series do not exist.
        """
        found = self.workflows.get(workflow, {}).get(name)
        if found is None:
            raise RegistrationError(
                f"workflow {workflow}: operation {name}: must be declared by the workflow",
                hint=f'write watch.workflow("{workflow}", operations=["{name}"])',
            )
        return found

    def rows(self) -> RegisteredRows:
        """Return everything that is registered."""
        pairs = ((workflow, kind) for workflow, kinds in self.workflows.items() for kind in kinds.values())
        return RegisteredRows(
            operations=frozenset(Registration(workflow, kind.name, kind.criticality) for workflow, kind in pairs),
            routes=frozenset(self.routes.values()),
            workflows=frozenset(self.names),
        )
