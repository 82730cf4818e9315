"""The demo's numbers in a real Prometheus equal Northwind's own record, also when the exporter is killed on the way."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handoffwatch.demo.northwind import Northwind
from handoffwatch.demo.pages import Page, compare, compare_ledger, compare_workload
from handoffwatch.demo.truth import series
from support.prometheus_server import PrometheusServer, prometheus, wait_until

SEEDS = (1, 2, 3)
RUNS = 40
LEFT_OUT = {"__name__", "job", "instance", "ledger"}


@contextmanager
def scraped(northwind: Northwind, folder: Path) -> Iterator[PrometheusServer]:
    """Prometheus that scrapes workload and exporter once a second, at the addresses of the moment."""
    point_at(northwind)
    jobs = [
        {"job_name": job, "file_sd_configs": [{"files": [str(northwind.folder / f"{job}.json")]}]}
        for job in ("workload", "exporter")
    ]
    config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}
    with prometheus(folder / "prometheus", config) as server:
        yield server


def point_at(northwind: Northwind) -> None:
    """Write the targets' files, as a service discovery would."""
    for job, url in (("workload", northwind.workload_url), ("exporter", northwind.exporter_url)):
        target = [{"targets": [url.removeprefix("http://")]}]
        (northwind.folder / f"{job}.json").write_text(json.dumps(target))


def stored(server: PrometheusServer, job: str, url: str) -> Page:
    """Return what Prometheus holds of one target, from a scrape that began after this call."""
    target = f'job="{job}",instance="{url.removeprefix("http://")}"'
    now_s = time.time()
    scrape = f"timestamp(up{{{target}}})"
    wait_until(lambda: server.number(scrape), lambda when: when is not None and when > now_s, what=scrape)
    page: Page = {}
    for labels, value in server.query(f'{{__name__=~"handoffwatch_.+",{target}}}').items():
        kept = tuple((name, text) for name, text in labels if name not in LEFT_OUT)
        page[dict(labels)["__name__"], kept] = value
    return page


@pytest.mark.parametrize("seed", SEEDS)
def test_demo_numbers_equal_its_record_when_everything_runs_through(seed: int, tmp_path: Path) -> None:
    """Every series of both processes and of the ledger, as Prometheus answers it, equals what Northwind wrote down."""
    with Northwind(tmp_path, seed=seed) as northwind, scraped(northwind, tmp_path) as server:
        northwind.drive(RUNS)
        assert northwind.settle()
        comparison = compare(
            northwind.truth(),
            workload=stored(server, "workload", northwind.workload_url),
            settler=stored(server, "exporter", northwind.exporter_url),
        )
        assert comparison.differences == ()
        assert comparison.above_zero > 60
        assert northwind.false_successes() == northwind.truth().false_successes


@pytest.mark.parametrize("seed", SEEDS)
def test_demo_ledger_numbers_equal_its_record_when_the_exporter_is_killed(seed: int, tmp_path: Path) -> None:
    """After `kill -9` in the middle and a restart on the same ledger, no claim is lost and none is counted twice."""

    def disturb(ended: int) -> None:
        if ended == RUNS // 3:
            northwind.kill_exporter()
        if ended == 2 * RUNS // 3:
            northwind.start_exporter()
            point_at(northwind)

    with Northwind(tmp_path, seed=seed) as northwind, scraped(northwind, tmp_path) as server:
        server.wait_for_targets(2)
        northwind.drive(RUNS, progress=disturb)
        assert northwind.settle()
        truth = northwind.truth()
        exporter = stored(server, "exporter", northwind.exporter_url)
        assert compare_ledger(truth, exporter).differences == ()
        assert compare_workload(truth, stored(server, "workload", northwind.workload_url)).differences == ()
        assert northwind.false_successes() == truth.false_successes


def test_record_disagrees_when_a_run_is_left_out_of_it(tmp_path: Path) -> None:
    """The comparison can fail: a record that lacks one run differs from the product's numbers."""
    with Northwind(tmp_path, seed=1) as northwind:
        northwind.drive(4)
        assert northwind.settle()
        truth = northwind.truth()
        pages = {"workload": northwind.workload_page(), "settler": northwind.exporter_page()}
        assert compare(truth, **pages).differences == ()
        truth.ledger[series("ledger_claims_total", workflow="refunds", claimed="done")] -= 1
        [difference] = compare(truth, **pages).differences
        assert difference.startswith("ledger: handoffwatch_ledger_claims_total{claimed=done, workflow=refunds} is ")
