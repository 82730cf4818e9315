"""What `from handoffwatch import Watch` costs beside the libraries that it stands on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.ratios import ratio, report

OURS = "from handoffwatch import Watch"
PLAIN = "import pydantic, prometheus_client, opentelemetry.trace"
LIMIT = 1.4


@pytest.mark.bench
def test_import_costs_little_more_than_its_libraries() -> None:
    """Importing Watch costs at most 1.4 times importing pydantic, prometheus_client and the OpenTelemetry API."""

    def run(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    measured = ratio(lambda: run(OURS), lambda: run(PLAIN), calls=1)
    report("importing Watch", measured, LIMIT)
    assert measured <= LIMIT
