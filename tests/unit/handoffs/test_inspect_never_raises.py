"""Anything at all passed to `inspect` gives a decision: arbitrary values, hostile ones, and damaged handoffs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handoffwatch import Decision, HandoffContext
from handoffwatch.reasons import REASONS
from handoffwatch.vocabulary import Mode, Reaction, Verdict
from support.hostile_values import (
    BrokenMapping,
    EvilAttributes,
    EvilClass,
    EvilComparison,
    EvilDefaults,
    EvilDict,
    EvilInteger,
    EvilKeys,
    EvilList,
    EvilText,
    LyingText,
    NamelessError,
    ShiftingMapping,
    raise_nameless,
)
from support.refund_handoffs import handoff, payload, refund_watchdog
from support.rich_contracts import CONTEXT as RICH_CONTEXT
from support.rich_contracts import DAY, OWN_CODES, TARGETS, rich_handoff, rich_watchdog

WATCHDOG = refund_watchdog()
CONTEXT = HandoffContext(run_id="r-1", task_id="t-1", context_version=5)
FIELDS = [
    "allowed", "reasons", "severity", "retryable", "handoff_id", "normalized_payload", "verdict", "findings", "route",
    "schema_version", "attempt", "mode", "skipped", "coerced", "elapsed_s",
]  # fmt: skip


def _refuse_constant(name: str) -> object:
    raise AssertionError(f"{name} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({key for key, _ in pairs}) == len(pairs)
    return dict(pairs)


def check(decision: Decision) -> None:
    """Hold a decision against everything that is true of every decision."""
    assert type(decision) is Decision
    assert isinstance(decision.handoff_id, str)
    assert decision.handoff_id
    written = decision.to_json().encode()
    read = json.loads(written, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    assert list(read) == FIELDS
    assert (read["allowed"], read["reasons"]) == (decision.allowed, decision.reasons)
    assert decision.reasons == list(dict.fromkeys(finding.code for finding in decision.findings))
    assert set(decision.reasons) <= set(REASONS) | OWN_CODES
    assert len(decision.findings) <= 100
    assert all(0 < len(finding.path) <= 200 for finding in decision.findings)
    blocks = any(finding.reaction is Reaction.BLOCK for finding in decision.findings)
    assert (decision.verdict is Verdict.BLOCKED) is blocks
    assert (decision.verdict is Verdict.ALLOWED) is not decision.findings
    if decision.skipped == ("contract",):
        assert decision.verdict is Verdict.ALLOWED
    elif decision.mode is Mode.ENFORCE:
        assert decision.allowed is (decision.verdict in (Verdict.ALLOWED, Verdict.WARNED))
        assert (decision.normalized_payload is not None) is (decision.allowed or decision.verdict == "held")
        assert blocks or decision.route != "other"
    else:
        assert decision.allowed is True
    if not blocks:
        assert decision.retryable is False


def inspect_everywhere(raw: object) -> None:
    """Inspect a value with and without expectations and context."""
    check(WATCHDOG.inspect(raw))
    check(WATCHDOG.inspect(raw, expected_source="executor", expected_target="reviewer", context=CONTEXT))
    check(WATCHDOG.inspect(raw, expected_source="executor", expected_target="auditor", context=CONTEXT))


def _cycle() -> dict[str, Any]:
    value: dict[str, Any] = handoff()
    value["payload"]["note"] = [value]
    return value


HOSTILE: dict[str, Callable[[], object]] = {
    "evil class": EvilClass,
    "evil attributes": EvilAttributes,
    "evil defaults": EvilDefaults,
    "evil comparison": EvilComparison,
    "evil text": lambda: EvilText("executor"),
    "evil json text": lambda: EvilText(json.dumps(handoff())),
    "lying text": lambda: LyingText("somebody else"),
    "evil integer": lambda: EvilInteger(7),
    "evil list": lambda: EvilList([1]),
    "evil dict": lambda: EvilDict(handoff()),
    **{f"mapping that breaks in {part}": lambda part=part: BrokenMapping(part)  # type: ignore[misc]
       for part in ("getitem", "iter", "len", "items", "keys")},
    "mapping that breaks without a name": lambda: BrokenMapping("keys", "items", fault=raise_nameless),
    "mapping that shifts": ShiftingMapping,
    "cycle": _cycle,
    "surrogate": lambda: "\ud83c",
    "huge integer": lambda: 10**5000,
    "nan": lambda: float("nan"),
    "infinity": lambda: float("-inf"),
    "class": lambda: EvilComparison,
    "nameless class": lambda: NamelessError,
    "nameless error": NamelessError,
    "generator": lambda: (item for item in [1]),
    "function": lambda: check,
    "memoryview": lambda: memoryview(b"{}"),
    "bytes": lambda: b"\xff\xfe",
    "range": lambda: range(10**9),
    "complex": lambda: 1j,
    "ellipsis": lambda: ...,
    "exception": lambda: ValueError("x"),
}  # fmt: skip

PLACES: dict[str, Callable[[Any], object]] = {
    "whole": lambda value: value,
    "payload": lambda value: handoff(payload=value),
    "payload value": lambda value: handoff(payload=payload(note=value)),
    "payload field": lambda value: handoff(payload=payload(order_id=value)),
    "nested": lambda value: handoff(payload=payload(note=[{"deep": (value, value)}])),
    "results": lambda value: handoff(source_agent="searcher", target_agent="planner", payload={"results": value}),
    **{name: lambda value, name=name: handoff(**{name: value}) for name in (*handoff(), "context_version", "attempt")},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_inspect_gives_a_decision_when_a_hostile_value_stands_anywhere(hostile: str, place: str) -> None:
    """No method of a foreign object can make the watchdog raise."""
    inspect_everywhere(PLACES[place](HOSTILE[hostile]()))


@pytest.mark.parametrize(
    "key",
    [EvilText("note"), LyingText("order_id"), 1, None, 1.5, (1,), b"x", "\udc97", ""],
    ids=["evil", "lying", "integer", "null", "float", "tuple", "bytes", "surrogate", "empty"],
)
@pytest.mark.parametrize("place", ["envelope", "payload", "note"])
def test_inspect_gives_a_decision_when_a_key_is_hostile(key: Any, place: str) -> None:
    """A key that is no text, no valid text or no honest text is a finding."""
    strange = EvilKeys([(key, 1)]) if isinstance(key, EvilText) else {key: 1}
    raw = {"envelope": strange, "payload": handoff(payload=strange), "note": handoff(payload=payload(note=strange))}

    inspect_everywhere(raw[place])


@pytest.mark.parametrize("container", [list, dict])
def test_inspect_gives_a_decision_when_a_value_is_a_hundred_thousand_deep(container: type) -> None:
    """Depth ends in a finding, never in the interpreter's stack."""
    value: Any = None
    for _ in range(100_000):
        value = [value] if container is list else {"a": value}

    inspect_everywhere(value)
    inspect_everywhere(handoff(payload=value))
    inspect_everywhere(handoff(payload=payload(note=value)))
    while value:
        value = value["a"] if isinstance(value, dict) else value[0]


SCRIPT = """
import os, resource
from support.hostile_values import (
    BrokenMapping,
    EvilAttributes,
    EvilClass,
    EvilComparison,
    EvilDefaults,
    EvilDict,
    EvilInteger,
    EvilKeys,
    EvilList,
    EvilText,
    LyingText,
    NamelessError,
    ShiftingMapping,
    raise_nameless,
)
from support.refund_handoffs import handoff, payload, refund_watchdog

resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
note = [1]
for _ in range({times}):
    note = {grown}
decision = refund_watchdog().inspect(handoff(payload=payload(note=note)))
print(decision.reasons, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(
    ("times", "grown", "reason"),
    [
        (300, "(note,)", "too_deep"),
        (1_000, "(note,)", "too_deep"),
        (100_000, "(note,)", "too_deep"),
        (100_000, "[(note,)]", "too_deep"),
        (60, "[note, note]", "too_large"),
        (60, "{'a': note, 'b': note}", "too_large"),
    ],
)
def test_inspect_leaves_the_process_alive_when_a_value_unfolds_without_end(times: int, grown: str, reason: str) -> None:
    """Endless depth or size would take the whole process down, not raise, so each of these has a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(times=times, grown=grown)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (0, f"['{reason}']\n")


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters())
    | st.text(alphabet=st.characters(categories=["Cs", "Lu", "Cc"]), max_size=5)
    | st.binary(max_size=8)
    | st.decimals()
    | st.datetimes()
    | st.uuids()
    | st.sampled_from(["ready", "completed", "failed", "executor", "reviewer", "auditor", "1", "2", "t-1", ""])
    | st.sampled_from([Mode.SHADOW, Verdict.HELD, object(), LyingText("t-1")])
)
KEYS = st.sampled_from([*handoff(), *payload(), "result", "error", "hits", "note", "id"]) | st.text(max_size=4)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers(), max_size=2)
        | st.dictionaries(st.integers() | st.none() | st.tuples(st.integers()), inner, max_size=2)
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(VALUES)
def test_inspect_gives_a_decision_when_the_value_is_arbitrary(value: object) -> None:
    """Any value gives a sound decision, alone and as payload."""
    inspect_everywhere(value)
    inspect_everywhere(handoff(payload=value))


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(st.dictionaries(st.sampled_from([*handoff(), "run_id", "attempt", "context_version"]), VALUES, max_size=4))
def test_inspect_gives_a_decision_when_envelope_fields_are_arbitrary(changes: dict[str, object]) -> None:
    """Any value in any field of the envelope gives a sound decision."""
    inspect_everywhere(handoff(**changes))


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(st.text() | st.binary())
def test_inspect_gives_a_decision_when_the_text_is_arbitrary(text: str | bytes) -> None:
    """Any text and any bytes give a sound decision."""
    inspect_everywhere(text)


@settings(max_examples=100, deadline=None, database=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
@given(VALUES, VALUES, VALUES)
def test_inspect_gives_a_decision_when_expectations_and_context_are_arbitrary(
    source: object, target: object, fact: object
) -> None:
    """Wrong arguments beside the handoff are answered as well."""
    context = HandoffContext(run_id=fact, task_id=fact, context_version=fact, handoff_id=fact)  # type: ignore[arg-type]

    check(WATCHDOG.inspect(handoff(), expected_source=source, expected_target=target, context=context))  # type: ignore[arg-type]


def damage(raw: Any, chance: random.Random) -> Any:
    """Return the handoff with one random place deleted, replaced, renamed, moved or doubled."""
    places: list[tuple[Any, Any]] = []
    stack = [raw]
    while stack:
        item = stack.pop()
        if isinstance(item, dict | list):
            keys = list(item) if isinstance(item, dict) else list(range(len(item)))
            places += [(item, key) for key in keys]
            stack += [item[key] for key in keys]
    if not places:
        return raw
    container, key = chance.choice(places)
    other, other_key = chance.choice(places)
    kind = chance.randrange(5)
    if kind == 0:
        del container[key]
    elif kind == 1:
        container[key] = chance.choice(REPLACEMENTS)()
    elif kind == 2 and isinstance(container, dict):
        container[chance.choice(["amout", "", "a.b", "\udc97", "x" * 500, "id"])] = container.pop(key)
    elif kind == 3:
        container[key] = json.loads(json.dumps(other[other_key], default=str, skipkeys=True))
    else:
        container[key] = [container[key], container[key]]
    return raw


REPLACEMENTS: list[Callable[[], object]] = [
    lambda: None, lambda: "", lambda: " ", lambda: [], dict, lambda: 0, lambda: -1, lambda: 1.5, lambda: True,
    lambda: "\ud83c", lambda: float("nan"), lambda: 2**70, lambda: "x" * 2000, lambda: {"id": None}, lambda: {1, 2},
    lambda: "completed", lambda: "failed", lambda: "auditor", lambda: "nobody", lambda: "2", lambda: 1, object,
]  # fmt: skip


SOAK_INPUTS = 200_000


@pytest.mark.soak
def test_inspect_gives_a_decision_when_valid_handoffs_are_damaged_at_random(soak_scale: float) -> None:
    """Up to four random damages to a fit handoff, as a dict and as text, whole and cut at a random place.

    A third of them meet a plain contract; the others meet contracts with every keyword, contracts without a class, and
    rules that raise, answer nonsense or name wild paths.
    """
    chance = random.Random(1842)
    plain = WATCHDOG
    rich = [rich_watchdog(), rich_watchdog(now=DAY - timedelta(seconds=1))]
    verdicts = dict.fromkeys(Verdict, 0)
    codes: set[str] = set()
    inputs = 0
    while inputs < SOAK_INPUTS * soak_scale:
        raw: Any
        if chance.random() < 0.3:
            watchdog, context = plain, CONTEXT
            raw = handoff(
                target_agent=chance.choice(["reviewer", "auditor"]),
                status=chance.choice(["ready", "completed", "failed"]),
                context_version=chance.choice([4, 5, 6]),
                payload=payload(
                    result="done", error="none", hits=[{"id": "a", "score": 0.5}], note={"steps": [1, [2]]}
                ),
            )
        else:
            watchdog, context = chance.choice(rich), RICH_CONTEXT
            raw = rich_handoff(
                chance.choice(list(TARGETS)),
                status=chance.choice(["ready", "completed", "completed", "failed"]),
                schema_version=chance.choice(["1", "1", 2]),
                produced_at=chance.choice(["2027-01-30T23:30:00Z", "2027-01-30T22:00:00+00:00", None]),
            )
            raw["payload"]["item_count"] = chance.choice([1, 1, 2, -1, 0, 3, 7, chance.randrange(2_000)])
        for _ in range(chance.choice([0, 0, 1, 1, 1, 2, 3, 4])):
            raw = damage(raw, chance)
        decision = watchdog.inspect(raw, context=context if chance.random() < 0.7 else None)
        check(decision)
        verdicts[decision.verdict] += 1
        codes.update(decision.reasons)
        inputs += 1
        try:
            text = json.dumps(raw)
        except TypeError:
            continue
        check(watchdog.inspect(text[: chance.randrange(len(text) + 1)]))
        check(watchdog.inspect(text))
        inputs += 2

    assert min(verdicts.values()) > 0
    assert codes >= {
        "answers_nonsense", "names_paths", "too_high", "check_failed", "missing_operation_id", "operation_unconfirmed",
        "not_ready", "empty_results", "merge_conflict", "missing_context", "low_confidence", "foreign_reference",
        "selected_not_in_candidates", "negative_count", "orphaned_tool_call", "orphaned_item", "stale_state",
        "stale_context", "deprecated_schema_version", "status_contradicts_result", "missing_handoff_id",
    }  # fmt: skip
