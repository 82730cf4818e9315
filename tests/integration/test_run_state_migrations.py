"""Real run states of 18 schema versions: each migrates to the next, and three bad ones are refused."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from handoffwatch.boundary.migrations import Migrated, Migrations
from handoffwatch.values.canonical import canonical_form

VERSIONS = [f"1.{minor}" for minor in range(18)]
SECRET = "RUNSTATE_SECRET_SENTINEL_42"

ADDED: dict[str, dict[str, Any]] = {
    "1.2": {"reasoning_item_id_policy": None},
    "1.9": {"generated_prompt_cache_key": None},
    "1.12": {"context.usage.input_tokens_details.0.cache_write_tokens": 0},
    "1.14": {"generated_session_item_indexes": [], "nested_history_owned_session_item_refs": []},
    "1.15": {"context.tool_invocations": {}},
    "1.16": {"pending_input": []},
}
"""What each version has that the one before it had not, by its place; the other versions have the same fields."""


@pytest.fixture
def states(shared_folder: Path) -> dict[str, dict[str, Any]]:
    """The minimal state of each version."""
    folder = shared_folder / "data" / "openai-agents-run-state" / "minimal"
    return {version: json.loads((folder / f"v{version.replace('.', '_')}.json").read_bytes()) for version in VERSIONS}


def _step(to_version: str) -> Any:
    def function(state: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(json.dumps(state))
        for place, value in ADDED.get(to_version, {}).items():
            *above, last = place.split(".")
            here: Any = result
            for key in above:
                here = here[int(key) if isinstance(here, list) else key]
            here[last] = value
        return {**result, "$schemaVersion": to_version}

    return function


def _is_run_state(state: Any) -> bool | list[str]:
    agent = state.get("current_agent")
    return True if isinstance(agent, dict) and isinstance(agent.get("name"), str) else ["current_agent"]


def _migrations(states: dict[str, dict[str, Any]]) -> Migrations:
    """Return the steps; each keeps all fields that its version declares, but for the version itself."""
    migrations = Migrations(version_path="$schemaVersion")
    for before, after in itertools.pairwise(VERSIONS):
        declared = [key for key in states[before] if key != "$schemaVersion"]
        migrations.add(before, after, _step(after), keeps=declared, fills=ADDED.get(after, {}), source=_is_run_state)
    return migrations


def _leaves(value: Any, *path: Any) -> dict[tuple[Any, ...], Any]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    leaves = {place: leaf for key, part in parts for place, leaf in _leaves(part, *path, key).items()}
    return leaves or {path: value}


@pytest.mark.parametrize("to_version", VERSIONS[1:])
def test_run_state_migrates_to_the_next_version_and_loses_no_field(
    to_version: str, states: dict[str, dict[str, Any]]
) -> None:
    """The result is the recorded state of that version, and holds every value of the version before."""
    from_version = VERSIONS[VERSIONS.index(to_version) - 1]
    result = _migrations(states).migrate(states[from_version], from_version, to_version)
    assert result.findings == ()
    assert canonical_form(result.state) == canonical_form(states[to_version])
    before, after = _leaves(states[from_version]), _leaves(result.state)
    del before["$schemaVersion",]
    assert before.items() <= after.items()


def test_run_state_migrates_from_the_first_version_to_the_last(states: dict[str, dict[str, Any]]) -> None:
    """Step by step, and the state that was given stays as it was."""
    first = json.dumps(states["1.0"])
    result = _migrations(states).migrate(states["1.0"], "1.0", "1.17")
    assert canonical_form(result.state) == canonical_form(states["1.17"])
    assert json.dumps(states["1.0"]) == first


@pytest.mark.parametrize("to_version", VERSIONS[1:])
def test_run_state_is_refused_when_a_step_loses_a_declared_field(
    to_version: str, states: dict[str, dict[str, Any]]
) -> None:
    """Each field of each version is named when it is lost."""
    before = VERSIONS[VERSIONS.index(to_version) - 1]
    declared = [key for key in states[before] if key != "$schemaVersion"]
    for lost in declared:
        migrations = Migrations(version_path="$schemaVersion")

        def function(state: dict[str, Any], lost: str = lost) -> dict[str, Any]:
            return {key: value for key, value in _step(to_version)(state).items() if key != lost}

        migrations.add(before, to_version, function, keeps=declared, fills=ADDED.get(to_version, {}))
        found = migrations.migrate(states[before], before, to_version).findings
        assert [finding.path for finding in found] == [lost]


@pytest.mark.parametrize(
    ("name", "from_version", "path"),
    [
        ("future_version", "999", "$schemaVersion"),
        ("future_version", "1.15", "$schemaVersion"),
        ("missing_version", "1.15", "$schemaVersion"),
        ("malformed_current_agent", "1.15", "current_agent"),
    ],
)
def test_run_state_is_refused_when_it_is_none_of_its_version(
    name: str, from_version: str, path: str, states: dict[str, dict[str, Any]], shared_folder: Path
) -> None:
    """No step is taken, and nothing of the state is said."""
    folder = shared_folder / "data" / "openai-agents-run-state" / "negative"
    bad = json.loads((folder / f"{name}.json").read_bytes())
    result = _migrations(states).migrate(bad, from_version, "1.17")
    assert isinstance(result, Migrated)
    assert result.state is None
    assert path in {finding.path for finding in result.findings}
    assert {finding.code for finding in result.findings} == {"migration_failed"}
    assert SECRET not in str(result.findings)
    assert name != "malformed_current_agent" or len(result.findings) > 1
