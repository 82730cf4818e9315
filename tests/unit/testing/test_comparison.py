"""What two versions of a contract say about the same handoff."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handoffwatch import Contract, Watch
from handoffwatch.testing.comparison import CHANGES_SHOWN, Comparison, compare
from support.contract_cases import Work, handoff, read_case, watch_of


class Priced(Contract, version="1"):
    """The next version of `Work`: a currency that has a default, and an amount that may be left out."""

    order_id: str
    amount_cents: int | None = None
    result: str
    currency: str = "EUR"


class Listing(Contract, version="1"):
    """Orders as a list."""

    orders: list[dict[str, int]] = []  # noqa: RUF012 - pydantic copies the default of each field


def _compared(folder: Path, old: Watch, new: Watch, **keys: Any) -> Comparison:
    return compare(read_case(folder, **keys), old, new)


def test_compare_finds_nothing_when_the_versions_are_equal(tmp_path: Path) -> None:
    """Also for a handoff without an id, which gets another each time."""
    unnamed = {key: value for key, value in handoff().items() if key != "handoff_id"}
    for raw in (handoff(), handoff(order_id=None), unnamed):
        compared = _compared(tmp_path, watch_of(), watch_of(), handoff=raw)
        assert (compared.is_equal, compared.lines()) == (True, ["case.json"])


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (handoff(), ['  ~ payload.currency: null -> "EUR"']),
        (handoff(amount_cents=None), ["  verdict: blocked -> allowed", "  - null_field at payload.amount_cents"]),
        (handoff(currency=None), ["  verdict: allowed -> blocked", "  + null_field at payload.currency"]),
        (
            handoff(amount_cents=None, currency=None),
            ["  - null_field at payload.amount_cents", "  + null_field at payload.currency"],
        ),
        (handoff(currency="USD"), []),
        (handoff(order_id=1), []),
    ],
)
def test_compare_says_how_when_verdict_codes_or_normal_form_differ(
    tmp_path: Path, raw: dict[str, Any], lines: list[str]
) -> None:
    """A normal form is compared only where both let the handoff pass."""
    compared = _compared(tmp_path, watch_of(), watch_of(Priced), handoff=raw)
    assert compared.lines() == ["case.json", *lines]
    assert compared.is_equal is (not lines)


def test_compare_says_the_mode_when_only_one_version_enforces(tmp_path: Path) -> None:
    """The normal form is not compared then: in shadow mode the receiver gets what was sent."""
    compared = _compared(tmp_path, watch_of(), watch_of(mode="shadow"), handoff=handoff(order_id=None))
    assert compared.lines() == ["case.json", "  mode: enforce -> shadow"]
    assert not compared.is_equal
    assert compared.to_json() == {
        "case": "case.json",
        "old": {"allowed": False, "mode": "enforce", "verdict": "blocked", "codes": ["null_field at payload.order_id"]},
        "new": {"allowed": True, "mode": "shadow", "verdict": "blocked", "codes": ["null_field at payload.order_id"]},
        "gone": [],
        "come": [],
        "normalized": [],
    }


def test_compare_tells_numbers_and_truth_apart_when_they_look_equal(tmp_path: Path) -> None:
    """1, 1.0 and true are equal to Python and not to a receiver."""

    class AsNumber(Work, version="1"):
        currency: float = 1.0  # type: ignore[assignment]

    class AsTruth(Work, version="1"):
        currency: bool = True  # type: ignore[assignment]

    compared = _compared(tmp_path, watch_of(AsNumber), watch_of(AsTruth))
    assert compared.lines() == ["case.json", "  ~ payload.currency: 1.0 -> true"]


def test_compare_shows_a_bounded_part_when_much_differs(tmp_path: Path) -> None:
    """Twenty places, each in one line of bounded length; JSON has them all."""

    class Filled(Contract, version="1"):
        orders: list[dict[str, int]] = [{"amount": number} for number in range(30)]  # noqa: RUF012

    class Long(Contract, version="1"):
        orders: str = "x\x1b" * 100

    raw = handoff() | {"payload": {}, "status": "ready"}
    many = _compared(tmp_path, watch_of(Listing), watch_of(Filled), handoff=raw)
    assert many.lines()[1] == '  ~ payload.orders.0: absent -> {"amount": 0}'
    assert many.lines()[CHANGES_SHOWN + 1 :] == ["  ~ and 10 more"]
    assert len(many.to_json()["normalized"]) == 30
    assert many.to_json()["normalized"][0] == {"path": "payload.orders.0", "new": {"amount": 0}}
    long = _compared(tmp_path, watch_of(Listing), watch_of(Long), handoff=raw)
    assert long.lines()[1] == '  ~ payload.orders: [] -> "' + ("x\\u001b" * 9)[:59] + "…"
