"""Runs whose handoffs are held, repaired, diverted and counted, with the ledger and the log beside them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from handoffwatch import Contract, Settings, Watch
from handoffwatch.handoffs.settings import HandoffSettings
from handoffwatch.ledger import Case
from handoffwatch.ledger.settings import LedgerSettings
from handoffwatch.vocabulary import Ruling
from support.telemetry import Spans
from support.watched import Time

ROUTE = "planner->executor"

BUSY_S: Final = 60.0
"""How long a write waits for others; a slow machine may take its time."""


class Plan(Contract, version="1"):
    """What the executor needs."""

    order_id: str
    amount_cents: int


class FlowDesk:
    """A watch with one workflow and its time; two desks on one folder are two processes on one ledger.

    Args:
        folder: Where the ledger is; None is the working folder of the test.
        settings: Of handoffs.
    """

    def __init__(self, folder: Path | None = None, **settings: Any) -> None:
        self.time = Time()
        self.spans = Spans()
        self._folder = folder or Path.cwd()
        ledger = LedgerSettings(url=f"sqlite:///{self._folder / 'ledger.db'}", busy_timeout_s=BUSY_S)
        self.watch = Watch(
            settings=Settings(handoffs=HandoffSettings(**settings), ledger=ledger),
            clock=self.time.clock(),
            tracer_provider=self.spans.provider,
        )
        self.watch.workflow("refunds", tools="none")
        self.received: list[Any] = []

    def route(self, name: str = ROUTE, *, contract: type[Contract] = Plan, **options: Any) -> FlowDesk:
        """Register a route and return the desk."""
        self.watch.route(name, contract=contract, **options)
        return self

    def receive(self, handoff: Any) -> str:
        """Take a handoff as its receiver."""
        self.received.append(handoff)
        return "received"

    def cases(self) -> list[Case]:
        """Return all cases with what is stored of them, the oldest first."""
        found = (self.watch.ledger.case(case.case_id) for case in self.watch.ledger.cases(open_only=False))
        return [case for case in found if case is not None]

    def case_of(self, run_id: str) -> Case:
        """Return the only case of a run with what is stored of it."""
        (case_id,) = [case.case_id for case in self.watch.ledger.cases(open_only=False) if case.run_id == run_id]
        case = self.watch.ledger.case(case_id)
        assert case is not None
        return case

    def take_ledger_away(self) -> None:
        """Move the ledger's files away, so that it is down."""
        self.watch.ledger.close()
        for file in self._folder.glob("ledger.db*"):
            file.rename(file.with_name(f"away-{file.name}"))

    def bring_ledger_back(self) -> None:
        """Move the files back."""
        for file in self._folder.glob("away-*"):
            file.rename(file.with_name(file.name.removeprefix("away-")))

    def decide_while_waiting(self, ruling: Ruling, *, after_waits: int = 1) -> None:
        """Let a person decide about the held case once the flow has waited so often."""
        waited = self.time.waits_s.append

        class Waits(list[float]):
            def append(waits, seconds: float) -> None:
                list.append(waits, seconds)
                if len(waits) == after_waits:
                    (case,) = self.watch.ledger.cases()
                    assert self.watch.ledger.rule_case(case.case_id, ruling, "seen")

        del waited
        self.time.waits_s = Waits()


def plan(handoff_id: str = "h-1", *, route: str = ROUTE, **changes: Any) -> dict[str, Any]:
    """Return a good handoff of task t-1."""
    source, target = route.split("->")
    good = {
        "handoff_id": handoff_id,
        "task_id": "t-1",
        "source_agent": source,
        "target_agent": target,
        "task_type": "refund",
        "status": "ready",
        "schema_version": "1",
        "payload": {"order_id": "4417", "amount_cents": 3800},
        "metadata": {},
    }
    return good | changes


def bad_plan(handoff_id: str = "h-1", *, amount: object = "3800", **changes: Any) -> dict[str, Any]:
    """Return a handoff whose amount is no integer."""
    return plan(handoff_id, payload={"order_id": "4417", "amount_cents": amount}, **changes)


def answers(*handoffs: Any) -> Callable[[Any], Any]:
    """Return a repair function that gives these, one for each request."""
    left: Iterable[Any] = iter(handoffs)
    return lambda step: next(left)  # type: ignore[call-overload]


@contextlib.contextmanager
def logged() -> Iterator[list[str]]:
    """Give the lines of every level that are written to the log within the block."""
    lines: list[str] = []

    class Keeps(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger, handler = logging.getLogger("handoffwatch"), Keeps()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
