"""One attempt of a handoff, from its judgement to its conclusion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from handoffwatch.decision import Decision, Finding, amended
from handoffwatch.errors import RegistrationError
from handoffwatch.handoffs.conduct import PLAIN, Conduct
from handoffwatch.runtime.crossings import Crossing
from handoffwatch.runtime.envelopes import Envelope
from handoffwatch.vocabulary import Reaction

NOT_GIVEN: Final[Any] = object()
"""Stands for a state or a seal that the host did not give; None is a state, and a seal that is missing."""


class Attempt:
    """One attempt that was judged and is not concluded yet.

    Attributes:
        crossing: The handoff it belongs to.
        raw: The handoff as it came.
        envelope: Its fields.
        decision: What is found so far; the flow replaces it as it learns more.
        started_s: When it began, on the monotonic clock.
        route: Its route; None for an unknown one.
        conduct: What the route does beside judging.
        elsewhere_s: Of that, the seconds that are no overhead: a critic's, a person's.
        kept: What evidence keeps of it beside the decision; None is nothing.
        is_admitted: Whether the ledger has let it in.
        digests: Of the state as it left and as it arrived, keyed; empty when it crossed no boundary.
        traceparent: Of the span in another process that it came from; empty when it came from none.
    """

    __slots__ = (
        "conduct",
        "crossing",
        "decision",
        "digests",
        "elsewhere_s",
        "envelope",
        "is_admitted",
        "kept",
        "raw",
        "route",
        "started_s",
        "traceparent",
    )

    def __init__(
        self, crossing: Crossing, raw: object, envelope: Envelope, decision: Decision, started_s: float
    ) -> None:
        self.crossing = crossing
        self.raw = raw
        self.envelope = envelope
        self.decision = decision
        self.started_s = started_s
        self.route = crossing.registered
        self.conduct: Conduct = PLAIN if self.route is None else self.route.conduct
        self.elsewhere_s = 0.0
        self.kept: Mapping[str, object] | None = None
        self.is_admitted = False
        self.digests = ("", "")
        self.traceparent = ""

    def add(self, findings: Sequence[Finding]) -> None:
        """Take note of more findings."""
        if findings:
            self.decision = amended(self.decision, findings)

    @property
    def is_noted(self) -> bool:
        """Whether it leaves something behind though it is allowed: evidence, or a check that it passed without."""
        crossing, route = self.crossing, self.route
        return route is None or not route.is_quiet or bool(crossing.tried or self.kept or crossing.subject)

    @property
    def is_failed_work(self) -> bool:
        """Whether a sender says honestly that its work failed: valid, and only not for this receiver."""
        blocking = {item.code for item in self.decision.findings if item.reaction is Reaction.BLOCK}
        return blocking == {"status_not_accepted"} and self.envelope.get("status") == "failed"

    @property
    def is_second(self) -> bool:
        """Whether it is one that is in progress sent once more: no handoff of its own, and not for the sender to mend.

        A repair under an id that another handoff holds is a handoff of its own.
        """
        return self.crossing.attempts == 1 and any(
            item.code == "duplicate_handoff" and item.reaction is Reaction.BLOCK for item in self.decision.findings
        )


@dataclass(frozen=True, slots=True)
class Carriers:
    """The user's functions that take a handoff to the other side.

    Attributes:
        export: Called with the handoff as it left; returns what travels.
        import_: Called with what travels; returns what arrived.
    """

    export: Callable[[Any], Any]
    import_: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Sealed:
    """What another process sent beside the handoff.

    Attributes:
        text: The seal; None or empty when none came.
    """

    text: str | None


Way = Carriers | Sealed | None
"""How a handoff comes over the boundary; None crosses none."""


def way_of(
    export: Callable[[Any], Any] | None, import_: Callable[[Any], Any] | None, seal: Any, *, repair: object = None
) -> Way:
    """Return how a handoff comes over the boundary.

    Raises:
        RegistrationError: Only one of the two functions is given, or a seal beside them or beside a repair.
    """
    if seal is not NOT_GIVEN:
        if export is not None or import_ is not None:
            raise RegistrationError(
                "transfer: seal: must be given without export and import_, got it beside them",
                hint="seal=text in the process that receives; export and import_ where one process does both",
            )
        if repair is not None:
            raise RegistrationError(
                "transfer: seal: must be given without repair: no answer was sealed, so that none could pass",
                hint="repair in the process that sends",
            )
        return Sealed(seal)
    if export is None and import_ is None:
        return None
    if export is None or import_ is None:
        raise RegistrationError(
            "transfer: export and import_: must be given together, got one of them",
            hint="export=json.dumps, import_=json.loads",
        )
    return Carriers(export, import_)
