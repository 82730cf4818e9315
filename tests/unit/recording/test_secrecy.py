"""Secrecy: no payload, argument, result or error text stands in any span, log line, sample or message."""

from __future__ import annotations

import logging

import pytest
from pydantic import BaseModel

from handoffwatch import HandoffBlocked, Run, Step, ToolFailed, ToolRejected
from support.telemetry import exposition
from support.watched import Watched, handoff, new_watched

CANARY = "CANARY-51H8xkFJ2eZvKYlo2C"


class _ServiceError(Exception):
    """An HTTP client's error with a body."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{CANARY}-error")
        self.status_code = status
        self.headers = {"authorization": f"{CANARY}-header"}
        self.body = f"{CANARY}-body"


class _Result(BaseModel):
    """A tool's result that says that it failed."""

    is_error: bool = True
    text: str = f"{CANARY}-result"


class _Shown:
    """An object without a JSON form, whose text form says too much."""

    def __repr__(self) -> str:
        return f"{CANARY}-repr"


def _rule(value: object) -> bool:
    raise ValueError(f"{CANARY}-rule {value}")


def _canary_handoff(**changes: object) -> dict[str, object]:
    payload = {"result": f"{CANARY}-value", "amount_cents": f"{CANARY}-text", "note": {"deep": [f"{CANARY}-deep"]}}
    return handoff(**({"payload": payload, "metadata": {"key": f"{CANARY}-metadata"}} | changes))


def _texts_of(watched: Watched, caplog: pytest.LogCaptureFixture) -> dict[str, str]:
    formatter = logging.Formatter("%(name)s %(message)s")
    spans = "\n".join(
        f"{span.name} {dict(span.attributes or {})} {span.status.description} "
        f"{[(event.name, dict(event.attributes or {})) for event in span.events]}"
        for span in watched.spans.ended
    )
    logs = "\n".join(formatter.format(record) for record in caplog.records)
    return {"spans": spans, "logs": logs, "metrics": exposition(watched.watch.registry)}


def _assert_clean(texts: dict[str, str]) -> None:
    assert {place for place, text in texts.items() if CANARY in text} == set()
    assert all(texts.values())


def test_handoffs_leave_no_content_behind_when_they_are_blocked_or_delivered(caplog: pytest.LogCaptureFixture) -> None:
    """Values, metadata, texts in place of numbers, JSON text and what a receiver raises stay where they were."""
    caplog.set_level(logging.DEBUG)
    watched = new_watched()

    def receiver(_: dict[str, object]) -> None:
        raise RuntimeError(f"{CANARY}-receiver")

    with watched.watch.run("refunds", task_id="t-1") as run:
        for raw in (
            _canary_handoff(),
            _canary_handoff(status=f"{CANARY}-status", task_type=f"{CANARY}-type"),
            _canary_handoff(task_id=f"{CANARY}-task", source_agent=f"{CANARY}-agent"),
            _canary_handoff(payload=f"{CANARY}-payload"),
            f'{{"payload": "{CANARY}-json", ',
            [f"{CANARY}-list"],
            _Shown(),
        ):
            step = run.handoff("planner", "executor", raw, key=str(id(raw)))
            assert CANARY not in step.text
    with watched.watch.run("refunds", task_id="t-2") as run, pytest.raises(RuntimeError):
        run.transfer(
            "planner",
            "executor",
            handoff(task_id="t-2", payload={"result": f"{CANARY}-value", "amount_cents": 1}),
            receiver=receiver,
        )

    _assert_clean(_texts_of(watched, caplog))


@pytest.mark.parametrize("status", [400, 401, 422, 500, 503])
@pytest.mark.parametrize("safety", ["safe", "unsafe"])
def test_tools_leave_no_content_behind_when_they_fail(
    caplog: pytest.LogCaptureFixture, status: int, safety: str
) -> None:
    """Arguments, results, error texts, headers and bodies stay out; the model alone is told why it was refused."""
    caplog.set_level(logging.DEBUG)
    watched = new_watched()

    @watched.watch.tool("raise_error", safety=safety)
    def raise_error(argument: str) -> None:
        raise _ServiceError(status)

    @watched.watch.tool("return_error", safety=safety)
    def return_error(argument: str) -> _Result:
        return _Result()

    @watched.watch.tool("judge_wrongly", safety=safety, success=_rule)
    def judge_wrongly(argument: str) -> str:
        return f"{CANARY}-result"

    with watched.watch.run("refunds") as run:
        for tool in (raise_error, return_error, judge_wrongly):
            with pytest.raises(ToolFailed) as caught:
                tool(f"{CANARY}-argument")
            told = "" if isinstance(caught.value, ToolRejected) else caught.value.text
            assert CANARY not in told + str(caught.value)
        call = run.call("raise_error", call_id="c-1", args={"argument": f"{CANARY}-argument"})
        call.returned({"ok": False, "detail": f"{CANARY}-detail"})
        run.answer(f"{CANARY}-answer")

    _assert_clean(_texts_of(watched, caplog))


def test_messages_hold_no_content_when_a_handoff_is_blocked() -> None:
    """The exception, its hint and the request for a repair name fields, never values."""
    watched = new_watched()
    asked: list[str] = []

    def repair(step: Step) -> dict[str, object]:
        asked.append(step.text)
        return _canary_handoff()

    with watched.watch.run("refunds", task_id="t-1") as run, pytest.raises(HandoffBlocked) as caught:
        run.transfer("planner", "executor", _canary_handoff(), receiver=print, repair=repair)

    assert caught.value.decision is not None
    assert CANARY not in f"{caught.value}{asked}{caught.value.decision.to_json()}"


def test_run_leaves_no_content_behind_when_the_host_raises_in_it(caplog: pytest.LogCaptureFixture) -> None:
    """The span of a run has no exception event."""
    caplog.set_level(logging.DEBUG)
    watched = new_watched()

    def fail(run: Run) -> None:
        with run:
            run.answer(CANARY)
            raise RuntimeError(CANARY)

    with pytest.raises(RuntimeError):
        fail(watched.watch.run("refunds"))

    _assert_clean(_texts_of(watched, caplog))
