"""The product's main job, live: a false success is settled, Prometheus fires, Alertmanager pages, the alert clears."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from handoffwatch.mixin import Values, render, write
from support.prometheus_server import (
    Pager,
    PrometheusServer,
    alertmanager,
    pager,
    prometheus,
    running,
    shipped_alertmanager,
    shipped_prometheus,
)
from support.refund_desk import Desk, open_desk
from support.requirements import ROOT

WINDOW_S = 15
ALERTS = Path("deploy/prometheus/rules/handoffwatch-alerts.yaml")
TOKEN = "a-token-for-the-pager"
_CASES = 'sum(ledger:handoffwatch_ledger_cases_open:max{kind="false_success"})'
"""The last rule of its group that tells the two states apart: the others have been evaluated when it has."""
HANDOFFWATCH = str(Path(sys.executable).with_name("handoffwatch"))


@dataclass(frozen=True, slots=True)
class Stack:
    """Everything that stands between an agent and the person on call."""

    desk: Desk
    prometheus: PrometheusServer
    pager: Pager


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """A workload, `handoffwatch serve`, Prometheus, Alertmanager and the pager, with the shipped files."""
    write(render(Values(false_success_window=f"{WINDOW_S}s")), folder)
    secrets = folder / "alertmanager/secrets"
    secrets.mkdir(parents=True)
    for name in ("pager-token", "tickets-token"):
        (secrets / name).write_text(TOKEN, encoding="utf-8")
    desk = open_desk(folder / "desk")
    workload = desk.watch.serve_metrics()
    try:
        with (
            pager() as phone,
            alertmanager(folder / "alertmanager", shipped_alertmanager(pager=phone.url)) as manager,
            exporter(folder / "desk") as exporter_port,
            prometheus(
                folder / "prometheus",
                shipped_prometheus(
                    rules=folder / "deploy/prometheus/rules",
                    targets={
                        "handoffwatch": f"127.0.0.1:{exporter_port}",
                        "handoffwatch-workload": f"127.0.0.1:{workload.port}",
                    },
                    alertmanager=manager.address,
                ),
            ) as server,
        ):
            server.wait_for_alertmanager()
            server.wait_for_targets(2)
            yield Stack(desk, server, phone)
    finally:
        workload.close()
        desk.watch.close()


@contextmanager
def exporter(folder: Path) -> Iterator[int]:
    """`handoffwatch serve` over the desk's ledger; its port."""
    command = [HANDOFFWATCH, "serve", "--app", "support.refund_desk_app:watch", "--port", "0"]
    with running(command, folder / "serve.log", cwd=ROOT / "tests", env={"REFUND_DESK": str(folder)}) as (_, port):
        yield port


def overview_numbers(server: PrometheusServer) -> dict[str, list[float]]:
    """Return what each target of the Overview answers, by panel."""
    board = json.loads((ROOT / "dashboards/overview.json").read_text(encoding="utf-8"))
    numbers: dict[str, list[float]] = {}
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            expr = target["expr"].replace("$__rate_interval", "1m").replace("$__range", "5m")
            for variable in ("job", "instance", "workflow", "route"):
                expr = expr.replace(f'"${variable}"', '".+"')
            numbers.setdefault(panel["title"], []).extend(server.query(expr).values())
    return numbers


def test_live_rules_differ_only_in_the_window_when_compared_with_the_shipped_ones() -> None:
    """What the live test proves is the shipped rule: the 30 minutes are made short, and nothing else is."""
    shipped = {str(path): (ROOT / path).read_text(encoding="utf-8") for path in render(Values())}
    live = {str(path): text for path, text in render(Values(false_success_window=f"{WINDOW_S}s")).items()}
    changed = shipped[str(ALERTS)].replace("[30m]", f"[{WINDOW_S}s]").replace("< 1800", f"< {WINDOW_S}")
    assert live == {**shipped, str(ALERTS): changed}


def test_false_success_pages_and_clears_when_it_is_settled(tmp_path: Path) -> None:
    """Honest work is quiet; one false claim pages with its labels, is counted once, and clears after the window."""
    with stack(tmp_path) as live:
        live.prometheus.query_until(_CASES, lambda value: value == 0)
        idle = overview_numbers(live.prometheus)
        live.desk.run("4417")
        live.prometheus.query_until(
            'sum(ledger:handoffwatch_ledger_claims_settled_total:max5m{effect="landed"})', lambda value: value == 1
        )
        assert live.prometheus.alerts() == {}
        assert live.pager.deliveries == []

        live.desk.run("4418", honest=False)
        page = live.pager.until("HandoffwatchFalseSuccess", "firing")
        assert page.path == "/page"
        assert page.authorization == f"Bearer {TOKEN}"
        (alert,) = page.message["alerts"]
        ledger = alert["labels"]["ledger"]
        assert alert["labels"] == {
            "alertname": "HandoffwatchFalseSuccess",
            "severity": "critical",
            "ledger": ledger,
            "workflow": "refunds",
            "operation": "refund",
        }
        assert alert["annotations"]["summary"] == "refund in refunds: claimed done, and it did not happen"
        live.prometheus.query_until(_CASES, lambda value: value == 1)
        counted = live.prometheus.query("ledger:handoffwatch_ledger_false_successes_total:max5m > 0")
        (labels,) = map(dict, counted)
        assert (labels["cause"], labels["origin"], labels["ledger"]) == ("missing", "tool", ledger)
        busy = overview_numbers(live.prometheus)

        live.pager.until("HandoffwatchFalseSuccess", "resolved")
        assert "HandoffwatchFalseSuccess" not in live.prometheus.alerts()

    assert all(math.isfinite(value) for values in (*idle.values(), *busy.values()) for value in values)
    assert idle["False successes"] == [0]
    assert idle["False share of settled claims"] == []
    assert idle["Firing alerts"] == [0]
    assert idle["Targets up"] == [1, 1]
    assert busy["False successes"] == [1]
    assert busy["False share of settled claims"] == [0.5]
    assert busy["False successes to review"] == [1]
    assert busy["Firing alerts"] == [1]
    assert busy["Block rate by route"] == [0]
