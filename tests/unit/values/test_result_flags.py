"""What a result says of itself: flags decide, text does not."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from handoffwatch.values.result_flags import is_blank, says_it_failed


@dataclass
class Answer:
    """A result as an object of some framework."""

    is_error: object = False
    ok: object = True


@pytest.mark.parametrize(
    "value",
    [
        {"isError": True},
        {"is_error": True, "content": []},
        {"ok": False},
        {"success": False, "data": {"id": 1}},
        {"status": "error"},
        {"error": "401 Unauthorized"},
        {"error": {"code": 7}},
        {"data": None, "errors": [{"message": "no"}]},
        Answer(is_error=True),
    ],
    ids=repr,
)
def test_says_it_failed_when_a_flag_says_so(value: object) -> None:
    """The flags of DESIGN section 3 rule 2 are read."""
    assert says_it_failed(value) is True


@pytest.mark.parametrize(
    "value",
    [
        None, 0, False, "", [], {}, "error: 401", "Error", ["error"],
        {"isError": False}, {"isError": "true"}, {"is_error": 1},
        {"ok": True}, {"ok": 0}, {"ok": None}, {"success": "false"},
        {"status": "failed to find any"}, {"status": "ok"}, {"status": None},
        {"error": "none", "result": 3}, {"error": None, "result": 3},
        {"errors": []}, {"errors": None}, {"errors": "none"},
        {"data": {"isError": True}},
        Answer(), Answer(is_error="yes"), Answer(ok=False),
    ],
    ids=repr,
)  # fmt: skip
def test_says_it_failed_says_no_when_no_flag_says_so(value: object) -> None:
    """Words, empty values, flags of another type and nested flags decide nothing."""
    assert says_it_failed(value) is False


@pytest.mark.parametrize("value", [None, "", " ", "\t\n", "\u3000\u00a0"], ids=repr)
def test_is_blank_when_a_value_says_nothing(value: object) -> None:
    """Absent, null and white space say nothing."""
    assert is_blank(value) is True


@pytest.mark.parametrize("value", ["x", " x ", 0, 0.0, False, [], {}, (), b"", "\u200b"], ids=repr)
def test_is_blank_says_no_when_a_value_says_something(value: object) -> None:
    """0, false and an empty list are results."""
    assert is_blank(value) is False
