"""One state that crosses a boundary, the policy of it, and what became of it on the way."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from handoffwatch.boundary.comparison import Comparison, capture, compare
from handoffwatch.boundary.policy import BoundaryPolicy

POLICY = BoundaryPolicy(
    schema_version="1",
    exact_paths=("handoff_id", "task.id", "task.goal", "task.constraints", "artifacts", "decisions"),
    ignore_paths=("created_at", "runtime_metrics", "local_cache"),
)


def state(**changed: object) -> dict[str, Any]:
    """Return the state of a refund as the sender has it, with some of it changed."""
    return {
        "schema_version": 1,
        "handoff_id": "h-1842",
        "task": {"id": "t-1", "goal": "refund the order", "constraints": ["at most 50.00", "ask first"]},
        "artifacts": [{"id": "a-1", "revision": 3, "sha256": "9f86d081"}],
        "decisions": [{"id": "d-1", "value": True}],
        "note": "the customer is waiting",
        **changed,
    }


def altered(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return the state after a change in place."""
    copied = copy.deepcopy(state())
    change(copied)
    return copied


def crossing(before: object, after: object, policy: BoundaryPolicy = POLICY) -> Comparison:
    """Return what the policy says about a state that left as `before` and reached the receiver as `after`."""
    left = capture(before, policy)
    arrived = capture(after, policy, like=left)
    assert arrived == capture(after, policy)
    return compare(left, arrived, policy)


def said(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return of each finding the code, the path and the pattern that it broke."""
    pairs = zip(comparison.findings, comparison.patterns, strict=True)
    return [(finding.code, finding.path, pattern) for finding, pattern in pairs]


def policy(**fields: Any) -> BoundaryPolicy:
    """Return a policy with the fields of this file's policy but for those given."""
    own: Mapping[str, Any] = {"exact_paths": POLICY.exact_paths, "ignore_paths": POLICY.ignore_paths}
    return BoundaryPolicy(**{**own, **fields})
