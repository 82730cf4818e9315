"""The class keywords of a contract: read, inherited, and refused with what to type."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from handoffwatch import Contract, RegistrationError
from handoffwatch.handoffs.contract import compile_contract
from handoffwatch.handoffs.options import Options
from support.one_route import contract_class


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({}, Options()),
        ({"version": 3}, Options(version="3")),
        ({"version": "2027-01"}, Options(version="2027-01")),
        ({"accepts": ["failed", "ready"]}, Options(accepts=("ready", "failed"))),
        ({"accepts": {"completed"}}, Options(accepts=("completed",))),
        ({"deprecated_from": "2027-01-31"}, Options(deprecated_from=datetime.date(2027, 1, 31))),
        ({"deprecated_from": datetime.date(2027, 1, 31)}, Options(deprecated_from=datetime.date(2027, 1, 31))),
        ({"deprecated_from": None}, Options()),
        ({"age_s_max": 60}, Options(age_s_max=60.0)),
        ({"age_s_max": 0.5}, Options(age_s_max=0.5)),
        ({"confidence_min": 0}, Options(confidence_min=0.0)),
        ({"confidence_min": 1}, Options(confidence_min=1.0)),
        ({"identity": "payload.order_id"}, Options(identity="payload.order_id")),
        ({"lax": True, "irreversible": True, "requires_context": True, "needs_results": True},
         Options(lax=True, irreversible=True, requires_context=True, needs_results=True)),
        ({"ready_needs": ["plan"], "same_task": ("tasks.*.id",)},
         Options(ready_needs=("plan",), same_task=("tasks.*.id",))),
        ({"choices": {"selected": "candidates.*.id"}}, Options(choices={"selected": "candidates.*.id"})),
        ({"merged": "parts", "messages": "messages"}, Options(merged="parts", messages="messages")),
        ({"good_example": {"plan": "x"}}, Options(good_example={"plan": "x"})),
    ],
    ids=str,
)  # fmt: skip
def test_changed_reads_each_keyword_when_its_value_fits(keywords: dict[str, Any], expected: Options) -> None:
    """Every keyword has one plain form, whatever the class was written with."""
    assert Options().changed(keywords, contract="Work") == expected


REFUSED: list[tuple[str, object, str, str]] = [
    ("version", 1.5, "a text of 1 to 100 printable characters", '"1"'),
    ("version", True, "a text of 1 to 100 printable characters", '"1"'),
    ("version", "other", "a text of 1 to 100 printable characters", '"1"'),
    ("version", "x" * 101, "a text of 1 to 100 printable characters", '"1"'),
    ("lax", 1, "True or False", "True"),
    ("needs_results", None, "True or False", "True"),
    ("requires_context", "yes", "True or False", "True"),
    ("irreversible", "no", "True or False", "True"),
    ("identity", "", "a path such as payload.order_id", '"task_id"'),
    ("identity", "payload..id", "a path such as payload.order_id", '"task_id"'),
    ("identity", None, "a path such as payload.order_id", '"task_id"'),
    ("accepts", (), "some of ready, completed, failed", '("ready", "completed")'),
    ("accepts", "ready", "some of ready, completed, failed", '("ready", "completed")'),
    ("accepts", ("ready", "done"), "some of ready, completed, failed", '("ready", "completed")'),
    ("accepts", ("ready", []), "some of ready, completed, failed", '("ready", "completed")'),
    ("ready_needs", "plan", "a tuple of payload paths", '("plan",)'),
    ("same_task", ("",), "a tuple of payload paths", '("plan",)'),
    ("same_task", (7,), "a tuple of payload paths", '("plan",)'),
    ("choices", ["selected"], "a dict from payload field to payload path", '{"selected": "candidates.*.id"}'),
    ("choices", {"selected": ""}, "a dict from payload field to payload path", '{"selected": "candidates.*.id"}'),
    ("choices", {7: "ids"}, "a dict from payload field to payload path", '{"selected": "candidates.*.id"}'),
    ("merged", "", "the name of a payload field", '"parts"'),
    ("merged", 7, "the name of a payload field", '"parts"'),
    ("messages", ["messages"], "the name of a payload field", '"parts"'),
    ("deprecated_from", "next month", "a day such as 2027-01-31", '"2027-01-31"'),
    ("deprecated_from", 20270131, "a day such as 2027-01-31", '"2027-01-31"'),
    ("deprecated_from", datetime.datetime(2027, 1, 31), "a day such as 2027-01-31", '"2027-01-31"'),
    ("age_s_max", 0, "seconds above 0", "3600"),
    ("age_s_max", float("nan"), "seconds above 0", "3600"),
    ("age_s_max", True, "seconds above 0", "3600"),
    ("age_s_max", "60", "seconds above 0", "3600"),
    ("confidence_min", -0.1, "a number from 0 to 1", "0.5"),
    ("confidence_min", 50, "a number from 0 to 1", "0.5"),
    ("confidence_min", float("nan"), "a number from 0 to 1", "0.5"),
    ("good_example", "x", "a payload as a dict", '{"order_id": "4417"}'),
]


@pytest.mark.parametrize(("name", "value", "rule", "example"), REFUSED, ids=[f"{row[0]}={row[1]!r}" for row in REFUSED])
def test_contract_is_refused_with_what_to_type_when_a_keyword_breaks_its_rule(
    name: str, value: object, rule: str, example: str
) -> None:
    """The message names the class, the keyword, its rule and the kind of value, never the value."""
    with pytest.raises(RegistrationError) as refused:
        contract_class(**{name: value})

    assert refused.value.message == f"contract Work: {name}: must be {rule}, got {type(value).__name__}"
    assert refused.value.hint == f"write `class Work(Contract, {name}={example})`"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("confidense_min", "did you mean confidence_min?"),
        ("verison", "did you mean version?"),
        ("zzz", "the keywords are: version, identity, accepts, lax, needs_results, ready_needs, requires_context, "
         "irreversible, replaces_state, deprecated_from, age_s_max, confidence_min, choices, same_task, merged, "
         "messages, good_example"),
    ],
)  # fmt: skip
def test_contract_is_refused_when_a_keyword_is_unknown(name: str, hint: str) -> None:
    """A misspelt keyword would be a rule that nobody applies."""
    with pytest.raises(RegistrationError) as refused:
        contract_class(**{name: "1"})

    assert refused.value.message == f"contract Work: {name}: is no keyword of a contract"
    assert refused.value.hint == hint


@pytest.mark.parametrize(
    "keywords",
    [
        {"choices": {"selcted": "candidates.*.id"}},
        {"choices": {"selected": "candidate.*.id"}},
        {"same_task": ("tsk.id",)},
        {"merged": "prts"},
        {"messages": "mesages"},
        {"confidence_min": 0.5},
    ],
    ids=str,
)
def test_route_refuses_a_contract_when_a_keyword_asks_for_a_field_that_it_does_not_have(
    keywords: dict[str, Any],
) -> None:
    """A rule over a field that cannot be there never speaks: it would be a check that nobody makes."""
    with pytest.raises(RegistrationError):
        compile_contract(
            contract_class({"selected": str, "candidates": list[dict[str, str]], "task": dict[str, str]}, **keywords)
        )


def test_contract_inherits_what_it_does_not_name_when_it_is_derived() -> None:
    """A second version changes what it names, and the first stays as it was."""

    class First(Contract, version="1", confidence_min=0.5, accepts=("ready",)):
        confidence: float = 1.0

    class Second(First, version="2", accepts=("ready", "failed")):
        pass

    assert Second.contract_options == Options(version="2", confidence_min=0.5, accepts=("ready", "failed"))
    assert First.contract_options == Options(version="1", confidence_min=0.5, accepts=("ready",))
    assert Contract.contract_options == Options()
