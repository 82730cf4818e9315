"""The map of transitions: who may hand what to whom, and what the receiver asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from handoffwatch.testing.registry import watchdog_of
from handoffwatch.vocabulary import Criticality, Mode

if TYPE_CHECKING:
    from handoffwatch.handoffs.contract import CompiledContract
    from handoffwatch.testing.registry import Registry

_TYPE_SUFFIX: Final = "Handoff"


class Transition(NamedTuple):
    """A route with one of its contracts.

    Attributes:
        source: The sender.
        target: The receiver.
        type: The contract's class; None for a schema, a function, and a route that is not checked.
        version: The schema version; None for a route that is not checked.
        accepts: The statuses that the receiver takes.
        required: The payload fields without a default.
        mode: Whether the program obeys.
        criticality: What a wrong handoff costs.
    """

    source: str
    target: str
    type: str | None
    version: str | None
    accepts: tuple[str, ...]
    required: tuple[str, ...]
    mode: Mode
    criticality: Criticality

    def to_json(self) -> dict[str, Any]:
        """Return the transition as plain data."""
        return self._asdict() | {"accepts": list(self.accepts), "required": list(self.required)}


def transitions(registry: Registry) -> list[Transition]:
    """Return a transition for each route and schema version, in the order of registration.

    Raises:
        TypeError: The registry is neither a Watch nor a Watchdog.
    """
    found = []
    for route in watchdog_of(registry).routes:
        contracts: list[CompiledContract | None] = [*route.contracts.values()] or [None]
        for contract in contracts:
            found.append(
                Transition(
                    source=route.source,
                    target=route.target,
                    type=_type_of(contract) if contract is not None else None,
                    version=contract.version if contract is not None else None,
                    accepts=tuple(map(str, contract.accepts)) if contract is not None else (),
                    required=tuple(sorted(contract.required)) if contract is not None else (),
                    mode=route.mode,
                    criticality=route.criticality,
                )
            )
    return found


def mermaid(rows: Sequence[Transition]) -> str:
    """Return the map as a Mermaid flowchart; a dotted arrow is a route that the program does not obey."""
    agents = list(dict.fromkeys(agent for row in rows for agent in (row.source, row.target)))
    ids = {agent: f"a{number}" for number, agent in enumerate(agents)}
    lines = ["flowchart LR", *(f'    {ids[agent]}["{_escaped(agent)}"]' for agent in agents)]
    routes: dict[tuple[str, str], list[Transition]] = {}
    for row in rows:
        routes.setdefault((row.source, row.target), []).append(row)
    for (source, target), versions in routes.items():
        is_obeyed = versions[0].version is not None and versions[0].mode is Mode.ENFORCE
        arrow = "-->" if is_obeyed else "-.->"
        label = "<br/>".join(_escaped(text) for text in _label(versions))
        lines.append(f'    {ids[source]} {arrow}|"{label}"| {ids[target]}')
    return "\n".join(lines)


def _label(versions: Sequence[Transition]) -> Iterator[str]:
    first = versions[0]
    if first.version is None:
        yield f"unchecked, {first.criticality}"
        return
    yield f"{first.mode}, {first.criticality}"
    for row in versions:
        name = f"{row.type} {row.version}" if row.type else f"version {row.version}"
        yield f"{name} ({', '.join(row.accepts)}): {', '.join(row.required) or 'nothing required'}"


def _type_of(contract: CompiledContract) -> str | None:
    """Return the contract's class, which its compiled model is named after."""
    title = contract.validator.title
    return title.removesuffix(_TYPE_SUFFIX) if title.endswith(_TYPE_SUFFIX) else None


def _escaped(text: str) -> str:
    """Return a text as Mermaid shows it literally. Source: Mermaid's flowchart syntax, entity codes."""
    return "".join(c if c.isalnum() or c in " _-.,:()" else f"#{ord(c)};" for c in text)
