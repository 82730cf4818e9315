"""The self-test of the contracts in a thread of its own: a watchdog that lets the wrong pass shows as a gauge."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from handoffwatch.events import InternalErrorCaught
from handoffwatch.handoffs.selftest import Problem, SelfTest
from handoffwatch.recording.logs import LOGGER
from handoffwatch.vocabulary import Component

if TYPE_CHECKING:
    from handoffwatch.clock import Clock
    from handoffwatch.handoffs.contract import CompiledContract
    from handoffwatch.handoffs.routes import Route
    from handoffwatch.handoffs.watchdog import Watchdog
    from handoffwatch.recording.recorder import Recorder

_CLOSE_S: Final = 2.0
"""The longest that closing waits for a round; the thread is a daemon and holds nothing else."""


class SelfTester:
    """Judges the examples of every registered contract, round by round, and shows when all came out right.

    A contract is written to the log when it begins to fail, when it fails in another way, and when it is right again.
    A fault of our own is counted and the rounds go on.

    Args:
        watchdog: Whose contracts are tested.
        recorder: Gets the gauge and the faults.
        clock: Says when a round is.

    Attributes:
        stop: When it is set, no further round begins.
    """

    def __init__(self, watchdog: Watchdog, recorder: Recorder, clock: Clock) -> None:
        self._watchdog = watchdog
        self._recorder = recorder
        self._clock = clock
        self._test = SelfTest(watchdog)
        self._problems: dict[tuple[str, str], Problem] = {}
        self.stop = threading.Event()
        self._thread: threading.Thread | None = None

    def run_once(self) -> bool:
        """Do one round; return whether there were contracts and all of them came out right. Never raises."""
        try:
            now_unix_s = self._clock.wall_s()
            tested = [
                (route, contract) for route in list(self._watchdog.routes) for contract in route.contracts.values()
            ]
            right = [self._is_right(route, contract, now_unix_s) for route, contract in tested]
            if not right or not all(right):
                return False
            self._recorder.selftest_passed(now_unix_s)
        except Exception as error:  # noqa: BLE001 - a self-test never breaks its host; the fault is counted
            self._report(error)
            return False
        return True

    def start(self, *, every_s: float) -> None:
        """Begin the rounds in a daemon thread, the first one now.

        Args:
            every_s: Seconds between two rounds.
        """
        self._thread = threading.Thread(target=self._serve, args=(every_s,), name="handoffwatch-selftest", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the rounds."""
        self.stop.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)

    def _serve(self, every_s: float) -> None:
        while not self.stop.is_set():
            self.run_once()
            self.stop.wait(every_s)

    def _is_right(self, route: Route, contract: CompiledContract, now_unix_s: float) -> bool:
        try:
            problem = self._test.judge(route, contract, now_unix_s=now_unix_s)
        except Exception as error:  # noqa: BLE001 - a type of one contract may raise; the others are tested all the same
            problem = Problem(
                f"no good handoff can be derived: its fields raised {type(error).__name__}", untested=True
            )
            if self._problems.get((route.name, contract.version)) != problem:
                self._report(error)
        self._tell(route.name, contract.version, problem)
        return problem is None

    def _tell(self, route: str, version: str, problem: Problem | None) -> None:
        before = self._problems.pop((route, version), None)
        if problem is not None:
            self._problems[route, version] = problem
        if problem == before:
            return
        if problem is None:
            LOGGER.info("self-test right again: route=%s schema_version=%s", route, version)
        elif problem.untested:
            LOGGER.warning(
                "self-test impossible: route=%s schema_version=%s: %s; give the contract a good_example",
                route, version, problem.text,
            )  # fmt: skip
        else:
            LOGGER.error("self-test failed: route=%s schema_version=%s: %s", route, version, problem.text)

    def _report(self, error: Exception) -> None:
        self._recorder.emit(InternalErrorCaught(Component.WATCHDOG, type(error).__name__))
