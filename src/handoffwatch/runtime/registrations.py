"""What a Watch knows by name: workflows, tools and operations, each registered once, with labels from closed sets."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from handoffwatch.errors import RegistrationError
from handoffwatch.values.names import is_name
from handoffwatch.vocabulary import Mode, ToolsNeed

if TYPE_CHECKING:
    from handoffwatch.outcomes.kind import OperationKind
    from handoffwatch.tools.tool import Tool

E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Workflow:
    """A registered workflow.

    Attributes:
        name: The label.
        tools: Whether its answers must rest on a tool's success.
        operations: The kinds of operations that its runs may claim.
        guard: Whether the program obeys the final-answer guard.
    """

    name: str
    tools: ToolsNeed
    operations: frozenset[str]
    guard: Mode


class Registrations:
    """The workflows, tools and operations of one Watch."""

    def __init__(self) -> None:
        self.workflows: dict[str, Workflow] = {}
        self.tools: dict[str, Tool] = {}
        self.operations: dict[str, OperationKind] = {}

    def add_workflow(self, workflow: Workflow) -> None:
        """Register a workflow; its operations must be registered before it.

        Raises:
            RegistrationError: The name is taken or no label, or an operation is unknown.
        """
        _refuse_bad_name("workflow", workflow.name, self.workflows)
        for operation in sorted(workflow.operations):
            if operation not in self.operations:
                raise RegistrationError(
                    f"workflow {workflow.name}: operations: no operation of the name {operation!r} is registered",
                    hint=f"call watch.operation({operation!r}, …) before watch.workflow(…)",
                )
        self.workflows[workflow.name] = workflow

    def add_tool(self, tool: Tool) -> None:
        """Register a tool.

        Raises:
            RegistrationError: The name is taken or no label, or its operation is unknown.
        """
        self.check_tool(tool)
        self.tools[tool.name] = tool

    def check_tool(self, tool: Tool) -> None:
        """Check what `add_tool` checks, and register nothing."""
        _refuse_bad_name("tool", tool.name, self.tools)
        if tool.operation is not None and tool.operation not in self.operations:
            raise RegistrationError(
                f"tool {tool.name}: operation: no operation of the name {tool.operation!r} is registered",
                hint=f"call watch.operation({tool.operation!r}, …) before watch.tool(…)",
            )

    def add_operation(self, operation: OperationKind) -> None:
        """Register a kind of operation.

        Raises:
            RegistrationError: The name is taken or no label.
        """
        _refuse_bad_name("operation", operation.name, self.operations)
        self.operations[operation.name] = operation


def named(what: str, name: object) -> str:
    """Return how a message names what is registered; a name that can be none is left out."""
    return f"{what} {name}" if is_name(name) else what


def member(where: str, name: str, value: object, members: type[E]) -> E:
    """Return the member of a closed set that a text names.

    Raises:
        RegistrationError: It names none; the message lists the set.
    """
    for each in members:
        if value == each:
            return each
    listed = ", ".join(members)
    got = repr(value) if isinstance(value, str) and is_name(value) else type(value).__name__
    raise RegistrationError(
        f"{where}: {name}: must be one of {listed}, got {got}", hint=f'{name}="{next(iter(members))}"'
    )


def _refuse_bad_name(what: str, name: object, taken: Container[object]) -> None:
    if not is_name(name):
        raise RegistrationError(
            f"{what}: the name must be a text of 1 to 100 printable characters without spaces around, and not 'other'",
            hint=f'watch.{what}("{"refunds" if what == "workflow" else "refund"}", …)',
        )
    if name in taken:
        raise RegistrationError(f"{what} {name}: is registered already", hint=f"register each {what} once")
