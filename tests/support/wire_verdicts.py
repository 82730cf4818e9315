"""What must become of a wire attempt, by hand from DESIGN section 3 rule 1: no code of the product is asked.

Each row has the code of the attempt, then what follows for a safe, an idempotent and an unsafe tool: O it worked,
R it may be repeated, F nobody may guess, J the arguments were refused, A it may have happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from support.faulty_server import GOOD, Act, Fault

SAFETIES: Final = ("safe", "idempotent", "unsafe")

FAULTS: Final[dict[Fault, tuple[str, str]]] = {
    # nothing was sent
    Fault.REFUSED: ("connection", "R R R"),
    Fault.CONNECT_STALLED: ("timeout", "R R R"),
    Fault.PLAIN_ON_TLS: ("tls", "R R R"),
    # sent, as far as the client knows, and unanswered
    Fault.DROPPED_UNREAD: ("connection", "R R A"),
    Fault.RESET_UNREAD: ("connection", "R R A"),
    Fault.STALLED_UNREAD: ("timeout", "R R A"),
    Fault.DROPPED: ("connection", "R R A"),
    Fault.RESET: ("connection", "R R A"),
    Fault.STALLED: ("timeout", "R R A"),
    Fault.CUT_IN_STATUS_LINE: ("connection", "R R A"),
    Fault.CUT_IN_HEADERS: ("connection", "R R A"),
    Fault.CUT_IN_BODY: ("connection", "R R A"),
    Fault.CUT_IN_CHUNK: ("connection", "R R A"),
    Fault.RESET_IN_BODY: ("connection", "R R A"),
    Fault.STALLED_IN_BODY: ("timeout", "R R A"),
    Fault.GARBAGE: ("connection", "R R A"),
}

STATUSES: Final[dict[int, tuple[str, str]]] = {
    200: ("ok", "O O O"),
    202: ("ok", "O O O"),
    204: ("ok", "O O O"),
    302: ("other_3xx", "F F F"),
    304: ("other_3xx", "O F F"),
    400: ("400", "J J J"),
    401: ("401", "F F F"),
    403: ("403", "F F F"),
    404: ("404", "F F F"),
    408: ("408", "R R A"),
    409: ("409", "J J J"),
    410: ("other_4xx", "F F F"),
    422: ("422", "J J J"),
    423: ("other_4xx", "J J J"),
    425: ("other_4xx", "R R R"),
    429: ("429", "R R R"),
    499: ("other_4xx", "R R A"),
    500: ("500", "R R A"),
    501: ("other_5xx", "F F F"),
    502: ("502", "R R A"),
    503: ("503", "R R A"),
    504: ("504", "R R A"),
    505: ("other_5xx", "F F F"),
    507: ("other_5xx", "R R A"),
    520: ("other_5xx", "R R A"),
    529: ("other_5xx", "R R A"),
    599: ("other_5xx", "R R A"),
    999: ("other_3xx", "F F F"),
}

BY_CLIENT: Final[dict[tuple[str, Fault], tuple[str, str]]] = {
    # http.client takes the end of the connection for the end of the headers: a 200 with nothing in it, which the tool
    # itself cannot read. It raises an error without a code.
    ("requests", Fault.CUT_IN_HEADERS): ("exception", "F F A"),
}

_CLASSES: Final = {"R": "retryable", "F": "fatal", "J": "rejected", "A": "ambiguous"}
_ENDS: Final = {"O": "ok", "R": "down", "F": "down", "J": "rejected", "A": "needs_human"}

NEVER_SENT: Final = frozenset({Fault.REFUSED, Fault.CONNECT_STALLED})
"""What the server cannot see: no connection came about."""
UNREAD: Final = frozenset({Fault.PLAIN_ON_TLS, Fault.DROPPED_UNREAD, Fault.RESET_UNREAD, Fault.STALLED_UNREAD})
"""A connection came about, and the server did not read the request."""

ACTS: Final = [*map(Act, FAULTS), *(Act(status=status) for status in STATUSES)]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a logical call must come to.

    Attributes:
        end: ok, down, rejected or needs_human.
        codes: Of its wire attempts, in their order.
        failure_class: Of a failed call, else None.
        done: What the server did with its wire attempts, in their order.
    """

    end: str
    codes: list[str]
    failure_class: str | None
    done: list[Act]

    @property
    def connections(self) -> int:
        """Wire attempts that the server can have seen."""
        return sum(act.fault not in NEVER_SENT for act in self.done)

    @property
    def reached(self) -> int:
        """Requests that must have reached the server whole."""
        return sum(act.fault not in NEVER_SENT | UNREAD for act in self.done)


def verdict(act: Act, safety: str, client: str) -> tuple[str, str]:
    """Return the code of an attempt and the letter of what follows."""
    if act.fault is Fault.ANSWERED:
        code, letters = STATUSES[act.status]
    else:
        code, letters = BY_CLIENT.get((client, act.fault)) or FAULTS[act.fault]
    letter = letters.split()[SAFETIES.index(safety)]
    return ("ok" if letter == "O" else code), letter


def expected(acts: Sequence[Act], safety: str, client: str, attempts_max: int) -> Expected:
    """Return what a call must come to when the server plays these acts, and answers well after them."""
    codes: list[str] = []
    done: list[Act] = []
    letter = "O"
    for act in [*acts, *[GOOD] * attempts_max][:attempts_max]:
        code, letter = verdict(act, safety, client)
        codes.append(code)
        done.append(act)
        if letter != "R":
            break
    return Expected(_ENDS[letter], codes, _CLASSES.get(letter), done)
