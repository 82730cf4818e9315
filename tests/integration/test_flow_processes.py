"""Two real processes on one ledger: of the same handoff sent by both, one proceeds."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import handoffwatch
from support.flows import FlowDesk

PAIRS: Final = 50
DEADLINE_S: Final = 120.0
IMPORTS: Final = os.pathsep.join([str(Path(handoffwatch.__file__).parents[1]), str(Path(__file__).parents[1])])

_SENDS_ALL: Final = f"""
import asyncio, json, sys
from pathlib import Path
from handoffwatch import HandoffBlocked
from support.flows import FlowDesk, plan
from support.telemetry import counted

def say(*words):
    print(json.dumps(words), flush=True)

async def hear():
    return await asyncio.to_thread(sys.stdin.readline)

async def main(task):
    desk = FlowDesk(Path(sys.argv[1]), hops_max=100).route(durable=True)
    started, refused, may_end = [], [], asyncio.Event()

    async def receive(handoff):
        started.append(handoff["handoff_id"])
        await may_end.wait()

    async def send(run, number):
        raw = plan(f"h-{{number}}", task_id=task or f"t-{{number}}", payload=dict(order_id=str(number), amount_cents=1))
        try:
            await run.transfer_async("planner", "executor", raw, receiver=receive)
        except HandoffBlocked as blocked:
            refused.append([f"h-{{number}}", blocked.decision.reasons])

    desk.watch.ledger.snapshot()
    say("ready")
    await hear()
    async with desk.watch.run("refunds", task_id=task) as run:
        sent = [asyncio.ensure_future(send(run, number)) for number in range({PAIRS})]
        async with asyncio.timeout({DEADLINE_S}):
            while len(started) + len(refused) < {PAIRS}:
                await asyncio.sleep(0.005)
        say("judged", started, refused)
        await hear()
        may_end.set()
        await asyncio.gather(*sent)
    say("counted", counted(desk.watch.registry, "handoffs_total", "handoff_repairs_total"))

asyncio.run(main(sys.argv[2] or None))
"""


class Sender:
    """A process that sends all handoffs when it is told to, and ends them when it is told to.

    Args:
        folder: Where the ledger is.
        task: The task of all handoffs; empty gives each its own.
    """

    def __init__(self, folder: Path, task: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SENDS_ALL, str(folder), task],
            env={**os.environ, "PYTHONPATH": IMPORTS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def hear(self, word: str) -> list[Any]:
        """Return what it says next, which must begin with a word."""
        assert self._process.stdout is not None
        give_up_s = time.monotonic() + DEADLINE_S
        while not select.select([self._process.stdout], [], [], 1.0)[0]:
            assert time.monotonic() < give_up_s, f"nothing was said in {DEADLINE_S:g} s"
        said: list[Any] = json.loads(self._process.stdout.readline() or "[null]")
        assert said[0] == word
        return said[1:]

    def tell(self, word: str) -> None:
        """Let it go on."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def end(self) -> int:
        """Wait for its end, kill it when that does not come, and return its exit code."""
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        return self._process.returncode


@contextmanager
def two_senders(folder: Path, task: str = "") -> Iterator[tuple[Sender, Sender]]:
    """Give two processes that are ready; they end with the block."""
    senders = Sender(folder, task), Sender(folder, task)
    try:
        for sender in senders:
            sender.hear("ready")
        yield senders
    except BaseException:
        for sender in senders:
            sender.end()
        raise
    assert [sender.end() for sender in senders] == [0, 0]


def send_from_both(folder: Path, task: str) -> None:
    """Send all pairs, one of each from each process, and assert that exactly one of each proceeds and counts."""
    FlowDesk(folder).watch.ledger.close()
    with two_senders(folder, task) as senders:
        for sender in senders:
            sender.tell("send")
        judged = [sender.hear("judged") for sender in senders]
        for sender in senders:
            sender.tell("end")
        series: Counter[str] = Counter()
        for sender in senders:
            series.update(sender.hear("counted")[0])

    started = [handoff_id for each, _ in judged for handoff_id in each]
    refused = [tuple(each) for _, both in judged for each in both]
    ids = sorted(f"h-{number}" for number in range(PAIRS))
    assert sorted(started) == ids
    assert sorted(refused) == [(handoff_id, ["duplicate_handoff"]) for handoff_id in ids]
    labels = 'route="planner->executor",schema_version="1",source_agent="planner",target_agent="executor"'
    assert series == {f'handoffs_total{{outcome="delivered",{labels}}}': PAIRS}
    desk = FlowDesk(folder).route(durable=True)
    assert desk.cases() == []
    desk.watch.close()


def test_handoff_proceeds_in_one_process_when_two_send_it_at_once(tmp_path: Path) -> None:
    """50 pairs, each of a task of its own: 50 deliveries, and 50 handoffs counted over both processes."""
    send_from_both(tmp_path, "")


def test_handoff_proceeds_in_one_process_when_two_send_it_at_once_for_one_task(tmp_path: Path) -> None:
    """50 pairs of one task, whose limit of hops is high enough: none is lost to the other process's count."""
    send_from_both(tmp_path, "t-1")
