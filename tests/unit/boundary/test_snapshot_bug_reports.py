"""Bugs that others had with stored state, as tests of snapshots; each is named by its number in the list of cases."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.snapshot_text import snapshot_text
from handoffwatch.errors import SnapshotEdited, SnapshotUnavailable
from handoffwatch.values.canonical import canonical_form
from handoffwatch.vocabulary import SnapshotStage
from support.secrets import basic, texts_with, vendor_keys
from support.snapshots import SnapshotDesk, rights

BEFORE, AFTER = SnapshotStage
BARE = BoundaryPolicy()
CANARY = "Zq9abcZq9XYZ0123456789Zq9"


@pytest.fixture
def desk(tmp_path: Path) -> SnapshotDesk:
    """Return a desk whose folder is not there yet."""
    return SnapshotDesk(tmp_path / "inner" / "handoff-snapshots")


def test_br_033_snapshot_stays_when_the_sender_changes_its_state(desk: SnapshotDesk) -> None:
    """A later append, and an edit further down, change neither the file nor its digest."""
    state: dict[str, Any] = {"items": [1], "task": {"a": {"b": 1}}}
    form = canonical_form(state)
    state["items"].append(2)
    state["task"]["a"]["b"] = 2
    desk.snapshots.write_snapshot(form, policy=BARE, stage=BEFORE, run_id="r", handoff_id="h", attempt=1, route="a->b")
    assert desk.snapshots.read_snapshot("h", BEFORE).state == {"items": [1], "task": {"a": {"b": 1}}}


def test_br_044_receiver_gets_what_was_sent_when_the_snapshot_is_masked(desk: SnapshotDesk) -> None:
    """Overlapping rules mask the copy once, each element for itself, and never the state."""
    state = {"users": [{"password": "a"}, {"password": "b"}]}
    sent = json.dumps(state)
    policy = BoundaryPolicy(redact=("users.*.password", "**.password", "password"))
    meta = desk.write(state, policy=policy)
    assert json.dumps(state) == sent
    assert desk.snapshots.read_snapshot("h-1", BEFORE).state == {"users": [{"password": "[redacted]"}] * 2}
    assert meta.redacted_paths == ("users.0.password", "users.1.password")


def test_br_123_keys_of_unlisted_vendors_are_redacted_when_their_names_say_so(desk: SnapshotDesk) -> None:
    """By name at any depth, short values too, and headers inside texts."""
    header = basic("user", "pass")
    state = {"tavily_key": "tvly-abc", "cfg": {"client_secret": "x9"}, "h": [f"Authorization: Basic {header}"]}
    desk.write(state)
    assert desk.snapshots.read_snapshot("h-1", BEFORE).state == {
        "tavily_key": "[redacted]",
        "cfg": {"client_secret": "[redacted]"},
        "h": ["Authorization: Basic [redacted]"],
    }
    assert not [secret for secret in ("tvly-abc", "x9", header) if secret in desk.content()]


def _planted(secret: str) -> list[Any]:
    """Return states with a secret wherever one can be."""
    declared = {"credentials": secret}
    return [
        declared,
        {"a": [{"credentials": [secret, {secret: secret}]}]},
        {"a": {f"Bearer {secret}": 1}},
        {"a": f'{{"credentials": "{secret}"}}'},
        {"a": {"password": secret.encode()}},
        {"schema_version": f"Bearer {secret}"},
        {"created_at": secret},
        {"attachments": {secret: secret}},
        [f"Authorization: Bearer {secret}"],
        f"password={secret}",
        *({"note": text} for text in texts_with(secret)),
        *({text: 1} for text in texts_with(secret)),
    ]


def test_br_125_secrets_are_in_no_file_name_log_or_error_when_they_are_anywhere(
    desk: SnapshotDesk, caplog: pytest.LogCaptureFixture
) -> None:
    """A canary planted in every place and shape is found in nothing that leaves the process."""
    with caplog.at_level(logging.DEBUG):
        for index, state in enumerate(_planted(CANARY)):
            desk.write(state, handoff_id=f"h-{index}")
        for index, key in enumerate([*vendor_keys(CANARY), f"ghp_{CANARY.lower()}", f"sk-{CANARY.lower()}"]):
            desk.write({"n": index}, handoff_id=key, run_id=f"run {key}", route=f"{key}->b")
            with pytest.raises(SnapshotUnavailable) as caught:
                desk.snapshots.read_snapshot(key, AFTER)
            assert "zq9" not in str(caught.value).casefold()
        side = desk.directory / "h-0.before.meta.json"
        side.write_text(side.read_text().replace('"r-1"', f'["{CANARY}"]'))
        with pytest.raises(SnapshotEdited) as edited:
            desk.snapshots.read_snapshot("h-0", BEFORE)
    assert "Zq9" not in str(edited.value) + str(edited.value.__cause__)
    assert edited.value.__suppress_context__
    side.unlink()
    assert "zq9" not in desk.content().casefold()
    assert "zq9" not in caplog.text.casefold()


PLACES_OF_A_PIN = [
    ("pin", lambda pin: {"pin": pin}),
    ("pin", lambda pin: {"pin": int(pin)}),
    ("pin", lambda pin: {"deep": [{"pin": [pin, {"x": pin}]}]}),
    ("**.ledger.0", lambda pin: {"ledger": [pin, "stays"]}),
    ("codes", lambda pin: {"codes": {pin: 1}}),
    ("nothing", lambda pin: {"blob": pin.encode()}),
    ("nothing", lambda pin: {"password": pin.encode()}),
]

POLICIES_OF_A_PIN = [
    *(({category: (path,)}, make) for path, make in PLACES_OF_A_PIN for category in ("redact", "secret")),
    *(
        ({category: (path if path.startswith("**") else f"**.{path}",)}, make)
        for path, make in PLACES_OF_A_PIN
        for category in ("omit", "ignore_paths")
    ),
    ({"redact": ("pin",)}, lambda pin: {"text": f'{{"pin": "{pin}"}}'}),
]


@pytest.mark.parametrize(("fields", "make"), POLICIES_OF_A_PIN)
def test_no_digest_tells_a_small_secret_when_all_are_tried(tmp_path: Path, fields: Any, make: Any) -> None:
    """Files, names and digests are the same whatever the secret is, so nothing of them can be tried."""
    contents = set()
    for pin in ("482913", "571204"):
        desk = SnapshotDesk(tmp_path / pin)
        desk.write(make(pin), policy=BoundaryPolicy(**fields))
        contents.add(desk.content())
    assert len(contents) == 1
    assert "482913" not in contents.pop()


@pytest.mark.parametrize(
    "text", ["A" * 262_144, "{" * 1_000_000 + '"a": }' * 100_000, "sk-" * 500_000, "a" * 5_000_000]
)
def test_br_126_writing_takes_little_time_when_texts_are_long_near_misses(desk: SnapshotDesk, text: str) -> None:
    """No text makes a pattern go back and forth, and what exceeds the limit is cut before it is read."""
    form = canonical_form({"text": text})
    started_s = time.perf_counter()
    written = snapshot_text(form, BARE)
    assert time.perf_counter() - started_s < 0.25
    assert len(written.json) < 300_000


IDS = [
    "x/../../PWNED", "..", "/abs", "a\\b", "a\x00b", "C:x", "a" * 300, "b" * 300, "ABC", "abc", "Abc", ".", "", "~",
    "con\n", "h-1.2", "h-1.before", "h-1", "-rf", "%2e%2e", "ä", "a\u0308", "\ud800", "\u202e", "~" + "0" * 64,
]  # fmt: skip


def test_br_127_files_stay_in_the_folder_when_ids_are_hostile(desk: SnapshotDesk, tmp_path: Path) -> None:
    """Every id is written and read back, no two share a file, and nothing lies anywhere else."""
    for index, handoff_id in enumerate(IDS):
        desk.write({"n": index}, handoff_id=handoff_id)
    for index, handoff_id in enumerate(IDS):
        assert desk.snapshots.read_snapshot(handoff_id, BEFORE).state == {"n": index}
    assert len(desk.files()) == 2 * len(IDS)
    assert [path.name for path in tmp_path.rglob("*") if path.parent != desk.directory] == [
        "inner",
        "handoff-snapshots",
    ]
    assert {path.parent.resolve() for path in desk.directory.iterdir()} == {desk.directory.resolve()}


def test_br_127_another_file_is_not_reached_when_an_id_names_it(desk: SnapshotDesk, tmp_path: Path) -> None:
    """Reading by an id that leads out of the folder finds nothing."""
    desk.write({"n": 1}, handoff_id="victim")
    for file in list(desk.directory.iterdir()):
        file.rename(tmp_path / file.name)
    for handoff_id in ("../../victim", str(tmp_path / "victim")):
        with pytest.raises(SnapshotUnavailable, match=r"must be there, got no file"):
            desk.snapshots.read_snapshot(handoff_id, BEFORE)


def test_br_128_files_are_their_owners_when_folder_and_mask_are_loose(
    desk: SnapshotDesk, caplog: pytest.LogCaptureFixture
) -> None:
    """A mask of 000, a folder of 0755, a file of 0644 and what a killed process left: all are the owner's alone."""
    before = os.umask(0)
    try:
        desk.directory.mkdir(parents=True, mode=0o755)
        for name in ("h-1.before.json", "h-0.after.json", ".snapshot-0123456789abcdef.tmp"):
            (desk.directory / name).touch(0o644)
        with caplog.at_level(logging.WARNING, logger="handoffwatch.boundary"):
            desk.write({"a": 1})
            desk.snapshots.prune(0.0)
    finally:
        os.umask(before)
    assert rights(desk.directory) == 0o700
    assert {path.name: rights(path) for path in desk.directory.iterdir()} == dict.fromkeys(desk.files(), 0o600)
    assert [message.split(": ")[1] for message in sorted(caplog.messages)] == [
        ".snapshot-0123456789abcdef.tmp", str(desk.directory), "h-0.after.json",
    ]  # fmt: skip


def test_br_135_side_file_is_json_alone_when_it_holds_anything_else(desk: SnapshotDesk) -> None:
    """Tags, anchors and keys that stand there twice are no side file."""
    desk.write({"a": 1})
    side = desk.directory / "h-1.before.meta.json"
    good = side.read_text()
    anchors = "a: &a [x]\n" + "".join(f"{n}: &{n} [*a, *a]\n" for n in "bcdefg")
    twice = good.replace('"format": 1,', '"format": 1,\n  "route": "x->y",')
    for text in ("!!python/object/apply:os.system ['true']\n", anchors, twice.replace("r-1", "r-2"), good + good):
        side.write_text(text)
        with pytest.raises(SnapshotEdited):
            desk.snapshots.read_snapshot("h-1", BEFORE)
    side.write_text(good)
    assert desk.snapshots.read_snapshot("h-1", BEFORE).state == {"a": 1}


REVIVED = [
    {"lc": 2, "type": "constructor", "id": ["os", "system"], "kwargs": {}},
    {"__class__": "os.system", "__reduce__": ["echo"], "py/object": "os.system"},
    {"$type": "System.Diagnostics.Process", "!!python/object": "os.system", "__pydantic__": 1},
]


@pytest.mark.parametrize("state", REVIVED)
def test_br_136_snapshot_is_plain_data_when_it_looks_like_an_object(desk: SnapshotDesk, state: dict[str, Any]) -> None:
    """Nothing is built from what looks like an envelope of an object."""
    desk.write({"payload": state})
    found = desk.snapshots.read_snapshot("h-1", BEFORE).state
    assert found == {"payload": state}
    assert _types(found) <= {dict, list, str, int}


def _types(value: object) -> set[type]:
    if isinstance(value, dict):
        return {dict, *(kind for each in value.items() for part in each for kind in _types(part))}
    if isinstance(value, list):
        return {list, *(kind for each in value for kind in _types(each))}
    return {type(value)}


@pytest.mark.parametrize("state", [{"a": "\ud800"}, {"\udfff": 1}, {"a": ["x\udc00y"]}])
def test_br_136_nothing_is_written_when_a_text_holds_half_a_character(desk: SnapshotDesk, state: object) -> None:
    """There is no other way to write what has no canonical form."""
    with pytest.raises(SnapshotUnavailable):
        desk.write(state)
    assert desk.files() == []


def test_br_136_hand_edit_fails_its_digest_when_it_keeps_the_length(desk: SnapshotDesk) -> None:
    """The first byte that differs is enough."""
    desk.write({"amount": 100})
    path = desk.directory / "h-1.before.json"
    path.write_bytes(path.read_bytes().replace(b"100", b"900"))
    with pytest.raises(SnapshotEdited) as caught:
        desk.snapshots.read_snapshot("h-1", BEFORE)
    assert caught.value.message == "snapshots: h-1.before.json: must be as it was written, got another content"


@given(st.binary(max_size=300))
def test_br_136_bytes_are_refused_when_they_are_no_snapshot(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """Whatever lies in the files, reading it gives an error of ours or what was written."""
    desk = SnapshotDesk(tmp_path_factory.mktemp("any") / "snapshots")
    desk.write({"a": 1})
    for file in ("h-1.before.meta.json", "h-1.before.json"):
        good = (desk.directory / file).read_bytes()
        (desk.directory / file).write_bytes(data)
        with pytest.raises(SnapshotEdited):
            desk.snapshots.read_snapshot("h-1", BEFORE)
        (desk.directory / file).write_bytes(good)
    assert hashlib.sha256(good).hexdigest() == desk.snapshots.read_snapshot("h-1", BEFORE).meta.sha256
