"""The refund desk of a folder, for `handoffwatch serve --app support.refund_desk_app:watch`."""

from __future__ import annotations

import os
from pathlib import Path

from support.refund_desk import open_desk

watch = open_desk(Path(os.environ["REFUND_DESK"])).watch
