"""The critic's question and answer, when it is asked, and what its answer may lead to: a flag or a warning, no more."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, NamedTuple, Protocol, final

from handoffwatch.decision import Finding, reacting
from handoffwatch.errors import RegistrationError
from handoffwatch.handoffs.risks import RiskLimits
from handoffwatch.handoffs.structure import finding
from handoffwatch.handoffs.usage import Usage
from handoffwatch.vocabulary import CriticResult, Reaction, RiskSignal

CONCERN_CHARACTERS_MAX: Final = 500
"""The longest concern that is kept."""

TIME_S_MAX: Final = 600.0
"""The longest that a policy may let a critic take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticRequest:
    """One question to a critic: does this handoff, which the watchdog lets pass, need a second look?

    Attributes:
        route: `source->target` as registered.
        source: The agent that sends.
        target: The agent that is to receive.
        run_id: The run.
        handoff_id: The handoff's id.
        attempt: 1-based number of this try.
        handoff: The whole handoff as it will be delivered, values and all; the critic gets a copy of its own.
        signals: Why the critic is asked.
        reasons: The codes of the decision.
    """

    route: str
    source: str
    target: str
    run_id: str
    handoff_id: str
    attempt: int
    handoff: dict[str, Any] = field(repr=False)
    signals: frozenset[RiskSignal]
    reasons: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class CriticAnswer:
    """A critic's answer.

    Attributes:
        concern: What a person should look at, in one sentence; None when nothing is. It is cut at 500 characters, and
            goes into the case and nowhere else.
        reaction: flag or warn; its text is accepted. A critic cannot stop a handoff: block and hold become flag.
        tokens: Tokens that the answer took, 0 to 100,000,000.
        cost_usd: Dollars that it cost, 0 to 10,000.

    Raises:
        ValueError: The concern is no text, the reaction is unknown, or a number is none that one call can cost.
    """

    concern: str | None = field(default=None, repr=False)
    _: KW_ONLY
    reaction: Reaction = Reaction.FLAG
    tokens: int = 0
    cost_usd: float = 0.0

    def __post_init__(self) -> None:
        if self.concern is not None and not isinstance(self.concern, str):
            raise ValueError(f"critic answer: concern: must be a text or None, got {type(self.concern).__name__}")
        if self.reaction not in tuple(Reaction):
            raise ValueError(f"critic answer: reaction: must be flag or warn, got {type(self.reaction).__name__}")
        usage = Usage(self.tokens, self.cost_usd)
        object.__setattr__(self, "concern", _sentence(self.concern or "") or None)
        object.__setattr__(self, "reaction", Reaction.WARN if self.reaction == Reaction.WARN else Reaction.FLAG)
        object.__setattr__(self, "tokens", usage.tokens)
        object.__setattr__(self, "cost_usd", usage.cost_usd)


class Critic(Protocol):
    """Asks any model, or a rule, for a second opinion; a plain or a coroutine function, called from any thread.

    It is given a time limit and a budget. Whatever it raises is counted, and the handoff goes on.
    """

    def __call__(self, request: CriticRequest, /) -> CriticAnswer | Awaitable[CriticAnswer]:
        """Return the answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticPolicy:
    """When a critic is asked, and what it may use.

    Attributes:
        signals: The risk signals on which it is asked, at least one; their texts are accepted.
        sample: The share of handoffs with such a signal on which it is asked, 0.0 to 1.0.
        time_s_max: The most seconds that one answer may take, above 0 and at most 600.
        cost_usd_max_per_run: The dollars after which a run asks no more, above 0; None sets no bound.
        tokens_max_per_run: The tokens after which a run asks no more, at least 1; None sets no bound.
        limits: Where a handoff begins to be risky.

    Raises:
        RegistrationError: A value breaks its rule.
    """

    signals: frozenset[RiskSignal]
    sample: float = 1.0
    time_s_max: float = 10.0
    cost_usd_max_per_run: float | None = None
    tokens_max_per_run: int | None = None
    limits: RiskLimits = field(default_factory=RiskLimits)

    def __post_init__(self) -> None:
        object.__setattr__(self, "signals", _signals(self.signals))
        if not _is_number(self.sample) or not 0 <= self.sample <= 1:
            raise _refused("sample", "a number from 0 to 1", self.sample, "0.1")
        if not _is_number(self.time_s_max) or not 0 < self.time_s_max <= TIME_S_MAX:
            raise _refused("time_s_max", f"seconds above 0, at most {TIME_S_MAX:g}", self.time_s_max, "10")
        cost_usd, tokens = self.cost_usd_max_per_run, self.tokens_max_per_run
        if cost_usd is not None and not (_is_number(cost_usd) and 0 < cost_usd < float("inf")):
            raise _refused("cost_usd_max_per_run", "dollars above 0, or None", cost_usd, "0.50")
        if tokens is not None and not (_is_number(tokens) and isinstance(tokens, int) and tokens >= 1):
            raise _refused("tokens_max_per_run", "an integer of at least 1, or None", tokens, "20_000")
        if not isinstance(self.limits, RiskLimits):
            raise _refused("limits", "RiskLimits", self.limits, "RiskLimits(confidence_min=0.5)")


class CriticOutcome(NamedTuple):
    """How asking a critic ended: what the case keeps of it.

    Attributes:
        result: no_concern, concern, error or skipped.
        concern: The critic's own words, one line; they stand in no finding, log line, span or label.
        reaction: What the concern asks for, flag or warn; None without one.
        tokens: Tokens that the answer took.
        cost_usd: Dollars that it cost.
        duration_s: Seconds that the critic took.
        note: Why there is no answer, in words of ours; empty when there is one, or when chance left it out.
    """

    result: CriticResult
    concern: str | None = None
    reaction: Reaction | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    duration_s: float = 0.0
    note: str = ""

    @property
    def is_answered(self) -> bool:
        """Whether the critic gave an answer."""
        return self.result in (CriticResult.CONCERN, CriticResult.NO_CONCERN)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The finding that a concern is; none without one."""
        if self.result is not CriticResult.CONCERN:
            return ()
        concern = finding("critic_concern", "$", "the critic asks that a person looks at this handoff")
        return (reacting(concern._replace(stage="critic"), self.reaction),)


def outcome_of(answer: CriticAnswer, *, duration_s: float) -> CriticOutcome:
    """Return the outcome of an answer that took so many seconds."""
    return CriticOutcome(
        CriticResult.NO_CONCERN if answer.concern is None else CriticResult.CONCERN,
        answer.concern,
        None if answer.concern is None else answer.reaction,
        answer.tokens,
        answer.cost_usd,
        duration_s,
    )


def _sentence(text: str) -> str:
    """Return a text as one bounded line that every database can keep."""
    line = " ".join(text.split())[:CONCERN_CHARACTERS_MAX].rstrip()
    return line if line.isprintable() else "".join(each if each.isprintable() else "?" for each in line)


def _signals(given: object) -> frozenset[RiskSignal]:
    if not isinstance(given, str) and isinstance(given, Iterable):
        listed = list(given)
        if listed and all(each in tuple(RiskSignal) for each in listed):
            return frozenset(map(RiskSignal, listed))
    raise _refused("signals", f"some of {', '.join(RiskSignal)}", given, '{"low_confidence"}')


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refused(field: str, rule: str, value: object, example: str) -> RegistrationError:
    return RegistrationError(
        f"critic policy: {field}: must be {rule}, got {type(value).__name__}", hint=f"{field}={example}"
    )
