"""Whose handoff it is: agents, routes, task, context and id, held against what the orchestrator knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handoffwatch import HandoffContext
from handoffwatch.vocabulary import Severity, Verdict
from support.refund_handoffs import (
    FORMS,
    HANDOFF_ID,
    NEW_ID,
    allowed,
    blocked,
    handoff,
    normalized,
    refund_watchdog,
    without,
)

CONTEXT = HandoffContext(run_id="r-1", task_id="t-1", context_version=5, attempt=2)


@pytest.mark.parametrize(
    ("changes", "asked", "expected"),
    [
        ({}, {"expected_target": "reviewer"}, []),
        ({}, {"expected_source": "executor", "expected_target": "reviewer"}, []),
        ({"target_agent": "auditor"}, {"expected_target": "reviewer"},
         [("route_mismatch", "target_agent", "target_agent must be reviewer")]),
        ({"target_agent": "Reviewer"}, {"expected_target": "reviewer"},
         [("route_mismatch", "target_agent", "target_agent must be reviewer")]),
        ({"target_agent": " reviewer "}, {"expected_target": "reviewer"},
         [("route_mismatch", "target_agent", "target_agent must be reviewer")]),
        ({"source_agent": "planner"}, {"expected_source": "executor"},
         [("route_mismatch", "source_agent", "source_agent must be executor")]),
        ({"source_agent": "planner", "target_agent": "auditor"},
         {"expected_source": "executor", "expected_target": "reviewer"},
         [("route_mismatch", "source_agent", "source_agent must be executor"),
          ("route_mismatch", "target_agent", "target_agent must be reviewer")]),
    ],
)  # fmt: skip
def test_inspect_blocks_with_route_mismatch_when_the_envelope_names_another_agent(
    changes: dict[str, str], asked: dict[str, str], expected: list[tuple[str, str, str]]
) -> None:
    """The orchestrator's names stand, exactly; a mismatch is critical and never retried."""
    decision = refund_watchdog().inspect(handoff(**changes), **asked)

    assert decision == (blocked(*expected) if expected else allowed(normalized(handoff())))
    assert decision.severity == (Severity.CRITICAL if expected else Severity.INFO)
    assert decision.retryable is False


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("executor", "nobody",
         [("unknown_agent", "target_agent", "target_agent must be a registered agent, spelled exactly")]),
        ("EXECUTOR", "reviewer",
         [("unknown_agent", "source_agent", "source_agent must be a registered agent, spelled exactly")]),
        ("x", "y",
         [("unknown_agent", "source_agent", "source_agent must be a registered agent, spelled exactly"),
          ("unknown_agent", "target_agent", "target_agent must be a registered agent, spelled exactly")]),
        ("planner", "reviewer",
         [("unknown_route", "target_agent", "no route leads from this sender to this receiver")]),
        ("reviewer", "executor",
         [("unknown_route", "target_agent", "no route leads from this sender to this receiver")]),
        ("reviewer", "reviewer",
         [("unknown_route", "target_agent", "no route leads from this sender to this receiver")]),
    ],
)  # fmt: skip
def test_inspect_blocks_when_no_route_leads_from_sender_to_receiver(
    source: str, target: str, expected: list[tuple[str, str, str]]
) -> None:
    """A name nobody registered and a missing route between known agents are two different things."""
    decision = refund_watchdog().inspect(handoff(source_agent=source, target_agent=target))

    assert decision == blocked(*expected, route="other", schema_version="other")
    assert decision.retryable is (expected[0][0] == "unknown_agent")


NO_HISTORY = ("consumed_handoff", "duplicate_handoff", "loop_limit")
STALE = ("stale_context", "consumed_handoff", "duplicate_handoff", "loop_limit")


def test_inspect_judges_the_envelope_when_the_route_is_unknown() -> None:
    """Without a contract the envelope's own gaps are still named in the same answer."""
    raw = without(handoff(target_agent="nobody", status="done"), "task_id")

    assert refund_watchdog().inspect(raw) == blocked(
        ("unknown_agent", "target_agent", "target_agent must be a registered agent, spelled exactly"),
        ("missing_field", "task_id", "task_id must be there"),
        ("unknown_status", "status", "status must be one of ready, completed, failed"),
        route="other",
        schema_version="other",
    )


@pytest.mark.parametrize(
    ("changes", "expected", "skipped"),
    [
        ({}, [], STALE),
        ({"context_version": 5}, [], NO_HISTORY),
        ({"context_version": 6}, [], NO_HISTORY),
        ({"context_version": -1}, [("stale_context", "context_version", "context_version must be at least 5")],
         NO_HISTORY),
        ({"context_version": 4}, [("stale_context", "context_version", "context_version must be at least 5")],
         NO_HISTORY),
        ({"context_version": "5"},
         [("type_mismatch", "context_version", "context_version must be an integer, and is text")], NO_HISTORY),
        ({"task_id": "t-2"}, [("foreign_task", "task_id", "task_id must be that of the active task")],
         STALE),
        ({"task_id": "T-1"}, [("foreign_task", "task_id", "task_id must be that of the active task")],
         STALE),
        ({"task_id": "t-1 "}, [("foreign_task", "task_id", "task_id must be that of the active task")],
         STALE),
        ({"task_id": 1}, [("type_mismatch", "task_id", "task_id must be a text, and is an integer")],
         STALE),
        ({"task_id": "t-2", "context_version": 3},
         [("foreign_task", "task_id", "task_id must be that of the active task"),
          ("stale_context", "context_version", "context_version must be at least 5")], NO_HISTORY),
    ],
)  # fmt: skip
def test_inspect_holds_the_handoff_against_its_context_when_there_is_one(
    changes: dict[str, Any], expected: list[tuple[str, str, str]], skipped: tuple[str, ...]
) -> None:
    """The task must be the active one and the context version not older; gaps are filled from the context."""
    raw = handoff(**changes)

    decision = refund_watchdog().inspect(raw, context=CONTEXT)

    filled = {"run_id": "r-1", "context_version": changes.get("context_version", 5), "attempt": 2}
    assert decision == (
        blocked(*expected, attempt=2, skipped=skipped)
        if expected
        else allowed(normalized(raw, **filled), attempt=2, skipped=skipped)
    )


@pytest.mark.parametrize(
    ("context", "skipped"),
    [
        (None, ("foreign_task", "foreign_run", "stale_context", "consumed_handoff", "duplicate_handoff", "loop_limit")),
        (
            HandoffContext(),
            ("foreign_task", "foreign_run", "stale_context", "consumed_handoff", "duplicate_handoff", "loop_limit"),
        ),
        (
            HandoffContext(task_id="t-1"),
            ("foreign_run", "stale_context", "consumed_handoff", "duplicate_handoff", "loop_limit"),
        ),
        (
            HandoffContext(context_version=0),
            ("foreign_task", "foreign_run", "consumed_handoff", "duplicate_handoff", "loop_limit"),
        ),
        (
            HandoffContext(run_id="r-1", task_id="t-1", context_version=0),
            ("consumed_handoff", "duplicate_handoff", "loop_limit"),
        ),
        (HandoffContext("r-1", "t-1", 0, consumed=frozenset()), ("duplicate_handoff", "loop_limit")),
    ],
)
def test_inspect_lists_the_rules_it_skipped_when_the_context_lacks_their_facts(
    context: HandoffContext | None, skipped: tuple[str, ...]
) -> None:
    """A rule without its fact is no finding and is not silent either."""
    decision = refund_watchdog().inspect(handoff(context_version=3), context=context)

    assert (decision.allowed, decision.skipped) == (True, skipped)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sent", [{}, {"handoff_id": None}, {"handoff_id": ""}], ids=["absent", "null", "empty"])
@pytest.mark.parametrize(("known", "expected"), [(None, NEW_ID), ("", NEW_ID), ("h-from-run", "h-from-run")])
def test_inspect_warns_and_never_blocks_when_the_handoff_has_no_id(
    sent: dict[str, Any], known: str | None, expected: str, form: str
) -> None:
    """A missing id is filled from the context, else made; the warning lets the handoff pass."""
    raw = without(handoff(), "handoff_id") | sent

    decision = refund_watchdog().inspect(FORMS[form](raw), context=HandoffContext(handoff_id=known))

    warning = blocked(("missing_handoff_id", "handoff_id", "handoff_id should name the handoff; one was made"))
    assert decision == warning._replace(
        allowed=True, handoff_id=expected, normalized_payload=normalized(handoff(handoff_id=expected))
    )
    assert (decision.verdict, decision.severity, decision.retryable) == (Verdict.WARNED, Severity.WARNING, False)


@pytest.mark.parametrize("wrong", [7, [], {}, True])
def test_inspect_keeps_an_id_for_the_decision_when_the_sent_one_is_no_text(wrong: object) -> None:
    """An id of the wrong type blocks, and the decision still has one."""
    decision = refund_watchdog().inspect(handoff(handoff_id=wrong), context=HandoffContext(handoff_id="h-from-run"))

    assert (decision.handoff_id, decision.reasons) == ("h-from-run", ["type_mismatch"])
    assert decision.paths == ["handoff_id"]


def test_decision_turns_blocked_when_the_context_moves_on() -> None:
    """The same bytes are fit for context version 5, stale at 6, and foreign once another task is active."""
    watchdog = refund_watchdog()
    raw = json.dumps(handoff(context_version=5))
    contexts = [
        HandoffContext(task_id="t-1", context_version=5),
        HandoffContext(task_id="t-1", context_version=6),
        HandoffContext(task_id="t-2", context_version=6),
    ]

    assert [watchdog.inspect(raw, context=context).reasons for context in contexts] == [
        [],
        ["stale_context"],
        ["foreign_task", "stale_context"],
    ]


def test_inspect_has_the_id_of_the_envelope_when_everything_else_is_wrong() -> None:
    """The envelope's id is the decision's as long as it is a text."""
    assert refund_watchdog().inspect({"handoff_id": HANDOFF_ID}).handoff_id == HANDOFF_ID


@pytest.mark.parametrize("form", FORMS)
def test_decision_can_be_written_when_the_orchestrator_passes_half_a_character(form: str) -> None:
    """A name is quoted without what no encoder takes, and such an id is replaced, whoever it came from."""
    raw = FORMS[form](without(handoff(), "handoff_id"))
    context = HandoffContext(handoff_id="\ud800")

    decision = refund_watchdog().inspect(raw, expected_target="rev\udc80iewer", context=context)

    assert ("route_mismatch", "target_agent must be rev?iewer") in [
        (item.code, item.sentence) for item in decision.findings
    ]
    assert decision.handoff_id == NEW_ID
    assert decision.to_json().encode()
