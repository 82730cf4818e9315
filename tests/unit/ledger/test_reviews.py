"""Reviews: verdicts on the checks themselves, each counted once, under the labels of what was checked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handoffwatch.ledger import Ledger, Review, Wait
from handoffwatch.vocabulary import Mode, ReviewKind, ReviewSelection, ReviewVerdict
from support.evidence import blocked, drawn, refused_answer
from support.outcomes import StillClock, open_ledger

FALSE, RIGHT = ReviewVerdict.FALSE_BLOCK, ReviewVerdict.RIGHT_BLOCK


@pytest.fixture
def time() -> StillClock:
    """Time that stands still."""
    return StillClock()


@pytest.fixture
def ledger(tmp_path: Path, time: StillClock) -> Iterator[Ledger]:
    """A ledger with the workflow `refunds`."""
    opened = open_ledger(tmp_path / "ledger.db", time)
    yield opened
    opened.close()


def test_reviews_are_the_first_drawn_first_when_there_are_several(ledger: Ledger, time: StillClock) -> None:
    """Up to the limit; what was not drawn and what has its verdict stays out."""
    ids = []
    for number in (3, 1, 2):
        ids.append(ledger.store_case(drawn(f"h-{number}")))
        ledger.store_case(blocked(f"undrawn-{number}"))
        time.advance(1)
    ledger.label_review(ids[0], RIGHT, "")
    assert [review.case.case_id for review in ledger.reviews()] == ids[1:]
    assert [review.case.case_id for review in ledger.reviews(limit=1)] == ids[1:2]
    assert [review.case.case_id for review in ledger.reviews(open_only=False)] == ids


def test_review_has_the_verdict_and_its_wait_when_it_is_labelled(ledger: Ledger, time: StillClock) -> None:
    """Time, note and verdict are stored; how long it waited goes to whoever observes it."""
    case_id = ledger.store_case(drawn())
    time.advance(90)
    assert ledger.label_review(case_id, FALSE, "the field was there")
    case = ledger.case(case_id)
    assert case is not None
    assert ledger.review(case_id) == Review(
        case=case,
        selection=ReviewSelection.RANDOM,
        drawn_unix_s=1_000_000.0,
        verdict=FALSE,
        reviewed_unix_s=1_000_090.0,
        note="the field was there",
    )
    assert case.note == ""
    assert ledger.take_waits(10) == [Wait(ReviewKind.REVIEW, 90.0)]


def test_review_is_counted_once_when_it_is_labelled_twice(ledger: Ledger) -> None:
    """The first verdict stays, and the second changes nothing."""
    case_id = ledger.store_case(drawn())
    assert ledger.label_review(case_id, FALSE, "first")
    assert not ledger.label_review(case_id, RIGHT, "second")
    review = ledger.review(case_id)
    assert review is not None
    assert (review.verdict, review.note) == (FALSE, "first")
    labels = ("planner->executor", "1", "enforce", "random", "false_block")
    assert ledger.snapshot().counters == {("ledger_handoff_reviews_total", labels): 1}
    assert len(ledger.take_waits(10)) == 1


def test_review_is_counted_once_when_two_people_label_it_at_once(tmp_path: Path) -> None:
    """One of the two verdicts is the one."""
    ledgers = [open_ledger(tmp_path / "ledger.db", StillClock()) for _ in range(2)]
    ids = [ledgers[0].store_case(drawn(f"h-{number}")) for number in range(20)]
    together = threading.Barrier(2)

    def label(who: int) -> list[bool]:
        together.wait(60)
        return [ledgers[who].label_review(case_id, (FALSE, RIGHT)[who], "") for case_id in ids]

    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(label, range(2)))
    assert [sorted(pair) for pair in zip(*both, strict=True)] == [[False, True]] * 20
    assert sum(ledgers[0].snapshot().counters.values()) == 20
    for ledger in ledgers:
        ledger.close()


@pytest.mark.parametrize(
    ("evidence", "metric", "labels"),
    [
        (
            drawn(selection=ReviewSelection.FORCED),
            "ledger_handoff_reviews_total",
            ("planner->executor", "1", "enforce", "forced", "right_block"),
        ),
        (
            drawn(mode=Mode.SHADOW, schema_version="other"),
            "ledger_handoff_reviews_total",
            ("planner->executor", "other", "shadow", "random", "right_block"),
        ),
        (
            refused_answer(selection=ReviewSelection.RANDOM),
            "ledger_guard_reviews_total",
            ("refunds", "random", "right_block"),
        ),
    ],
    ids=["forced", "shadow", "guard"],
)
def test_review_is_counted_under_what_was_checked_when_it_is_labelled(
    ledger: Ledger, evidence: object, metric: str, labels: tuple[str, ...]
) -> None:
    """A contract by route, version and mode; the guard by workflow."""
    ledger.label_review(ledger.store_case(evidence), RIGHT, "")  # type: ignore[arg-type]
    assert ledger.snapshot().counters == {(metric, labels): 1}


def test_review_is_none_when_the_case_was_not_drawn(ledger: Ledger) -> None:
    """There is nothing to label, and nothing is counted."""
    case_id = ledger.store_case(blocked())
    for unknown in (case_id, "none"):
        assert ledger.review(unknown) is None
        assert not ledger.label_review(unknown, RIGHT, "")
    assert ledger.snapshot().counters == {}
    assert ledger.take_waits(10) == []
