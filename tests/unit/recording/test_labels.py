"""Labels: only registered names and closed sets; whatever a model makes up becomes `other`, and is counted."""

from __future__ import annotations

import logging
import socket
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from handoffwatch.catalogue import TOOL_CALLS, Kind, Label, Metric, Registered
from handoffwatch.recording.book import Book
from handoffwatch.recording.samples import FED
from support.telemetry import counted, exposition, samples, series
from support.watched import handoff, new_watched

MADE_UP = 5_000


def test_series_stay_flat_when_agents_and_tools_are_made_up(caplog: pytest.LogCaptureFixture) -> None:
    """Names that clients or models send make no series; each use is counted as overflow."""
    caplog.set_level(logging.CRITICAL, "handoffwatch")
    watch = new_watched().watch
    watch.tool("find", safety="safe")
    with watch.run("refunds", task_id="t-1") as run:
        before = series(watch.registry)
        for number in range(MADE_UP):
            run.handoff("planner", f"refunds_agent_{number}", handoff(target=f"refunds_agent_{number}"))
            run.call(f"tool_{number}").returned("found")
        after = series(watch.registry)

    overflow = 'label_overflow_total{label="%s",metric="%s"}'
    assert counted(watch.registry, "label_overflow_total") == {
        overflow % ("route", "handoff_inspections_total"): MADE_UP,
        overflow % ("tool", "tool_calls_total"): MADE_UP,
    }
    assert after <= before + 2
    assert counted(watch.registry, "tool_calls_total") == {'tool_calls_total{tool="other"}': MADE_UP}
    other = 'route="other",schema_version="other",source_agent="other",target_agent="other"'
    assert counted(watch.registry, "handoff_inspections_total") == {
        f'handoff_inspections_total{{attempt="first",mode="enforce",{other}}}': MADE_UP
    }


def test_unknown_schema_version_is_other_and_counted_when_the_route_is_known() -> None:
    """A version is a label too."""
    watch = new_watched().watch

    with watch.run("refunds", task_id="t-1") as run:
        run.handoff("planner", "executor", handoff(schema_version="7-made-up"))

    assert counted(watch.registry, "handoff_blocks_total", "label_overflow_total") == {
        'handoff_blocks_total{attempt="first",mode="enforce",route="planner->executor",schema_version="other",'
        'source_agent="planner",target_agent="executor"}': 1,
        'label_overflow_total{label="schema_version",metric="handoff_inspections_total"}': 1,
    }


@pytest.mark.parametrize("made_up", ["refunds_agent_7", "\udca0", "agent\x1b[31m"])
def test_unknown_tool_is_named_in_the_log_when_it_is_called(caplog: pytest.LogCaptureFixture, made_up: str) -> None:
    """A folded name can be found: the log has it, escaped and in one line."""
    watch = new_watched().watch

    with watch.run("refunds") as run, caplog.at_level(logging.INFO, "handoffwatch"):
        run.call(made_up).returned("found")

    assert any(ascii(made_up)[1:-1] in message for message in caplog.messages)
    assert all(message.isprintable() for message in caplog.messages)


@pytest.mark.parametrize(
    "name",
    ["\udca0", b"\xff".decode("utf-8", "surrogateescape"), "a\x00b", "line\nbreak", 'quote"', "back\\slash", "日本"],
    ids=["surrogate", "surrogateescape", "NUL", "line break", "quote", "backslash", "Japanese"],
)
def test_metrics_stay_readable_when_a_name_is_broken(name: str) -> None:
    """One broken name must not make the later scrapes fail."""
    watch = new_watched().watch
    server = watch.serve_metrics()
    try:
        with watch.run("refunds") as run:
            run.handoff(name, name, handoff(name, name, handoff_id=name, schema_version=name), key=name)
            run.call(name, call_id=name).returned({"error": name})
        with urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10) as response:
            text = response.read().decode("utf-8")
            assert response.status == 200
    finally:
        server.close()

    lines = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert len(lines) == series(watch.registry)
    assert samples(watch.registry)['handoffwatch_tool_calls_total{tool="other"}'] == 1


@pytest.mark.parametrize(
    "private",
    ["/reset/3f9c2ab1d0", "jane.doe@example.com", "sk-live-51H8xkFJ2eZvKYlo2C"],
    ids=["path", "e-mail", "token"],
)
def test_private_text_is_no_label_when_it_stands_where_a_name_stands(private: str) -> None:
    """A path, an address or a token as agent, tool, version or id stays out of the exposition."""
    watch = new_watched().watch

    with watch.run("refunds", run_id=private, task_id=private) as run:
        run.handoff(private, private, handoff(private, private, schema_version=private, handoff_id=private))
        run.handoff("planner", "executor", handoff(schema_version=private, status=private, task_type=private))
        run.call(private, call_id=private, args={"to": private}).raised(ValueError(private))
        run.answer(private)

    assert private not in exposition(watch.registry)


def test_metrics_are_served_on_one_loopback_address_when_none_is_given() -> None:
    """`/metrics` is local by default: another address of this very machine is refused."""
    server = new_watched().watch.serve_metrics()
    try:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", server.port), timeout=10)
        socket.create_connection(("127.0.0.1", server.port), timeout=10).close()
    finally:
        server.close()


def _book(*metrics: Metric) -> tuple[Book, CollectorRegistry]:
    registry = CollectorRegistry()
    fixed = [metric for metric in FED if metric.name == "label_overflow_total"]
    return Book(registry, [*metrics, *fixed], monotonic_s=lambda: 0.0), registry


def test_book_folds_a_value_when_its_label_does_not_know_it() -> None:
    """Closed sets and registered names are both closed."""
    metric = Metric(
        "doors_total",
        Kind.COUNTER,
        "Doors.",
        "DoorOpened",
        (Label("tool", Registered.TOOL), Label("state", ("open", "shut"))),
    )
    book, registry = _book(metric)
    book.register(Registered.TOOL, "find")

    book.add(metric, ("find", "open"))
    book.add(metric, ("find", "ajar"))
    book.add(metric, ("made up", "shut"))

    assert counted(registry, "doors_total", "label_overflow_total") == {
        'doors_total{state="open",tool="find"}': 1,
        'doors_total{state="other",tool="find"}': 1,
        'doors_total{state="shut",tool="other"}': 1,
        'label_overflow_total{label="state",metric="doors_total"}': 1,
        'label_overflow_total{label="tool",metric="doors_total"}': 1,
    }


def test_book_folds_registered_names_when_a_metric_has_its_most_series() -> None:
    """Even registrations cannot make more series than the catalogue allows."""
    metric = Metric(TOOL_CALLS.name, Kind.COUNTER, "Calls.", "X", TOOL_CALLS.labels, series_max=3)
    book, registry = _book(metric)
    book.register(Registered.TOOL, *(f"tool-{number}" for number in range(10)))

    for number in range(10):
        book.add(metric, (f"tool-{number}",))

    found = counted(registry, "tool_calls_total", "label_overflow_total")
    assert found['tool_calls_total{tool="other"}'] == 7
    assert found['label_overflow_total{label="tool",metric="tool_calls_total"}'] == 7
    assert len(found) == 5
