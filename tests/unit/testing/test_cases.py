"""Judging cases, and saying what is not as expected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handoffwatch import HandoffContext, Settings, Watch, Watchdog
from handoffwatch.testing import CaseResult, Expectation, check_cases, read_cases
from handoffwatch.testing.checking import summary
from handoffwatch.vocabulary import Verdict
from support.contract_cases import Work, handoff, read_case, watch_of, write_case

WRONG = {"order_id": None, "amount_cents": "3800"}


def _result(folder: Path, **keys: Any) -> CaseResult:
    return read_case(folder, **keys).result(watch_of())


@pytest.mark.parametrize(
    "codes",
    [
        ["null_field at payload.order_id", "type_mismatch at payload.amount_cents"],
        ["type_mismatch at payload.amount_cents", "null_field"],
        ["null_field", "type_mismatch"],
        ["null_field", "null_field at payload.order_id", "type_mismatch"],
    ],
)
def test_case_is_as_expected_when_every_code_is_named(tmp_path: Path, codes: list[str]) -> None:
    """In any order, and with or without the path."""
    result = _result(tmp_path, handoff=handoff(**WRONG), expect={"verdict": "blocked", "codes": codes})
    assert (result.is_as_expected, result.missing, result.unexpected) == (True, [], [])


def test_case_is_as_expected_when_one_code_stands_for_several_places(tmp_path: Path) -> None:
    """A code without a path is met wherever and however often it is found."""
    wrong = handoff(order_id=None, amount_cents=None)
    assert _result(tmp_path, handoff=wrong, expect={"verdict": "blocked", "codes": ["null_field"]}).is_as_expected


@pytest.mark.parametrize(
    ("expect", "lines"),
    [
        (
            {"verdict": "allowed"},
            [
                "case.json: a wrong amount",
                "  verdict: expected allowed, got blocked",
                "  + null_field at payload.order_id: payload.order_id must have a value, and is null",
                "  + type_mismatch at payload.amount_cents: payload.amount_cents must be an integer, and is text",
            ],
        ),
        (
            {"verdict": "blocked", "codes": ["null_field at payload.result", "type_mismatch", "low_confidence"]},
            [
                "case.json: a wrong amount",
                "  verdict: blocked, as expected",
                "  - null_field at payload.result",
                "  - low_confidence",
                "  + null_field at payload.order_id: payload.order_id must have a value, and is null",
            ],
        ),
        (
            {"verdict": "held", "codes": ["null_field", "type_mismatch"]},
            ["case.json: a wrong amount", "  verdict: expected held, got blocked"],
        ),
    ],
)
def test_case_says_what_changed_when_it_is_not_as_expected(
    tmp_path: Path, expect: dict[str, Any], lines: list[str]
) -> None:
    """`-` was expected and is gone, `+` was found and is new, with its sentence."""
    result = _result(tmp_path, note="a wrong amount", handoff=handoff(**WRONG), expect=expect)
    assert not result.is_as_expected
    assert result.lines() == lines
    with pytest.raises(AssertionError) as failed:
        result.case.check(watch_of())
    assert str(failed.value) == "\n".join(lines)


def test_case_is_not_as_expected_when_nothing_is_expected_yet(tmp_path: Path) -> None:
    """A case without an expectation proves nothing, so it is not passed over."""
    result = _result(tmp_path)
    assert not result.is_as_expected
    assert result.lines() == ["case.json", "  verdict: allowed, and nothing is expected yet"]
    assert result.to_json()["expected"] is None


def test_case_result_is_plain_data_when_asked_for(tmp_path: Path) -> None:
    """The same facts for programs, without sentences and without the handoff."""
    result = _result(tmp_path, handoff=handoff(order_id=None), expect={"verdict": "warned", "codes": ["foreign_task"]})
    assert result.to_json() == {
        "case": "case.json",
        "expected": {"verdict": "warned", "codes": ["foreign_task"]},
        "actual": {"verdict": "blocked", "codes": ["null_field at payload.order_id"]},
        "missing": ["foreign_task"],
        "unexpected": ["null_field at payload.order_id"],
    }


def test_case_is_judged_with_what_the_orchestrator_knows_when_it_says_so(tmp_path: Path) -> None:
    """Sender, receiver and context are those of the case, and none when it names none."""
    case = read_case(tmp_path, source="planner", target="reviewer", context={"task_id": "t-2", "run_id": "r-1"})
    assert case.context == HandoffContext(task_id="t-2", run_id="r-1")
    assert {"route_mismatch", "foreign_task"} <= set(case.judge(watch_of()).reasons)
    assert read_case(tmp_path).judge(watch_of()).reasons == []


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2027-01-30T23:59:59Z", (Verdict.WARNED, ("deprecated_schema_version at schema_version",))),
        ("2027-01-31T01:30:00+01:00", (Verdict.BLOCKED, ("deprecated_schema_version at schema_version",))),
    ],
)
def test_case_is_judged_at_its_own_time_when_it_names_one(
    tmp_path: Path, now: str, expected: tuple[Verdict, tuple[str, ...]]
) -> None:
    """A deprecation does not make a test fail on the day it comes: both sides of the day can be cases."""

    class Old(Work, version="1", deprecated_from="2027-01-31"):
        """The old version."""

    assert Expectation.of(read_case(tmp_path, now=now).judge(watch_of(Old))) == expected


def test_case_keeps_the_limit_of_the_settings_when_it_is_judged_at_its_own_time(tmp_path: Path) -> None:
    """A setting of the Watch holds at every time."""
    watch = Watch(settings=Settings.model_validate({"handoffs": {"payload_bytes_max": 1024}}))
    watch.route("executor->reviewer", contract=Work)
    large = handoff(result="x" * 2000)
    for keys in ({}, {"now": "2027-01-31T12:00:00Z"}):
        assert "too_large" in read_case(tmp_path, handoff=large, **keys).judge(watch).reasons


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "unparsable_text"), ('{"handoff_id": "h-1", "task', "truncated_payload"), ("[]", "type_mismatch")],
)
def test_case_is_judged_as_text_when_it_holds_text(tmp_path: Path, text: str, code: str) -> None:
    """What is no JSON object can be a case too."""
    assert code in read_case(tmp_path, text=text).judge(watch_of()).reasons


def test_check_cases_does_nothing_when_all_are_as_expected(tmp_path: Path) -> None:
    """A Watchdog serves as well as a Watch."""
    write_case(tmp_path, "good.json", expect={"verdict": "allowed"})
    write_case(
        tmp_path,
        "bad/null.json",
        handoff=handoff(order_id=None),
        expect={"verdict": "blocked", "codes": ["null_field"]},
    )
    watch = watch_of()
    check_cases(watch, tmp_path)
    check_cases(watch.watchdog, str(tmp_path))
    assert isinstance(watch.watchdog, Watchdog)


def test_check_cases_says_what_changed_in_each_when_some_are_wrong(tmp_path: Path) -> None:
    """One failure, readable without looking at the files."""
    write_case(tmp_path, "a.json", expect={"verdict": "blocked"})
    write_case(tmp_path, "b.json", expect={"verdict": "allowed"})
    write_case(tmp_path, "c/d.json")
    with pytest.raises(AssertionError) as failed:
        check_cases(watch_of(), tmp_path)
    assert str(failed.value).splitlines() == [
        "3 cases: 1 as expected, 1 changed, 1 without an expectation",
        "a.json",
        "  verdict: expected blocked, got allowed",
        "c/d.json",
        "  verdict: allowed, and nothing is expected yet",
    ]


def test_check_cases_refuses_what_is_no_registry(tmp_path: Path) -> None:
    """The wrong argument is named, whatever is in the folder."""
    write_case(tmp_path)
    with pytest.raises(TypeError, match=r"^registry: must be a Watch or a Watchdog, got str$"):
        check_cases("desk:watch", tmp_path)  # type: ignore[arg-type]


def test_summary_counts_in_words_when_there_is_one_case_and_when_there_are_more(tmp_path: Path) -> None:
    """The line that ends a report."""
    write_case(tmp_path, "a.json", expect={"verdict": "allowed"})
    watch = watch_of()
    assert summary(case.result(watch) for case in read_cases(tmp_path)) == "1 case: as expected"
    write_case(tmp_path, "b.json", expect={"verdict": "held"})
    assert summary(case.result(watch) for case in read_cases(tmp_path)) == "2 cases: 1 as expected, 1 changed"


def test_kit_loads_no_pytest_when_it_is_imported() -> None:
    """Only the plugin module imports pytest, so the kit serves programs that do not have it."""
    script = "import sys, handoffwatch.testing, handoffwatch.cli.app; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
