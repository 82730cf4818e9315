"""One demo from start to end."""

from __future__ import annotations

import time
from dataclasses import dataclass

from handoffwatch.demo.northwind import Northwind, Progress
from handoffwatch.demo.pages import compare
from handoffwatch.demo.report import DemoReport, read_report


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What to run.

    Attributes:
        runs: How many refund requests; None goes on until `for_s` is over.
        for_s: Start no further run after so many seconds; None runs all of `runs`.
    """

    runs: int | None = 60
    for_s: float | None = None


def run_demo(northwind: Northwind, options: DemoOptions, progress: Progress | None = None) -> DemoReport:
    """Drive the runs, wait until their refunds are settled, and return what the product says about them.

    Args:
        northwind: A started Northwind.
        options: What to run.
        progress: Is told after each run how many have ended.

    Raises:
        HandoffwatchError: A page of the product could not be read, or the ledger could not be written.
    """
    started_s = time.monotonic()
    northwind.drive(options.runs, for_s=options.for_s, progress=progress)
    northwind.settle()
    took_s = time.monotonic() - started_s
    workload, settler = northwind.workload_page(), northwind.exporter_page()
    comparison = compare(northwind.truth(), workload=workload, settler=settler)
    return read_report(
        seed=northwind.plan.seed,
        took_s=took_s,
        workload=workload,
        settler=settler,
        false_successes=northwind.false_successes(),
        comparison=comparison,
    )
