"""Reading stored evidence for a person: whatever stands in it, every line can be printed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.cli.case_lines import case_fields, case_row
from handoffwatch.cli.evidence import all_findings, findings_table, named_blocks, record_blocks
from handoffwatch.cli.terminal import fields, table
from handoffwatch.ledger import Case
from handoffwatch.vocabulary import CaseKind, Criticality

NAMES = ["attempts", "attempt", "sent", "decision", "findings", "verdict", "path", "answer", "delivered", "reasons"]
TEXTS = st.text() | st.sampled_from(
    [*NAMES, "guard", "check", "blocked", "$", "payload.a", "\x1b[2J\u202e\n", "\ud800"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def case(*, record: Any, **facts: Any) -> Case:
    """Return a blocked case with this record and these facts."""
    return Case("c1", CaseKind.BLOCKED, "s-1", Criticality.ROUTINE, "r-1", facts, 0.0, None, None, record=record)


def found_at(path: str, sent: Any) -> list[str]:
    """Return the lines of what a person is shown to have stood at a path of what was sent."""
    finding = {"path": path, "code": "c", "reaction": "block", "sentence": "s"}
    attempt = {"attempt": 1, "sent": sent, "decision": {"verdict": "blocked", "findings": [finding]}}
    ((_, *lines),) = named_blocks(case(record={"attempts": [attempt]}))
    return [line.removeprefix("  ") for line in lines if not line.startswith(("  code", "  rule"))]


@given(record=st.dictionaries(TEXTS, JSON, max_size=4), facts=st.dictionaries(TEXTS, JSON, max_size=3))
def test_evidence_is_printable_when_it_holds_anything(record: dict[str, Any], facts: dict[str, Any]) -> None:
    """Another version may have written it, and an agent stands behind its values."""
    stored = Case("c1", CaseKind.HELD, "s-1", Criticality.ROUTINE, "r-1", facts, 0.0, None, None, record=record)
    blocks = [
        fields(case_fields(stored)),
        table(["A"] * 10, [case_row(stored)]),
        findings_table(all_findings(stored)),
        *named_blocks(stored),
        *record_blocks(stored),
    ]
    assert all(line.isprintable() for block in blocks for line in block)


@pytest.mark.parametrize(
    ("path", "sent", "lines"),
    [
        ("payload.a", {"payload": {"a": "x"}}, ['found  "x"']),
        ("payload.a", {"payload": {"a": None}}, ["found  null"]),
        ("payload.a", {"payload": {"a": ""}}, ['found  ""']),
        ("payload.a", {"payload": {}}, ["found  (nothing is there)"]),
        ("payload.a", {}, ["found  (nothing is there)"]),
        ("payload.a.1", {"payload": {"a": [1, 2]}}, ["found  2"]),
        ("payload.a.b", {"payload": {"a": "[redacted]"}},
         ['found  "[redacted]"', "       (that is all there is at payload.a)"]),
        ("payload.a", {"payload": None}, ["found  null", "       (that is all there is at payload)"]),
        ("payload.a", '{"payload": {"a": 7}}', ["found  7"]),
        ("payload.a", '{"payload": {"a', ["found  (what was sent cannot be read)"]),
        ("payload.a", "[left out: the evidence would be too large]", ["found  (what was sent cannot be read)"]),
        ("$", {"payload": {}}, ["found  (the whole handoff)"]),
        ("payload.a", {"payload": {"a": {"b": [1]}}},
         ["found  {", '         "b": [', "           1", "         ]", "       }"]),
    ],
)  # fmt: skip
def test_named_field_shows_what_stood_there(path: str, sent: Any, lines: list[str]) -> None:
    """Missing, null and empty are three things, and what redaction hides is none of them."""
    assert found_at(path, sent) == lines


def test_named_field_is_cut_when_it_is_long() -> None:
    """All of it stands below, where everything that was sent is."""
    assert found_at("a", {"a": "x" * 1_000}) == [f'found  "{"x" * 399} …']
    assert len(found_at("a", {"a": list(range(100))})) == 21
    assert found_at("a", {"a": list(range(100))})[-1] == "       …"


def test_named_fields_are_those_of_the_last_block_when_a_later_attempt_passed() -> None:
    """What was let through in the end is not what a person is asked about."""
    attempts = [
        {"attempt": number, "sent": {"a": number}, "decision": {"verdict": verdict, "findings": [{"path": "a"}]}}
        for number, verdict in enumerate(("blocked", "blocked", "warned"), start=1)
    ]
    (block,) = named_blocks(case(record={"attempts": attempts}))
    assert block == ["a", "  found  2", "  code   -, -", "  rule   -"]


def test_record_shows_what_a_critic_said_below_its_attempt() -> None:
    """What else an attempt keeps stands under its own name."""
    attempt = {"attempt": 1, "sent": "prose", "decision": {"verdict": "warned"}, "critic": {"concern": "twice?"}}
    assert record_blocks(case(record={"attempts": [attempt], "delivered": {"a": 1}})) == [
        ["sent in attempt 1, warned", "  prose"],
        ["critic of attempt 1", "  {", '    "concern": "twice?"', "  }"],
        ["delivered", "  {", '    "a": 1', "  }"],
    ]
