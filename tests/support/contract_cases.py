"""A registry with one route, handoffs for it, and case files that hold them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from handoffwatch import Contract, Watch
from handoffwatch.testing import Case, read_cases


class Work(Contract, version="1"):
    """What the reviewer needs."""

    order_id: str
    amount_cents: int
    result: str
    currency: str | None = None


def watch_of(contract: Any = Work, **options: Any) -> Watch:
    """Return a Watch with the route executor->reviewer."""
    watch = Watch()
    watch.route("executor->reviewer", contract=contract, **options)
    return watch


def handoff(**payload: Any) -> dict[str, Any]:
    """Return a handoff that fits `Work`, with fields of the payload replaced or added."""
    return {
        "handoff_id": "h-1",
        "task_id": "t-1",
        "source_agent": "executor",
        "target_agent": "reviewer",
        "task_type": "refund",
        "status": "completed",
        "schema_version": "1",
        "payload": {"order_id": "4417", "amount_cents": 3800, "result": "refunded"} | payload,
    }


def write_case(folder: Path, name: str = "case.json", **keys: Any) -> Path:
    """Write a case file and return its path; a good handoff is in it unless another is given."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = keys if "text" in keys else {"handoff": handoff()} | keys
    path.write_text(json.dumps(keys, indent=2), encoding="utf-8")
    return path


def read_case(folder: Path, **keys: Any) -> Case:
    """Return a case with these keys, as its file says it."""
    (case,) = read_cases(write_case(folder, **keys))
    return case
