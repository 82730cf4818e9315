"""The policy file of the boundary."""

from __future__ import annotations

from pathlib import Path

import pytest

from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.settings import BoundarySettings, read_policy
from handoffwatch.boundary.transforms import Transforms
from handoffwatch.errors import ConfigError, RegistrationError
from handoffwatch.vocabulary import OnFailure

DESIGN = """\
handoff:
  snapshot: {enabled: true, directory: ./handoff-snapshots, redact: [credentials, headers.authorization, tool_inputs.raw_private_data]}
  validation:
    fail_closed: true
    schema_version: 1
    exact_paths: [handoff_id, task.id, task.goal, task.constraints, artifacts, decisions]
    ignore_paths: [created_at, runtime_metrics, local_cache]
"""  # noqa: E501 - this is the file as the design has it, unchanged


def policy_of(text: str, route: str = "planner->executor", transforms: Transforms | None = None) -> BoundaryPolicy:
    """Return the policy that a file gives a route."""
    return read_policy(text, name="policy.yaml").policy_of(route, transforms=transforms or Transforms())


def test_policy_file_of_the_design_loads_when_it_is_unchanged() -> None:
    """Every key of it means what it says."""
    settings = read_policy(DESIGN, name="policy.yaml")

    assert settings.snapshot.enabled is True
    assert settings.snapshot.directory == "./handoff-snapshots"
    assert policy_of(DESIGN) == BoundaryPolicy(
        schema_version="1",
        exact_paths=("handoff_id", "task.id", "task.goal", "task.constraints", "artifacts", "decisions"),
        ignore_paths=("created_at", "runtime_metrics", "local_cache"),
        redact=("credentials", "headers.authorization", "tool_inputs.raw_private_data"),
        on_failure=OnFailure.STOP,
    )


def test_policy_file_has_the_documented_defaults_when_it_says_nothing() -> None:
    """Nothing is written, everything is compared, a divergence stops; 14 days and 1 GiB are kept."""
    assert read_policy("handoff: {}", name="policy.yaml") == BoundarySettings()
    assert BoundarySettings().model_dump() == {
        "snapshot": {
            "enabled": False,
            "directory": "./handoff-snapshots",
            "retention_days": 14.0,
            "max_bytes": 1_073_741_824,
            "redact": (),
            "omit": (),
        },
        "validation": {
            "fail_closed": None,
            "on_failure": None,
            "schema_version": None,
            "exact_paths": (),
            "ignore_paths": (),
            "sets": (),
            "times": (),
            "transforms": {},
            "artifacts": (),
            "secret": (),
        },
        "routes": {},
    }
    assert policy_of("handoff: {}") == BoundaryPolicy()


def test_policy_file_takes_every_optional_key_when_it_is_given() -> None:
    """Each of the design's keys stands in its section and reaches the policy."""
    transforms = Transforms()
    summary = transforms.add("summary", lambda before, after: True)
    text = """\
handoff:
  snapshot: {retention_days: 0.5, max_bytes: 1048576, redact: [token], omit: [attachments.*.data]}
  validation:
    on_failure: quarantine
    schema_version: "2.0"
    exact_paths: [task, "**.id"]
    sets: [tags]
    times: [log.*.at]
    transforms: {history: summary}
    artifacts: [artifacts]
    secret: [account.pin]
"""

    assert policy_of(text, transforms=transforms) == BoundaryPolicy(
        schema_version="2.0",
        exact_paths=("task", "**.id"),
        sets=("tags",),
        times=("log.*.at",),
        transforms={"history": summary},
        artifacts=("artifacts",),
        secret=("account.pin",),
        redact=("token",),
        omit=("attachments.*.data",),
        on_failure=OnFailure.QUARANTINE,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fail_closed: true", OnFailure.STOP),
        ("fail_closed: false", OnFailure.PASS),
        ("on_failure: stop", OnFailure.STOP),
        ("on_failure: quarantine", OnFailure.QUARANTINE),
        ("on_failure: pass", OnFailure.PASS),
        ("on_failure: null", OnFailure.STOP),
        ("fail_closed: null", OnFailure.STOP),
    ],
)
def test_policy_file_says_what_follows_a_divergence_when_one_of_two_keys_is_given(
    text: str, expected: OnFailure
) -> None:
    """`fail_closed: false` means pass, and without a word the handoff stops."""
    assert policy_of(f"handoff: {{validation: {{{text}}}}}").on_failure is expected


ROUTES = """\
handoff:
  snapshot: {enabled: true, redact: [token]}
  validation: {fail_closed: true, exact_paths: [task.id], ignore_paths: [cache], schema_version: 1}
  routes:
    planner->executor:
      snapshot: {enabled: false}
      validation: {exact_paths: [task], on_failure: quarantine}
    executor->reviewer:
      validation: {ignore_paths: []}
    reviewer->planner: {}
"""


def test_policy_file_replaces_single_keys_when_a_route_has_its_own() -> None:
    """Keys that a route does not give stay those of all routes; its word on failure replaces both keys."""
    settings = read_policy(ROUTES, name="policy.yaml")

    assert policy_of(ROUTES, "planner->executor") == BoundaryPolicy(
        schema_version="1", exact_paths=("task",), ignore_paths=("cache",), redact=("token",),
        on_failure=OnFailure.QUARANTINE,
    )  # fmt: skip
    assert policy_of(ROUTES, "executor->reviewer") == BoundaryPolicy(
        schema_version="1", exact_paths=("task.id",), redact=("token",)
    )
    assert policy_of(ROUTES, "reviewer->planner") == policy_of(ROUTES, "another->route")
    assert [settings.snapshot_of(route).enabled for route in ("planner->executor", "executor->reviewer")] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "handoff:\n  validation:\n    exact_path: [a]\n",
            "policy.yaml:3: handoff.validation.exact_path: unknown key",
            "did you mean exact_paths? known keys: artifacts, exact_paths, fail_closed, ignore_paths, on_failure, "
            "schema_version, secret, sets, times, transforms",
        ),
        (
            "handoff:\n  snapshot: {retention: 3}\n",
            "policy.yaml:2: handoff.snapshot.retention: unknown key",
            "did you mean retention_days? known keys: directory, enabled, max_bytes, omit, redact, retention_days",
        ),
        (
            "handoff:\n  routes:\n    a->b:\n      validation:\n        exact: [a]\n",
            "policy.yaml:5: handoff.routes.a->b.validation.exact: unknown key",
            "did you mean exact_paths? known keys: artifacts, exact_paths, fail_closed, ignore_paths, on_failure, "
            "schema_version, secret, sets, times, transforms",
        ),
        ("validation: {}\n", "policy.yaml:1: validation: unknown key", "known keys: handoff"),
        ("[]\n", "policy.yaml:1: document: must be a mapping of keys", "start with the key: handoff:"),
        ("", "policy.yaml:1: document: must be a mapping of keys", "start with the key: handoff:"),
        (
            "handoff:\n  validation:\n    fail_closed: true\n    on_failure: stop\n",
            "policy.yaml:4: handoff.validation.on_failure: must not be given beside fail_closed",
            "remove the key to use the default of null",
        ),
        (
            "handoff:\n  routes:\n    a->b:\n      validation:\n        fail_closed: false\n        on_failure: pass\n",
            "policy.yaml:6: handoff.routes.a->b.validation.on_failure: must not be given beside fail_closed",
            "remove the key to use the default of null",
        ),
        (
            "handoff:\n  validation:\n    on_failure: carry_on\n",
            "policy.yaml:3: handoff.validation.on_failure: must be 'stop', 'quarantine' or 'pass', got a text",
            "remove the key to use the default of null",
        ),
        (
            "handoff:\n  validation:\n    exact_paths:\n      - task.id\n      - task..goal\n",
            "policy.yaml:5: handoff.validation.exact_paths.1: must be keys and indices with dots between them",
            "remove the key to use the default of []",
        ),
        (
            "handoff:\n  validation:\n    exact_paths: task.id\n",
            "policy.yaml:3: handoff.validation.exact_paths: must be a list, got a text",
            "remove the key to use the default of []",
        ),
        (
            "handoff:\n  validation:\n    schema_version: true\n",
            "policy.yaml:3: handoff.validation.schema_version: must be a text, got true or false",
            "remove the key to use the default of null",
        ),
        (
            "handoff:\n  validation:\n    fail_closed: yes\n",
            "policy.yaml:3: handoff.validation.fail_closed: must be true or false, got a text",
            "remove the key to use the default of null",
        ),
        (
            "handoff:\n  validation:\n    exact_paths: [task.cache.id]\n    ignore_paths: [cache]\n",
            "policy.yaml:4: handoff.validation.ignore_paths: exact_paths: task.cache.id: must not lead to what "
            "ignore_paths leaves out",
            "remove the key to use the default of []",
        ),
        (
            "handoff:\n  validation: {ignore_paths: [cache]}\n  routes:\n    a->b:\n"
            "      validation: {exact_paths: [cache]}\n",
            "policy.yaml:3: handoff.routes: a->b: exact_paths: cache: must not lead to what ignore_paths leaves out",
            "remove the key to use the default of {}",
        ),
        (
            "handoff:\n  snapshot:\n    max_bytes: 1000\n",
            "policy.yaml:3: handoff.snapshot.max_bytes: must be at least 1048576, got 1000",
            "remove the key to use the default of 1073741824",
        ),
    ],
)
def test_policy_file_is_refused_with_its_line_when_a_rule_is_broken(text: str, message: str, hint: str) -> None:
    """File, line, key and rule, and what to type next."""
    with pytest.raises(ConfigError) as refused:
        read_policy(text, name="policy.yaml")

    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_policy_file_names_every_error_at_once_when_there_are_more() -> None:
    """One line each, in the order of the file."""
    with pytest.raises(ConfigError) as refused:
        read_policy(b"handoff:\n  snapshot: {enable: true}\n  validation: {exact_paths: 3}\n", name="policy.yaml")

    assert [line.split(": ")[:2] for line in refused.value.message.splitlines()] == [
        ["policy.yaml:2", "handoff.snapshot.enable"],
        ["policy.yaml:3", "handoff.validation.exact_paths"],
    ]


def test_policy_file_is_refused_when_it_names_a_transform_that_nobody_registered() -> None:
    """The policy is bound to code when a route is registered, not before."""
    transforms = Transforms()
    transforms.add("summary", lambda before, after: True)

    with pytest.raises(RegistrationError) as refused:
        policy_of("handoff: {validation: {transforms: {history: sumary}}}", transforms=transforms)

    assert (refused.value.message, refused.value.hint) == (
        "transform sumary: name: is not registered",
        "did you mean summary?",
    )


def test_policy_file_in_this_test_is_that_of_the_design_when_both_are_read(shared_folder: Path) -> None:
    """The text above is not a copy that has drifted."""
    assert DESIGN in (shared_folder / "DESIGN.md").read_text(encoding="utf-8")
