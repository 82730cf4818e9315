"""`handoffwatch serve` as a real process: what it answers, what it settles, and how it ends."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from support.exporter_process import Answer, Exporter, exporter
from support.refund_desk import open_desk
from support.requirements import require_program

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
BARE = "serving ledger series only: without --app no verifier is known, so nothing is settled here"

SLOW_APP = """\
import pathlib, time
from handoffwatch import Watch

class Slow:
    def collect(self):
        pathlib.Path("scraping").touch()
        while not pathlib.Path("go").exists():
            time.sleep(0.01)
        return []

    def describe(self):
        return []

watch = Watch()
watch.registry.register(Slow())
"""

BAD_APP = """\
from handoffwatch import Watch

class Bad:
    readings = 0

    def collect(self):
        self.readings += 1
        if self.readings == 1:
            raise ValueError("token=hunter2")
        return []

    def describe(self):
        return []

watch = Watch()
watch.registry.register(Bad())
"""

VERIFYING_APP = """\
import pathlib, time
from handoffwatch import RecordVerifier, Watch

def look(order_id):
    pathlib.Path("looking").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return {"order_id": order_id, "status": "succeeded"}

watch = Watch()
watch.operation("refund", key="order_id", verifier=RecordVerifier(by_key=look))
watch.workflow("refunds", tools="none", operations=["refund"])
with watch.run("refunds") as run:
    run.expect("refund", order_id="4417")
    run.claim("done")
"""


def _until(check: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 20
    while not check():
        assert time.monotonic() < end, f"not in time: {what}"
        time.sleep(0.02)


def _ledger_lines(answer: Answer) -> list[str]:
    return [line for line in answer.body.splitlines() if line.startswith("handoffwatch_ledger_")]


def test_exporter_serves_ledger_series_only_when_it_has_no_app(tmp_path: Path) -> None:
    """Without --app the exporter says that it does not settle; what the workload registered is there at 0."""
    desk = open_desk(tmp_path)
    desk.watch.ledger.snapshot()
    desk.run("4417")

    with exporter(tmp_path, "--config", "handoffwatch.yaml") as running:
        metrics = running.request("/metrics")
        page = running.request("/")

    assert running.lines[0].startswith("ledger /")
    assert running.lines[1:3] == [BARE, f"listening on {running.url}"]
    assert running.url.startswith("http://127.0.0.1:")
    label = desk.watch.ledger.snapshot().label
    assert f'handoffwatch_ledger_claims_total{{claimed="done",ledger="{label}",workflow="refunds"}} 1.0' in metrics.body
    assert f'handoffwatch_ledger_claims_open{{claimed="done",ledger="{label}",workflow="refunds"}} 1.0' in metrics.body
    assert 'effect="landed",ledger="' in metrics.body
    assert 'handoffwatch_collector_success{collector="ledger"} 1.0' in metrics.body
    assert f"<code>{label}</code>" in page.body
    assert BARE in page.body
    assert "<td>refunds</td><td>refund</td><td>critical</td>" in page.body
    desk.watch.close()


def test_exporter_settles_what_was_claimed_when_it_has_an_app(tmp_path: Path) -> None:
    """With --app the user's own verifier tells a landed refund from one that was never made."""
    desk = open_desk(tmp_path)
    desk.run("1")
    desk.run("2", honest=False)
    desk.watch.close()

    app = ("--app", "support.refund_desk_app:watch")
    with exporter(tmp_path, *app, environ={"REFUND_DESK": str(tmp_path)}) as running:
        settled = re.compile(
            r'^handoffwatch_ledger_claims_settled_total\{claimed="done",effect="(\w+)",.*\} ([0-9.]+)$', re.MULTILINE
        )

        def counts() -> dict[str, float]:
            found = settled.findall(running.request("/metrics").body)
            return {effect: float(value) for effect, value in found}

        _until(lambda: counts() == {"landed": 1, "not_landed": 1, "unchecked": 0}, "both claims settled")
        before = _ledger_lines(running.request("/metrics"))
        assert "settling with --app support.refund_desk_app:watch" in running.request("/").body
        running.process.kill()

    with exporter(tmp_path, *app, environ={"REFUND_DESK": str(tmp_path)}) as running:
        assert _ledger_lines(running.request("/metrics")) == before
        assert running.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize(
    ("accept", "content_type", "parse"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8", parse_text),
        (
            OPENMETRICS,
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
            parse_openmetrics,
        ),
    ],
)
def test_exporter_answers_in_the_format_that_is_asked_for_when_scraped(
    tmp_path: Path, accept: str, content_type: str, parse: Callable[[str], object]
) -> None:
    """Both formats parse with the reference parser and hold the same families."""
    with exporter(tmp_path) as running:
        answer = running.request("/metrics", headers={"accept": accept})

    assert answer.status == 200
    assert answer.headers["content-type"] == content_type
    names = {family.name for family in parse(answer.body)}  # type: ignore[attr-defined]
    assert {"handoffwatch_collector_success", "handoffwatch_build_info"} <= names


def test_exporter_passes_promtool_when_its_metrics_are_checked(tmp_path: Path) -> None:
    """promtool has nothing to say about names, units and help texts."""
    promtool = require_program("promtool")
    desk = open_desk(tmp_path)
    desk.run("4417")
    desk.watch.close()

    with exporter(
        tmp_path, "--app", "support.refund_desk_app:watch", environ={"REFUND_DESK": str(tmp_path)}
    ) as running:
        text = running.request("/metrics").body

    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_exporter_tests_the_contracts_of_its_app_and_of_none_without_one(tmp_path: Path) -> None:
    """The gauge says when they last came out right; an exporter of the ledger alone has no contracts, and shows 0."""
    began_s = time.time()
    with exporter(
        tmp_path, "--app", "support.refund_desk_app:watch", environ={"REFUND_DESK": str(tmp_path)}
    ) as running:
        _until(lambda: _selftest_s(running) > 0, "a self-test")
        assert began_s <= _selftest_s(running) <= time.time()

    with exporter(tmp_path) as running:
        assert _selftest_s(running) == 0


def _selftest_s(running: Exporter) -> float:
    name = "handoffwatch_watchdog_selftest_last_success_timestamp_seconds"
    (value,) = (
        sample.value
        for family in parse_text(running.request("/metrics").body)
        for sample in family.samples
        if sample.name == name
    )
    return value


def test_exporter_is_not_ready_until_its_ledger_can_be_read(tmp_path: Path) -> None:
    """A ledger that is down is said at start and at /-/ready, its series are absent, and it may come back."""
    url = f"sqlite:///{tmp_path}/later/ledger.db"
    problem = "ledger: database: must be read, got FileNotFoundError"

    with exporter(tmp_path, environ={"HANDOFFWATCH_LEDGER__URL": url}) as running:
        down = (running.request("/-/ready"), running.request("/-/healthy"), running.request("/metrics"))
        page = running.request("/")
        (tmp_path / "later").mkdir()
        up = (running.request("/-/ready"), running.request("/metrics"))

    assert running.lines[2] == f"the ledger cannot be read, it is tried again at every request: {problem}"
    assert (down[0].status, down[0].body) == (503, f"handoffwatch is not ready: {problem}\n")
    assert (down[1].status, down[1].body) == (200, "handoffwatch is healthy\n")
    assert down[2].status == 200
    assert 'handoffwatch_collector_success{collector="ledger"} 0.0' in down[2].body
    assert page.status == 200
    assert f"not readable: {problem}" in page.body
    assert (up[0].status, up[0].body) == (200, "handoffwatch is ready\n")
    assert 'handoffwatch_collector_success{collector="ledger"} 1.0' in up[1].body


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy", "/-/ready", "/none"])
def test_exporter_sends_security_headers_when_it_answers(tmp_path: Path, path: str) -> None:
    """Every answer carries them, errors too; HEAD has the headers of GET and no body, and nothing else is allowed."""
    with exporter(tmp_path) as running:
        got, head, post = (running.request(path, method=method) for method in ("GET", "HEAD", "POST"))

    for answer in (got, head, post):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers
    assert (head.status, head.body, head.headers["content-type"]) == (got.status, "", got.headers["content-type"])
    assert post.status == (404 if path == "/none" else 405)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_exporter_ends_with_0_when_told_to_stop(tmp_path: Path, signal_number: int) -> None:
    """Both signals drain, and the lines say so."""
    with exporter(tmp_path) as running:
        assert running.stop(signal_number) == 0

    assert running.lines[1:] == [BARE, f"listening on {running.url}", "draining", "stopped"]


def test_exporter_finishes_open_requests_when_it_drains(tmp_path: Path) -> None:
    """A scrape that has begun gets its whole answer; a new one is refused."""
    (tmp_path / "slow_app.py").write_text(SLOW_APP, encoding="utf-8")
    answers: list[Answer] = []

    with exporter(tmp_path, "--app", "slow_app:watch") as running:
        scrape = threading.Thread(target=lambda: answers.append(running.request("/metrics")))
        scrape.start()
        _until((tmp_path / "scraping").exists, "the scrape has begun")
        running.process.send_signal(signal.SIGTERM)
        _until(lambda: "draining" in running.lines, "it drains")
        _until(lambda: _is_refused(running), "new connections are refused")
        (tmp_path / "go").touch()
        scrape.join()
        code = running.wait()

    assert code == 0
    assert answers[0].status == 200
    assert "handoffwatch_build_info" in answers[0].body


def _is_refused(running: Exporter) -> bool:
    address = urlsplit(running.url)
    try:
        socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False


def test_exporter_finishes_the_current_read_back_when_it_drains(tmp_path: Path) -> None:
    """The settler stops after the operation that it is at, whose result is kept."""
    (tmp_path / "verifying_app.py").write_text(VERIFYING_APP, encoding="utf-8")

    with exporter(tmp_path, "--app", "verifying_app:watch") as running:
        _until((tmp_path / "looking").exists, "the read-back has begun")
        running.process.send_signal(signal.SIGTERM)
        _until(lambda: "draining" in running.lines, "it drains")
        (tmp_path / "go").touch()
        assert running.wait() == 0

    assert running.lines[-1] == "stopped"
    with exporter(tmp_path) as after:
        settled = [line for line in _ledger_lines(after.request("/metrics")) if "claims_settled_total" in line]
    assert [line for line in settled if line.endswith(" 1.0") and 'effect="landed"' in line]


def test_exporter_ends_in_time_when_a_read_back_hangs(tmp_path: Path) -> None:
    """A verifier that does not answer is left behind after `drain_s`; the operation stays open for the next settler."""
    (tmp_path / "verifying_app.py").write_text(VERIFYING_APP, encoding="utf-8")
    environ = {"HANDOFFWATCH_EXPORTER__DRAIN_S": "1", "HANDOFFWATCH_SETTLEMENT__VERIFIER_TIMEOUT_S": "100"}

    with exporter(tmp_path, "--app", "verifying_app:watch", environ=environ) as running:
        _until((tmp_path / "looking").exists, "the read-back has begun")
        assert running.stop(signal.SIGTERM) == 0

    assert running.lines[-1] == "stopped, without waiting for the settler"
    with exporter(tmp_path) as after:
        found = [line for line in _ledger_lines(after.request("/metrics")) if "claims_open" in line]
    assert [line for line in found if line.endswith(" 1.0") and 'claimed="done"' in line]


def test_exporter_ends_in_time_when_a_scrape_hangs(tmp_path: Path) -> None:
    """A reading that never ends is cut off after `drain_s`, and the process ends all the same."""
    (tmp_path / "slow_app.py").write_text(SLOW_APP, encoding="utf-8")
    environ = {"HANDOFFWATCH_EXPORTER__DRAIN_S": "2", "HANDOFFWATCH_EXPORTER__SCRAPE_S_MAX": "100"}

    with exporter(tmp_path, "--app", "slow_app:watch", environ=environ) as running:
        address = urlsplit(running.url)
        with socket.create_connection((str(address.hostname), int(address.port or 0))) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            _until((tmp_path / "scraping").exists, "the scrape has begun")
            began_s = time.monotonic()
            code = running.stop(signal.SIGTERM)

    assert code == 0
    assert time.monotonic() - began_s < 8


def test_exporter_answers_busy_when_readings_hang(tmp_path: Path) -> None:
    """A reading that takes too long, and one beyond the allowed number, get 503; health is not affected."""
    (tmp_path / "slow_app.py").write_text(SLOW_APP, encoding="utf-8")
    environ = {"HANDOFFWATCH_EXPORTER__SCRAPES_MAX": "1", "HANDOFFWATCH_EXPORTER__SCRAPE_S_MAX": "0.2"}

    with exporter(tmp_path, "--app", "slow_app:watch", environ=environ) as running:
        first, second = running.request("/metrics"), running.request("/metrics")
        healthy = running.request("/-/healthy")
        (tmp_path / "go").touch()
        _until(lambda: running.request("/metrics").status == 200, "it answers again")

    assert (first.status, first.body) == (503, "handoffwatch is busy: no answer within 0.2 s\n")
    assert (second.status, second.body) == (503, "handoffwatch is busy: too many requests at the same time\n")
    assert second.headers["retry-after"] == "1"
    assert healthy.status == 200


def test_exporter_answers_again_when_many_connections_ask_for_nothing(tmp_path: Path) -> None:
    """120 clients that are silent, or send a byte at a time, lose their places after 5 s; a finished one keeps its."""
    with exporter(tmp_path) as running:
        address = urlsplit(running.url)
        where = (str(address.hostname), int(address.port or 0))
        began_s = time.monotonic()
        idle = [socket.create_connection(where, timeout=10) for _ in range(120)]
        try:
            _until(lambda: running.request("/metrics").status == 503, "they hold every place")

            def scrape() -> int:
                for trickling in idle[::2]:
                    with contextlib.suppress(OSError):
                        trickling.send(b"G")
                return running.request("/metrics").status

            _until(lambda: scrape() == 200, "a scrape is answered")
            assert time.monotonic() - began_s < 10
            assert [each.recv(1) for each in idle[1::2]] == [b""] * 60
        finally:
            for each in idle:
                each.close()


def test_exporter_answers_the_whole_request_when_it_comes_in_pieces(tmp_path: Path) -> None:
    """A connection may send its request slowly within the time, and further requests after it."""
    with exporter(tmp_path) as running:
        address = urlsplit(running.url)
        with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=10) as connection:
            answers = connection.makefile("rb")
            for _ in range(3):
                for piece in (b"HEAD /-/healthy HTT", b"P/1.1\r\nHost: x\r", b"\n\r\n"):
                    connection.sendall(piece)
                    time.sleep(0.05)
                assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
                while answers.readline() != b"\r\n":
                    pass


def test_exporter_sends_nobody_elsewhere_when_an_address_ends_in_a_slash(tmp_path: Path) -> None:
    """A redirect would name the host that the client claims to have asked."""
    with exporter(tmp_path) as running:
        answer = running.request("/metrics/", headers={"host": "evil.example"})

    assert answer.status == 404
    assert "location" not in answer.headers


def test_exporter_counts_its_fault_when_a_collector_raises(tmp_path: Path) -> None:
    """The answer is a bare 500, the log names kind and place without the exception's text, and the fault is counted."""
    (tmp_path / "bad_app.py").write_text(BAD_APP, encoding="utf-8")

    with exporter(tmp_path, "--app", "bad_app:watch") as running:
        failed, after = running.request("/metrics"), running.request("/metrics")
        assert running.stop(signal.SIGTERM) == 0

    assert (failed.status, failed.body) == (500, "handoffwatch failed; its log says where\n")
    assert 'handoffwatch_internal_errors_total{component="exporter"} 1.0' in after.body
    assert [line for line in running.lines if "ERROR" in line] == [
        "ERROR handoffwatch: internal error: component=exporter error=ValueError",
        f"ERROR uvicorn.error: Exception in ASGI application (ValueError at {tmp_path}/bad_app.py:9)",
    ]


def test_exporter_takes_its_own_settings_when_the_app_reads_another_file(tmp_path: Path) -> None:
    """With --config the exporter's section is that file's, and a plain `Watch()` of the app reads the file too."""
    (tmp_path / "plain_app.py").write_text("from handoffwatch import Watch\nwatch = Watch()\n", encoding="utf-8")
    (tmp_path / "named.yaml").write_text(
        "ledger: {url: 'sqlite:///named.db'}\nexporter: {address: localhost}\n", encoding="utf-8"
    )

    with exporter(tmp_path, "--config", "named.yaml", "--app", "plain_app:watch") as running:
        assert running.request("/-/ready").status == 200
        assert running.stop(signal.SIGTERM) == 0

    assert running.url.startswith("http://localhost:")
    assert (tmp_path / "named.db").is_file()
