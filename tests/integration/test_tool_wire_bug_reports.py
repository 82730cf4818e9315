"""The bug reports about tools in which the wire matters, each as a named test."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from handoffwatch import NeedsHuman, Settings, ToolDown, Watch
from support.faulty_server import Act, Fault, FaultyServer, faulty_server
from support.telemetry import counted
from support.watched import Time
from support.wire_clients import CLIENTS, end_of, wire_tool

ALL_CLIENTS = pytest.mark.parametrize("client", CLIENTS)
UNANSWERED = [Act(Fault.RESET), Act(Fault.STALLED), Act(status=502), Act(status=504)]
BASE_WAIT_S = 1.0
"""The first wait when the server names none: half of 2 s, since the tests' chance is always a half."""
CAP_S = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    """One server for all tests of this module."""
    with faulty_server() as server:
        yield server


@pytest.fixture
def time() -> Time:
    """The time of the test's watch: 12 January 1970, 13:46:40 GMT."""
    return Time()


@pytest.fixture
def watch(time: Time) -> Watch:
    """A watch whose waits end at once."""
    return Watch(settings=Settings(), clock=time.clock())


@ALL_CLIENTS
@pytest.mark.parametrize("act", UNANSWERED, ids=str)
def test_order_is_sent_once_when_its_answer_is_lost(
    server: FaultyServer, watch: Watch, time: Time, act: Act, client: str
) -> None:
    """BR-057: a POST that is not declared idempotent goes to a person, and no second request to the server."""
    script = server.play(f"br-057-{act}-{client}", [act])

    with pytest.raises(NeedsHuman) as caught:
        wire_tool(watch, "order", client, "unsafe", attempts_max=5)(script)

    assert caught.value.message == "tool order: the call may have happened: a person must look"
    assert isinstance(caught.value.__cause__, Exception)
    assert server.reached(script.call_id) == len(server.seen(script.call_id)) == script.attempts == 1
    assert time.waits_s == []


@ALL_CLIENTS
@pytest.mark.parametrize(
    ("safety", "end", "requests"), [("safe", "ok", 2), ("unsafe", "needs_human", 1)], ids=["GET", "POST"]
)
@pytest.mark.parametrize(
    "act", [Act(Fault.DROPPED_UNREAD), Act(Fault.DROPPED), Act(Fault.RESET), Act(Fault.RESET_UNREAD)], ids=str
)
def test_call_is_repeated_only_by_get_when_the_server_disconnects_without_a_response(
    server: FaultyServer, watch: Watch, act: Act, safety: str, end: str, requests: int, client: str
) -> None:
    """BR-063: sent and unanswered; whether the server read it nobody on this side can know."""
    script = server.play(f"br-063-{act}-{safety}-{client}", [act])

    assert end_of(wire_tool(watch, "order", client, safety), script) == end
    assert len(server.seen(script.call_id)) == requests


@ALL_CLIENTS
@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.CONNECT_STALLED, Fault.PLAIN_ON_TLS])
def test_order_is_sent_again_when_no_connection_came_about(
    server: FaultyServer, watch: Watch, fault: Fault, client: str
) -> None:
    """BR-063: nothing was sent, so that even a POST may be repeated; one request arrives."""
    script = server.play(f"br-063-{fault}-{client}", [Act(fault)])

    assert end_of(wire_tool(watch, "order", client, "unsafe"), script) == "ok"
    assert server.reached(script.call_id) == 1
    assert script.attempts == 2


def test_order_is_sent_again_when_the_pool_had_no_connection_left(server: FaultyServer, watch: Watch) -> None:
    """BR-063: a pool time-out comes before anything is sent."""
    script = server.play("br-063-pool", [])
    limits = httpx.Limits(max_connections=1)
    timeout = httpx.Timeout(10.0, pool=0.05)
    with httpx.Client(limits=limits, timeout=timeout, trust_env=False) as client:
        taken = server.play("br-063-taken", []).target()
        first = client.stream("GET", taken.url, headers={"X-Call-Id": taken.call_id})
        first.__enter__()

        @watch.tool("order", safety="unsafe")
        def order() -> int:
            if len(attempts) == 1:
                first.__exit__(None, None, None)
            attempts.append(1)
            if len(attempts) == 1:
                return client.post("http://127.0.0.1:9/never").status_code
            target = script.target()
            return client.post(target.url, headers={"X-Call-Id": target.call_id}).status_code

        attempts: list[int] = []
        assert order() == 200

    assert len(attempts) == 2
    assert server.reached("br-063-pool") == 1
    assert counted(watch.registry, "tool_attempts_total") == {
        'tool_attempts_total{code="ok",tool="order"}': 1,
        'tool_attempts_total{code="timeout",tool="order"}': 1,
    }


RETRY_AFTER = [
    # BR-055: both forms; the clock of the tests says 13:46:40
    ("7", 7.0 + BASE_WAIT_S),
    ("Mon, 12 Jan 1970 13:46:50 GMT", 10.0 + BASE_WAIT_S),
    ("Mon, 12 Jan 1970 13:46:30 GMT", BASE_WAIT_S),
    ("soon", BASE_WAIT_S),
    # BR-056: absurd values are capped, or as good as none
    ("9999999999", CAP_S),
    ("9223372037", CAP_S),
    ("9" * 5_000, CAP_S),
    ("-1", BASE_WAIT_S),
    ("NaN", BASE_WAIT_S),
    ("inf", BASE_WAIT_S),
    ("1e9", BASE_WAIT_S),
    ("12.5", BASE_WAIT_S),
    ("120, 60", BASE_WAIT_S),
    ("Wed, 21 Oct 99999 07:28:00 GMT", BASE_WAIT_S),
]


@ALL_CLIENTS
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("header", "wait_s"), RETRY_AFTER, ids=[header[:20] for header, _ in RETRY_AFTER])
def test_tool_waits_as_long_as_the_server_asks_when_it_is_throttled(
    server: FaultyServer, watch: Watch, time: Time, header: str, wait_s: float, status: int, client: str
) -> None:
    """BR-055, BR-056: seconds or a date, for 429 and 503, in a lower-case header; never without end, never below 0."""
    script = server.play(f"br-055-{status}-{header[:20]}-{client}", [Act(status=status, retry_after=header)])

    assert end_of(wire_tool(watch, "find", client, "idempotent"), script) == "ok"
    assert time.waits_s == [wait_s]


@ALL_CLIENTS
def test_tool_stops_at_once_when_the_asked_wait_passes_its_deadline(
    server: FaultyServer, watch: Watch, time: Time, client: str
) -> None:
    """BR-056: it does not wait for a time at which nobody will listen any more."""
    script = server.play(f"br-056-{client}", [Act(status=429, retry_after="20")])

    with pytest.raises(ToolDown) as caught:
        wire_tool(watch, "find", client, "safe", deadline_s=10.0)(script)

    assert caught.value.text == "TOOL_FAILED: find returned 429. Do not guess. Tell the user this lookup failed."
    assert (script.attempts, time.waits_s) == (1, [])


@ALL_CLIENTS
@pytest.mark.parametrize("act", [Act(status=503), Act(Fault.DROPPED), Act(Fault.REFUSED)], ids=str)
def test_tool_makes_five_real_attempts_when_five_are_set_and_all_fail(
    server: FaultyServer, watch: Watch, act: Act, client: str
) -> None:
    """BR-072: five on the wire, five in the metric, and the failure has the tool's name."""
    script = server.play(f"br-072-{act}-{client}", [act] * 9)

    with pytest.raises(ToolDown) as caught:
        wire_tool(watch, "find", client, "safe", attempts_max=5)(script)

    assert caught.value.message == "tool find: the call failed"
    assert script.attempts == 5
    assert len(server.seen(script.call_id)) == (0 if act.fault is Fault.REFUSED else 5)
    assert sum(counted(watch.registry, "tool_attempts_total").values()) == 5


@pytest.mark.parametrize("seed", range(5))
def test_callers_come_back_spread_when_one_answer_throttles_fifty(seed: int) -> None:
    """BR-067: with `Retry-After: 2` none of 50 comes early, and no 100 ms hold more than 20 % of them."""
    watch = Watch(settings=Settings(), clock=replace(Time().clock(), random=random.Random(seed).random))
    watch.workflow("refunds")
    watch.tool("find", safety="safe")(print)
    response = httpx.Response(429, headers={"Retry-After": "2"})

    waits_s = []
    for _ in range(50):
        with watch.run("refunds") as run:
            call = run.call("find")
            call.attempt()
            waits_s.append(call.returned(response).wait_s)
            call.cancelled()

    assert min(waits_s) >= 2.0
    assert max(sum(start <= wait_s <= start + 0.1 for wait_s in waits_s) for start in waits_s) <= 10
