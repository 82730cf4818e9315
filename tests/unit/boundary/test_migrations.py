"""Migrations: what a step between two schema versions may do, and what ends it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.boundary.migrations import Migrated, Migrations
from handoffwatch.decision import Finding
from handoffwatch.errors import RegistrationError
from handoffwatch.values.canonical import CanonicalRules
from handoffwatch.vocabulary import Reaction, Severity, Stage

STATE = {"schema_version": 1, "task": {"id": "t-1", "goal": "refund", "note": None}, "steps": [{"n": 1}, {"n": 2}]}


def _next(state: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {**state, "schema_version": 2, **changed}


def migrated(function: Callable[[Any], Any], *, of: object = STATE, **conditions: Any) -> Migrated:
    """Return what a function between versions 1 and 2 makes of a state; the state stays as it was."""
    migrations = Migrations()
    migrations.add("1", "2", function, **conditions)
    return migrations.migrate(of, "1", "2")


def said(result: Migrated) -> list[tuple[str, str]]:
    """Return path and sentence of each finding."""
    assert (result.state is None) == bool(result.findings)
    assert {finding.code for finding in result.findings} <= {"migration_failed"}
    return [(finding.path, finding.sentence) for finding in result.findings]


def test_migration_returns_the_state_of_the_next_version_when_all_holds() -> None:
    """It shares nothing with the state that was given, which stays as it was."""
    before = copy.deepcopy(STATE)
    result = migrated(_next, of=before, keeps=["task", "steps.*.n"])
    assert result == Migrated({**STATE, "schema_version": 2}, ())
    result.state["task"]["id"] = "changed"
    result.state["steps"].clear()
    assert before == STATE


def test_migration_failed_is_a_finding_that_no_sender_can_repair() -> None:
    """It blocks, in the stage in which a state is read."""
    sentence = "the migration from 1 to 2 raised KeyError"
    assert migrated(lambda state: state["lost"]).findings == (
        Finding(
            "migration_failed", "$", sentence, Reaction.BLOCK, Severity.ERROR, retryable=False, stage=Stage.DESERIALIZE
        ),
    )


def _mutating(state: dict[str, Any]) -> dict[str, Any]:
    state["schema_version"] = 2
    return state


def _lost(path: str) -> Callable[[Any], Any]:
    *above, last = path.split(".")

    def function(state: Any) -> Any:
        result = copy.deepcopy(_next(state))
        here: Any = result
        for key in above:
            here = here[int(key) if isinstance(here, list) else key]
        del here[last]
        return result

    return function


BY = "the migration from 1 to 2"


@pytest.mark.parametrize(
    ("function", "conditions", "expected"),
    [
        (_mutating, {}, [("$", f"{BY} must not change the state that it is given")]),
        (lambda state: None, {}, [("schema_version", "schema_version must be 2")]),
        (lambda state: {**state}, {}, [("schema_version", "schema_version must be 2")]),
        (lambda state: _next(state, schema_version=2.0), {}, [("schema_version", "schema_version must be 2")]),
        (lambda state: _next(state, schema_version=True), {}, [("schema_version", "schema_version must be 2")]),
        (
            lambda state: _next(state, x=object()),
            {"fills": ["x"]},
            [("x", "x: a value has no JSON form (found object)")],
        ),
        (_lost("task.goal"), {"keeps": ["task.goal"]}, [("task.goal", f"task.goal must be kept by {BY}")]),
        (_lost("task.goal"), {"keeps": ["task"]}, [("task.goal", f"task.goal must be kept by {BY}")]),
        (
            _lost("task.note"),
            {"keeps": ["task"], "fills": ["task"]},
            [("task.note", f"task.note must be kept by {BY}")],
        ),
        (_lost("steps.1.n"), {"keeps": ["steps.*.n"]}, [("steps.1.n", f"steps.1.n must be kept by {BY}")]),
        (_lost("task.goal"), {}, []),
        (lambda state: _next(state, steps=[]), {"keeps": ["steps"]}, [("steps", f"steps must be kept by {BY}")]),
        (
            lambda state: _next(state, task={**state["task"], "note": ""}),
            {},
            [("task.note", f"task.note must not be filled in by {BY}")],
        ),
        (
            lambda state: _next(state, task={**state["task"], "note": ""}),
            {"keeps": ["task"]},
            [("task.note", f"task.note must be kept by {BY}")],
        ),
        (lambda state: _next(state, task={**state["task"], "note": ""}), {"fills": ["task.note"]}, []),
        (
            lambda state: _next(state, constraints=[]),
            {},
            [("constraints", f"constraints must not be filled in by {BY}")],
        ),
        (lambda state: _next(state, constraints=[]), {"fills": ["constraints"]}, []),
        (lambda state: _next(state, constraints={"max": {"a": 1}}), {"fills": ["constraints.max.a"]}, []),
        (
            lambda state: _next(state, constraints={"max": {"a": 1}, "min": 0}),
            {"fills": ["constraints.max"]},
            [("constraints", f"constraints must not be filled in by {BY}")],
        ),
        (
            lambda state: _next(state, steps=[*state["steps"], {"n": 3}]),
            {"keeps": ["steps.*.n"]},
            [("steps.2.n", f"steps.2.n must be kept by {BY}"), ("steps.2", f"steps.2 must not be filled in by {BY}")],
        ),
    ],
)
def test_migration_fails_when_a_step_breaks_a_condition(
    function: Callable[[Any], Any], conditions: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    """Each path is named, and no value; what no condition names may be lost."""
    assert said(migrated(function, **conditions)) == expected


def _renamed(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state with its task moved into a new object, and the number of a step under another name."""
    rest = {key: value for key, value in state.items() if key != "task"}
    return _next(
        rest, work={"order": {"task": state["task"]}}, steps=[{"number": each["n"]} for each in state["steps"]]
    )


MOVES = {"task": "work.order.task", "steps.*.n": "steps.*.number"}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (_renamed, []),
        (
            lambda state: {**_renamed(state), "work": {"order": {"task": {**state["task"], "goal": "x"}}}},
            [("work.order.task", f"work.order.task must have what task had before {BY}")],
        ),
        (
            lambda state: {**_renamed(state), "steps": [{"number": 1}]},
            [("steps.*.number", f"steps.*.number must have what steps.*.n had before {BY}")],
        ),
        (
            lambda state: {**_renamed(state), "steps": [{"number": 2}, {"number": 1}]},
            [("steps.*.number", f"steps.*.number must have what steps.*.n had before {BY}")],
        ),
        (
            lambda state: {**_renamed(state), "work": {"order": {"task": state["task"], "more": 1}}},
            [("work", f"work must not be filled in by {BY}")],
        ),
    ],
)
def test_migration_moves_what_a_path_holds_to_another(
    function: Callable[[Any], Any], expected: list[tuple[str, str]]
) -> None:
    """All that stood at the old path stands at the new one, in its order."""
    assert said(migrated(function, moves=MOVES)) == expected


@pytest.mark.parametrize(
    ("of", "conditions", "expected"),
    [
        (
            {"schema_version": "1"},
            {"keeps": ["task.goal"]},
            [("task.goal", f"task.goal must be there before {BY}")],
        ),
        ({"schema_version": 1}, {"moves": {"a": "b"}}, [("a", f"a must be there before {BY}")]),
        (STATE, {"source": lambda state: state["task"] == STATE["task"]}, None),
        (STATE, {"source": lambda state: ["task.goal"]}, [("task.goal", "task.goal must be as the source check asks")]),
        (STATE, {"source": lambda state: False}, [("$", "$ must be as the source check asks")]),
        (STATE, {"source": lambda state: state["lost"]}, [("$", "the source check raised KeyError")]),
        (STATE, {"source": lambda state: state.clear()}, [("$", "the source check raised TypeError")]),
    ],
)
def test_migration_checks_the_source_before_the_function_is_called(
    of: object, conditions: dict[str, Any], expected: list[tuple[str, str]] | None
) -> None:
    """A source that is none of its version is never given to the function; the check has a copy of its own."""
    calls: list[object] = []
    result = migrated(lambda state: calls.append(state) or _next(state), of=of, **conditions)
    assert [(path, said.replace(" of migration 1 to 2", "")) for path, said in said(result)] == (expected or [])
    assert len(calls) == (1 if expected is None else 0)


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (lambda before, after: after == {**before, "schema_version": 2}, []),
        (lambda before, after: before.clear() or after.clear() or True, []),
        (lambda before, after: ["task.id"], [("task.id", "task.id must be as the check of migration 1 to 2 asks")]),
        (lambda before, after: False, [("$", "$ must be as the check of migration 1 to 2 asks")]),
        (lambda before, after: 1 / 0, [("$", "the check of migration 1 to 2 raised ZeroDivisionError")]),
    ],
)
def test_migration_checks_the_result_with_its_own_condition(
    check: Callable[[Any, Any], Any], expected: list[tuple[str, str]]
) -> None:
    """The check has copies of its own, so it can change nothing."""
    result = migrated(_next, check=check)
    assert said(result) == expected
    assert expected or result.state == _next(STATE)


def _line() -> Migrations:
    migrations = Migrations(version_path="meta.v")
    for version in ("1.0", "1.1", "2.0"):
        after = {"1.0": "1.1", "1.1": "2.0", "2.0": "2.1"}[version]
        migrations.add(version, after, lambda state, after=after: {**state, "meta": {"v": after}}, keeps=["x"])
    return migrations


LEADS = "meta.v must be one that leads to the wanted version"


@pytest.mark.parametrize(
    ("said_version", "from_version", "to_version", "expected"),
    [
        ("1.0", "1.0", "2.1", []),
        ("1.1", "1.1", "2.0", []),
        ("2.1", "2.1", "2.1", []),
        ("1.0", "1.0", "999", [("meta.v", LEADS)]),
        ("999", "999", "2.1", [("meta.v", LEADS)]),
        ("999", "999", "999", [("meta.v", LEADS)]),
        ("2.0", "2.0", "1.1", [("meta.v", LEADS)]),
        ("1.1", "1.0", "2.0", [("meta.v", "meta.v must be 1.0")]),
        (1.0, "1.0", "2.0", [("meta.v", "meta.v must be 1.0")]),
        (None, "1.0", "2.0", [("meta.v", "meta.v must be 1.0")]),
        ({}, "1.0", "2.0", [("meta.v", "meta.v must be 1.0")]),
    ],
)
def test_migration_goes_from_version_to_version_up_to_the_wanted_one(
    said_version: object, from_version: str, to_version: str, expected: list[tuple[str, str]]
) -> None:
    """Unknown, future and older versions are refused, and so is a state that says another one than it should."""
    result = _line().migrate({"x": 1, "meta": {"v": said_version}}, from_version, to_version)
    assert said(result) == expected
    assert expected or result.state == {"x": 1, "meta": {"v": to_version}}


def test_migration_stops_at_the_first_step_that_fails() -> None:
    """The steps after it are not taken."""
    migrations = Migrations()
    migrations.add("1", "2", _next)
    migrations.add("2", "3", lambda state: {**state, "schema_version": "4"})
    migrations.add("3", "4", lambda state: 1 / 0)
    assert said(migrations.migrate(STATE, "1", "4")) == [("schema_version", "schema_version must be 3")]


@pytest.mark.parametrize(
    ("state", "path", "found"),
    [
        (object(), "$", "object"),
        ([1, float("nan")], "1", "float"),
        ({"schema_version": 1, "x": {1, object()}}, "x.*", "object"),
    ],
)
def test_migration_refuses_a_state_when_it_has_no_canonical_form(state: object, path: str, found: str) -> None:
    """The place and the kind of value are named."""
    ((where, sentence),) = said(migrated(_next, of=state))
    assert (where, sentence.endswith(f"(found {found})")) == (path, True)


def test_migration_keeps_types_and_leaves_local_values_alone() -> None:
    """The function gets a copy, not the JSON of the state; what the rules ignore is not compared."""
    state = {"schema_version": "1", "due": datetime(2031, 5, 6, tzinfo=UTC), "sum": Decimal("1.10"), "cache": {}}
    migrations = Migrations(rules=CanonicalRules(ignored=("cache",)))
    migrations.add("1", "2", lambda given: _next(given, cache={"a": object()}), keeps=["due", "sum"])
    result = migrations.migrate(state, "1", "2")
    assert result.findings == ()
    assert (result.state["due"], str(result.state["sum"])) == (state["due"], "1.10")
    migrations = Migrations()
    migrations.add("1", "2", lambda given: _next(given, due=given["due"].isoformat()), keeps=["due"])
    assert said(migrations.migrate(state, "1", "2")) == [("due", f"due must be kept by {BY}")]


class _Uncopied(dict[str, Any]):
    def __deepcopy__(self, memo: object) -> Any:
        raise RuntimeError("secret")


def test_migration_refuses_a_state_when_it_cannot_be_copied() -> None:
    """What it raised is named by its class."""
    sentence = "the state must be one that can be copied: it raised RuntimeError"
    assert said(migrated(_next, of=_Uncopied(schema_version=1))) == [("$", sentence)]


@given(
    st.dictionaries(st.sampled_from("abc"), st.none() | st.just("") | st.integers() | st.just([])),
    st.sampled_from("abc"),
)
def test_migration_never_loses_or_fills_a_kept_field(fields: dict[str, Any], name: str) -> None:
    """Losing, emptying or filling it is named, whatever stands there and beside it."""
    state = {"schema_version": 1, **fields}
    lost = migrated(
        lambda given: {key: value for key, value in _next(given).items() if key != name}, of=state, keeps=[name]
    )
    filled = migrated(lambda given: _next(given, **{name: "filled"}), of=state)
    assert [finding.path for finding in lost.findings] == [name]
    may_fill = fields.get(name) not in (None, "", [])
    assert [finding.path for finding in filled.findings] == ([] if may_fill else [name])


@pytest.mark.parametrize(
    ("versions", "conditions", "message"),
    [
        (("1", "2"), {}, "migration 1 to 2: versions: must make one line with those of the other migrations"),
        (("1", "3"), {}, "migration 1 to 3: versions: must make one line with those of the other migrations"),
        (("0", "2"), {}, "migration 0 to 2: versions: must make one line with those of the other migrations"),
        (("2", "1"), {}, "migration 2 to 1: versions: must make one line with those of the other migrations"),
        (("5", "5"), {}, "migration 5 to 5: versions: must make one line with those of the other migrations"),
        ((2, "3"), {}, "migration: version: must be a text of 1 to 100 printable characters, got int"),
        (("2", ""), {}, "migration: version: must be a text of 1 to 100 printable characters, got str"),
        (
            ("2", "3"),
            {"keeps": "task"},
            "migration 2 to 3: keeps: must be paths, keys and indices with dots between them",
        ),
        (
            ("2", "3"),
            {"moves": {"a": "b..c"}},
            "migration 2 to 3: moves: must be paths, keys and indices with dots between them",
        ),
    ],
)
def test_migration_is_refused_when_it_is_declared_wrongly(
    versions: tuple[Any, Any], conditions: dict[str, Any], message: str
) -> None:
    """At registration, with what to type instead."""
    migrations = Migrations()
    migrations.add("1", "2", _next)
    with pytest.raises(RegistrationError) as raised:
        migrations.add(*versions, _next, **conditions)
    assert raised.value.message == message
    assert raised.value.hint
