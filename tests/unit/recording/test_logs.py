"""Log lines: one for each thing that went wrong, exact, in one line, and none when all is well."""

from __future__ import annotations

import logging

import pytest

from handoffwatch.events import CheckBypassed, EffectSettled, InternalErrorCaught
from handoffwatch.vocabulary import (
    BypassCause,
    Cause,
    Check,
    Claimed,
    Component,
    Criticality,
    Effect,
    GuardReason,
    Origin,
)
from support.watched import bad_handoff, handoff, new_watched

Record = tuple[str, int, str]


@pytest.fixture(autouse=True)
def _all_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "handoffwatch")


def test_log_says_which_handoff_and_why_when_it_is_blocked(caplog: pytest.LogCaptureFixture) -> None:
    """Run, handoff, agents, attempt, codes and paths; never a value."""
    with new_watched().watch.run("refunds", run_id="r-1", task_id="t-1") as run:
        run.handoff("planner", "executor", bad_handoff(task_id="t-2"))

    assert caplog.record_tuples == [
        (
            "handoffwatch",
            logging.WARNING,
            "handoff blocked: run_id=r-1 handoff_id=h-1 source=planner target=executor route=planner->executor "
            "attempt=1 mode=enforce stage=validate reasons=foreign_task,type_mismatch "
            "paths=task_id,payload.amount_cents",
        )
    ]


def test_log_says_so_when_a_shadow_route_would_have_blocked(caplog: pytest.LogCaptureFixture) -> None:
    """Shadow mode is for reading these lines."""
    with new_watched(mode="shadow").watch.run("refunds", run_id="r-1", task_id="t-1") as run:
        run.handoff("planner", "executor", bad_handoff())

    assert caplog.messages == [
        "handoff blocked: run_id=r-1 handoff_id=h-1 source=planner target=executor route=planner->executor "
        "attempt=1 mode=shadow stage=validate reasons=type_mismatch paths=payload.amount_cents",
        "handoff not delivered: run_id=r-1 handoff_id=h-1 route=planner->executor",
    ]


def test_log_has_the_raw_names_when_the_route_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    """What is `other` in a label can be found in the log."""
    with new_watched().watch.run("refunds", run_id="r-1", task_id="t-1") as run:
        run.handoff("planner", "refunds_agent_7", handoff(target="refunds_agent_7"))

    assert caplog.messages == [
        "handoff blocked: run_id=r-1 handoff_id=h-1 source=planner target=refunds_agent_7 route=other "
        "attempt=1 mode=enforce stage=validate reasons=unknown_agent paths=target_agent"
    ]


def test_log_says_which_tool_and_how_when_a_call_fails(caplog: pytest.LogCaptureFixture) -> None:
    """Code and class; the error's own text stays out."""
    watch = new_watched().watch
    watch.tool("issue_refund", safety="unsafe")

    with watch.run("refunds", run_id="r-1") as run:
        call = run.call("issue_refund")
        call.attempt()
        call.raised(TimeoutError("card 4111111111111111"))

    assert caplog.record_tuples == [
        (
            "handoffwatch",
            logging.WARNING,
            "tool failed: run_id=r-1 tool=issue_refund code=timeout class=ambiguous attempts=1",
        )
    ]


def test_log_says_which_run_when_the_guard_refuses(caplog: pytest.LogCaptureFixture) -> None:
    """The answer itself stays out."""
    with new_watched().watch.run("refunds", run_id="r-1") as run:
        run.answer("Your balance is 3,800.")

    assert caplog.record_tuples == [
        (
            "handoffwatch",
            logging.WARNING,
            f"answer refused: run_id=r-1 workflow=refunds reason={GuardReason.NO_TOOL_SUCCESS} mode=enforce",
        )
    ]


def _settled(*, false_success: bool, criticality: Criticality) -> EffectSettled:
    claimed, effect = Claimed.DONE, Effect.NOT_LANDED
    return EffectSettled(
        "r-1", "refunds", "refund", "op-1", "4417", criticality, claimed, effect, Cause.MISSING, Origin.TOOL,
        false_success, 30.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("false_success", "criticality", "level", "begins"),
    [
        (True, Criticality.CRITICAL, logging.ERROR, "false success"),
        (True, Criticality.ROUTINE, logging.INFO, "false success"),
        (False, Criticality.CRITICAL, logging.INFO, "effect settled"),
    ],
)
def test_log_says_where_the_truth_was_lost_when_an_effect_is_settled(
    caplog: pytest.LogCaptureFixture, false_success: bool, criticality: Criticality, level: int, begins: str
) -> None:
    """A critical false success is the one line at level error."""
    new_watched().watch.recorder.emit(_settled(false_success=false_success, criticality=criticality))

    assert caplog.record_tuples == [
        (
            "handoffwatch",
            level,
            f"{begins}: run_id=r-1 operation=refund business_key=4417 claimed=done effect=not_landed cause=missing "
            "origin=tool",
        )
    ]


def test_log_says_what_passed_unchecked_when_a_check_is_bypassed(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing passes without a word."""
    new_watched().watch.recorder.emit(CheckBypassed(Check.LEDGER, "refund", BypassCause.LEDGER_DOWN))

    assert caplog.record_tuples == [
        ("handoffwatch", logging.WARNING, "check bypassed: check=ledger name=refund cause=ledger_down")
    ]


def test_log_names_the_class_alone_when_a_fault_of_our_own_is_caught(caplog: pytest.LogCaptureFixture) -> None:
    """The text of an exception may hold anything."""
    new_watched().watch.recorder.emit(InternalErrorCaught(Component.TOOLS, "ZeroDivisionError"))

    assert caplog.record_tuples == [
        ("handoffwatch", logging.ERROR, "internal error: component=tools error=ZeroDivisionError")
    ]


def test_log_is_silent_when_everything_is_well(caplog: pytest.LogCaptureFixture) -> None:
    """Ordinary good events have no line."""
    watch = new_watched().watch
    watch.tool("find_order", safety="safe")

    with watch.run("refunds", task_id="t-1") as run:
        run.transfer("planner", "executor", handoff(), receiver=lambda _: None)
        run.call("find_order").returned([])
        run.answer("Nothing was ordered.")

    assert [record for record in caplog.record_tuples if record[0].startswith("handoffwatch")] == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nhandoff blocked: run_id=forged", "a\\nhandoff blocked: run_id=forged"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\udca0", "\\udca0"),
        ("x" * 500, "x" * 200),
    ],
    ids=["line break", "escape", "surrogate", "500 characters"],
)
def test_log_line_stays_one_bounded_line_when_a_name_is_hostile(
    caplog: pytest.LogCaptureFixture, name: str, shown: str
) -> None:
    """Nobody forges a line through a name."""
    with new_watched().watch.run("refunds", run_id="r-1", task_id="t-1") as run:
        run.handoff("planner", name, handoff(target="executor"))

    assert caplog.messages == [
        f"handoff blocked: run_id=r-1 handoff_id=h-1 source=planner target={shown} route=other "
        "attempt=1 mode=enforce stage=validate reasons=unknown_agent,route_mismatch paths=target_agent"
    ]
