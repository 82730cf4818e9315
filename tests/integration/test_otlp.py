"""Spans over OTLP: they arrive at a real receiver, and a receiver that is away never holds the program up."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from handoffwatch import Settings, Watch
from handoffwatch.recording.settings import RecordingSettings
from support.requirements import ROOT
from support.telemetry import counted
from support.watched import Findings, bad_handoff, handoff

EXIT_S = 0.5
MARGIN_S = 1.5
"""What a busy machine may add to a bounded end."""


class Receiver(ThreadingHTTPServer):
    """A Collector in small: it takes traces over OTLP/HTTP on loopback and keeps them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[ExportTraceServiceRequest] = []
        self.paths: set[str] = set()
        self.status = 200

    @property
    def endpoint(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self) -> dict[str, Span]:
        """The spans that arrived, by name."""
        return {
            span.name: span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.add(self.path)
        if self.server.status == 200:
            self.server.requests.append(ExportTraceServiceRequest.FromString(body))
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running receiver."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def _watch(endpoint: str, **settings: Any) -> Watch:
    recording = RecordingSettings(otlp_endpoint=endpoint, **({"exit_s": 10.0} | settings))
    watch = Watch(settings=Settings(recording=recording))
    watch.workflow("refunds")
    watch.route("planner->executor", contract=Findings)
    watch.tool("find_order", safety="safe", attempts_max=1)
    return watch


def _values(span: Span) -> dict[str, Any]:
    found = {}
    for attribute in span.attributes:
        kind = attribute.value.WhichOneof("value")
        found[attribute.key] = getattr(attribute.value, kind) if kind else None
    return found


def test_spans_arrive_with_their_attributes_when_a_receiver_is_there(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One trace with parents, statuses and the service's name, as protobuf at the standard path."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "refund-desk")
    watch = _watch(receiver.endpoint + "/")

    with watch.run("refunds", run_id="r-1", task_id="t-1") as run:
        run.handoff("planner", "executor", bad_handoff())
        run.call("find_order").raised(TimeoutError())
    watch.close()

    spans = receiver.spans
    assert receiver.paths == {"/v1/traces"}
    assert set(spans) == {"handoff executor", "execute_tool find_order", "invoke_workflow refunds"}
    root = spans["invoke_workflow refunds"]
    assert {span.trace_id for span in spans.values()} == {root.trace_id}
    assert spans["handoff executor"].parent_span_id == root.span_id
    assert spans["execute_tool find_order"].status.code == 2
    assert spans["handoff executor"].status.code == 0
    assert _values(spans["execute_tool find_order"])["error.type"] == "timeout"
    assert _values(spans["handoff executor"])["handoffwatch.handoff.id"] == "h-1"
    resource = receiver.requests[0].resource_spans[0].resource
    assert [item.value.string_value for item in resource.attributes if item.key == "service.name"] == ["refund-desk"]
    assert counted(watch.registry, "telemetry_dropped_total") == {}


def test_good_spans_arrive_when_a_name_among_them_is_broken(receiver: Receiver) -> None:
    """One name with broken Unicode must not cost the other spans of its batch, nor itself."""
    watch = _watch(receiver.endpoint)

    with watch.run("refunds", task_id="t-1") as run:
        run.handoff("planner", "executor", handoff())
        run.handoff("planner", "\udca0", handoff(handoff_id="\udca0"))
    watch.close()

    assert {"handoff executor", "invoke_workflow refunds"} <= set(receiver.spans)
    assert len(receiver.spans) == 3
    assert counted(watch.registry, "telemetry_dropped_total") == {}


def test_drops_are_counted_when_the_receiver_refuses_the_spans(receiver: Receiver) -> None:
    """400 is final: nothing is sent again."""
    receiver.status = 400
    watch = _watch(receiver.endpoint)

    with watch.run("refunds", task_id="t-1") as run:
        run.handoff("planner", "executor", handoff())
    watch.close()

    assert counted(watch.registry, "telemetry_dropped_total") == {
        'telemetry_dropped_total{cause="export_failed",signal="spans"}': 2
    }


def test_spans_are_sent_once_when_the_watch_is_closed_twice(receiver: Receiver) -> None:
    """Closing again does nothing."""
    watch = _watch(receiver.endpoint)

    with watch.run("refunds"):
        pass
    watch.close()
    watch.close()

    assert len(receiver.requests) == 1


@contextlib.contextmanager
def _refusing() -> Iterator[str]:
    """Yield an endpoint that refuses connections: a port that is taken and does not listen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextlib.contextmanager
def _silent() -> Iterator[str]:
    """Yield an endpoint that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextlib.contextmanager
def _unresolvable() -> Iterator[str]:
    """Yield an endpoint whose name does not resolve."""
    yield "http://collector.invalid:4318"


_PROGRAM = textwrap.dedent(
    """
    import json, sys, threading, time
    from handoffwatch import Settings, Watch
    from handoffwatch.recording.settings import RecordingSettings
    from support.telemetry import counted
    from support.watched import Findings, handoff

    settings, closes, waits = json.loads(sys.argv[1])
    watch = Watch(settings=Settings(recording=RecordingSettings(**settings)))
    watch.workflow("refunds")
    watch.route("planner->executor", contract=Findings)

    began = time.perf_counter()
    with watch.run("refunds") as run:
        for number in range(100):
            run.transfer("planner", "executor", handoff(task_id=f"t-{number}"), receiver=lambda _: None)
    worked_s = time.perf_counter() - began

    began = time.perf_counter()
    if closes:
        watch.close()
    closed_s = time.perf_counter() - began
    dropped = counted(watch.registry, "telemetry_dropped_total")
    for thread in threading.enumerate():
        if waits and thread.name == "handoffwatch-spans-exit":
            thread.join(20)
    later = counted(watch.registry, "telemetry_dropped_total")
    print(json.dumps({"worked_s": worked_s, "closed_s": closed_s, "dropped": dropped, "later": later}), flush=True)
    """
)

SPANS = 101
"""The spans of the program: a hundred handoffs and their run."""


def _run_program(
    endpoint: str, *, queue_max: int = 2048, timeout_s: float = 1.0, closes: bool = True, waits: bool = False
) -> tuple[dict[str, Any], float]:
    """Run the program to its end; return what it says, and how long it took to end after it had said that.

    Args:
        endpoint: Where its spans go.
        queue_max: How many spans may wait.
        timeout_s: When an export is given up.
        closes: Whether it closes its watch.
        waits: Whether it waits, after that, until the last export has been given up.
    """
    settings = {"otlp_endpoint": endpoint, "otlp_timeout_s": timeout_s, "exit_s": EXIT_S, "queue_max": queue_max}
    arguments = json.dumps([settings, closes, waits])
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": str(ROOT / "tests"), "no_proxy": "*"},
    ) as process:
        killer = threading.Timer(60, process.kill)
        killer.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            said = time.perf_counter()
            code = process.wait()
            ended_s = time.perf_counter() - said
        finally:
            killer.cancel()
    assert code == 0
    return json.loads(line), ended_s


@pytest.mark.parametrize("away", [_refusing, _silent, _unresolvable], ids=["refuses", "never answers", "no such name"])
def test_program_ends_in_time_and_counts_each_span_once_when_the_receiver_is_away(away: Any) -> None:
    """A hundred handoffs are no slower for it, `close` takes no longer than it may, and every span is accounted for."""
    with away() as endpoint:
        said, _ = _run_program(endpoint, waits=True)

    assert said["worked_s"] < 1.0
    assert said["closed_s"] < EXIT_S + MARGIN_S
    assert sum(said["dropped"].values()) == SPANS
    assert {line.partition("{")[0] for line in said["dropped"]} == {"telemetry_dropped_total"}
    assert said["later"] == said["dropped"]


@pytest.mark.parametrize("away", [_refusing, _silent], ids=["refuses", "never answers"])
def test_process_ends_in_time_when_nobody_closes_the_watch(away: Any) -> None:
    """The bound holds at the interpreter's exit too."""
    with away() as endpoint:
        _, ended_s = _run_program(endpoint, closes=False)

    assert ended_s < EXIT_S + MARGIN_S


def test_queue_stays_bounded_when_the_receiver_never_answers() -> None:
    """Ten spans wait, the other ninety-one are dropped as they end."""
    with _silent() as endpoint:
        said, _ = _run_program(endpoint, queue_max=10, timeout_s=30.0)

    assert said["dropped"] == {
        'telemetry_dropped_total{cause="queue_full",signal="spans"}': SPANS - 10,
        'telemetry_dropped_total{cause="shutdown",signal="spans"}': 10,
    }
