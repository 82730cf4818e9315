"""The pytest plugin, in a test run of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.contract_cases import handoff, write_case

DESK = """\
from handoffwatch import Contract, Watch

class Work(Contract):
    order_id: str
    amount_cents: int
    result: str

watch = Watch()
watch.route("executor->reviewer", contract=Work)
"""
TEST = """\
import pytest
from desk import watch

{marker}
def test_contracts(contract_case):
    contract_case.check(watch)
"""


def _pytest(folder: Path, marker: str, *options: str) -> tuple[int, str]:
    (folder / "desk.py").write_text(DESK, encoding="utf-8")
    (folder / "test_desk.py").write_text(TEST.format(marker=marker), encoding="utf-8")
    (folder / "conftest.py").write_text('pytest_plugins = ["handoffwatch.testing.fixtures"]\n', encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", *options]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout


def test_plugin_fails_one_test_for_each_wrong_case_when_some_are_wrong(tmp_path: Path) -> None:
    """The others pass, and the failure shows what changed and nothing of the kit's own code."""
    write_case(tmp_path / "cases", "good.json", expect={"verdict": "allowed"})
    write_case(tmp_path / "cases", "sub/bad.json", handoff=handoff(order_id=None), expect={"verdict": "allowed"})
    code, out = _pytest(tmp_path, '@pytest.mark.contract_cases("cases")', "-rA")
    assert code == 1
    assert "PASSED test_desk.py::test_contracts[good.json]" in out
    assert "FAILED test_desk.py::test_contracts[sub/bad.json]" in out
    for line in (
        "  verdict: expected allowed, got blocked",
        "  + null_field at payload.order_id: payload",
    ):
        assert f"E   {line}" in out or f"E       {line}" in out
    assert "__tracebackhide__" not in out


def test_plugin_stops_the_collection_when_a_case_cannot_be_read(tmp_path: Path) -> None:
    """An unreadable case is no passed test, and the error names file and line."""
    write_case(tmp_path / "cases", "good.json", expct={"verdict": "allowed"})
    code, out = _pytest(tmp_path, '@pytest.mark.contract_cases("cases")')
    assert code == 2
    assert "good.json:" in out
    assert "expct: unknown key" in out
    assert "hint: did you mean expect?" in out


def test_plugin_stops_the_collection_when_the_test_names_no_folder(tmp_path: Path) -> None:
    """The error says what to write."""
    code, out = _pytest(tmp_path, "")
    assert code == 2
    assert 'the test must name the folder of its cases: @pytest.mark.contract_cases("cases")' in out


def test_plugin_says_what_it_offers_when_asked(tmp_path: Path) -> None:
    """The fixture and the marker are in pytest's own lists."""
    assert "\ncontract_case -- " in _pytest(tmp_path, "", "--fixtures", "--ignore=test_desk.py")[1]
    assert "@pytest.mark.contract_cases(folder): make a test of every" in _pytest(tmp_path, "", "--markers")[1]
