"""Tools over real connections that fail in every way, with four HTTP clients: what follows, and what was sent."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from handoffwatch import Settings, Watch
from support.faulty_server import Act, Fault, FaultyServer, faulty_server
from support.telemetry import counted
from support.watched import Time
from support.wire_clients import CLIENTS, Tool, end_of, wire_tool
from support.wire_verdicts import ACTS, NEVER_SENT, SAFETIES, Expected, expected

ATTEMPTS_MAX = 3
SOAK_CALLS = 2_000
SOAK_SEED = 57
METRICS = ("tool_attempts_total", "tool_failures_total")


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    """One server for all tests of this module."""
    with faulty_server() as server:
        yield server


def _samples(name: str, ends: Sequence[Expected]) -> Counter[str]:
    """Return the samples that must stand after calls with these ends."""
    lines: Counter[str] = Counter()
    for end in ends:
        lines.update(f'tool_attempts_total{{code="{code}",tool="{name}"}}' for code in end.codes)
        if end.failure_class is not None:
            labels = f'code="{end.codes[-1]}",failure_class="{end.failure_class}",tool="{name}"'
            lines[f"tool_failures_total{{{labels}}}"] += 1
    return lines


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("safety", SAFETIES)
@pytest.mark.parametrize("act", ACTS, ids=str)
def test_tool_follows_the_table_when_the_wire_fails(
    server: FaultyServer, act: Act, safety: str, client: str, request: pytest.FixtureRequest
) -> None:
    """Once and then no more, and for ever: the end of the call, the requests on the wire, and the series."""
    time = Time()
    watch = Watch(settings=Settings(), clock=time.clock())
    found, wanted = {}, {}
    samples: Counter[str] = Counter()
    for name, times in (("once", 1), ("always", ATTEMPTS_MAX)):
        acts = [act] * times
        end = expected(acts, safety, client, ATTEMPTS_MAX)
        call_id = f"{request.node.name}-{name}"
        script = server.play(call_id, acts)

        ended = end_of(wire_tool(watch, name, client, safety, attempts_max=ATTEMPTS_MAX), script)

        found[name] = (ended, script.attempts, len(server.seen(call_id)), server.reached(call_id))
        wanted[name] = (end.end, len(end.codes), end.connections, end.reached)
        samples += _samples(name, [end])
    assert found == wanted
    assert counted(watch.registry, *METRICS) == samples
    assert len(time.waits_s) == sum(attempts - 1 for _, attempts, _, _ in wanted.values())


def _check_unsafe(server: FaultyServer, call_id: str) -> None:
    """Assert that no request followed one that the server had read, unless it was refused before any effect."""
    seen = server.seen(call_id)
    may_have_happened = [
        at for at, each in enumerate(seen)
        if each.reached and not (each.act.fault is Fault.ANSWERED and each.act.status in {425, 429})
    ]  # fmt: skip
    assert may_have_happened in ([], [len(seen) - 1]), "an unsafe request was sent again after one had arrived"


@pytest.mark.soak
def test_tools_never_repeat_what_may_have_happened_when_faults_come_in_any_order(
    server: FaultyServer, soak_scale: float
) -> None:
    """BR-057: seeded sequences of one to five faults, over all clients and safeties, judged by the log of the wire."""
    chance = random.Random(SOAK_SEED)
    attempts_max = 4
    watches: dict[tuple[str, str], tuple[Watch, Tool, list[Expected]]] = {}
    for client in CLIENTS:
        for safety in SAFETIES:
            watch = Watch(settings=Settings(), clock=Time().clock())
            tool = wire_tool(watch, "find", client, safety, attempts_max=attempts_max)
            watches[client, safety] = (watch, tool, [])
    for number in range(int(SOAK_CALLS * soak_scale)):
        client, safety = chance.choice(CLIENTS), chance.choice(SAFETIES)
        acts = [chance.choice(ACTS) for _ in range(chance.randint(1, 5))]
        _, tool, ends = watches[client, safety]
        told = f"seed {SOAK_SEED}, call {number}: {safety} with {client}: {', '.join(map(str, acts))}"
        script = server.play(f"soak-{number}", acts)

        ended = end_of(tool, script)

        ends.append(expected(acts, safety, client, attempts_max))
        seen = server.seen(script.call_id)
        assert script.attempts <= attempts_max, told
        assert ended in {"ok", "down", "rejected", "needs_human"}, told
        if safety == "unsafe":
            try:
                _check_unsafe(server, script.call_id)
            except AssertionError as error:
                pytest.fail(f"{told}: {error}")
        assert (ended, [each.act for each in seen]) == (
            ends[-1].end,
            [act for act in ends[-1].done if act.fault not in NEVER_SENT],
        ), told
    for (client, safety), (watch, _, ends) in watches.items():
        calls = counted(watch.registry, "tool_calls_total")
        assert calls == {'tool_calls_total{tool="find"}': len(ends)}, (client, safety)
        assert counted(watch.registry, *METRICS) == _samples("find", ends), (client, safety)
