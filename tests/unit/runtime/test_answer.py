"""The final-answer guard: no answer without something to base it on, in the words of the workflow's need."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handoffwatch import Action, Run, Settings, Step, Watch
from support.telemetry import counted

_REFUSAL = "I could not reach the data needed to answer this, so I am not going to guess."
_ANSWER = "Order 4417 was sent on Monday."

Act = Callable[[Run], object]


def _ask(tools: str, act: Act, *, guard: str = "enforce") -> tuple[Watch, Step]:
    watch = Watch(settings=Settings())
    watch.workflow("answers", tools=tools, guard=guard)
    watch.tool("find", safety="safe", attempts_max=1)
    with watch.run("answers") as run:
        act(run)
        return watch, run.answer(_ANSWER)


def _nothing(_: Run) -> None:
    """Call no tool."""


def _failed(run: Run) -> None:
    run.call("find").raised(TimeoutError())


def _empty(run: Run) -> None:
    run.call("find").returned([])


def _recovered(run: Run) -> None:
    _failed(run)
    _empty(run)


@pytest.mark.parametrize(
    ("tools", "act", "refused"),
    [
        ("required", _nothing, True),
        ("required", _failed, True),
        ("required", _empty, False),
        ("required", _recovered, False),
        ("if_called", _nothing, False),
        ("if_called", _failed, True),
        ("if_called", _empty, False),
        ("if_called", _recovered, False),
        ("none", _nothing, False),
        ("none", _failed, False),
        ("none", _empty, False),
    ],
)
def test_answer_is_refused_when_its_workflow_lacks_the_tool_success_it_needs(
    tools: str, act: Act, refused: bool
) -> None:
    """An empty list is a success; the refusal is one fixed text."""
    watch, step = _ask(tools, act)

    assert step == (Step(Action.REFUSE, _REFUSAL) if refused else Step(Action.ANSWER, _ANSWER))
    checked = {'guard_checks_total{mode="enforce",workflow="answers"}': 1.0}
    blocked = {'guard_blocks_total{mode="enforce",reason="no_tool_success",workflow="answers"}': 1.0}
    expected = checked | (blocked if refused else {})
    assert counted(watch.registry, "guard_checks_total", "guard_blocks_total") == expected


@pytest.mark.parametrize("act", [_nothing, _failed])
def test_answer_passes_and_is_counted_when_the_guard_is_in_shadow(act: Act) -> None:
    """The user sees the answer; the series says what would have been refused."""
    watch, step = _ask("required", act, guard="shadow")

    assert step == Step(Action.ANSWER, _ANSWER)
    assert counted(watch.registry, "guard_checks_total", "guard_blocks_total") == {
        'guard_checks_total{mode="shadow",workflow="answers"}': 1,
        'guard_blocks_total{mode="shadow",reason="no_tool_success",workflow="answers"}': 1,
    }


def test_answer_is_refused_when_the_only_call_is_still_open() -> None:
    """A call that has not ended proves nothing."""
    _, step = _ask("required", lambda run: run.call("find").attempt())

    assert step.action is Action.REFUSE


def test_answer_becomes_good_when_a_tool_succeeds_after_a_refusal() -> None:
    """The guard looks anew each time."""
    watch = Watch(settings=Settings())
    watch.workflow("answers")
    watch.tool("find", safety="safe")

    with watch.run("answers") as run:
        actions = [run.answer(_ANSWER).action]
        _empty(run)
        actions.append(run.answer(_ANSWER).action)

    assert actions == ["refuse", "answer"]


def test_answer_of_one_run_does_not_rest_on_anothers_tools_when_both_go_on() -> None:
    """Each run has its own successes."""
    watch = Watch(settings=Settings())
    watch.workflow("answers")
    watch.tool("find", safety="safe")

    with watch.run("answers") as first, watch.run("answers") as second:
        _empty(first)
        assert (first.answer(_ANSWER).action, second.answer(_ANSWER).action) == ("answer", "refuse")
