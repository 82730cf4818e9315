"""What a handoff may be made of: Python values, what JSON cannot hold, depth, size, and the paths of findings."""

from __future__ import annotations

import enum
import json
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from handoffwatch import HandoffContext
from handoffwatch.handoffs.reading import PAYLOAD_BYTES_MAX
from handoffwatch.vocabulary import Mode, Verdict
from support.refund_handoffs import (
    FORMS,
    NEW_ID,
    Findings,
    as_model,
    blocked,
    handoff,
    payload,
    refund_watchdog,
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, ("type_mismatch", "$", "the handoff must be an object, and is null")),
        (5, ("type_mismatch", "$", "the handoff must be an object, and is an integer")),
        (True, ("type_mismatch", "$", "the handoff must be an object, and is true or false")),
        (0.5, ("type_mismatch", "$", "the handoff must be an object, and is a number")),
        ([handoff()], ("type_mismatch", "$", "the handoff must be an object, and is a list")),
        ((), ("type_mismatch", "$", "the handoff must be an object, and is a list")),
        ("[]", ("type_mismatch", "$", "the handoff must be an object, and is a list")),
        ('"{}"', ("type_mismatch", "$", "the handoff must be an object, and is text")),
        ("null", ("type_mismatch", "$", "the handoff must be an object, and is null")),
        ("", ("unparsable_text", "$", "the handoff must be one complete JSON object")),
        ("{", ("truncated_payload", "$", "the handoff must be whole: its text ends before its JSON does")),
        ("{} {}", ("unparsable_text", "$", "the handoff must be one complete JSON object")),
        ("```json\n{}\n```", ("unparsable_text", "$", "the handoff must be one complete JSON object")),
        ("{'a': 1}", ("unparsable_text", "$", "the handoff must be one complete JSON object")),
        (b"\xff", ("unparsable_text", "$", "the handoff must be one complete JSON object")),
        ("\ud83c", ("unparsable_text", "$", "the handoff must be one complete JSON object")),
        (object(), ("not_serialisable", "$", "$: a value has no JSON form (found object)")),
        ({1, 2}, ("not_serialisable", "$", "$: a value has no JSON form (found set)")),
        (handoff, ("not_serialisable", "$", "$: a value has no JSON form (found function)")),
        (float("nan"), ("non_finite_number", "$", "$: a number is NaN or infinite (found float)")),
    ],
)  # fmt: skip
def test_inspect_names_what_it_got_when_the_input_is_no_handoff(raw: object, expected: tuple[str, str, str]) -> None:
    """Anything else than an object is a finding about the whole, and the decision has an id all the same."""
    decision = refund_watchdog().inspect(raw)

    assert decision.findings[0][:3] == expected
    assert (decision.allowed, decision.verdict, decision.handoff_id) == (False, Verdict.BLOCKED, NEW_ID)


CYCLE: dict[str, Any] = {"more": []}
CYCLE["more"].append(CYCLE)


@pytest.mark.parametrize(
    ("note", "code", "path", "found"),
    [
        (float("nan"), "non_finite_number", "payload.note", "float"),
        ({"limit": float("inf")}, "non_finite_number", "payload.note.limit", "float"),
        ([float("-inf")], "non_finite_number", "payload.note.0", "float"),
        (10**25, "unsafe_integer", "payload.note", "int"),
        (-(2**80), "unsafe_integer", "payload.note", "int"),
        ("\ud83c", "invalid_text", "payload.note", "str"),
        ({"\udc97": 1}, "invalid_text", "payload.note", "str as a key"),
        ({1: "one"}, "not_serialisable", "payload.note", "int as a key"),
        ({(1, 2): "pair"}, "not_serialisable", "payload.note", "tuple as a key"),
        ({1, 2}, "not_serialisable", "payload.note", "set"),
        (Decimal("1.10"), "not_serialisable", "payload.note", "Decimal"),
        (b"\xff", "not_serialisable", "payload.note", "bytes"),
        ([object()], "not_serialisable", "payload.note.0", "object"),
        (CYCLE, "cyclic_value", "payload.note.more.0", "dict"),
    ],
)  # fmt: skip
def test_inspect_names_the_place_when_a_value_has_no_json_form(note: object, code: str, path: str, found: str) -> None:
    """What JSON cannot hold blocks with its path and the kind of value, never the value."""
    meanings = {
        "non_finite_number": "a number is NaN or infinite",
        "unsafe_integer": "an integer is beyond 2^53-1 and changes in many readers",
        "invalid_text": "a text holds half a character that no encoder accepts",
        "not_serialisable": "a value has no JSON form",
        "cyclic_value": "a value contains itself",
    }

    decision = refund_watchdog().inspect(handoff(payload=payload(note=note)))

    assert decision == blocked((code, path, f"{path}: {meanings[code]} (found {found})"))


def test_inspect_gives_no_payload_when_a_shadow_route_gets_what_json_cannot_hold() -> None:
    """In shadow mode the flow passes the original; the decision has no copy of what is no JSON."""
    decision = refund_watchdog().inspect(handoff(target_agent="auditor", payload=payload(note={1, 2})))

    assert (decision.allowed, decision.verdict, decision.normalized_payload) == (True, Verdict.BLOCKED, None)
    assert json.loads(decision.to_json())["reasons"] == ["not_serialisable"]


@pytest.mark.parametrize(
    "note",
    [datetime(2026, 11, 30, tzinfo=UTC), uuid.UUID(int=7), Mode.SHADOW, Findings(order_id="4417", amount_cents=1)],
    ids=lambda note: type(note).__name__,
)
def test_decision_has_its_json_form_when_a_shadow_route_gets_python_values(note: object) -> None:
    """A time, a UUID or a model in the handoff does not keep the decision from being written down."""
    decision = refund_watchdog().inspect(handoff(target_agent="auditor", payload=payload(note=note)))

    assert json.loads(decision.to_json())["allowed"] is True


@pytest.mark.parametrize("mode_target", ["reviewer", "auditor"])
def test_decision_has_its_json_form_when_the_handoff_id_is_half_a_character(mode_target: str) -> None:
    """BR-021: the decision about a broken id can itself be encoded, and its id is not empty."""
    decision = refund_watchdog().inspect(handoff(handoff_id="\ud83c", target_agent=mode_target))

    assert decision.handoff_id
    assert json.loads(decision.to_json().encode())["reasons"] == ["invalid_text"]


@pytest.mark.parametrize("filler", ["x" * PAYLOAD_BYTES_MAX, [0] * PAYLOAD_BYTES_MAX], ids=["text", "list"])
def test_inspect_blocks_with_too_large_when_the_handoff_passes_the_limit(filler: object) -> None:
    """A handoff of more than a mebibyte as JSON text is not judged further."""
    decision = refund_watchdog().inspect(handoff(payload=payload(note=filler)))

    assert decision == blocked(("too_large", "$", "the handoff must be at most 1048576 bytes"))


def test_inspect_allows_the_largest_handoff_when_it_is_just_within_the_limit() -> None:
    """The limit itself is allowed."""
    filler = "x" * (PAYLOAD_BYTES_MAX - len(json.dumps(handoff(payload=payload(note="")), separators=(",", ":"))))

    assert refund_watchdog().inspect(handoff(payload=payload(note=filler))).allowed
    assert not refund_watchdog().inspect(handoff(payload=payload(note=filler + "x"))).allowed


def test_inspect_looks_at_a_bounded_number_of_values_when_shared_lists_unfold_without_end() -> None:
    """A small value whose JSON text is large (each list holds the next one twice) is refused, not walked through."""
    looks = 0

    class Counted(list[object]):
        def __iter__(self) -> Any:
            nonlocal looks
            looks += 1
            return super().__iter__()

    note: list[object] = Counted([None])
    for _ in range(20):
        note = Counted([note, note])

    decision = refund_watchdog().inspect(handoff(payload=payload(note=note)))

    assert decision.reasons == ["too_large"]
    assert looks <= PAYLOAD_BYTES_MAX


class Agent(enum.Enum):
    """Agents as a program may name them."""

    EXECUTOR = "executor"
    REVIEWER = "reviewer"
    AUDITOR = "auditor"


class Progress(enum.Enum):
    """A status as a program may name it."""

    COMPLETED = "completed"


class Sent(BaseModel):
    """A payload as a model that keeps what it does not know."""

    model_config = ConfigDict(extra="allow")

    order_id: str
    amount_cents: int


@pytest.mark.parametrize(
    ("raw", "asked", "reasons"),
    [
        (handoff(source_agent=Agent.EXECUTOR, payload={}), {}, ["missing_field"]),
        (handoff(source_agent=Agent.EXECUTOR, target_agent=Agent.REVIEWER, payload={}), {}, ["missing_field"]),
        (handoff(target_agent=Agent.AUDITOR), {"expected_target": "reviewer"}, ["route_mismatch"]),
        (handoff(task_id=uuid.UUID(int=2)), {"context": HandoffContext(task_id=str(uuid.UUID(int=1)))},
         ["foreign_task"]),
        (handoff(status=Progress.COMPLETED), {}, ["missing_result"]),
        (handoff(status="completed", payload=Findings(order_id="4417", amount_cents=1)), {}, ["missing_result"]),
        (handoff(status="completed", payload=MappingProxyType(payload())), {}, ["missing_result"]),
        (handoff(status="failed", payload=Findings(order_id="4417", amount_cents=1, error=" ")), {},
         ["missing_error"]),
    ],
    ids=["enum sender", "enum agents", "enum target", "uuid task", "enum status", "model payload", "mapping payload",
         "model payload failed"],
)  # fmt: skip
def test_inspect_judges_the_wire_form_when_a_dict_holds_python_values(
    raw: dict[str, Any], asked: dict[str, Any], reasons: list[str]
) -> None:
    """An enum, a UUID or a model inside a dict gives the verdict that its JSON text gives."""
    decision = refund_watchdog().inspect(raw, **asked)

    assert (decision.reasons, decision.allowed) == (reasons, False)


def test_inspect_names_the_nested_path_when_the_payload_is_a_model_inside_a_dict() -> None:
    """A model as payload of a dict is judged field by field, with full paths."""
    raw = handoff(payload=as_model({"order_id": "", "amount_cents": "3"}))

    assert refund_watchdog().inspect(raw).paths == ["payload.order_id", "payload.amount_cents"]


@pytest.mark.parametrize("whole", [False, True], ids=["payload", "handoff"])
def test_inspect_blocks_with_unknown_field_when_a_model_carries_extras(whole: bool) -> None:
    """BR-022: a model that keeps unknown fields sends them, so they are judged and not dropped without a word."""
    extra = Sent(order_id="4417", amount_cents=1, amout=50)  # type: ignore[call-arg]
    raw = as_model(handoff(payload=extra)) if whole else handoff(payload=extra)

    decision = refund_watchdog().inspect(raw)

    assert (decision.reasons, decision.paths) == (["unknown_field"], ["payload.amout"])


@pytest.mark.parametrize("form", ["dict", "json text"])
def test_inspect_never_lets_a_changed_number_pass_when_an_integer_is_too_long(form: str) -> None:
    """An integer that the parser would round blocks as unsafe_integer, as text as well as a Python value."""
    raw = handoff(payload=payload(note=123456789012345678901234567890))

    assert refund_watchdog().inspect(FORMS[form](raw)).reasons == ["unsafe_integer"]


@pytest.mark.parametrize("depth", [200, 250, 1_000, 10_000, 1_000_000])
@pytest.mark.parametrize("form", ["dict", "json text"])
def test_inspect_blocks_with_too_deep_when_values_are_nested_without_end(form: str, depth: int) -> None:
    """BR-020: no RecursionError and no crash, whether a parser is involved or not."""
    if form == "json text":
        raw: object = json.dumps(handoff(payload=payload(note="HERE"))).replace('"HERE"', "[" * depth + "]" * depth)
        decision = refund_watchdog().inspect(raw)
    else:
        note: list[Any] = []
        for _ in range(depth):
            note = [note]
        decision = refund_watchdog().inspect(handoff(payload=payload(note=note)))
        while note:
            note = note.pop()

    too_long = form == "json text" and 2 * depth > PAYLOAD_BYTES_MAX
    assert decision.reasons[0] == ("too_large" if too_long else "too_deep")
    assert all(len(path) <= 200 for path in decision.paths)


@pytest.mark.parametrize("depth", [*range(55, 70), *range(195, 205), *range(245, 260)])
def test_inspect_draws_the_line_of_depth_in_one_place_when_a_null_is_or_is_not_there(depth: int) -> None:
    """BR-020: whether a value is too deep does not depend on what stands at its end."""

    def reasons(leaf: object) -> list[str]:
        note = leaf
        for _ in range(depth):
            note = [note]
        return refund_watchdog().inspect(handoff(payload=payload(note=note))).reasons

    assert reasons(None) == reasons(1)


@pytest.mark.parametrize(
    ("paid_by", "paths"),
    [
        ({"kind": "card"}, {"payload.paid_by.digits", "payload.paid_by.kind", "payload.paid_by.iban"}),
        ("cash", {"payload.paid_by"}),
        ({"kind": "card", "digits": "4", "cvc": "1"},
         {"payload.paid_by.cvc", "payload.paid_by.kind", "payload.paid_by.iban", "payload.paid_by.digits"}),
    ],
)  # fmt: skip
def test_inspect_names_only_paths_of_the_handoff_when_a_union_fits_no_member(paid_by: object, paths: set[str]) -> None:
    """The names of union members stand in the validator's answer and not in ours."""
    decision = refund_watchdog().inspect(handoff(payload=payload(paid_by=paid_by)))

    assert set(decision.paths) == paths


@pytest.mark.parametrize(
    "key",
    ["k" * 100_000, "line\nbreak", "\x1b[31mred", "tab\there", "\u202eright to left", "a\x00b"],
    ids=["long", "line break", "escape", "tab", "direction", "nul"],
)
def test_inspect_gives_bounded_printable_paths_when_a_key_is_long_or_wild(key: str) -> None:
    """A path is at most 200 characters and can stand in a log line."""
    decision = refund_watchdog().inspect(handoff(payload=payload(**{key: 1})))

    assert decision.reasons == ["unknown_field"]
    assert all(len(path) <= 200 and path.isprintable() for path in decision.paths)


def test_inspect_gives_a_bounded_number_of_findings_when_everything_is_wrong() -> None:
    """Ten thousand unknown fields do not make ten thousand findings."""
    decision = refund_watchdog().inspect(handoff(payload={f"f{number}": number for number in range(10_000)}))

    assert (decision.verdict, len(decision.findings)) == (Verdict.BLOCKED, 50)
