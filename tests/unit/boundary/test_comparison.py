"""The comparison: what left against what arrived, by the categories of a policy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from handoffwatch.boundary.comparison import PLACES_MAX, Comparison, capture, compare
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.transforms import Transform, facts_kept
from handoffwatch.decision import Finding
from handoffwatch.reasons import REASONS
from handoffwatch.vocabulary import Reaction, Severity, Stage
from support.crossings import POLICY, altered, crossing, policy, said, state


def _task_emptied(there: dict[str, Any]) -> None:
    there["task"]["constraints"] = []


def test_comparison_is_empty_when_the_state_survived() -> None:
    """Equal states have no finding and no pattern."""
    assert crossing(state(), altered(lambda there: None)) == Comparison((), ())
    assert crossing(state(), state()).diverged == ()


@pytest.mark.parametrize(
    ("change", "expected", "sentence"),
    [
        (
            lambda there: there["task"].pop("constraints"),
            ("value_missing", "task.constraints", "task.constraints"),
            "task.constraints must arrive as it left, and is not there",
        ),
        (
            _task_emptied,
            ("value_changed", "task.constraints", "task.constraints"),
            "task.constraints must have the value that it had, and is an empty list",
        ),
        (
            lambda there: there["task"].update(goal=None),
            ("type_changed", "task.goal", "task.goal"),
            "task.goal must be text as before, and is null",
        ),
        (
            lambda there: there.update(handoff_id="h-1843"),
            ("value_changed", "handoff_id", "handoff_id"),
            "handoff_id must have the value that it had",
        ),
        (
            lambda there: there["artifacts"][0].update(revision=2),
            ("value_changed", "artifacts.0.revision", "artifacts"),
            "artifacts.0.revision must have the value that it had",
        ),
        (
            lambda there: there["artifacts"][0].update(revision=3.0),
            ("type_changed", "artifacts.0.revision", "artifacts"),
            "artifacts.0.revision must be an integer as before, and is a number",
        ),
        (
            lambda there: there["artifacts"][0].update(size=12),
            ("value_added", "artifacts.0.size", "artifacts"),
            "artifacts.0.size must not be there: it was not sent",
        ),
        (
            lambda there: there["task"]["constraints"].reverse(),
            ("order_changed", "task.constraints", "task.constraints"),
            "task.constraints must keep the order that it had",
        ),
        (
            lambda there: there.pop("note"),
            ("rest_changed", "note", "**"),
            "note must arrive as it left, and is not there",
        ),
        (
            lambda there: there["task"].update(owner=None),
            ("rest_changed", "task.owner", "**"),
            "task.owner must not be there: it was not sent",
        ),
        (
            lambda there: there.update(schema_version=2),
            ("value_changed", "schema_version", "schema_version"),
            "schema_version must have the value that it had",
        ),
        (
            lambda there: there.update(schema_version="1"),
            ("type_changed", "schema_version", "schema_version"),
            "schema_version must be an integer as before, and is text",
        ),
    ],
)
def test_comparison_names_code_path_and_pattern_when_one_thing_changed(
    change: Callable[[dict[str, Any]], object], expected: tuple[str, str, str], sentence: str
) -> None:
    """A readable finding that blocks, at the stage of validation, which no sender can repair by trying again."""
    comparison = crossing(state(), altered(change))

    code, path, pattern = expected
    assert comparison == Comparison(
        (Finding(code, path, sentence, Reaction.BLOCK, Severity.ERROR, False, Stage.VALIDATE),), (pattern,)
    )
    assert comparison.diverged == (pattern,)


def test_comparison_puts_exact_paths_first_when_much_has_changed() -> None:
    """The order is that of the policy, then the rest in the order of its keys, then what is local."""
    after = {"schema_version": 1, "task": {"goal": 3}, "artifacts": [], "x": 1, "created_at": 5}

    assert said(crossing(state(), after)) == [
        ("value_missing", "handoff_id", "handoff_id"),
        ("value_missing", "task.id", "task.id"),
        ("type_changed", "task.goal", "task.goal"),
        ("value_missing", "task.constraints", "task.constraints"),
        ("value_changed", "artifacts", "artifacts"),
        ("value_missing", "decisions", "decisions"),
        ("rest_changed", "note", "**"),
        ("rest_changed", "x", "**"),
        ("value_added", "created_at", "created_at"),
    ]


def test_comparison_finds_a_path_when_it_is_on_neither_side() -> None:
    """Equal states that lack an exact path are not good: it was lost before."""
    both = altered(lambda there: there["task"].pop("goal"))

    comparison = crossing(both, both)

    assert said(comparison) == [("value_missing", "task.goal", "task.goal")]
    assert comparison.findings[0].sentence == "task.goal must be there, and is on neither side"


def test_comparison_finds_the_schema_version_when_no_state_has_one() -> None:
    """It is exact without being named."""
    assert said(crossing({"a": 1}, {"a": 1}, BoundaryPolicy())) == [
        ("value_missing", "schema_version", "schema_version")
    ]


@pytest.mark.parametrize(
    ("version", "asked", "expected"),
    [
        (1, "1", []),
        ("1", "1", []),
        (1, None, []),
        ({"odd": 1}, "1", [("unknown_schema_version", "schema_version", "schema_version")]),
        ({"odd": 1}, None, []),
        (2, "1", [("unknown_schema_version", "schema_version", "schema_version")]),
        ("1.0", "1", [("unknown_schema_version", "schema_version", "schema_version")]),
    ],
)
def test_comparison_refuses_a_state_when_its_version_is_not_that_of_the_policy(
    version: object, asked: str | None, expected: list[tuple[str, str, str]]
) -> None:
    """1 and "1" are one version; another one is a finding about the state that left."""
    comparison = crossing(state(schema_version=version), state(schema_version=version), policy(schema_version=asked))

    assert said(comparison) == expected
    assert [finding.stage for finding in comparison.findings] == [Stage.CAPTURE_BEFORE] * len(expected)


@pytest.mark.parametrize("side", ["before", "after", "both"])
def test_comparison_warns_when_local_state_reached_the_far_side(side: str) -> None:
    """What is local may be anything, is never compared, and should have stayed behind."""
    local = state(created_at=object(), local_cache={"a": lambda: 1})
    nested = altered(lambda there: there["task"].update(runtime_metrics=1.5))
    before, after = (local if side != "after" else state(), nested if side != "before" else state())

    comparison = crossing(before, after)

    if side == "before":
        assert comparison == Comparison((), ())
    else:
        assert comparison.findings == (
            Finding(
                "value_added", "task.runtime_metrics", "task.runtime_metrics is local and must stay behind",
                Reaction.WARN, Severity.WARNING, False, Stage.CAPTURE_AFTER,
            ),
        )  # fmt: skip
        assert comparison.patterns == ("runtime_metrics",)
    assert comparison.diverged == ()


@pytest.mark.parametrize(
    ("ignored", "place"),
    [
        (("steps.*.took_s",), "steps.1.took_s"),
        (("**.took_s",), "steps.1.took_s"),
        (("other", "took_s"), "steps.1.took_s"),
        (("steps.1",), "steps.1"),
    ],
)
def test_comparison_names_the_pattern_when_a_local_path_was_found(ignored: tuple[str, ...], place: str) -> None:
    """The warning says which line of the policy it comes from."""
    after = state(steps=[{}, {"took_s": 1.5}])

    comparison = crossing(state(steps=[{}, {}][: 2 - place.endswith("1")]), after, policy(ignore_paths=ignored))

    assert said(comparison) == [("value_added", place, ignored[-1])]


def test_comparison_stops_at_what_could_not_be_captured_when_a_side_has_faults() -> None:
    """Nothing is compared then; each fault has its stage, path and type name."""
    before = state(client=object())
    after = state(share=float("nan"), note="x")

    comparison = crossing(before, after)

    assert comparison.findings == (
        Finding(
            "not_serialisable", "client", "client: a value has no JSON form (found object)",
            retryable=False, stage=Stage.CAPTURE_BEFORE,
        ),
        Finding(
            "non_finite_number", "share", "share: a number is NaN or infinite (found float)",
            retryable=False, stage=Stage.CAPTURE_AFTER,
        ),
    )  # fmt: skip
    assert comparison.diverged == ("**",)


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        (lambda there: there["task"].update(goal=object()), "task.goal"),
        (lambda there: there["artifacts"][0].update(revision=object()), "artifacts"),
        (lambda there: there["task"].update(owner=object()), "**"),
    ],
)
def test_comparison_names_the_exact_path_when_it_is_what_could_not_be_captured(
    change: Callable[[dict[str, Any]], object], pattern: str
) -> None:
    """A fault below an exact path breaks that path."""
    assert crossing(state(), altered(change)).patterns == (pattern,)


def test_comparison_blocks_when_both_sides_could_not_be_captured_alike() -> None:
    """Two states without a form are not equal states."""
    before = after = state(client=object())

    assert [finding.code for finding in crossing(before, after).findings] == ["not_serialisable"]


@pytest.mark.parametrize("there", [None, [], "state", 7, [state()]], ids=str)
def test_comparison_names_all_exact_paths_when_the_state_is_no_object(there: object) -> None:
    """What arrived instead of the state is named too."""
    paths = [path for _, path, _ in said(crossing(state(), there))]

    assert paths == ["schema_version", *POLICY.exact_paths, "$"]
    assert said(crossing(there, there))[0] == ("value_missing", "schema_version", "schema_version")


SETS = policy(exact_paths=("tags", "log"), sets=("tags",), times=("log.*.at",), non_finite=("score",))


def test_comparison_obeys_sets_times_and_odd_numbers_when_the_policy_declares_them() -> None:
    """Their paths say what a list, a text and a number mean there."""
    before = {"schema_version": 1, "tags": {"b", "a"}, "log": [{"at": datetime(2026, 1, 1, tzinfo=UTC)}],
              "score": float("nan")}  # fmt: skip
    after = {"schema_version": 1, "tags": ["a", "b"], "log": [{"at": "2026-01-01T00:00:00+00:00"}],
             "score": float("nan")}  # fmt: skip

    assert crossing(before, after, SETS) == Comparison((), ())
    assert said(crossing(before, {**after, "tags": ["a", "c"]}, SETS)) == [("value_changed", "tags.1", "tags")]
    assert said(crossing(before, {**after, "log": [{"at": "2026-01-01T00:00:00"}]}, SETS)) == [
        ("value_changed", "log.0.at", "log")
    ]


def test_comparison_names_twenty_places_of_each_pattern_when_everything_changed() -> None:
    """One long list does not hide what else was lost."""
    before = {"schema_version": 1, "a": list(range(100)), "b": 1, "c": list(range(100))}
    after = {"schema_version": 1, "a": list(range(1, 101, 1))[::2] * 2, "b": 2, "c": [-1] * 100}

    found = said(crossing(before, after, policy(exact_paths=("a", "b"))))

    assert [pattern for _, _, pattern in found] == ["a"] * PLACES_MAX + ["b"] + ["**"] * PLACES_MAX


WILD = policy(exact_paths=("artifacts.*.id", "**.sha256", "decisions"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda there: None, []),
        (lambda there: there["artifacts"][0].pop("id"), [("value_missing", "artifacts.0.id", "artifacts.*.id")]),
        (lambda there: there["artifacts"][0].update(sha256=""), [("value_changed", "artifacts.0.sha256", "**.sha256")]),
        (
            lambda there: there["artifacts"].clear(),
            [
                ("value_missing", "artifacts.0.id", "artifacts.*.id"),
                ("value_missing", "artifacts.0.sha256", "**.sha256"),
                ("rest_changed", "artifacts.0", "**"),
            ],
        ),
        (lambda there: there["artifacts"][0].update(revision=9), [("rest_changed", "artifacts.0.revision", "**")]),
    ],
)  # fmt: skip
def test_comparison_follows_patterns_to_each_place_when_they_have_stars(
    change: Callable[[dict[str, Any]], object], expected: list[tuple[str, str, str]]
) -> None:
    """The finding has the place, the metric's label the pattern."""
    assert said(crossing(state(), altered(change), WILD)) == expected


def test_comparison_asks_nothing_of_local_state_when_a_star_would_lead_there() -> None:
    """`*.id` does not ask for the id of what is ignored."""
    made = policy(exact_paths=("*.id",), ignore_paths=("local_cache",))
    both = {"schema_version": {"id": 1}, "task": {"id": 2}}

    assert crossing({**both, "local_cache": {}}, both, made) == Comparison((), ())


def test_comparison_names_a_place_once_when_two_patterns_lead_there() -> None:
    """The first pattern of the policy has it."""
    made = policy(exact_paths=("task", "task.goal", "**.goal"))

    assert said(crossing(state(), altered(lambda there: there["task"].update(goal="g")), made)) == [
        ("value_changed", "task.goal", "task")
    ]


def _summarised(there: dict[str, Any]) -> None:
    there["history"] = {"summary": "…", "facts": ["order 4417"]}


HISTORY = [{"text": "hello", "facts": ["order 4417"]}, {"text": "bye", "facts": []}]
SUMMARY = policy(transforms={"history": Transform("summary", facts_kept("*.facts.*", "facts.*"))})


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (HISTORY, []),
        ({"summary": "…", "facts": ["order 4417"]}, []),
        ({"summary": "…", "facts": []}, [("value_changed", "history.0.facts.0", "history")]),
        ("…", [("value_changed", "history.0.facts.0", "history")]),
        (None, [("value_changed", "history.0.facts.0", "history")]),
    ],
)
def test_comparison_takes_what_a_transform_made_when_its_post_condition_holds(
    history: object, expected: list[tuple[str, str, str]]
) -> None:
    """A history may become a summary that keeps the declared facts, and may stay as it is."""
    assert said(crossing(state(history=HISTORY), state(history=history), SUMMARY)) == expected


def test_comparison_finds_a_transformed_path_when_it_was_lost_or_is_new() -> None:
    """A transform says what may become of a value, not that it may vanish; on neither side it is not asked for."""
    assert said(crossing(state(history=HISTORY), state(), SUMMARY)) == [("value_missing", "history", "history")]
    assert said(crossing(state(), state(history=HISTORY), SUMMARY)) == [("value_added", "history", "history")]
    assert crossing(state(), state(), SUMMARY) == Comparison((), ())


def test_comparison_leaves_a_transformed_part_alone_when_it_lies_in_an_exact_path() -> None:
    """The task is exact but for its history."""
    made = policy(exact_paths=("task",), transforms={"task.history": Transform("any", lambda before, after: True)})
    before = altered(lambda there: there["task"].update(history=[1, 2]))
    after = altered(lambda there: there["task"].update(history="…", goal="another"))

    assert said(crossing(before, after, made)) == [("value_changed", "task.goal", "task")]


def test_comparison_fails_closed_when_a_post_condition_raises() -> None:
    """A check that broke proves nothing; the error's text, which may hold a value, is not passed on."""

    def broken(before: Any, after: Any) -> bool:
        raise KeyError("4417-secret")

    made = policy(transforms={"note": Transform("summary", broken)})

    assert crossing(state(), state(note="…"), made).findings == (
        Finding(
            "check_failed", "note", "note: the transform summary raised KeyError, so nothing was proven",
            Reaction.BLOCK, Severity.CRITICAL, False, Stage.VALIDATE,
        ),
    )  # fmt: skip


def test_comparison_gives_transforms_copies_when_they_change_what_they_get() -> None:
    """A post-condition cannot change what is compared afterwards."""

    def greedy(before: Any, after: Any) -> bool:
        before.clear()
        after.clear()
        return True

    made = policy(transforms={"task.history": Transform("greedy", greedy), "note": Transform("greedy", greedy)})
    before = altered(lambda there: (there["task"].update(history=[1]), there.update(note=[1])))
    after = altered(lambda there: (there["task"].update(history=[2]), there.update(note=[2])))

    assert crossing(before, after, made) == Comparison((), ())


def test_comparison_shows_no_value_when_secrets_stand_everywhere() -> None:
    """Sentences, paths and patterns hold keys and kinds only."""
    canary = "CANARY-4417"
    before = state(note=canary, task={"id": canary, "goal": [canary], "constraints": {"a": canary}}, extra=[canary])
    after = state(note=f"{canary}2", task={"id": 1, "goal": canary, "constraints": {"a": f"{canary}3"}}, client=object)

    for comparison in (crossing(before, after), crossing(before, {**after, "client": canary})):
        assert len(comparison.findings) >= 1
        assert canary not in repr(comparison)


def test_comparison_finds_two_different_secrets_when_the_path_is_redacted() -> None:
    """Redaction is for what is written; the comparison reads the original."""
    made = policy(secret=("account.pin",), redact=("token",))
    before, after = state(account={"pin": 123_456}, token="a"), state(account={"pin": 123_457}, token="b")

    assert said(crossing(before, after, made)) == [
        ("rest_changed", "account.pin", "**"),
        ("rest_changed", "token", "**"),
    ]


def test_findings_follow_the_vocabulary_when_they_are_made() -> None:
    """Reaction and severity are those of the code; none can be repaired by the sender."""
    comparison = crossing(state(), {"task": []})

    for finding in comparison.findings:
        reason = REASONS[finding.code]
        assert (finding.reaction, finding.severity, finding.retryable) == (reason.reaction, reason.severity, False)


def test_capture_stays_as_taken_when_the_state_changes_afterwards() -> None:
    """BR-033: what the sender does to its state after the capture changes nothing."""
    live = state()
    before = capture(live, POLICY)
    live["task"]["constraints"].append("a third")
    live.clear()

    assert compare(before, capture(state(), POLICY), POLICY) == Comparison((), ())


@dataclasses.dataclass
class Handed:
    """A state that is no dict."""

    schema_version: int
    handoff_id: str


def test_comparison_reads_objects_when_the_state_is_a_dataclass() -> None:
    """Its fields are its paths; that it came back as a bare dict is a divergence."""
    made = BoundaryPolicy(schema_version="1", exact_paths=("handoff_id",))

    assert crossing(Handed(1, "h"), Handed(1, "h"), made) == Comparison((), ())
    assert said(crossing(Handed(1, "h"), Handed(1, "i"), made)) == [("value_changed", "handoff_id", "handoff_id")]
    assert said(crossing(Handed(1, "h"), {"schema_version": 1, "handoff_id": "h"}, made)) == [
        ("rest_changed", "$", "**")
    ]


def test_comparison_redacts_a_key_of_the_state_when_the_key_is_a_secret() -> None:
    """A path goes into spans, logs and errors: a credential that a state uses as a key must not."""
    secret = "ghp_Qz7Rk2Vb9Lm4Xt6Wp3NcQz7Rk2Vb9Lm4Xt6W"

    found = crossing(state(), altered(lambda there: there.update({secret: 1})))

    assert [finding.code for finding in found.findings] == ["rest_changed"]
    assert "[redacted]" in found.findings[0].path
    assert secret not in repr(found)
