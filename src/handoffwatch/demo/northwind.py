"""Northwind as a whole: a payments service and an exporter as processes of their own, and the agents in this one."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import yaml

from handoffwatch.demo.agents import serve_customer
from handoffwatch.demo.books import read_books
from handoffwatch.demo.child import Child
from handoffwatch.demo.desk import Desk, open_desk
from handoffwatch.demo.faults import FaultPlan
from handoffwatch.demo.pages import Page, read_page, total
from handoffwatch.demo.truth import FalseSuccess, Truth, tell_truth

WORKERS: Final = 4
"""How many runs go on at once."""

_SERVE: Final = "from handoffwatch.cli import main; main()"
_POLL_S: Final = 0.1
_FACTS: Final = ("business_key", "cause", "origin")

Progress = Callable[[int], None]
"""Called with the number of runs that have ended, from the workers' threads."""


class Northwind:
    """The running demo. A context manager: the processes end with it.

    Args:
        folder: An existing folder for databases, logs and the record.
        seed: Seed of the fault plan.
    """

    def __init__(self, folder: Path, *, seed: int) -> None:
        self.folder = folder
        self.plan = FaultPlan(seed)
        self.ended: list[int] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._payments: Child | None = None
        self._exporter: Child | None = None
        self._desk: Desk | None = None
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the processes and close the desk."""
        if self._desk is not None:
            self._metrics.close()
            self._desk.close()
            self._desk = None
        for child in (self._exporter, self._payments):
            if child is not None:
                child.stop()
        self._exporter = self._payments = None

    @property
    def workload_url(self) -> str:
        """Where this process shows its series."""
        return f"http://127.0.0.1:{self._metrics.port}"

    @property
    def exporter_url(self) -> str:
        """Where the exporter shows its series and those of the ledger."""
        assert self._exporter is not None
        return self._exporter.url

    def drive(self, runs: int | None = None, *, for_s: float | None = None, progress: Progress | None = None) -> None:
        """Run refund requests, a few at once, and return when all of them have ended.

        Args:
            runs: How many; None goes on until the time is over.
            for_s: Start no further run after so many seconds.
            progress: Is told after each run.
        """
        end_s = time.monotonic() + for_s if for_s is not None else None
        left = itertools.repeat(None) if runs is None else itertools.repeat(None, runs)
        take = self._take(iter(left), end_s)
        with ThreadPoolExecutor(WORKERS, thread_name_prefix="northwind") as pool:
            workers = [pool.submit(self._work, take, progress) for _ in range(WORKERS)]
            try:
                for worker in workers:
                    worker.result()
            except BaseException:
                self._stopping.set()
                raise

    def settle(self, *, limit_s: float = 30.0) -> bool:
        """Wait until every refund of the runs so far is settled; return whether that came in time."""
        end_s = time.monotonic() + limit_s
        while time.monotonic() < end_s:
            page = self.exporter_page()
            settled = total(page, "ledger_effects_settled_total")
            if settled >= len(self.ended) and not total(page, "ledger_claims_open"):
                return True
            time.sleep(_POLL_S)
        return False

    def truth(self) -> Truth:
        """Return Northwind's record of the runs that have ended, and write it to `truth.json` in the folder."""
        refunds, deeds = read_books(self.folder / "payments.db")
        truth = tell_truth(map(self.plan.run, sorted(self.ended)), refunds, deeds)
        truth.write(self.folder / "truth.json")
        return truth

    def false_successes(self) -> list[FalseSuccess]:
        """Return the cases of false success in handoffwatch's ledger, in the order of the runs."""
        assert self._desk is not None
        cases = [case for case in self._desk.watch.ledger.cases(open_only=False) if case.kind == "false_success"]
        cases.sort(key=lambda case: case.run_id)
        return [FalseSuccess(case.run_id, *(str(case.facts[name]) for name in _FACTS)) for case in cases]

    def workload_page(self) -> Page:
        """Return the series of this process."""
        return read_page(self.workload_url)

    def exporter_page(self) -> Page:
        """Return the series of the exporter and of the ledger."""
        return read_page(self.exporter_url)

    def start_exporter(self) -> None:
        """Start the exporter, on the ledger that is there."""
        assert self._payments is not None
        self._exporter = Child(
            "exporter",
            [sys.executable, "-c", _SERVE, "serve", "--config", str(self._config),
             "--app", "handoffwatch.demo.app:watch"],
            log=self.folder / "exporter.log",
            environment={"NORTHWIND_PAYMENTS_URL": self._payments.url},
        )  # fmt: skip

    def kill_exporter(self) -> None:
        """End the exporter as `kill -9` does."""
        assert self._exporter is not None
        self._exporter.kill()
        self._exporter = None

    @property
    def _config(self) -> Path:
        return self.folder / "handoffwatch.yaml"

    def _start(self) -> None:
        self._config.write_text(yaml.safe_dump(_settings(self.folder)), encoding="utf-8")
        database = str(self.folder / "payments.db")
        self._payments = Child(
            "payments service",
            [sys.executable, "-m", "handoffwatch.demo.payments", "--seed", str(self.plan.seed), "--database", database],
            log=self.folder / "payments.log",
        )
        self._desk = open_desk(self._payments.url, config=self._config)
        self._metrics = self._desk.watch.serve_metrics(port=0)
        self.start_exporter()

    def _take(self, left: Iterator[None], end_s: float | None) -> Callable[[], int | None]:
        """Return a function that gives the next run's index to whichever worker asks; None when there is none."""

        def take() -> int | None:
            with self._lock:
                over = self._stopping.is_set() or (end_s is not None and time.monotonic() >= end_s)
                if over or next(left, False) is False:
                    return None
                return next(self._numbers)

        return take

    def _work(self, take: Callable[[], int | None], progress: Progress | None) -> None:
        assert self._desk is not None
        while (index := take()) is not None:
            serve_customer(self._desk, self.plan.run(index))
            with self._lock:
                self.ended.append(index)
                ended = len(self.ended)
            if progress is not None:
                progress(ended)


def _settings(folder: Path) -> dict[str, dict[str, object]]:
    """Return the demo's configuration: the product's defaults with its waits made short."""
    return {
        "tools": {"base_wait_s": 0.05},
        "ledger": {"url": f"sqlite:///{folder / 'ledger.db'}"},
        "settlement": {
            "read_back_window_s": 0.5,
            "polls_s": [0.0, 0.3, 0.7, 1.2],
            "backoff_s_max": 1.0,
            "tick_s": 0.1,
        },
        "exporter": {"port": 0},
    }
