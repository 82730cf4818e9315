"""The map of transitions."""

from __future__ import annotations

import pytest

from handoffwatch import Contract, Watch, contract_from_function
from handoffwatch.testing.route_map import Transition, mermaid, transitions
from handoffwatch.vocabulary import Criticality, Mode
from support.contract_cases import Work


class Failure(Contract, version=2, accepts=("failed",)):
    """What went wrong."""

    error: str = ""


def _watch() -> Watch:
    watch = Watch()
    watch.route("executor->reviewer", contract=[Work, Failure], criticality="critical")
    watch.route('reviewer->search-agent "2"', contract=Failure, mode="shadow")
    watch.route("reviewer->archive", unchecked=True)
    return watch


def test_transitions_are_one_for_each_route_and_version_when_there_are_several() -> None:
    """A route that is not checked has neither version nor fields."""
    both = (Criticality.CRITICAL, Criticality.ROUTINE)
    assert transitions(_watch()) == [
        Transition(
            "executor",
            "reviewer",
            "Work",
            "1",
            ("ready", "completed"),
            ("amount_cents", "order_id", "result"),
            Mode.ENFORCE,
            both[0],
        ),
        Transition("executor", "reviewer", "Failure", "2", ("failed",), (), Mode.ENFORCE, both[0]),
        Transition("reviewer", 'search-agent "2"', "Failure", "2", ("failed",), (), Mode.SHADOW, both[1]),
        Transition("reviewer", "archive", None, None, (), (), Mode.ENFORCE, both[1]),
    ]


def test_transitions_have_no_type_when_a_function_is_the_contract() -> None:
    """There is no class to name."""
    watch = Watch()
    contract = contract_from_function(lambda payload: True, code="never", reason="the archive takes all", version="1")
    watch.route("reviewer->archive", contract=contract)
    (row,) = transitions(watch.watchdog)
    assert (row.type, row.version) == (None, "1")


def test_transitions_refuse_what_is_no_registry() -> None:
    """As the other tools of the kit."""
    with pytest.raises(TypeError, match="must be a Watch or a Watchdog, got list"):
        transitions([])  # type: ignore[arg-type]


def test_mermaid_draws_an_arrow_for_each_route_when_there_are_several_versions() -> None:
    """Dotted where the program does not obey; names cannot break the syntax."""
    assert mermaid(transitions(_watch())).splitlines() == [
        "flowchart LR",
        '    a0["executor"]',
        '    a1["reviewer"]',
        '    a2["search-agent #34;2#34;"]',
        '    a3["archive"]',
        '    a0 -->|"enforce, critical<br/>Work 1 (ready, completed): amount_cents, order_id, result'
        '<br/>Failure 2 (failed): nothing required"| a1',
        '    a1 -.->|"shadow, routine<br/>Failure 2 (failed): nothing required"| a2',
        '    a1 -.->|"unchecked, routine"| a3',
    ]
    assert mermaid([]) == "flowchart LR"
