"""Whatever required field is lost, the flow stops before the receiver acts, and all that tells of it says where.

The error that carries the decision names the run, and the decision handoff, stage and path; what stays behind, all.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from handoffwatch import Contract, HandoffBlocked
from handoffwatch.demo.contracts import CRITICALITY_OF, PLAN_ROUTE, REVIEW_ROUTE, WORK_ROUTE, Plan, Review, Work
from support.flows import FlowDesk, logged, plan
from support.telemetry import attributes

CONTRACTS: dict[str, type[Contract]] = {PLAN_ROUTE: Plan, WORK_ROUTE: Work, REVIEW_ROUTE: Review}
ENVELOPE = ("task_id", "source_agent", "target_agent", "task_type", "status", "schema_version", "payload")

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Z"]), min_size=1, max_size=20)
amounts = st.integers(0, 10**9)
tasks = st.fixed_dictionaries({"goal": texts, "constraints": st.lists(texts, min_size=1, max_size=3)})
orders = st.fixed_dictionaries({"order_id": texts, "amount_cents": amounts})
work = {"task": tasks, "result": texts, **{"order_id": texts, "amount_cents": amounts}}
PAYLOADS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    PLAN_ROUTE: st.fixed_dictionaries({"task": tasks, "results": st.lists(orders, min_size=1, max_size=3)}),
    WORK_ROUTE: st.fixed_dictionaries(work),
    REVIEW_ROUTE: st.fixed_dictionaries({**work, "checked": st.lists(texts, min_size=1, max_size=3)}),
}
SHAPES: dict[str, Callable[[dict[str, Any]], object]] = {
    "dict": lambda handoff: handoff,
    "text": json.dumps,
    "bytes": lambda handoff: json.dumps(handoff).encode(),
}


def required(model: type[BaseModel], value: Mapping[str, Any], *above: str | int) -> Iterator[tuple[str | int, ...]]:
    """Give the place of every field of a value that its model cannot do without, those of models in it too."""
    for name, field in model.model_fields.items():
        if field.is_required():
            yield (*above, name)
        inner = next((each for each in (field.annotation, *get_args(field.annotation)) if _is_model(each)), None)
        if inner is None or name not in value:
            continue
        if isinstance(value[name], list):
            for index, item in enumerate(value[name]):
                yield from required(inner, item, *above, name, index)
        else:
            yield from required(inner, value[name], *above, name)


def _is_model(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def without(value: dict[str, Any], place: tuple[str | int, ...]) -> dict[str, Any]:
    """Return a copy in which one field is missing."""
    left = copy.deepcopy(value)
    holder: Any = left
    for part in place[:-1]:
        holder = holder[part]
    del holder[place[-1]]
    return left


@pytest.mark.parametrize(
    ("route", "payload", "places"),
    [
        (
            PLAN_ROUTE,
            {"task": {}, "results": [{}, {}]},
            "task task.goal task.constraints results results.0.order_id results.0.amount_cents results.1.order_id "
            "results.1.amount_cents",
        ),
        (WORK_ROUTE, {"task": {}}, "task task.goal task.constraints result order_id amount_cents"),
        (REVIEW_ROUTE, {"task": {}}, "task task.goal task.constraints result order_id amount_cents checked"),
    ],
)
def test_all_required_fields_are_tried_when_they_are_read_from_the_contract(
    route: str, payload: dict[str, Any], places: str
) -> None:
    """The property below leaves none out."""
    found = [".".join(map(str, place)) for place in required(CONTRACTS[route], payload)]
    assert found == places.split()


@pytest.mark.parametrize("route", CONTRACTS)
def test_flow_stops_and_all_name_the_place_when_a_required_field_is_lost(route: str, tmp_path: Path) -> None:
    """Each required field of each demo contract, nested ones and those of the envelope too."""
    desk = FlowDesk(tmp_path).route(route, contract=CONTRACTS[route], criticality=CRITICALITY_OF[route])
    numbers = iter(range(10**9))

    def lose(good: dict[str, Any], place: tuple[str | int, ...], shape: str) -> None:
        number = next(numbers)
        run_id, handoff_id, path = f"r-{number}", f"h-{number}", ".".join(map(str, place))
        raw = SHAPES[shape](without(good | {"handoff_id": handoff_id, "task_id": f"t-{number}"}, place))
        source, target = route.split("->")
        ended = len(desk.spans.ended)

        begun = desk.watch.run("refunds", run_id=run_id, task_id=f"t-{number}")
        with logged() as lines, pytest.raises(HandoffBlocked) as blocked, begun as run:
            run.transfer(source, target, raw, receiver=desk.receive)

        assert desk.received == []
        decision = blocked.value.decision
        assert decision is not None
        assert (blocked.value.run_id, decision.handoff_id) == (run_id, handoff_id)
        assert ("missing_field", path, "validate") in {(each.code, each.path, each.stage) for each in decision.findings}
        (span,) = [span for span in desk.spans.ended[ended:] if span.name.startswith("handoff ")]
        told = attributes(span)
        assert told["handoffwatch.run.id"] == run_id
        assert told["handoffwatch.handoff.id"] == handoff_id
        assert told["handoffwatch.handoff.stage"] == "validate"
        assert path in told["handoffwatch.handoff.paths"]
        (line,) = [line for line in lines if line.startswith("handoff blocked: ")]
        fields = dict(field.split("=", 1) for field in line.removeprefix("handoff blocked: ").split(" "))
        assert (fields["run_id"], fields["handoff_id"], fields["stage"]) == (run_id, handoff_id, "validate")
        assert path in fields["paths"].split(",")
        case = desk.case_of(run_id)
        assert (case.facts["handoff_id"], case.facts["stage"]) == (handoff_id, "validate")
        assert path in case.facts["paths"]  # type: ignore[operator]

    @settings(max_examples=15, deadline=None, database=None, derandomize=True)
    @given(PAYLOADS[route], st.sampled_from(sorted(SHAPES)))
    def lose_each(payload: dict[str, Any], shape: str) -> None:
        good = plan(route=route, payload=payload)
        for place in required(CONTRACTS[route], payload, "payload"):
            lose(good, place, shape)
        for name in ENVELOPE:
            lose(good, (name,), shape)

    lose_each()
    desk.watch.close()


@pytest.mark.parametrize("route", CONTRACTS)
def test_flow_delivers_when_no_required_field_is_lost(route: str) -> None:
    """The handoffs of the property are good ones but for what they lose."""
    desk = FlowDesk().route(route, contract=CONTRACTS[route], criticality=CRITICALITY_OF[route])
    numbers = iter(range(10**9))

    @settings(max_examples=15, deadline=None, database=None, derandomize=True)
    @given(PAYLOADS[route], st.sampled_from(sorted(SHAPES)))
    def deliver(payload: dict[str, Any], shape: str) -> None:
        good = plan(f"h-{next(numbers)}", route=route, task_id=f"t-{next(numbers)}", payload=payload)
        with desk.watch.run("refunds") as run:
            assert run.transfer(*route.split("->"), SHAPES[shape](good), receiver=desk.receive) == "received"

    deliver()
    desk.watch.close()
