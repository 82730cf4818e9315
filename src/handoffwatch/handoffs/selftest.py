"""The self-test of the watchdog: whether each contract still lets a good handoff pass and stops a bad one."""

from __future__ import annotations

import datetime
from typing import Final, NamedTuple

from handoffwatch.decision import Decision
from handoffwatch.handoffs.contract import CompiledContract
from handoffwatch.handoffs.known_handoffs import KnownHandoff, bad_handoff, good_handoff
from handoffwatch.handoffs.routes import Route
from handoffwatch.handoffs.watchdog import Watchdog
from handoffwatch.values.schema_examples import NoExample
from handoffwatch.vocabulary import Reaction, Verdict

_STOPPING: Final = (Reaction.BLOCK, Reaction.HOLD)
_OUTDATED: Final = "deprecated_schema_version"


class Problem(NamedTuple):
    """Why a contract did not pass its self-test.

    Attributes:
        text: What came out wrong, with codes and paths and never a value.
        untested: Whether there was nothing to judge: no good handoff could be derived, so one must be given.
    """

    text: str
    untested: bool = False


class SelfTest:
    """Judges a known-good and a known-bad handoff by each contract.

    The good payload is the contract's `good_example`, else it is derived from the contract's fields: their examples,
    or the least that their types and constraints allow. The bad one is the good one without a required field, or with
    an unknown field when none is required. Rules of the contract are called with both.

    Args:
        watchdog: Whose routes and contracts are judged. Its `inspect` is pure, so nothing is counted.
    """

    def __init__(self, watchdog: Watchdog) -> None:
        self._watchdog = watchdog
        self._proven: dict[tuple[str, str], tuple[KnownHandoff, KnownHandoff]] = {}

    def judge(self, route: Route, contract: CompiledContract, *, now_unix_s: float) -> Problem | None:
        """Return why a contract of a route fails its self-test, or None when both verdicts are right.

        Args:
            route: A route with contracts.
            contract: One of them.
            now_unix_s: When the handoffs are produced.

        Raises:
            Exception: Whatever a type of the contract raises while its JSON Schema is made.
        """
        key = (route.name, contract.version)
        known = self._proven.get(key)
        if known is None:
            try:
                good = good_handoff(route, contract)
            except NoExample as missing:
                where = ".".join(map(str, ("payload", *missing.path)))
                return Problem(f"no good handoff can be derived: no value for {where}", untested=True)
            known = good, bad_handoff(good, contract)
        problem = self._problem_of_good(route, known[0], now_unix_s)
        if problem is not None and key not in self._proven and contract.good_example is None:
            return Problem(f"no good handoff can be derived: {problem}", untested=True)
        if problem is None:
            problem = self._problem_of_bad(route, known[1], now_unix_s)
            self._proven[key] = known
        return Problem(problem) if problem is not None else None

    def _problem_of_good(self, route: Route, good: KnownHandoff, now_unix_s: float) -> str | None:
        """A version past its last day blocks everything: that is right, and all that may stop a good handoff."""
        found = self._inspect(route, good, now_unix_s).findings
        stopping = [item for item in found if item.reaction in _STOPPING and item.code != _OUTDATED]
        if not stopping:
            return None
        return "the good handoff was stopped: " + ", ".join(f"{item.code} at {item.path}" for item in stopping)

    def _problem_of_bad(self, route: Route, bad: KnownHandoff, now_unix_s: float) -> str | None:
        """A route may react to what is wrong with less than a block; it must be named all the same."""
        decision = self._inspect(route, bad, now_unix_s)
        named = [item for item in decision.findings if item.path == bad.wrong_at]
        if not named:
            return f"the bad handoff was {decision.verdict}, and {bad.wrong_at} was not named"
        if decision.verdict is not Verdict.BLOCKED and any(item.reaction is Reaction.BLOCK for item in named):
            return f"the bad handoff was {decision.verdict}"
        return None

    def _inspect(self, route: Route, known: KnownHandoff, now_unix_s: float) -> Decision:
        produced = datetime.datetime.fromtimestamp(now_unix_s, datetime.UTC)
        handoff = known.handoff | {"produced_at": produced.isoformat()}
        return self._watchdog.inspect(
            handoff, expected_source=route.source, expected_target=route.target, context=known.context
        )
