"""The registered routes: who may hand what to whom."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from handoffwatch.decision import Finding
from handoffwatch.errors import RegistrationError
from handoffwatch.handoffs.conduct import PLAIN, Conduct
from handoffwatch.handoffs.contract import AnyContract, CompiledContract, LooseContract, compile_contract
from handoffwatch.handoffs.structure import finding
from handoffwatch.reasons import REASONS
from handoffwatch.values.names import folded, is_name
from handoffwatch.vocabulary import Action, BypassCause, Check, Criticality, Keep, Mode, Reaction

ARROW: Final = "->"


@dataclass(frozen=True, slots=True)
class Route:
    """A registered route.

    Attributes:
        name: `source->target`.
        source: The agent that sends.
        target: The agent that receives.
        criticality: What a wrong handoff costs.
        mode: Whether the program obeys the watchdog.
        contracts: By schema version; none on a route that is declared unchecked.
        identity: The path whose value the attempts of one handoff share, as the last contract says.
        reactions: By reason code, where this route reacts otherwise than the code or the contract says.
        conduct: What it does beside judging.
        replaces_state: Whether an accepted handoff of one of its contracts replaces the state that it rests on.
        is_quiet: Whether a handoff that is allowed leaves nothing behind but its numbers and its span.
    """

    name: str
    source: str
    target: str
    criticality: Criticality
    mode: Mode
    contracts: dict[str, CompiledContract]
    identity: tuple[str, ...]
    reactions: Mapping[str, Reaction]
    conduct: Conduct = PLAIN
    replaces_state: bool = False
    is_quiet: bool = False

    @property
    def is_unchecked(self) -> bool:
        """Whether everything passes here and counts as bypassed."""
        return not self.contracts

    @property
    def versions(self) -> tuple[str, ...]:
        """The schema versions that it takes."""
        return tuple(self.contracts)

    @property
    def codes(self) -> frozenset[tuple[str, Reaction]]:
        """Every reason code that a handoff of this route can yield, with each reaction that it can have here."""
        yielded = {(code, reason.reaction) for code, reason in REASONS.items()}
        for contract in self.contracts.values():
            yielded |= {(reason.code, reason.reaction) for rule in contract.rules for reason in rule.reasons}
            if contract.options.deprecated_from is not None:
                yielded.add(("deprecated_schema_version", Reaction.BLOCK))
        if self.conduct.critic is not None:
            yielded.add(("critic_concern", Reaction.WARN))
        return frozenset((code, self.reactions.get(code, reaction)) for code, reaction in yielded)

    @property
    def bypasses(self) -> frozenset[tuple[Check, BypassCause]]:
        """The checks that a handoff of this route can pass without, and why."""
        found = {(Check.LEDGER, BypassCause.LEDGER_DOWN)}
        if self.is_unchecked:
            found.add((Check.CONTRACT, BypassCause.UNCHECKED))
        if self.conduct.durable:
            found.add((Check.LEDGER, BypassCause.UNCHECKED))
        if self.conduct.when_blocked is Action.HOLD:
            found.add((Check.CONTRACT, BypassCause.ON_FAILURE_PASS))
        return frozenset(found)


class Routes:
    """The routes of one Watch, looked up by exact names; names that only look alike are refused at registration."""

    def __init__(self) -> None:
        self._by_agents: dict[tuple[str, str], Route] = {}
        self._agents: dict[str, str] = {}
        self._cycles: dict[str, bool] = {}

    def __iter__(self) -> Iterator[Route]:
        return iter(self._by_agents.values())

    def add(
        self,
        name: str,
        *,
        contracts: Iterable[AnyContract],
        criticality: Criticality,
        mode: Mode,
        reactions: Mapping[str, Reaction] | None = None,
        unchecked: bool = False,
        conduct: Conduct = PLAIN,
    ) -> Route:
        """Register the route `source->target` and return it.

        Args:
            name: The route.
            contracts: One for each schema version; none when `unchecked`.
            criticality: What a wrong handoff costs.
            mode: Whether the program obeys the watchdog.
            reactions: Reaction by reason code, where this route differs.
            unchecked: Whether everything passes, and counts as bypassed.
            conduct: What it does beside judging.

        Raises:
            RegistrationError: The name is not of that form, is taken, or collides with another agent's; no contract
                where one is needed; two contracts of one version; a reaction for a code that nobody knows.
        """
        source, target = _agents_of(name)
        conduct.check(name)
        if (source, target) in self._by_agents:
            raise RegistrationError(
                f"route {name}: is registered already",
                hint="register each route once; give several schema versions as a list: contract=[V1, V2]",
            )
        for agent in (source, target):
            self._refuse_lookalike(name, agent, self._agents.get(folded(agent)))
        if folded(source) == folded(target):
            self._refuse_lookalike(name, target, source)
        compiled = _compiled(name, contracts)
        if bool(compiled) == unchecked:
            raise RegistrationError(
                f"route {name}: contract: must name at least one, unless the route is unchecked",
                hint="contract=YourContract, or unchecked=True",
            )
        identity = tuple(list(compiled.values())[-1].options.identity.split(".")) if compiled else ("task_id",)
        route = Route(
            f"{source}{ARROW}{target}", source, target, criticality, mode, compiled, identity, dict(reactions or {}),
            conduct, any(each.options.replaces_state for each in compiled.values()),
            not (unchecked or conduct.durable or conduct.keep is not Keep.BLOCKED),
        )  # fmt: skip
        if "check_failed" in route.reactions:
            raise RegistrationError(
                f"route {name}: reactions: check_failed must block, because nothing was proven",
                hint='use mode="shadow" while a rule is being mended',
            )
        known = set(REASONS) | {reason.code for c in compiled.values() for each in c.rules for reason in each.reasons}
        for code in route.reactions:
            if code not in known:
                close = difflib.get_close_matches(code, known, n=1)
                raise RegistrationError(
                    f"route {name}: reactions: {code} is no reason code of this route",
                    hint=f"did you mean {close[0]}?" if close else "the codes stand in docs/reasons",
                )
        self._by_agents[source, target] = route
        self._cycles.clear()
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

    def may_come_back(self, route: Route) -> bool:
        """Return whether the routes lead from the receiver of this one back to its sender: only there can a loop be."""
        known = self._cycles.get(route.name)
        if known is None:
            known = self._cycles[route.name] = self._leads(route.target, route.source)
        return known

    def _leads(self, start: str, end: str) -> bool:
        reached, left = {start}, [start]
        while left:
            agent = left.pop()
            found = {target for source, target in self._by_agents if source == agent} - reached
            reached |= found
            left += found
        return end in reached

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


def _compiled(name: str, contracts: Iterable[AnyContract]) -> dict[str, CompiledContract]:
    compiled: dict[str, CompiledContract] = {}
    for contract in contracts:
        ready = compile_contract(contract)
        if ready.version in compiled:
            raise RegistrationError(
                f"route {name}: two contracts have the schema version {ready.version}",
                hint=f'give one of them another version: class {_name(contract)}(Contract, version="…")',
            )
        compiled[ready.version] = ready
    return compiled


def _name(contract: AnyContract) -> str:
    return contract.name if isinstance(contract, LooseContract) else contract.__name__


def _agents_of(name: str) -> tuple[str, str]:
    parts = name.split(ARROW) if isinstance(name, str) else []
    if len(parts) != 2 or any(not is_name(part) for part in parts):
        raise RegistrationError(
            "route: must be 'source->target' with two names of 1 to 100 printable characters",
            hint='watch.route("planner->executor", contract=Plan)',
        )
    return parts[0], parts[1]
