"""The policy of a boundary as a frozen object."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.transforms import Transform
from handoffwatch.errors import RegistrationError
from handoffwatch.vocabulary import OnFailure
from support.crossings import POLICY, policy

SUMMARY = Transform("summary", lambda before, after: True)


def test_policy_always_compares_the_schema_version_when_nothing_is_said() -> None:
    """`schema_version` is exact, first and once; what follows a divergence is a stop."""
    assert BoundaryPolicy().exact.patterns == ("schema_version",)
    assert BoundaryPolicy().on_failure is OnFailure.STOP
    assert BoundaryPolicy(exact_paths=("a", "schema_version", "a")).exact.patterns == ("schema_version", "a")


def test_policy_names_all_its_patterns_when_series_are_born() -> None:
    """Exact paths, transforms, and `**` for everything that no other pattern names."""
    assert policy(exact_paths=("task.id", "artifacts.*.id"), transforms={"history": SUMMARY}).patterns == (
        "schema_version",
        "task.id",
        "artifacts.*.id",
        "history",
        "**",
    )


def test_policy_is_never_changed_when_it_was_made() -> None:
    """Neither a field nor what was given can be changed afterwards."""
    given: dict[str, Transform] = {"history": SUMMARY}
    made = BoundaryPolicy(transforms=given)
    given.clear()

    assert list(made.transforms) == ["history"]
    with pytest.raises(TypeError):
        made.transforms["note"] = SUMMARY  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.exact_paths = ("a",)  # type: ignore[misc]


def test_policy_redacts_both_what_is_secret_and_what_is_redacted_when_it_is_written() -> None:
    """Names match at any depth, whatever the policy calls them."""
    made = policy(secret=("account.pin",), redact=("notes",))

    assert made.redaction.redacted({"account": {"pin": 123_456, "id": 1}, "x": [{"notes": "a"}]}) == {
        "account": {"pin": "[redacted]", "id": 1},
        "x": [{"notes": "[redacted]"}],
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"exact_paths": "task.id"}, "policy: exact_paths: must be a list of paths, got str"),
        ({"exact_paths": 7}, "policy: exact_paths: must be a list of paths, got int"),
        ({"sets": ("a..b",)}, "policy: sets: must be keys and indices with dots between them, got str"),
        ({"times": (1,)}, "policy: times: must be keys and indices with dots between them, got int"),
        ({"secret": ("",)}, "policy: secret: must be keys and indices with dots between them, got str"),
        ({"transforms": {"": SUMMARY}}, "policy: transforms: must be keys and indices with dots between them, got str"),
        ({"schema_version": 1}, "policy: schema_version: must be a text of 1 to 100 printable characters, got int"),
        (
            {"exact_paths": ("created_at",)},
            "policy: exact_paths: created_at: must not lead to what ignore_paths leaves out",
        ),
        (
            {"exact_paths": ("task.local_cache.id",)},
            "policy: exact_paths: task.local_cache.id: must not lead to what ignore_paths leaves out",
        ),
        (
            {"ignore_paths": ("task.cache",), "exact_paths": ("task.cache.id",)},
            "policy: exact_paths: task.cache.id: must not lead to what ignore_paths leaves out",
        ),
        (
            {"ignore_paths": ("schema_version",)},
            "policy: exact_paths: schema_version: must not lead to what ignore_paths leaves out",
        ),
        (
            {"transforms": {"runtime_metrics": SUMMARY}},
            "policy: transforms: runtime_metrics: must not lead to what ignore_paths leaves out",
        ),
        (
            {"transforms": {"task.id": SUMMARY}},
            "policy: exact_paths: task.id: must not be in transforms as well",
        ),
    ],
    ids=str,
)
def test_policy_is_refused_when_a_path_is_none_or_two_categories_contradict(
    fields: dict[str, Any], message: str
) -> None:
    """The message names the field and the path, and never a value that could be a secret."""
    with pytest.raises(RegistrationError) as refused:
        policy(**fields)

    assert refused.value.message == message
    assert refused.value.hint


def test_policy_takes_local_parts_of_exact_paths_when_they_lie_further_down() -> None:
    """A task is exact but for its cache."""
    assert policy(exact_paths=("task",), ignore_paths=("task.cache",)).exact.patterns == ("schema_version", "task")


def test_policies_are_equal_when_they_say_the_same() -> None:
    """A policy is a value."""
    assert policy(schema_version="1") == POLICY
    assert policy(schema_version="2") != POLICY
