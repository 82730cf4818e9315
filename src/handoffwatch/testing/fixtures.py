"""A pytest plugin that makes a test of every contract case; the one module of the product that imports pytest.

In the `conftest.py` at the top of the tests:

    pytest_plugins = ["handoffwatch.testing.fixtures"]

In a test, with a folder beside it:

    @pytest.mark.contract_cases("cases")
    def test_contracts(contract_case):
        contract_case.check(watch)

It is no entry point, so that a program which only uses handoffwatch finds nothing new in its test runs.
"""

from __future__ import annotations

from typing import Final

import pytest

from handoffwatch.errors import ConfigError
from handoffwatch.testing.case_files import read_cases
from handoffwatch.testing.cases import Case

_FIXTURE: Final = "contract_case"
_MARKER: Final = "contract_cases"


@pytest.fixture
def contract_case(request: pytest.FixtureRequest) -> Case:
    """One case of the folder that the marker `contract_cases` names; `contract_case.check(watch)` judges it."""
    case: Case = request.param
    return case


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", f"{_MARKER}(folder): make a test of every contract case in the folder, which lies beside the test"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that uses the fixture one case at a time.

    Raises:
        pytest.Collector.CollectError: The marker names no folder, or its cases cannot be read.
    """
    if _FIXTURE not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker(_MARKER)
    if marker is None or len(marker.args) != 1 or marker.kwargs:
        raise pytest.Collector.CollectError(
            f'{_FIXTURE}: the test must name the folder of its cases: @pytest.mark.{_MARKER}("cases")'
        )
    try:
        cases = read_cases(metafunc.definition.path.parent / marker.args[0])
    except ConfigError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    metafunc.parametrize(_FIXTURE, cases, ids=[case.name for case in cases], indirect=True)
