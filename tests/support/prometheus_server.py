"""Real Prometheus, Alertmanager and a pager's webhook on loopback, for tests.

Each server chooses its own port; which one is read from the kernel by the server's pid, so no two tests can race for a
port. Each is stopped by its pid. Every wait has a deadline and fails with what was seen last.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from support.requirements import ROOT, require_program

T = TypeVar("T")

_LISTEN = "0A"
_POLL_S = 0.1


def wait_until(ask: Callable[[], T], good: Callable[[T], bool], *, what: str, deadline_s: float = 30.0) -> T:
    """Return the first answer that is good; fail when none came in time."""
    end = time.monotonic() + deadline_s
    while True:
        answer = ask()
        if good(answer):
            return answer
        if time.monotonic() > end:
            pytest.fail(f"{what}: not within {deadline_s} s, last seen {answer!r}")
        time.sleep(_POLL_S)


@dataclass(slots=True)
class Delivery:
    """One request to the pager: when it came, to which path, with which token, and Alertmanager's message."""

    received_s: float
    path: str
    authorization: str
    message: dict[str, Any]

    @property
    def alerts(self) -> list[tuple[str, str]]:
        """Name and status of each alert in the message."""
        return [(alert["labels"]["alertname"], alert["status"]) for alert in self.message["alerts"]]


@dataclass(slots=True)
class Pager:
    """A webhook receiver that keeps what it gets."""

    port: int
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def until(self, alert: str, status: str, *, deadline_s: float = 60.0) -> Delivery:
        """Return the first delivery that says so about the alert."""

        def found() -> Delivery | None:
            return next((delivery for delivery in list(self.deliveries) if (alert, status) in delivery.alerts), None)

        delivery = wait_until(found, lambda d: d is not None, what=f"{alert} {status}", deadline_s=deadline_s)
        assert delivery is not None
        return delivery


@contextmanager
def pager() -> Iterator[Pager]:
    """A webhook receiver on a free loopback port."""
    deliveries: list[Delivery] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            token = self.headers.get("Authorization", "")
            deliveries.append(Delivery(time.time(), self.path, token, json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Pager(server.server_port, deliveries)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True, slots=True)
class Server:
    """A running process with an HTTP API."""

    address: str
    pid: int

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{self.address}"

    def get(self, path: str, **parameters: str) -> Any:
        """Return the JSON answer of a GET."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        with urllib.request.urlopen(f"{self.url}{path}{query}", timeout=10) as answer:
            return json.loads(answer.read())


@dataclass(frozen=True, slots=True)
class PrometheusServer(Server):
    """A running Prometheus."""

    def query(self, expr: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the samples of an instant query: value by sorted labels."""
        result = self.get("/api/v1/query", query=expr)["data"]["result"]
        return {tuple(sorted(sample["metric"].items())): float(sample["value"][1]) for sample in result}

    def number(self, expr: str) -> float | None:
        """Return the value of a query with one sample; None when it has none."""
        samples = list(self.query(expr).values())
        assert len(samples) <= 1, f"{expr}: {len(samples)} samples"
        return samples[0] if samples else None

    def query_until(self, expr: str, good: Callable[[float | None], bool], *, deadline_s: float = 30.0) -> float | None:
        """Return the first value of a query that is good."""
        return wait_until(lambda: self.number(expr), good, what=expr, deadline_s=deadline_s)

    def alerts(self) -> dict[str, str]:
        """Return the state of each alert that is pending or firing."""
        return {alert["labels"]["alertname"]: alert["state"] for alert in self.get("/api/v1/alerts")["data"]["alerts"]}

    def wait_for_alertmanager(self) -> None:
        """Wait until an Alertmanager is known: an alert that starts before is offered to it only a minute later."""
        wait_until(
            lambda: self.get("/api/v1/alertmanagers")["data"]["activeAlertmanagers"], bool, what="active Alertmanager"
        )

    def wait_for_targets(self, count: int, *, deadline_s: float = 30.0) -> None:
        """Wait until so many targets answer."""
        self.query_until("sum(up)", lambda value: value == count, deadline_s=deadline_s)


def shipped_prometheus(
    *, rules: Path, targets: dict[str, str], alertmanager: str | None = None, interval: str = "1s"
) -> dict[str, Any]:
    """Return the shipped configuration with other intervals and addresses, and nothing else changed.

    Args:
        rules: The folder of the rendered rule files.
        targets: The address for each scrape job.
        alertmanager: Its address; None for none.
        interval: Of scrapes and of evaluations.
    """
    config: dict[str, Any] = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval}
    config["rule_files"] = [str(rules / "*.yaml")]
    managers = [{"static_configs": [{"targets": [alertmanager]}]}] if alertmanager else []
    config["alerting"] = {"alertmanagers": managers}
    for job in config["scrape_configs"]:
        job["static_configs"] = [{"targets": [targets[job["job_name"]]]}]
    return config


def shipped_alertmanager(*, pager: str, group_interval: str = "1s") -> dict[str, Any]:
    """Return the shipped configuration with the pager's address, and a short wait for the end of an alert."""
    path = ROOT / "deploy/alertmanager/alertmanager.yml"
    config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    for route in config["route"]["routes"]:
        route["group_interval"] = group_interval
    for receiver in config["receivers"]:
        for hook in receiver["webhook_configs"]:
            hook["url"] = pager + urllib.parse.urlsplit(hook["url"]).path
    return config


@contextmanager
def prometheus(folder: Path, config: dict[str, Any]) -> Iterator[PrometheusServer]:
    """Prometheus with this configuration, its data below `folder`."""
    path = require_program("prometheus")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [
        path, f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", "--web.listen-address=127.0.0.1:0",
        "--log.level=warn",
    ]  # fmt: skip
    with running(command, folder / "prometheus.log") as (pid, port):
        server = PrometheusServer(f"127.0.0.1:{port}", pid)
        _wait_until_ready(server)
        yield server


@contextmanager
def alertmanager(folder: Path, config: dict[str, Any]) -> Iterator[Server]:
    """Alertmanager with this configuration; files that it names are looked up below `folder`."""
    path = require_program("alertmanager")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "alertmanager.yml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [
        path, f"--config.file={file}", f"--storage.path={folder / 'data'}", "--web.listen-address=127.0.0.1:0",
        "--cluster.listen-address=", "--log.level=warn",
    ]  # fmt: skip
    with running(command, folder / "alertmanager.log") as (pid, port):
        server = Server(f"127.0.0.1:{port}", pid)
        _wait_until_ready(server)
        yield server


def listening_ports(pid: int) -> list[int]:
    """Return the TCP ports on which a process listens, from the kernel's tables."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(os.readlink(descriptor))
        except FileNotFoundError:
            continue
    ports = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == _LISTEN and f"socket:[{columns[9]}]" in sockets:
                ports.append(int(columns[1].rsplit(":", 1)[1], 16))
    return ports


@contextmanager
def running(
    command: list[str], log: Path, *, cwd: Path | None = None, env: dict[str, str] | None = None
) -> Iterator[tuple[int, int]]:
    """A process that serves on a port of its choice: its pid and the port. It is stopped by SIGTERM.

    Args:
        command: Program and arguments.
        log: The file that gets stdout and stderr.
        cwd: The working folder.
        env: Variables beside those of the test.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=cwd, env={**os.environ, **(env or {})}
        )
    try:

        def ports() -> list[int]:
            assert process.poll() is None, f"{command[0]} ended:\n{log.read_text()}"
            return listening_ports(process.pid)

        yield process.pid, wait_until(ports, bool, what=f"{command[0]} listening")[0]
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(server: Server) -> None:
    def status() -> int:
        try:
            with urllib.request.urlopen(f"{server.url}/-/ready", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    wait_until(status, lambda code: code == 200, what=f"{server.url} ready")
