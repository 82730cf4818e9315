"""Contracts: class keywords, strictness, and the envelope around them."""

from __future__ import annotations

from typing import Any

import pytest

from handoffwatch import Contract, RegistrationError
from handoffwatch.handoffs.contract import Envelope, compile_contract, compile_envelope


class Plain(Contract):
    """A contract without keywords."""

    order_id: str


class Told(Contract, version=3, needs_results=True, identity="payload.order_id"):
    """A contract with all of them."""

    order_id: str
    results: list[str]


def test_compile_contract_has_the_defaults_when_no_keyword_is_given() -> None:
    """Version 1, no results needed, attempts belong together by task."""
    compiled = compile_contract(Plain)

    assert (compiled.version, compiled.options.needs_results, compiled.options.identity) == ("1", False, "task_id")
    assert compiled.fields == {"order_id"}


def test_compile_contract_has_the_keywords_when_they_are_given() -> None:
    """The version is kept as text, the identity as a path."""
    compiled = compile_contract(Told)

    assert (compiled.version, compiled.options.needs_results) == ("3", True)
    assert (compiled.options.identity, compiled.fields) == ("payload.order_id", {"order_id", "results"})


def test_compile_envelope_knows_no_version_when_no_contract_is_known() -> None:
    """The bare envelope judges what no contract is known for."""
    compiled = compile_envelope()

    assert (compiled.version, compiled.options.needs_results, compiled.options.identity) == ("other", False, "task_id")
    assert compiled.fields == frozenset()


@pytest.mark.parametrize(
    ("version", "kind"), [("", "str"), (" ", "str"), ("\n", "str"), (True, "bool"), (False, "bool")]
)
def test_contract_is_refused_when_its_version_says_nothing(version: Any, kind: str) -> None:
    """A blank version or a truth value is refused where the class is written."""
    with pytest.raises(RegistrationError) as refused:
        type(Contract)("Blank", (Contract,), {"__module__": __name__}, version=version)

    assert (
        refused.value.message == f"contract Blank: version: must be a text of 1 to 100 printable characters, got {kind}"
    )
    assert refused.value.hint == 'write `class Blank(Contract, version="1")`'


@pytest.mark.parametrize(
    "keywords",
    [{"version": 1.5}, {"version": "other"}, {"version": " 2"}, {"needs_results": "no"},
     {"identity": ""}, {"identity": 7}],
    ids=str,
)  # fmt: skip
def test_contract_is_refused_when_a_keyword_is_outside_its_set(keywords: dict[str, Any]) -> None:
    """Every class keyword is held against its set where the class is written."""
    with pytest.raises(RegistrationError):
        type(Contract)("Wrong", (Contract,), {"__module__": __name__}, **keywords)


def test_envelope_has_the_documented_fields_when_listed() -> None:
    """Nine fields are enough, and five are filled from the context."""
    required = [name for name, field in Envelope.model_fields.items() if field.is_required()]

    assert required == [
        "handoff_id", "task_id", "source_agent", "target_agent", "task_type", "status", "schema_version", "payload",
    ]  # fmt: skip
    assert list(Envelope.model_fields)[len(required) :] == [
        "metadata", "run_id", "context_version", "attempt", "produced_at", "finish_reason",
    ]  # fmt: skip


def test_contract_is_strict_when_it_is_used_as_a_model() -> None:
    """A contract judges as strictly when a program fills it itself."""
    with pytest.raises(ValueError, match="order_id"):
        Plain(order_id=4417)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="extra"):
        Plain(order_id="4417", extra=1)  # type: ignore[call-arg]
