"""The names of snapshot files: safe for any handoff id, and no two ids share one."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.boundary.snapshot_names import SnapshotName, name_of_file, snapshot_name
from handoffwatch.errors import SnapshotUnavailable
from handoffwatch.vocabulary import SnapshotStage
from support.secrets import vendor_keys

BEFORE, AFTER = SnapshotStage

IDS = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=120),
    st.text("abcABC012_-.~/\\\x00", max_size=110),
    st.from_regex(r"[a-z0-9_-]{1,101}", fullmatch=True),
)


@pytest.mark.parametrize(
    ("stage", "attempt", "state_file", "meta_file"),
    [
        (BEFORE, 1, "h-1842.before.json", "h-1842.before.meta.json"),
        (AFTER, 1, "h-1842.after.json", "h-1842.after.meta.json"),
        (AFTER, 2, "h-1842.2.after.json", "h-1842.2.after.meta.json"),
        (BEFORE, 10, "h-1842.10.before.json", "h-1842.10.before.meta.json"),
    ],
)
def test_name_tells_attempt_and_stage_when_the_id_is_plain(
    stage: SnapshotStage, attempt: int, state_file: str, meta_file: str
) -> None:
    """The first attempt is not told, the later ones are."""
    name = snapshot_name("h-1842", stage=stage, attempt=attempt)
    assert (name.state_file, name.meta_file) == (state_file, meta_file)


@pytest.mark.parametrize("handoff_id", ["a", "a" * 100, "0", "_", "-", "0f8b1c1e-7a52-4b8e-9d0c-6f1f6f0a2b11"])
def test_stem_is_the_id_when_it_is_a_safe_name(handoff_id: str) -> None:
    """Small letters, digits, `_` and `-`, up to 100 of them, stay."""
    assert snapshot_name(handoff_id, stage=BEFORE).stem == handoff_id


@pytest.mark.parametrize(
    "handoff_id",
    [
        "",
        "ABC",
        "a" * 101,
        "a.b",
        "~a",
        "a b",
        "ä",
        "a\n",
        "..",
        "/abs",
        "\ud800",
        *vendor_keys("abc0def1ghi2jkl3mno4"),
    ],
)
def test_stem_is_a_hash_when_the_id_is_no_safe_name(handoff_id: str) -> None:
    """Everything else is told by its hash, and so is what has the shape of a key."""
    digest = hashlib.sha256(handoff_id.encode(errors="surrogatepass")).hexdigest()
    assert snapshot_name(handoff_id, stage=BEFORE).stem == f"~{digest}"


@given(IDS, IDS, st.integers(1, 12), st.integers(1, 12))
def test_names_differ_when_ids_or_attempts_differ(one: str, other: str, one_try: int, other_try: int) -> None:
    """Two snapshots share a file only when they are the same snapshot, whatever letters a file system tells apart."""
    first, second = (
        snapshot_name(one, stage=BEFORE, attempt=one_try),
        snapshot_name(other, stage=BEFORE, attempt=other_try),
    )
    are_same = (one, one_try) == (other, other_try)
    assert (first.state_file.casefold() == second.state_file.casefold()) is are_same
    assert first.state_file != second.meta_file


@given(IDS, st.sampled_from(SnapshotStage), st.integers(1, 999_999_999))
def test_file_tells_its_name_when_it_is_read_back(handoff_id: str, stage: SnapshotStage, attempt: int) -> None:
    """Both files of a snapshot lead back to its name, and both are one segment of a path."""
    name = snapshot_name(handoff_id, stage=stage, attempt=attempt)
    assert name_of_file(name.state_file) == name_of_file(name.meta_file) == name
    assert name.state_file.isascii()
    assert name.state_file.isprintable()
    assert not {"/", "\\"} & set(name.state_file)
    assert len(name.meta_file) <= 255


@pytest.mark.parametrize(
    "file",
    [
        "h.json", "h.before.json.bak", "h.1.before.json", "h.02.before.json", "h.before.meta", ".before.json",
        "H.before.json", "~1.before.json", "h.before.json\n", "h.during.json", ".snapshot-0123456789abcdef.tmp",
    ],
)  # fmt: skip
def test_file_has_no_name_when_it_is_no_snapshot(file: str) -> None:
    """Only what `snapshot_name` makes is a snapshot."""
    assert name_of_file(file) is None


@pytest.mark.parametrize("attempt", [0, -1, 1_000_000_000])
def test_name_is_refused_when_the_attempt_is_none(attempt: int) -> None:
    """Attempts count from 1, and end where their file could not be read back."""
    with pytest.raises(SnapshotUnavailable) as caught:
        snapshot_name("h", stage=BEFORE, attempt=attempt)
    assert caught.value.message == "snapshots: attempt: must be 1 to 999999999, got a number outside"
    assert caught.value.hint == "count attempts from 1"


def test_name_holds_a_stage_when_it_was_given_as_text() -> None:
    """The text of a stage is a stage."""
    assert snapshot_name("h", stage="after") == SnapshotName("h", 1, AFTER)  # type: ignore[arg-type]
