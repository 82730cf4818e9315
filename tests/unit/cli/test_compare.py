"""`handoffwatch compare`: what it prints about two states, and its exit code."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.vocabulary import SnapshotStage
from support.command_line import Ended, Run, command_line
from support.snapshots import SnapshotDesk

POLICY = """\
handoff:
  snapshot: {redact: [credentials], omit: [attachments]}
  validation:
    schema_version: 1
    exact_paths: [handoff_id, task.constraints, attachments]
    ignore_paths: [local_cache]
    transforms: {history: summary}
  routes:
    "a->b": {validation: {exact_paths: [handoff_id]}}
"""
TRANSFORMS = """\
from handoffwatch.boundary.transforms import Transforms

print("said at import")
transforms = Transforms()
transforms.add("summary", lambda before, after: len(after) == 1)
empty = None
"""
STATE: dict[str, Any] = {
    "schema_version": 1,
    "handoff_id": "h-1",
    "task": {"constraints": ["at most 50.00"]},
    "attachments": [],
    "history": ["a", "b"],
    "credentials": {"token": "t-1"},
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """Run a command in a folder with a policy and its transforms."""
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "shop_policies.py").write_text(TRANSFORMS, encoding="utf-8")
    with command_line(monkeypatch, capsys, tmp_path) as run:
        yield run


def _altered(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    state = copy.deepcopy(STATE)
    change(state)
    return state


def _compared(run: Run, after: object, *options: str, before: object = STATE) -> Ended:
    Path("before.json").write_text(json.dumps(before), encoding="utf-8")
    Path("after.json").write_text(json.dumps(after), encoding="utf-8")
    known = "--policy", "policy.yaml", "--transforms", "shop_policies:transforms"
    ended = run("compare", *known, *options, "before.json", "after.json")
    return Ended(ended.code, ended.out, ended.err.removeprefix("said at import\n"))


def test_compare_says_equal_and_exits_0_when_the_states_are(run: Run) -> None:
    """Nothing but data goes to stdout, so nothing does."""
    assert _compared(run, STATE) == Ended(0, "", "equal\n")
    assert _compared(run, STATE, "--show-values") == Ended(0, "", "equal\n")
    ended = _compared(run, STATE, "--json")
    assert (ended.code, json.loads(ended.out), ended.err) == (0, {"equal": True, "findings": []}, "")


def test_compare_names_each_difference_and_exits_3_when_there_are_some(run: Run) -> None:
    """The order is that of the policy; no value is printed, and no key below what is redacted."""

    def change(state: dict[str, Any]) -> None:
        state["task"]["constraints"] = []
        state["credentials"]["token"] = "t-2"

    assert _compared(run, _altered(change)) == Ended(
        3,
        "REACTION  CODE           PATH              WHAT WOULD BE RIGHT\n"
        "block     value_changed  task.constraints  task.constraints must have the value that it had, and is an empty"
        " list\n"
        "block     rest_changed   credentials       credentials must have the value that it had\n",
        "2 divergences\n",
    )


def test_compare_warns_and_exits_0_when_local_values_came_along(run: Run) -> None:
    """A warning is no divergence."""
    assert _compared(run, STATE | {"local_cache": 1}) == Ended(
        0,
        "REACTION  CODE         PATH         WHAT WOULD BE RIGHT\n"
        "warn      value_added  local_cache  local_cache is local and must stay behind\n",
        "equal, 1 warning\n",
    )


def test_compare_prints_redacted_values_when_asked(run: Run) -> None:
    """Below the table, one block for each path; what is not there is a dash, and a long value is cut."""

    def change(state: dict[str, Any]) -> None:
        state["credentials"]["token"] = "t-2"
        del state["task"]["constraints"]
        state["note"] = "x" * 300

    ended = _compared(run, _altered(change), "--show-values")
    _, *blocks = ended.out.split("\n\n")
    assert blocks == [
        'task.constraints\n  before  ["at most 50.00"]\n  after   -',
        'credentials\n  before  "[redacted]"\n  after   "[redacted]"',
        f'note\n  before  -\n  after   "{"x" * 199}…\n',
    ]
    assert "t-1" not in ended.out + ended.err
    assert (ended.code, ended.err) == (3, "3 divergences\n")


def test_compare_prints_json_when_asked(run: Run) -> None:
    """Each finding with all its fields; with the values only when those are asked for too, and only where they are."""

    def change(state: dict[str, Any]) -> None:
        del state["task"]["constraints"]
        state["credentials"]["token"] = "t-2"

    ended = _compared(run, _altered(change), "--json")
    found = json.loads(ended.out)
    assert (ended.code, found["equal"]) == (3, False)
    assert found["findings"][0] == {
        "code": "value_missing",
        "path": "task.constraints",
        "sentence": "task.constraints must arrive as it left, and is not there",
        "reaction": "block",
        "severity": "error",
        "retryable": False,
        "stage": "validate",
    }
    shown = json.loads(_compared(run, _altered(change), "--json", "--show-values").out)["findings"]
    values = [{key: each.get(key) for key in each.keys() & {"before", "after"}} for each in shown]
    assert values == [{"before": ["at most 50.00"]}, {"before": "[redacted]", "after": "[redacted]"}]


def test_compare_cannot_steer_a_terminal_when_a_state_is_hostile(run: Run) -> None:
    """Keys and values lose what no printer prints."""
    hostile = "\x1b[2J\u202e\x07\r\u2028"
    ended = _compared(run, STATE | {f"key{hostile}": f"value{hostile}", "n": hostile}, "--show-values")
    assert ended.code == 3
    assert all(character.isprintable() for character in ended.out.replace("\n", ""))
    assert "\\u001b[2J" in ended.out


def test_compare_judges_a_transform_that_is_named(run: Run) -> None:
    """By its post-condition; a policy whose transforms nobody names is wrong usage."""
    assert _compared(run, STATE | {"history": ["short"]}) == Ended(0, "", "equal\n")
    kept = _compared(run, STATE | {"history": ["a", "c"]})
    assert (kept.code, "history must be kept by the transform summary" in kept.out) == (3, True)
    unnamed = run("compare", "--policy", "policy.yaml", "before.json", "after.json")
    assert (unnamed.code, unnamed.out) == (2, "")
    assert unnamed.err.startswith("error: transform summary: name: is not registered\nhint: ")


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("shop_policies:empty", "--transforms: shop_policies:empty: must be a Transforms, got a NoneType"),
        ("shop_policies:gone", "--transforms: shop_policies:gone: the module has no attribute gone"),
        ("gone", "--transforms: value: must be module:attribute or file.py:attribute"),
    ],
)
def test_compare_refuses_what_is_no_transforms(run: Run, spec: str, error: str) -> None:
    """The message names the option, and the hint an example."""
    ended = run("compare", "--policy", "policy.yaml", "--transforms", spec, "a.json", "b.json")
    assert ended.code == 2
    assert ended.err.endswith(f"error: {error}\nhint: name a Transforms, as in shop.policies:transforms\n")


def test_compare_takes_the_overrides_of_a_route_when_one_is_named(run: Run) -> None:
    """The exact paths of the route replace those of all routes; everything else is compared all the same."""
    lost = _altered(lambda state: state.pop("task"))
    assert "value_missing  task.constraints" in _compared(run, lost).out
    ended = _compared(run, lost, "--route", "a->b")
    assert (ended.code, "value_missing" in ended.out, "rest_changed  task" in ended.out) == (3, False, True)


def test_compare_takes_two_snapshots_though_they_omit_a_path(run: Run, tmp_path: Path) -> None:
    """A path that the policy keeps out of snapshots is on neither side, and in states it must be there."""
    desk = SnapshotDesk(tmp_path / "snapshots")
    policy = BoundaryPolicy(ignore_paths=("local_cache",), redact=("credentials",), omit=("attachments",))
    desk.write(STATE, policy=policy)
    desk.write(STATE | {"handoff_id": "h-2"}, policy=policy, stage=SnapshotStage.AFTER)
    before, after = (json.loads((desk.directory / f"h-1.{stage}.json").read_text()) for stage in SnapshotStage)
    assert "attachments" not in before
    assert _compared(run, before, before=before) == Ended(0, "", "equal\n")
    assert "value_changed  handoff_id" in _compared(run, after, before=before).out
    half = _compared(run, before, before=STATE)
    assert (half.code, "value_missing  attachments" in half.out) == (3, True)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "after.json: file: cannot be read: no such file or directory"),
        (b"", "after.json: file: must be JSON"),
        (b"{", "after.json: file: must be JSON"),
        (b"\xff", "after.json: file: must be JSON"),
        (b"[" * 100_000, "after.json: file: is nested too deeply"),
    ],
)
def test_compare_exits_2_when_a_state_cannot_be_read(run: Run, text: bytes | None, error: str) -> None:
    """A file that holds no state is no divergence."""
    _compared(run, STATE)
    Path("after.json").unlink()
    if text is not None:
        Path("after.json").write_bytes(text)
    known = "--policy", "policy.yaml", "--transforms", "shop_policies:transforms"
    ended = run("compare", *known, "before.json", "after.json")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0] == f"error: {error}"


def test_compare_blocks_when_a_state_has_no_canonical_form(run: Run) -> None:
    """Not a number is no value that can be compared."""
    ended = _compared(run, STATE | {"n": float("nan")})
    assert (ended.code, "non_finite_number  n" in ended.out) == (3, True)


@pytest.mark.parametrize(
    ("policy", "lines"),
    [
        ("", ["error: policy.yaml:1: document: must be a mapping of keys"]),
        (
            "handoff: {validation: {exact_path: []}}",
            ["error: policy.yaml:1: handoff.validation.exact_path: unknown key"],
        ),
        (None, ["error: policy.yaml: file: cannot be read: no such file or directory"]),
    ],
)
def test_compare_exits_2_when_the_policy_cannot_be_used(run: Run, policy: str | None, lines: list[str]) -> None:
    """The line of the file and the key are named."""
    Path("policy.yaml").unlink()
    if policy is not None:
        Path("policy.yaml").write_text(policy, encoding="utf-8")
    ended = _compared(run, STATE)
    assert (ended.code, ended.out) == (2, "")
    assert [line for line in ended.err.splitlines() if line.startswith("error")] == lines


@pytest.mark.parametrize("arguments", [("a.json", "b.json"), ("--policy", "policy.yaml", "a.json")])
def test_compare_exits_2_when_an_argument_is_missing(run: Run, arguments: tuple[str, ...]) -> None:
    """Nothing is compared."""
    ended = run("compare", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Missing" in ended.err
