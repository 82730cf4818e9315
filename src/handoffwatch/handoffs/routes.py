"""The registered routes: who may hand what to whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from handoffwatch.decision import Finding
from handoffwatch.errors import RegistrationError
from handoffwatch.handoffs.contract import CompiledContract, Contract, compile_contract
from handoffwatch.handoffs.structure import finding
from handoffwatch.values.names import folded, is_name
from handoffwatch.vocabulary import Criticality, Mode

ARROW: Final = "->"


@dataclass(frozen=True, slots=True)
class Route:
    """A registered route with its contracts by schema version, and the identity path of the newest registered one."""

    name: str
    source: str
    target: str
    criticality: Criticality
    mode: Mode
    contracts: dict[str, CompiledContract]
    identity: tuple[str, ...]


class Routes:
    """The routes of one Watch, looked up by exact names; names that only look alike are refused at registration."""

    def __init__(self) -> None:
        self._by_agents: dict[tuple[str, str], Route] = {}
        self._agents: dict[str, str] = {}

    def __iter__(self) -> Iterator[Route]:
        return iter(self._by_agents.values())

    def add(self, name: str, *, contracts: Iterable[type[Contract]], criticality: Criticality, mode: Mode) -> Route:
        """Register the route `source->target` and return it.

        Raises:
            RegistrationError: The name is not of that form, is taken, or collides with another agent's; no contract;
                two contracts of one version.
        """
        source, target = _agents_of(name)
        if (source, target) in self._by_agents:
            raise RegistrationError(
                f"route {name}: is registered already",
                hint="register each route once; give several schema versions as a list: contract=[V1, V2]",
            )
        for agent in (source, target):
            self._refuse_lookalike(name, agent, self._agents.get(folded(agent)))
        if folded(source) == folded(target):
            self._refuse_lookalike(name, target, source)
        compiled: dict[str, CompiledContract] = {}
        for contract in contracts:
            ready = compile_contract(contract)
            if ready.version in compiled:
                raise RegistrationError(
                    f"route {name}: two contracts have the schema version {ready.version}",
                    hint=f'give one of them another version: class {contract.__name__}(Contract, version="…")',
                )
            compiled[ready.version] = ready
        if not compiled:
            raise RegistrationError(f"route {name}: contract: must name at least one", hint="contract=YourContract")
        identity = list(compiled.values())[-1].identity
        route = Route(f"{source}{ARROW}{target}", source, target, criticality, mode, compiled, identity)
        self._by_agents[source, target] = route
        for agent in (source, target):
            self._agents[folded(agent)] = agent
        return route

    def resolve(self, source: object, target: object, findings: list[Finding]) -> Route | None:
        """Return the route between two agents, or None and add to `findings` why there is none.

        A name that is missing or no text is a matter of structure and gives no finding here.
        """
        if not isinstance(source, str) or not isinstance(target, str):
            return None
        route = self.find(source, target)
        if route is not None:
            return route
        unknown = [
            finding("unknown_agent", path, f"{path} must be a registered agent, spelled exactly")
            for path, name in (("source_agent", source), ("target_agent", target))
            if self._agents.get(folded(name)) != name
        ]
        findings += unknown or [
            finding("unknown_route", "target_agent", "no route leads from this sender to this receiver")
        ]
        return None

    def find(self, source: str, target: str) -> Route | None:
        """Return the route between two agents, by their exact names."""
        return self._by_agents.get((source, target))

    def identity_path(self, source: str, target: str) -> tuple[str, ...]:
        """Return the path whose value the attempts of one handoff share; `task_id` for an unknown route."""
        route = self.find(source, target)
        return route.identity if route is not None else ("task_id",)

    @staticmethod
    def _refuse_lookalike(route: str, agent: str, known: str | None) -> None:
        if known is not None and known != agent:
            raise RegistrationError(
                f"route {route}: agent {agent!r} collides with the registered agent {known!r}",
                hint="spell one agent in one way everywhere; names must differ by more than case, space or punctuation",
            )


def _agents_of(name: str) -> tuple[str, str]:
    parts = name.split(ARROW) if isinstance(name, str) else []
    if len(parts) != 2 or any(not is_name(part) for part in parts):
        raise RegistrationError(
            "route: must be 'source->target' with two names of 1 to 100 printable characters",
            hint='watch.route("planner->executor", contract=Plan)',
        )
    return parts[0], parts[1]
