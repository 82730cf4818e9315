"""The desk of a running demo, for the process that settles: `handoffwatch serve --app handoffwatch.demo.app:watch`.

The demo says where it runs: the settings file with `--config`, and the address of its payments service in the variable
NORTHWIND_PAYMENTS_URL.
"""

from __future__ import annotations

import os
from typing import Final

from handoffwatch import ConfigError
from handoffwatch.demo.desk import open_desk

PAYMENTS_VARIABLE: Final = "NORTHWIND_PAYMENTS_URL"


def _payments_url() -> str:
    url = os.environ.get(PAYMENTS_VARIABLE, "")
    if not url:
        raise ConfigError(
            f"environment: {PAYMENTS_VARIABLE}: must be the address of Northwind's payments service, got nothing",
            hint="run `handoffwatch demo --keep`, which starts this exporter",
        )
    return url


desk = open_desk(_payments_url())
watch = desk.watch
