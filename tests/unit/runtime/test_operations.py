"""Operations: intent before the call, receipt after it, one claim; a ledger that is down refuses what is critical."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from handoffwatch import ClaimRefused, LedgerUnavailable, NeedsHuman, RegistrationError, Run, Settings, ToolDown, Watch
from handoffwatch.ledger.settings import LedgerSettings
from support.telemetry import Spans, attributes, counted
from support.watched import Time


class RefundReceipt(BaseModel):
    """What the refund tool returns."""

    refund_id: str


class _Desk:
    """A watch of refunds (critical) and notes (routine) with its ledger in a folder."""

    def __init__(self, folder: Path, *, busy_timeout_s: float = 5.0) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.time = Time()
        self.spans = Spans()
        ledger = LedgerSettings(url=f"sqlite:///{folder}/ledger.db", busy_timeout_s=busy_timeout_s)
        self.watch = Watch(
            settings=Settings(ledger=ledger), clock=self.time.clock(), tracer_provider=self.spans.provider
        )
        self.watch.operation(
            "refund", key="order_id", compare=("amount_cents",), receipt=RefundReceipt, receipt_id="refund_id"
        )
        self.watch.operation("note", key="order_id", criticality="routine")
        self.watch.operation("payout", key="order_id")
        self.watch.workflow("refunds", operations=["refund", "note"])
        self.watch.workflow("answers", tools="none")
        self.seen: list[dict[str, Any]] = []

    def rows(self, table: str = "ledger_operations") -> list[dict[str, Any]]:
        """Read a table over a connection of its own."""
        connection = sqlite3.connect(f"file:{self.folder}/ledger.db?mode=ro", uri=True)
        try:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
        finally:
            connection.close()

    def tool(self, operation: str = "refund", result: Any = None) -> Callable[..., Any]:
        """Return a watched tool that looks into the ledger while it runs, and then gives or raises `result`."""

        def call(order_id: object, amount_cents: int = 3800) -> Any:
            self.seen += self.rows() if (self.folder / "ledger.db").exists() else [{}]
            if isinstance(result, BaseException):
                raise result
            return {"refund_id": f"re_{order_id}"} if result is None else result

        return self.watch.tool(f"issue_{operation}", safety="unsafe", operation=operation)(call)

    def lose_ledger(self) -> None:
        """Remove the folder and put a file in its place, so that nothing can be opened there."""
        self.watch.close()
        shutil.rmtree(self.folder)
        self.folder.write_text("no folder")


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    """A desk whose connections are closed at the end."""
    made = _Desk(tmp_path / "desk")
    yield made
    made.watch.close()


def _facts(row: dict[str, Any]) -> dict[str, Any]:
    names = ("run_id", "kind", "business_key", "intent_values", "is_expected", "calls", "call_outcome", "receipt_id")
    return {name: row[name] for name in names}


def _operation(**changes: Any) -> dict[str, Any]:
    return {
        "run_id": "r-1",
        "kind": "refund",
        "business_key": "4417",
        "intent_values": json.dumps({"order_id": "4417", "amount_cents": 3800}),
        "is_expected": 0,
        "calls": 1,
        "call_outcome": None,
        "receipt_id": None,
    } | changes


def test_intent_is_committed_before_the_call_when_a_tool_has_an_operation(desk: _Desk) -> None:
    """Another connection sees the row while the tool runs, and the receipt after it."""
    issue_refund = desk.tool()

    with desk.watch.run("refunds", run_id="r-1"):
        issue_refund("4417")

    assert [_facts(row) for row in desk.seen] == [_operation()]
    assert [_facts(row) for row in desk.rows()] == [_operation(call_outcome="ok", receipt_id="re_4417")]


def test_intent_takes_the_defaults_when_the_call_leaves_arguments_out(desk: _Desk) -> None:
    """Positional, named and default arguments are the intent alike."""
    issue_refund = desk.tool()

    with desk.watch.run("refunds", run_id="r-1"):
        issue_refund(order_id="4417")
        issue_refund("4418", amount_cents=100)

    assert [json.loads(row["intent_values"]) for row in desk.rows()] == [
        {"order_id": "4417", "amount_cents": 3800},
        {"order_id": "4418", "amount_cents": 100},
    ]


def test_expectation_becomes_the_operation_when_the_call_comes(desk: _Desk) -> None:
    """What the task calls for outweighs what the model asks for."""
    issue_refund = desk.tool()

    with desk.watch.run("refunds", run_id="r-1") as run:
        run.expect("refund", order_id="4417", amount_cents=3800)
        issue_refund("4417", 380_000)

    assert [_facts(row) for row in desk.rows()] == [_operation(is_expected=1, call_outcome="ok", receipt_id="re_4417")]


@pytest.mark.parametrize(
    ("result", "kind"),
    [(TimeoutError(), NeedsHuman), (ConnectionRefusedError(), ToolDown), ({"ok": False}, NeedsHuman)],
)
def test_receipt_says_failed_when_the_call_failed(desk: _Desk, result: Any, kind: type[Exception]) -> None:
    """However the host hides it later, the ledger knows."""
    issue_refund = desk.tool(result=result)

    with desk.watch.run("refunds", run_id="r-1"), pytest.raises(kind):
        issue_refund("4417")

    assert [_facts(row) for row in desk.rows()] == [_operation(call_outcome="failed")]


@pytest.mark.parametrize("result", ["Refund submitted.", {"refund": "re_4417"}, 7])
def test_call_has_no_receipt_when_it_returned_something_else(desk: _Desk, result: object) -> None:
    """A sentence is no receipt."""
    issue_refund = desk.tool(result=result)

    with desk.watch.run("refunds", run_id="r-1"):
        assert issue_refund("4417") == result

    (row,) = desk.rows()
    assert (row["call_outcome"], row["receipt"], row["receipt_id"]) == ("ok", None, None)


def test_claim_is_written_once_and_stands_when_the_run_claims_twice(desk: _Desk) -> None:
    """The same words again are nothing new; other words are refused."""
    issue_refund = desk.tool()

    with desk.watch.run("refunds", run_id="r-1") as run:
        issue_refund("4417")
        run.claim("done")
        run.claim("done")
        with pytest.raises(ClaimRefused) as caught:
            run.claim("not_done")

    assert str(caught.value) == (
        "run r-1: claim: must be made once, got not_done after done\nhint: claim once, when the run's work is over"
    )
    assert [row["claimed"] for row in desk.rows("ledger_runs")] == ["done"]
    assert attributes(desk.spans.one("invoke_workflow refunds"))["handoffwatch.run.claimed"] == "done"
    claims = counted(desk.watch.registry, "ledger_claims_total")
    assert [line.partition("ledger=")[0] for line in claims] == ['ledger_claims_total{claimed="done",']
    assert list(claims.values()) == [1]


def test_claim_is_refused_when_its_workflow_has_no_operations(desk: _Desk) -> None:
    """There would be nothing to check it against."""
    with desk.watch.run("answers") as run, pytest.raises(ClaimRefused) as caught:
        run.claim("done")

    assert str(caught.value) == (
        "workflow answers: a claim needs operations to be checked against, got none\n"
        'hint: watch.workflow("answers", operations=["…"])'
    )
    assert not (desk.folder / "ledger.db").exists()


@pytest.mark.parametrize(
    ("claimed", "operations", "message"),
    [
        ("finished", [], "claim: must be done, partial or not_done"),
        ("none", [], "claim: must be done, partial or not_done"),
        ("partial", [], "claim: operations: must name at least one operation when the claim is partial"),
        ("not_done", [("refund", "4417")], "claim: operations: must be empty when the claim is not_done"),
    ],
)
def test_claim_is_refused_when_its_words_do_not_fit(
    desk: _Desk, claimed: str, operations: list[tuple[str, str]], message: str
) -> None:
    """Nothing is written, and the run may still claim rightly."""
    with desk.watch.run("refunds", run_id="r-1") as run:
        with pytest.raises(ClaimRefused) as caught:
            run.claim(claimed, operations=operations)
        run.claim("partial", operations=[("refund", 4417)])

    assert caught.value.message == message
    assert [row["claimed"] for row in desk.rows("ledger_runs")] == ["partial"]
    assert [(row["business_key"], row["calls"]) for row in desk.rows()] == [("4417", 0)]


@pytest.mark.parametrize("name", ["payout", "made_up"])
def test_claim_is_refused_when_it_names_what_the_workflow_did_not_declare(desk: _Desk, name: str) -> None:
    """Its series do not exist."""
    with desk.watch.run("refunds") as run, pytest.raises(RegistrationError) as caught:
        run.claim("partial", operations=[(name, "4417")])

    assert str(caught.value) == (
        f"workflow refunds: operation {name}: must be declared by the workflow\n"
        f'hint: write watch.workflow("refunds", operations=["{name}"])'
    )


def test_run_claims_none_when_it_ends_without_a_word(desk: _Desk) -> None:
    """A run of a workflow with operations is counted whatever it says, also when it raised."""

    def fail(run: Run) -> None:
        with run:
            raise KeyError

    with desk.watch.run("refunds", run_id="r-1"):
        pass
    with pytest.raises(KeyError):
        fail(desk.watch.run("refunds", run_id="r-2"))

    assert [(row["run_id"], row["claimed"]) for row in desk.rows("ledger_runs")] == [("r-1", "none"), ("r-2", "none")]


def test_ledger_is_not_opened_when_no_operation_is_used(desk: _Desk) -> None:
    """Who writes nothing has no file."""
    with desk.watch.run("answers") as run:
        run.answer("Hello.")

    assert not (desk.folder / "ledger.db").exists()


@pytest.mark.parametrize(
    ("operation", "values", "message"),
    [
        (
            "made_up",
            {"order_id": "1"},
            "operation 'made_up': is not registered\nhint: call watch.operation('made_up', …) at start",
        ),
        (
            "refund",
            {"amount_cents": 1},
            "operation refund: order_id: must be given because it is the business key\nhint: pass order_id=...",
        ),
        (
            "refund",
            {"order_id": "1", "amount": 1},
            "operation refund: amount: must be the key or a compared field\nhint: use: order_id, amount_cents",
        ),
        (
            "payout",
            {"order_id": "1"},
            "workflow refunds: operation payout: must be declared by the workflow\n"
            'hint: write watch.workflow("refunds", operations=["payout"])',
        ),
    ],
)
def test_expectation_is_refused_when_it_is_no_part_of_the_workflow(
    desk: _Desk, operation: str, values: dict[str, object], message: str
) -> None:
    """A misspelt expectation would never be compared."""
    with desk.watch.run("refunds") as run, pytest.raises(RegistrationError) as caught:
        run.expect(operation, **values)

    assert str(caught.value) == message


_DOWN = 'checks_bypassed_total{cause="ledger_down",check="ledger",name="%s"}'


def test_critical_call_is_refused_before_it_happens_when_the_ledger_is_down(desk: _Desk) -> None:
    """The tool is not called: no money moves that nobody wrote down."""
    issue_refund = desk.tool()
    desk.lose_ledger()

    with desk.watch.run("refunds"), pytest.raises(LedgerUnavailable) as caught:
        issue_refund("4417")

    assert desk.seen == []
    assert caught.value.hint == "check ledger.url, the rights of its directory, and the free space"
    assert caught.value.message.startswith("ledger: database: must be ")
    assert counted(desk.watch.registry, "tool_calls_total") == {}


def test_critical_call_is_refused_when_the_ledger_is_lost_in_the_middle_of_a_run(desk: _Desk) -> None:
    """A good ledger that goes bad; the run itself still ends, and what it could not write is counted."""
    issue_refund = desk.tool()

    with desk.watch.run("refunds", run_id="r-1") as run:
        issue_refund("4417")
        desk.lose_ledger()
        with pytest.raises(LedgerUnavailable):
            issue_refund("4418")
        with pytest.raises(LedgerUnavailable):
            run.claim("done")
        with pytest.raises(LedgerUnavailable):
            run.expect("refund", order_id="4418")

    assert len(desk.seen) == 1
    assert counted(desk.watch.registry, "checks_bypassed_total", "runs_total") == {
        _DOWN % "refunds": 1,
        'runs_total{outcome="completed",tools="required",workflow="refunds"}': 1,
    }


def test_routine_call_proceeds_and_is_counted_when_the_ledger_is_down(
    desk: _Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """The work goes on; that nobody will check it is a number and a line."""
    write_note = desk.tool("note")
    desk.lose_ledger()

    with desk.watch.run("refunds") as run:
        run.expect("note", order_id="4417")
        assert write_note("4417") == {"refund_id": "re_4417"}

    assert len(desk.seen) == 1
    assert counted(desk.watch.registry, "checks_bypassed_total") == {_DOWN % "note": 2, _DOWN % "refunds": 1}
    bypassed = "check bypassed: check=ledger name=%s cause=ledger_down"
    assert [message for message in caplog.messages if message.startswith("check")] == [
        bypassed % "note",
        bypassed % "note",
        bypassed % "refunds",
    ]


def test_receipt_that_cannot_be_written_is_counted_when_the_call_has_happened(desk: _Desk) -> None:
    """What happened is not undone: the host gets its result."""

    @desk.watch.tool("issue_refund", safety="unsafe", operation="refund")
    def issue_refund(order_id: str, amount_cents: int) -> dict[str, str]:
        desk.lose_ledger()
        return {"refund_id": "re_4417"}

    with desk.watch.run("refunds"):
        assert issue_refund("4417", 3800) == {"refund_id": "re_4417"}

    assert counted(desk.watch.registry, "checks_bypassed_total") == {_DOWN % "refund": 1, _DOWN % "refunds": 1}


def test_host_gets_its_result_when_the_receipt_model_itself_breaks(desk: _Desk) -> None:
    """The call has happened: a fault in reading its receipt must not look like a failed call."""

    class Broken(BaseModel):
        """A receipt whose validator divides by zero."""

        refund_id: str

        @field_validator("refund_id")
        @classmethod
        def divide(cls, value: str) -> str:
            return str(1 / 0)

    desk.watch.operation("broken", key="order_id", receipt=Broken, receipt_id="refund_id")
    desk.watch.workflow("broken", operations=["broken"])
    issue = desk.tool("broken")

    with desk.watch.run("broken", run_id="r-1"):
        assert issue("4417") == {"refund_id": "re_4417"}

    (row,) = desk.rows()
    assert (row["call_outcome"], row["receipt"]) == ("ok", None)
    assert sum(counted(desk.watch.registry, "internal_errors_total").values()) == 1


def test_ledger_is_used_again_when_it_has_come_back(desk: _Desk) -> None:
    """A failure is not remembered."""
    issue_refund = desk.tool()
    desk.lose_ledger()

    with desk.watch.run("refunds", run_id="r-1"):
        with pytest.raises(LedgerUnavailable):
            issue_refund("4417")
        desk.folder.unlink()
        desk.folder.mkdir()
        issue_refund("4417")

    assert [row["business_key"] for row in desk.rows()] == ["4417"]


def test_operation_is_counted_as_unchecked_when_its_tool_is_called_outside_of_any_run(desk: _Desk) -> None:
    """No intent could be written, so the pass without a check must be seen."""
    issue_refund = desk.tool()

    issue_refund("4417")

    assert counted(desk.watch.registry, "checks_bypassed_total") == {
        'checks_bypassed_total{cause="unchecked",check="ledger",name="refund"}': 1
    }


def test_tool_is_refused_when_its_workflow_did_not_declare_the_operation(desk: _Desk) -> None:
    """The call does not happen: its effect would be counted nowhere."""
    issue_payout = desk.tool("payout")

    with desk.watch.run("refunds"), pytest.raises(RegistrationError) as caught:
        issue_payout("4417")

    assert caught.value.message == "workflow refunds: operation payout: must be declared by the workflow"
    assert desk.seen == []


def test_loop_goes_on_when_the_database_is_locked(tmp_path: Path) -> None:
    """Durable steps of async code wait off the loop: the loop itself gives the lock back."""
    desk = _Desk(tmp_path / "desk", busy_timeout_s=30.0)

    @desk.watch.tool("issue_refund", safety="unsafe", operation="refund")
    async def issue_refund(order_id: str, amount_cents: int) -> dict[str, str]:
        return {"refund_id": f"re_{order_id}"}

    async def main() -> None:
        run = desk.watch.run("refunds", run_id="r-1")
        await run.expect_async("refund", order_id="0")
        async with run:
            for step in (
                lambda: run.expect_async("refund", order_id="4417", amount_cents=3800),
                lambda: issue_refund("4417", 3800),
                lambda: run.claim_async("done"),
            ):
                lock = sqlite3.connect(desk.folder / "ledger.db", isolation_level=None)
                lock.execute("BEGIN IMMEDIATE")
                task = asyncio.ensure_future(step())
                for _ in range(20):
                    await asyncio.sleep(0)
                assert not task.done()
                lock.execute("ROLLBACK")
                lock.close()
                await task

    asyncio.run(asyncio.wait_for(main(), 60))
    desk.watch.close()

    assert [row["claimed"] for row in desk.rows("ledger_runs")] == ["done"]
    assert [(row["business_key"], row["receipt_id"]) for row in desk.rows()] == [("0", None), ("4417", "re_4417")]


def test_async_flows_write_the_same_rows_when_nothing_is_in_the_way(desk: _Desk) -> None:
    """One flow, two drivers."""

    @desk.watch.tool("issue_refund", safety="unsafe", operation="refund")
    async def issue_refund(order_id: str, amount_cents: int) -> dict[str, str]:
        desk.seen += desk.rows()
        return {"refund_id": f"re_{order_id}"}

    async def main() -> None:
        async with desk.watch.run("refunds", run_id="r-1") as run:
            await run.expect_async("refund", order_id="4417", amount_cents=3800)
            await issue_refund("4417", 3800)
            await run.claim_async("done")

    asyncio.run(main())

    assert [_facts(row) for row in desk.seen] == [_operation(is_expected=1)]
    assert [_facts(row) for row in desk.rows()] == [_operation(is_expected=1, call_outcome="ok", receipt_id="re_4417")]
    assert [row["claimed"] for row in desk.rows("ledger_runs")] == ["done"]
