"""What a snapshot file holds: the canonical state without what is secret, local or omitted, and nothing else."""

from __future__ import annotations

import hashlib
import json
import random
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.snapshot_text import SnapshotText, snapshot_text
from handoffwatch.values.canonical import canonical_form
from support.secrets import texts_with
from support.snapshots import POLICY, nested

R = "[redacted]"


def text_of(state: object, policy: BoundaryPolicy = POLICY) -> SnapshotText:
    """Return what is written of a state."""
    form = canonical_form(state, rules=policy.rules)
    assert form.faults == ()
    return snapshot_text(form, policy)


def written(state: object, **policy: Any) -> Any:
    """Return the state as it is read back, under a policy."""
    return json.loads(text_of(state, BoundaryPolicy(**policy)).json)


def test_text_is_the_canonical_state_when_nothing_is_left_out() -> None:
    """Keys are in order, there is no white space, and nothing is added."""
    text = text_of({"task": {"id": "t", "n": 1.0}, "schema_version": 1})
    assert text == SnapshotText(b'{"schema_version":1,"task":{"id":"t","n":1.0}}', 1, (), (), ())


def test_text_leaves_out_and_says_so_when_the_policy_names_paths() -> None:
    """Local and omitted paths are gone, secrets are marked, and each is told by its path."""
    state = {
        "schema_version": "2",
        "created_at": 1,
        "runtime": {"metrics": 1},
        "task": {"id": "t", "pin": 482913, "created_at": 2},
        "steps": [{"credentials": {"user": "u"}}],
        "tool_inputs": {"raw": [1], "query": "q"},
        "attachments": ["a"],
    }
    text = text_of(state)
    assert json.loads(text.json) == {
        "schema_version": "2",
        "runtime": {},
        "task": {"id": "t", "pin": R},
        "steps": [{"credentials": R}],
        "tool_inputs": {"raw": R, "query": "q"},
    }
    assert text[1:] == (
        "2",
        ("created_at", "runtime.*"),
        ("attachments",),
        ("steps.0.credentials", "task.pin", "tool_inputs.raw"),
    )


@pytest.mark.parametrize(
    ("state", "policy", "expected"),
    [
        ({"a": {"big": 1}, "big": 2}, {"omit": ["big"]}, {"a": {"big": 1}}),
        ({"a": [{"x": 1, "y": 2}, {"x": 3}]}, {"omit": ["a.*.x"]}, {"a": [{"y": 2}, {}]}),
        ({"a": [1, 2, 3]}, {"omit": ["a.1"]}, {"a": [1, 3]}),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"omit": ["**.c"]}, {"a": {"b": {"d": 2}}}),
        ({"a": ["x", "pin", "y"]}, {"omit": ["a.0"], "redact": ["a.1"]}, {"a": [R, "y"]}),
        ({"a": ["x", "pin", "y"]}, {"ignore_paths": ["a.0"], "redact": ["a.1"]}, {"a": [R, R]}),
        ({"a": ["x", "big", "y"]}, {"ignore_paths": ["a.0"], "omit": ["a.1"]}, {"a": []}),
        ({"a": {"password": 1}}, {"omit": ["a.password"]}, {"a": {}}),
        ({"a": '{"pin": 1, "b": 2}'}, {"redact": ["a.pin"]}, {"a": f'{{"pin": "{R}", "b": 2}}'}),
    ],
)  # fmt: skip
def test_text_has_what_remains_when_paths_overlap(state: object, policy: dict[str, Any], expected: object) -> None:
    """Paths lead where they led in the state, also where elements before them stay behind."""
    assert written(state, **policy) == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda pin: {"blob": pin.encode()},
        lambda pin: {"blobs": [pin.encode(), {"x": pin.encode()}]},
        lambda pin: {"blobs": {pin.encode()}},
        lambda pin: {"blob": b"x" * 249 + pin.encode()},
    ],
)
def test_digest_of_bytes_is_left_out_when_they_could_be_found_by_trying(make: Any) -> None:
    """Of few bytes only the number is written, so that no digest tells a code of six digits."""
    text = text_of(make("482913"))
    assert hashlib.sha256(b"482913").hexdigest().encode() not in text.json
    assert text.json == text_of(make("571204")).json
    assert len(text.redacted) == text.json.count(R.encode()) > 0


def test_digest_of_bytes_is_written_when_they_are_many() -> None:
    """From 256 bytes on the digest tells which they are."""
    digest = hashlib.sha256(b"x" * 256).hexdigest()
    assert written({"blob": b"x" * 256}) == {"blob": {"length": 256, "sha256": digest}}


def test_state_that_looks_like_bytes_stays_when_it_is_an_object() -> None:
    """An object of length and digest that the sender made is written as it is."""
    state = {"artifact": {"length": 6, "sha256": "0" * 64}}
    assert written(state) == state


def test_keys_are_redacted_when_they_are_secrets() -> None:
    """A key of the shape of a secret is in neither the file nor the list of what was redacted."""
    for secret in texts_with("abc0DEF1ghi2JKL3mno4"):
        text = text_of({"seen": {secret: {"n": 1}}})
        assert "abc0DEF1ghi2JKL3mno4".casefold() not in str(text).casefold()
        assert len(text.redacted) >= 1


def test_texts_are_equal_when_states_are_equal_in_another_order() -> None:
    """Keys that become the same when they are redacted are numbered in the same order, whoever filled the dict."""
    keys = [*texts_with("abc0DEF1ghi2JKL3mno4"), "plain", "other"]
    when = datetime(2026, 3, 29, tzinfo=UTC)
    expected = text_of({"seen": {key: index for index, key in enumerate(keys)}, "at": when})
    shuffled = list(enumerate(keys))
    random.Random(7).shuffle(shuffled)
    assert text_of(OrderedDict(at=when, seen={key: index for index, key in shuffled})) == expected


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("abc", max_size=2), inner),
    )
)
def test_text_is_the_canonical_text_when_the_policy_names_nothing(state: Any) -> None:
    """Without secrets in it the file is the canonical form, byte for byte."""
    form = canonical_form({"state": state})
    assert snapshot_text(form, BoundaryPolicy()).json == form.json


def test_form_is_as_before_when_it_was_written() -> None:
    """The copy that is written is a copy."""
    state = {"task": {"pin": 1}, "d": Decimal("1.10"), "credentials": {"a": b"x"}}
    form = canonical_form(state, rules=POLICY.rules)
    before = (form.json, form.digest, str(form.tree))
    snapshot_text(form, POLICY)
    assert (form.json, form.digest, str(form.tree)) == before
    assert state["task"] == {"pin": 1}


@pytest.mark.parametrize("version", [None, 1.5, True, ["1"], {"a": 1}])
def test_schema_version_is_none_when_the_state_has_none(version: object) -> None:
    """Only a text or an integer is a version."""
    assert text_of({"schema_version": version}).schema_version is None
    assert text_of([version]).schema_version is None


def test_schema_version_is_that_of_the_file_when_it_holds_a_secret() -> None:
    """What is told beside the file is what stands in the file, and short."""
    assert text_of({"schema_version": "1"}, BoundaryPolicy(secret=("schema_version",))).schema_version == R
    assert text_of({"schema_version": "1" * 500}).schema_version == "1" * 100


def test_redacted_places_are_at_most_100_when_there_are_more() -> None:
    """The list of places is bounded."""
    text = text_of({"steps": [{"credentials": "x"}] * 150})
    assert text.redacted == tuple(f"steps.{index}.credentials" for index in range(100))


def test_omitted_paths_are_those_of_the_policy_when_keys_are_secret() -> None:
    """What was left out is told in the policy's words, so that no key of the state is."""
    policy = BoundaryPolicy(omit=("codes.*", "nowhere"), ignore_paths=("cache.*",))
    text = text_of({"codes": {"482913": 1}, "cache": {"571204": 1}}, policy)
    assert text == SnapshotText(b'{"cache":{},"codes":{}}', None, ("cache.*",), ("codes.*",), ())


def test_nested_state_is_redacted_when_it_is_as_deep_as_allowed() -> None:
    """The deepest state that has a form can be written."""
    path = ".".join(["a"] * 63)
    assert written(nested(path, {"password": 1})) == nested(path, {"password": R})
