"""What this process has registered: which operations belong to which workflow, and how each is read back."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from handoffwatch.errors import RegistrationError
from handoffwatch.ledger.facts import Registration
from handoffwatch.outcomes import OperationKind, SettlementPolicy
from handoffwatch.vocabulary import Criticality


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


@dataclass(frozen=True, slots=True)
class RegisteredKind:
    """An operation's kind with its own policy in place of the settings; `key` names the field of its business key."""

    name: str
    key: str
    criticality: Criticality
    policy: SettlementPolicy


@dataclass(slots=True)
class Registry:
    """The registered workflows with operations. Not thread-safe: it is filled before the runs begin."""

    workflows: dict[str, dict[str, RegisteredKind]] = field(default_factory=dict)

    def add(
        self, workflows: Iterable[DeclaredWorkflow], kinds: Iterable[OperationKind], policy: SettlementPolicy
    ) -> None:
        """Add workflows with their operations; one without operations is not kept.

        Raises:
            RegistrationError: A workflow names an operation that is not among `kinds`.
        """
        known = {kind.name: kind for kind in kinds}
        for workflow in workflows:
            for name in workflow.operations:
                kind = known.get(name)
                if kind is None:
                    raise RegistrationError(
                        f"workflow {workflow.name}: operation {name}: must be registered",
                        hint=f'call watch.operation("{name}", key=...) first',
                    )
                registered = RegisteredKind(name, kind.key, kind.criticality, kind.policy(policy))
                self.workflows.setdefault(workflow.name, {})[name] = registered

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

    def rows(self) -> list[Registration]:
        """Return every registered pair, sorted."""
        pairs = ((workflow, kind) for workflow, kinds in self.workflows.items() for kind in kinds.values())
        rows = (Registration(workflow, kind.name, kind.criticality) for workflow, kind in pairs)
        return sorted(rows, key=lambda row: (row.workflow, row.operation))
