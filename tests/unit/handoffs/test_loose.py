"""Contracts without a class: a plain function, and a JSON Schema."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from handoffwatch import HandoffContext, RegistrationError, Watch, contract_from_function, contract_from_json_schema
from handoffwatch.handoffs.contract import LooseContract
from handoffwatch.vocabulary import Reaction, Severity, Verdict
from support.one_route import found, judged, only

SECRET = "hunter2"
DRAFT = {
    "4": "http://json-schema.org/draft-04/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def by_function(function: Callable[..., object], **keywords: Any) -> LooseContract:
    """Return a contract with one rule of its own."""
    given = {"code": "too_many", "reason": "the reviewer reads ten items at most", "path": "payload.items"} | keywords
    return contract_from_function(function, **given)


def ten_at_most(payload: dict[str, Any]) -> bool:
    """Say whether the reviewer can read it."""
    return len(payload["items"]) <= 10


def test_inspect_judges_by_a_function_when_it_is_the_contract() -> None:
    """The finding has the code, the path and the reason that were given, and the payload goes on as it is."""
    decision = judged(by_function(ten_at_most), {"items": [0] * 11})

    assert only(decision) == (
        "too_many",
        "payload.items",
        "payload.items: the reviewer reads ten items at most",
        Reaction.BLOCK,
        Severity.ERROR,
        True,
        "validate",
    )
    passed = judged(by_function(ten_at_most), {"items": [], "more": {"kept": None}})
    assert (passed.verdict, passed.schema_version) == (Verdict.ALLOWED, "1")
    assert passed.normalized_payload is not None
    assert passed.normalized_payload["payload"] == {"items": [], "more": {"kept": None}}


def test_inspect_gives_a_function_the_handoff_and_the_context_when_it_takes_them() -> None:
    """A function may look at the envelope and at what the orchestrator knows."""

    def newest(payload: dict[str, Any], handoff: dict[str, Any], context: HandoffContext) -> list[str]:
        return [] if handoff["task_id"] == context.task_id == payload["task"] else ["payload.task"]

    contract = by_function(newest)

    assert judged(contract, {"task": "t-1"}, context=HandoffContext(task_id="t-1")).reasons == []
    assert judged(contract, {"task": "t-2"}, context=HandoffContext(task_id="t-1")).paths == ["payload.task"]


@pytest.mark.parametrize("payload", [{}, {"items": None}, {"items": 7}], ids=str)
def test_inspect_blocks_with_check_failed_when_a_function_breaks(payload: dict[str, Any]) -> None:
    """A function sees whatever was sent, and one that stumbles over it proves nothing."""
    decision = judged(by_function(ten_at_most), payload | {"note": SECRET})

    assert decision.reasons == ["check_failed"]
    assert only(decision).sentence.startswith("the rule too_many raised ")
    assert SECRET not in only(decision).sentence


@pytest.mark.parametrize(
    ("keywords", "envelope", "payload", "reasons"),
    [
        ({"version": "7"}, {"schema_version": "1"}, {}, ["unknown_schema_version"]),
        ({"version": 7}, {"schema_version": "7"}, {}, []),
        ({"accepts": ("completed",)}, {"status": "ready"}, {}, ["status_not_accepted"]),
        ({"needs_results": True}, {}, {"results": []}, ["empty_results"]),
        ({"needs_results": True}, {}, {}, ["empty_results"]),
        ({"ready_needs": ("plan",)}, {}, {"plan": " "}, ["not_ready"]),
        ({"irreversible": True}, {}, {}, ["missing_operation_id"]),
        ({"confidence_min": 0.5}, {}, {"confidence": 0.1}, ["low_confidence"]),
        ({"choices": {"chosen": "ids.*"}}, {}, {"chosen": "c", "ids": ["a"]}, ["selected_not_in_candidates"]),
        ({"same_task": ("task",)}, {}, {"task": "t-2"}, ["foreign_reference"]),
        ({"merged": "parts"}, {}, {"parts": [{"a": 1}, {"a": 2}]}, ["merge_conflict"]),
        ({"messages": "messages"}, {}, {"messages": [{"role": "assistant", "tool_calls": [{"id": "c1"}]}]},
         ["orphaned_tool_call"]),
        ({"requires_context": True}, {}, {}, ["missing_context"]),
        ({"deprecated_from": "2020-01-01"}, {}, {}, ["deprecated_schema_version"]),
        ({}, {"status": "completed"}, {"result": {"error": "401"}}, ["status_contradicts_result"]),
        ({}, {"status": "completed"}, {"result": " "}, ["missing_result"]),
        ({}, {"status": "completed"}, {"result": None}, ["missing_result"]),
        ({"accepts": ("failed",)}, {"status": "failed"}, {}, ["missing_error"]),
        ({"accepts": ("failed",)}, {"status": "failed"}, {"error": "no"}, []),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("kind", ["function", "schema"])
def test_inspect_applies_the_keywords_of_a_contract_when_it_has_no_class(
    kind: str, keywords: dict[str, Any], envelope: dict[str, Any], payload: dict[str, Any], reasons: list[str]
) -> None:
    """A contract without a class asks for the same things by the same keywords, and the default rules hold."""
    schema = {"type": "object", "properties": {"result": {}}}
    contract = (
        by_function(lambda payload: True, **keywords)
        if kind == "function"
        else contract_from_json_schema(schema, **keywords)
    )

    assert judged(contract, payload, **envelope).reasons == reasons


async def _later(payload: dict[str, Any]) -> bool:
    return True


@pytest.mark.parametrize(
    ("function", "keywords"),
    [
        (ten_at_most, {"code": "Too Many"}),
        (ten_at_most, {"reason": " "}),
        (ten_at_most, {"verison": "1"}),
        (ten_at_most, {"confidence_min": 50}),
        (lambda: True, {}),
        (lambda payload, limit: True, {}),
        (5, {}),
        (None, {}),
        (dict, {}),
        (_later, {}),
    ],
    ids=[
        "code",
        "reason",
        "keyword",
        "value",
        "no payload",
        "more than is given",
        "number",
        "none",
        "type",
        "coroutine",
    ],
)
def test_contract_from_function_is_refused_when_it_cannot_judge(function: Any, keywords: dict[str, Any]) -> None:
    """What is wrong with a function is said at start."""
    with pytest.raises(RegistrationError):
        by_function(function, **keywords)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["order_id", "amount_cents"],
    "properties": {
        "order_id": {"type": "string", "minLength": 1, "pattern": "^[0-9]+$"},
        "amount_cents": {"type": "integer", "minimum": 1},
        "currency": {"enum": ["EUR", "USD"]},
        "hits": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["id"],
                                                             "additionalProperties": False,
                                                             "properties": {"id": {"type": "string"}}}},
    },
    "patternProperties": {"^x_": {"type": "integer"}},
    "additionalProperties": False,
}  # fmt: skip
GOOD = {"order_id": "4417", "amount_cents": 3800}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"x_more": 1, "currency": "EUR", "hits": [{"id": "a"}]}, []),
        ({"order_id": None}, [("null_field", "payload.order_id")]),
        ({"order_id": ""}, [("empty_field", "payload.order_id"), ("bad_format", "payload.order_id")]),
        ({"order_id": "44a"}, [("bad_format", "payload.order_id")]),
        ({"order_id": 4417}, [("type_mismatch", "payload.order_id")]),
        ({"amount_cents": "3800"}, [("type_mismatch", "payload.amount_cents")]),
        ({"amount_cents": True}, [("type_mismatch", "payload.amount_cents")]),
        ({"amount_cents": 0}, [("bad_format", "payload.amount_cents")]),
        ({"currency": "CHF"}, [("bad_format", "payload.currency")]),
        ({"amout": 1}, [("unknown_field", "payload.amout")]),
        ({"x_more": 1, "amout": 1}, [("unknown_field", "payload.amout")]),
        ({"hits": []}, [("empty_field", "payload.hits")]),
        ({"hits": [{"id": "a"}, {"di": "b"}]},
         [("missing_field", "payload.hits.1.id"), ("unknown_field", "payload.hits.1.di")]),
    ],
    ids=str,
)  # fmt: skip
def test_inspect_maps_each_error_to_its_code_when_a_json_schema_is_the_contract(
    changes: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    """The kinds of errors have the product's codes, with the path; words and values of the library are not quoted."""
    decision = judged(contract_from_json_schema(SCHEMA), GOOD | changes)

    assert sorted(found(decision)) == sorted(expected)
    assert all(item.sentence.startswith(f"{item.path} must satisfy the schema (") for item in decision.findings)


def test_inspect_names_each_missing_field_once_when_a_json_schema_requires_several() -> None:
    """BR-016: three missing fields are three findings."""
    schema = {"required": ["task_id", "task_description", "upstream_refs"]}

    decision = judged(contract_from_json_schema(schema), {})

    assert found(decision) == [
        ("missing_field", "payload.task_id"),
        ("missing_field", "payload.task_description"),
        ("missing_field", "payload.upstream_refs"),
    ]


def test_inspect_names_a_gap_once_when_the_keywords_and_a_json_schema_both_ask_for_it() -> None:
    """One empty list is one finding."""
    contract = contract_from_json_schema({"properties": {"results": {"minItems": 1}}}, needs_results=True)

    assert found(judged(contract, {"results": []})) == [("empty_results", "payload.results")]


def test_inspect_never_quotes_a_value_when_a_json_schema_refuses_it() -> None:
    """BR-125: codes, paths and sentences hold place and rule only."""
    schema = {"properties": {name: {rule: given} for name, rule, given in (
        ("a", "type", "integer"), ("b", "const", 1), ("c", "pattern", "^x$"), ("d", "maxLength", 1), ("e", "not", {}),
    )}}  # fmt: skip
    decision = judged(contract_from_json_schema(schema), dict.fromkeys("abcde", SECRET))

    assert len(decision.findings) == 5
    assert SECRET not in repr(decision._replace(normalized_payload=None))


def test_inspect_gives_a_bounded_number_of_findings_when_a_json_schema_refuses_everything() -> None:
    """Ten thousand wrong items do not make ten thousand findings, nor do ten thousand missing or unknown fields."""
    many = [f"f{place}" for place in range(10_000)]
    for schema, payload in (
        ({"properties": {"items": {"items": {"type": "string"}}}}, {"items": list(range(10_000))}),
        ({"required": many}, {}),
        ({"additionalProperties": False}, dict.fromkeys(many, 1)),
    ):
        decision = judged(contract_from_json_schema(schema), payload)
        assert 0 < len(decision.findings) <= 50


@pytest.mark.parametrize(
    ("draft", "schema", "reasons"),
    [
        ("4", {"minimum": 0, "exclusiveMinimum": True}, ["bad_format"]),
        ("7", {"exclusiveMinimum": 0}, ["bad_format"]),
        ("2020-12", {"exclusiveMinimum": 0}, ["bad_format"]),
        ("7", {"dependentRequired": {"value": ["other"]}}, []),
        (None, {"exclusiveMinimum": 0}, ["bad_format"]),
    ],
)
def test_contract_follows_the_draft_that_the_schema_names_when_it_names_one(
    draft: str | None, schema: dict[str, Any], reasons: list[str]
) -> None:
    """Drafts say the same thing differently; without a name the newest is meant."""
    whole = ({"$schema": DRAFT[draft]} if draft else {}) | {"properties": {"value": schema}}

    assert judged(contract_from_json_schema(whole), {"value": 0}).reasons == reasons


def test_dependent_fields_are_judged_when_the_draft_knows_them() -> None:
    """The newest draft asks for the fields that others bring with them, and the code says that one is missing."""
    contract = contract_from_json_schema({"dependentRequired": {"card": ["digits"]}})

    assert judged(contract, {"card": 1}).verdict is Verdict.BLOCKED
    assert judged(contract, {}).verdict is Verdict.ALLOWED


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/nowhere"},
        {"properties": {"order_id": {"$ref": "#/$defs/missing"}}},
        {"$ref": "urn:nobody:knows"},
    ],
    ids=str,
)
def test_inspect_blocks_with_check_failed_when_a_reference_leads_nowhere(schema: dict[str, Any]) -> None:
    """A schema that cannot be applied proves nothing."""
    decision = judged(contract_from_json_schema(schema), {"order_id": SECRET})

    assert (decision.verdict, decision.severity, decision.reasons) == (
        Verdict.BLOCKED,
        Severity.CRITICAL,
        ["check_failed"],
    )
    assert SECRET not in only(decision).sentence


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """The address of a server that would give a schema, and what it was asked for."""
    paths: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/schema.json", paths
    server.shutdown()
    server.server_close()
    thread.join()


def test_inspect_never_goes_to_the_network_when_a_schema_refers_there(asked: tuple[str, list[str]]) -> None:
    """A check does no I/O: a reference to another host is one that leads nowhere."""
    address, paths = asked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        decision = judged(contract_from_json_schema({"$ref": address}), {})

    assert paths == []
    assert decision.reasons == ["check_failed"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strng"},
        {"required": "order_id"},
        {"required": True},
        {"properties": {"a": {"minimum": "0"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"$schema": "http://nowhere.example/schema"},
        {"$schema": 5},
        True,
        False,
        None,
        "object",
        [],
        7,
    ],
    ids=str,
)
def test_contract_from_json_schema_is_refused_when_it_is_no_schema(schema: Any) -> None:
    """A schema that is none, or of a draft that nobody knows, is refused at start."""
    with pytest.raises(RegistrationError):
        contract_from_json_schema(schema)


def test_contract_from_json_schema_says_where_when_the_schema_is_wrong() -> None:
    """The message names the place in the schema."""
    with pytest.raises(RegistrationError) as refused:
        contract_from_json_schema({"properties": {"order_id": {"type": "strng"}}})

    assert refused.value.message == "contract from a JSON Schema: properties.order_id.type: is no valid schema"


def test_draft_three_schema_never_breaks_the_check_when_it_requires_a_field_by_itself() -> None:
    """An old draft says `required` in the field; it is applied or refused, and never an error inside the check."""
    schema = {
        "$schema": "http://json-schema.org/draft-03/schema#",
        "properties": {"order_id": {"type": "string", "required": True}},
    }
    try:
        contract = contract_from_json_schema(schema)
    except RegistrationError:
        return
    assert found(judged(contract, {})) == [("missing_field", "payload.order_id")]


def test_contract_stays_as_it_was_registered_when_the_schema_is_changed_afterwards() -> None:
    """What was registered is what judges."""
    schema: dict[str, Any] = {"properties": {"amount": {"type": "integer"}}}
    contract = contract_from_json_schema(schema)

    schema["properties"]["amount"]["type"] = "string"

    assert judged(contract, {"amount": "3"}).reasons == ["type_mismatch"]


def test_route_takes_several_versions_when_some_have_no_class() -> None:
    """A function and a schema serve wherever a class does."""
    watch = Watch()
    watch.route(
        "executor->reviewer",
        contract=[by_function(ten_at_most), contract_from_json_schema(SCHEMA, version="2")],
    )

    (route,) = watch.watchdog.routes
    assert list(route.contracts) == ["1", "2"]
    assert ("too_many", Reaction.BLOCK) in route.codes
