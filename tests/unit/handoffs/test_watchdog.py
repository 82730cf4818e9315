"""The watchdog: one decision for one attempt of a handoff, all findings at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handoffwatch import Contract, Decision, HandoffContext
from handoffwatch.vocabulary import Mode, Verdict
from support.refund_handoffs import (
    FORMS,
    WITHOUT_CONTEXT,
    allowed,
    blocked,
    handoff,
    normalized,
    payload,
    refund_watchdog,
    without,
)

FIT: dict[str, dict[str, Any]] = {
    "plain": handoff(),
    "no metadata": without(handoff(), "metadata"),
    "metadata": handoff(metadata={"tenant": "north"}),
    "null in an optional field": handoff(payload=payload(result=None)),
    "completed with a result": handoff(status="completed", payload=payload(result="refund 4417")),
    "failed with an error": handoff(status="failed", payload=payload(error="payments are down")),
    "empty list": handoff(payload=payload(hits=[])),
    "nested items": handoff(payload=payload(hits=[{"id": "a", "score": 0.5}])),
    "zero and false": handoff(payload=payload(amount_cents=0, approved=False)),
    "anything in a free field": handoff(payload=payload(note={"deep": [{"er": None}]})),
    "other member of a union": handoff(payload=payload(paid_by={"kind": "transfer", "iban": "NO93"})),
    "own attempt and version": handoff(attempt=1, context_version=5, run_id="r-1", produced_at="2026-11-30T10:00:00Z"),
}

Row = tuple[dict[str, Any], list[tuple[str, str, str]]]

UNFIT: dict[str, Row] = {
    "missing_field in the payload": (
        handoff(payload=without(payload(), "order_id")),
        [("missing_field", "payload.order_id", "payload.order_id must be there")],
    ),
    "missing_field in the envelope": (
        without(handoff(), "task_type"),
        [("missing_field", "task_type", "task_type must be there")],
    ),
    "missing_field: the payload": (
        without(handoff(), "payload"),
        [("missing_field", "payload", "payload must be there")],
    ),
    "missing_field in a list": (
        handoff(payload=payload(hits=[{"id": "a"}, {"score": 1.0}])),
        [("missing_field", "payload.hits.1.id", "payload.hits.1.id must be there")],
    ),
    "null_field in the payload": (
        handoff(payload=payload(order_id=None)),
        [("null_field", "payload.order_id", "payload.order_id must have a value, and is null")],
    ),
    "null_field: the payload": (
        handoff(payload=None),
        [("null_field", "payload", "payload must have a value, and is null")],
    ),
    "null_field: the metadata": (
        handoff(metadata=None),
        [("null_field", "metadata", "metadata must have a value, and is null")],
    ),
    "empty_field in the payload": (
        handoff(payload=payload(order_id="")),
        [("empty_field", "payload.order_id", "payload.order_id must not be empty")],
    ),
    "empty_field in the envelope": (
        handoff(task_id=""),
        [("empty_field", "task_id", "task_id must not be empty")],
    ),
    "type_mismatch: text for a number": (
        handoff(payload=payload(amount_cents="3800")),
        [("type_mismatch", "payload.amount_cents", "payload.amount_cents must be an integer, and is text")],
    ),
    "type_mismatch: number for a text": (
        handoff(payload=payload(order_id=4417)),
        [("type_mismatch", "payload.order_id", "payload.order_id must be a text, and is an integer")],
    ),
    "type_mismatch: list for an object": (
        handoff(payload=[]),
        [("type_mismatch", "payload", "payload must be an object, and is a list")],
    ),
    "type_mismatch in the metadata": (
        handoff(metadata={"tries": 3}),
        [("type_mismatch", "metadata.tries", "metadata.tries must be a text, and is an integer")],
    ),
    "type_mismatch of a key's value": (
        handoff(payload=payload(limits={"day": "9"})),
        [("type_mismatch", "payload.limits.day", "payload.limits.day must be an integer, and is text")],
    ),
    "unknown_field in the payload": (
        handoff(payload=payload(amout=50)),
        [
            (
                "unknown_field",
                "payload.amout",
                "payload.amout is not a field of the contract: remove it or correct its name",
            )
        ],
    ),
    "unknown_field in the envelope": (
        handoff(priority="high"),
        [("unknown_field", "priority", "priority is not a field of the contract: remove it or correct its name")],
    ),
    "unknown_field in a nested model": (
        handoff(payload=payload(hits=[{"id": "a", "rank": 1}])),
        [
            (
                "unknown_field",
                "payload.hits.0.rank",
                "payload.hits.0.rank is not a field of the contract: remove it or correct its name",
            )
        ],
    ),
    "missing_result: absent": (
        handoff(status="completed"),
        [("missing_result", "payload.result", "payload.result must hold the result of completed work")],
    ),
    "missing_result: null": (
        handoff(status="completed", payload=payload(result=None)),
        [("missing_result", "payload.result", "payload.result must hold the result of completed work")],
    ),
    "missing_result: white space": (
        handoff(status="completed", payload=payload(result=" \n\t")),
        [("missing_result", "payload.result", "payload.result must hold the result of completed work")],
    ),
    "missing_error: absent": (
        handoff(status="failed"),
        [("missing_error", "payload.error", "payload.error must say what failed")],
    ),
    "missing_error: white space": (
        handoff(status="failed", payload=payload(error="  ")),
        [("missing_error", "payload.error", "payload.error must say what failed")],
    ),
    "unknown_status": (
        handoff(status="done"),
        [("unknown_status", "status", "status must be one of ready, completed, failed")],
    ),
    "null_field: the status": (
        handoff(status=None),
        [("null_field", "status", "status must have a value, and is null")],
    ),
    "unknown_schema_version": (
        handoff(schema_version="7"),
        [("unknown_schema_version", "schema_version", "schema_version must be one of 1")],
    ),
    "type_mismatch: a float as version": (
        handoff(schema_version=1.0),
        [("type_mismatch", "schema_version", "schema_version must be a text, and is a number")],
    ),
    "type_mismatch: true as version": (
        handoff(schema_version=True),
        [("type_mismatch", "schema_version", "schema_version must be a text, and is true or false")],
    ),
    "several at once": (
        without(handoff(status="failed", payload={"amount_cents": None, "extra": 1, "hits": [{}]}), "task_type"),
        [
            ("missing_field", "task_type", "task_type must be there"),
            ("missing_field", "payload.order_id", "payload.order_id must be there"),
            ("null_field", "payload.amount_cents", "payload.amount_cents must have a value, and is null"),
            ("missing_field", "payload.hits.0.id", "payload.hits.0.id must be there"),
            (
                "unknown_field",
                "payload.extra",
                "payload.extra is not a field of the contract: remove it or correct its name",
            ),
            ("missing_error", "payload.error", "payload.error must say what failed"),
        ],
    ),
}

WITHOUT_CONTRACT = {"unknown_schema_version"}
"""Rows for which only the envelope could be judged, so that the decision names no contract version."""


def _expected(name: str) -> Decision:
    return blocked(*UNFIT[name][1], schema_version="other" if name in WITHOUT_CONTRACT else "1")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FIT)
def test_inspect_allows_and_normalises_when_the_handoff_fits(name: str, form: str) -> None:
    """A fit handoff is allowed with every optional field spelled out, whatever form it came in."""
    expected = allowed(normalized({"metadata": {}} | FIT[name]))
    hits = expected.normalized_payload["payload"]["hits"]  # type: ignore[index]
    expected.normalized_payload["payload"]["hits"] = [{"score": 0.0, **hit} for hit in hits]  # type: ignore[index]
    if "context_version" in FIT[name]:
        expected = expected._replace(skipped=WITHOUT_CONTEXT)

    assert refund_watchdog().inspect(FORMS[form](FIT[name])) == expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", UNFIT)
def test_inspect_blocks_with_every_finding_when_the_handoff_is_unfit(name: str, form: str) -> None:
    """The whole decision is the same for a dict, a model and JSON text."""
    assert refund_watchdog().inspect(FORMS[form](UNFIT[name][0])) == _expected(name)


@pytest.mark.parametrize("name", UNFIT)
def test_inspect_says_the_same_and_lets_pass_when_the_route_is_in_shadow(name: str) -> None:
    """In shadow only `allowed`, the mode and the payload differ: the handoff goes on as it was received."""
    raw = UNFIT[name][0] | {"target_agent": "auditor"}

    decision = refund_watchdog().inspect(raw)

    assert decision == _expected(name)._replace(
        allowed=True, normalized_payload=raw, route="executor->auditor", mode=Mode.SHADOW
    )


def test_inspect_changes_nothing_of_the_input_when_it_normalises() -> None:
    """The normalised handoff is another object: what the sender holds stays as it was."""
    raw = handoff(schema_version=1, payload=payload(hits=[{"id": "a"}]))
    before = json.dumps(raw)

    decision = refund_watchdog().inspect(raw)
    decision.normalized_payload["payload"]["hits"].append("later")  # type: ignore[index]

    assert json.dumps(raw) == before


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", [1, "1"])
def test_inspect_takes_the_schema_version_when_it_is_a_number_or_a_text(version: object, form: str) -> None:
    """1 and "1" are the same version, and the text is what goes on."""
    assert refund_watchdog().inspect(FORMS[form](handoff(schema_version=version))) == allowed(normalized(handoff()))


@pytest.mark.parametrize(
    ("version", "fields", "expected"),
    [
        (1, {}, []),
        ("2", {"currency": "EUR"}, []),
        (2, {"currency": "EUR"}, []),
        ("2", {}, [("missing_field", "payload.currency", "payload.currency must be there")]),
        ("1", {"currency": "EUR"},
         [("unknown_field", "payload.currency",
           "payload.currency is not a field of the contract: remove it or correct its name")]),
        ("2", {"currency": "euro"}, [("bad_format", "payload.currency",
                                      "payload.currency must satisfy the contract (string_pattern_mismatch)")]),
        ("3", {}, [("unknown_schema_version", "schema_version", "schema_version must be one of 1, 2")]),
        (" 2", {}, [("unknown_schema_version", "schema_version", "schema_version must be one of 1, 2")]),
        ("", {}, [("empty_field", "schema_version", "schema_version must not be empty")]),
    ],
)  # fmt: skip
def test_inspect_judges_by_the_contract_of_the_version_when_a_route_has_several(
    version: object, fields: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    """Each schema version of a route has a contract of its own."""
    raw = handoff(
        source_agent="reviewer", target_agent="synthesizer", schema_version=version, payload=payload(**fields)
    )

    decision = refund_watchdog().inspect(raw)

    known = str(version) if str(version) in {"1", "2"} else "other"
    assert [finding[:3] for finding in decision.findings] == expected
    assert (decision.allowed, decision.route, decision.schema_version) == (
        not expected,
        "reviewer->synthesizer",
        known,
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("status", "fields", "expected"),
    [
        ("ready", {"results": ["order 9"]}, []),
        ("ready", {"results": []},
         [("empty_results", "payload.results", "payload.results must hold at least one item")]),
        ("completed", {"results": []},
         [("empty_results", "payload.results", "payload.results must hold at least one item")]),
        ("failed", {"results": [], "error": "the index is down"}, []),
    ],
)  # fmt: skip
def test_inspect_wants_results_when_the_contract_needs_them(
    status: str, fields: dict[str, Any], expected: list[tuple[str, str, str]], form: str
) -> None:
    """An empty list of results blocks where the contract says so, unless the work failed."""
    raw = handoff(source_agent="searcher", target_agent="planner", status=status, payload=fields)

    decision = refund_watchdog().inspect(FORMS[form](raw))

    assert [finding[:3] for finding in decision.findings] == expected
    assert decision.allowed is not bool(expected)


@pytest.mark.parametrize("fields", [{}, {"results": None}], ids=["absent", "null"])
def test_inspect_blocks_absent_results_when_the_contract_needs_them(fields: dict[str, Any]) -> None:
    """A contract that needs at least one result is not satisfied by having no list at all."""
    raw = handoff(source_agent="searcher", target_agent="planner", status="completed", payload=fields)

    assert refund_watchdog().inspect(raw).verdict is Verdict.BLOCKED


def test_inspect_blocks_an_empty_tuple_of_results_when_it_comes_as_python_data() -> None:
    """A tuple is a list on the wire, so an empty tuple is an empty list of results."""
    raw = handoff(source_agent="searcher", target_agent="planner", payload={"results": ()})

    assert refund_watchdog().inspect(raw).reasons == ["empty_results"]


def test_decision_turns_blocked_when_a_good_handoff_goes_bad() -> None:
    """One handoff is judged anew each time: fit, then without order, then fit again, then completed without result."""
    watchdog = refund_watchdog()
    raw = handoff()
    seen = [watchdog.inspect(raw).reasons]
    raw["payload"]["order_id"] = ""
    seen.append(watchdog.inspect(raw).reasons)
    raw["payload"]["order_id"] = "4417"
    seen.append(watchdog.inspect(raw).reasons)
    raw["status"] = "completed"
    seen.append(watchdog.inspect(raw).reasons)
    raw["payload"]["result"] = "refunded"
    seen.append(watchdog.inspect(raw).reasons)
    raw["payload"]["result"] = "\ud83c"
    seen.append(watchdog.inspect(raw).reasons)

    assert seen == [[], ["empty_field"], [], ["missing_result"], [], ["invalid_text"]]


def test_decision_of_yesterday_stays_when_the_sender_changes_its_dict_later() -> None:
    """What was normalised does not follow the sender's object."""
    raw = handoff(payload=payload(note={"steps": [1]}))
    decision = refund_watchdog().inspect(raw)

    raw["payload"]["note"]["steps"].append(2)
    raw["task_id"] = "t-9"

    assert decision.normalized_payload == normalized(handoff(payload=payload(note={"steps": [1]})))


class FaultyContract(Contract):
    """A contract whose own code can break."""

    order_id: str

    def model_post_init(self, context: object, /) -> None:
        raise KeyError(self.order_id)


def test_inspect_fails_closed_when_a_contract_raises() -> None:
    """An error of the contract's own code proves nothing: check_failed, critical, and no word of the value."""
    watchdog = refund_watchdog()
    watchdog.routes.add("reviewer->payer", contracts=[FaultyContract], criticality="critical", mode=Mode.ENFORCE)  # type: ignore[arg-type]
    raw = handoff(source_agent="reviewer", target_agent="payer", payload={"order_id": "hunter2"})

    decision = watchdog.inspect(raw, context=HandoffContext(handoff_id="h-run", attempt=3))

    assert decision == blocked(
        ("check_failed", "$", "a check raised KeyError, so nothing was proven"),
        route="reviewer->payer",
        schema_version="other",
        attempt=3,
        skipped=(),
    )


@pytest.mark.parametrize(
    "context", [{"task_id": "t-1"}, object(), "t-1", 7], ids=lambda context: type(context).__name__
)
def test_inspect_fails_closed_when_the_context_is_no_context(context: object) -> None:
    """Anything at all passed as context gives a decision that blocks, never an exception."""
    decision = refund_watchdog().inspect(handoff(), context=context)  # type: ignore[arg-type]

    assert (decision.allowed, decision.reasons) == (False, ["check_failed"])
