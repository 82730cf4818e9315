"""The exceptions that carry more than a message."""

from __future__ import annotations

from handoffwatch import HandoffBlocked, HandoffDivergence, Stopped


def test_handoff_divergence_says_which_crossing_broke_when_it_is_raised() -> None:
    """Run, handoff, attempt, stage and paths stand on it; whoever catches a block catches it."""
    error = HandoffDivergence(
        "handoff h-1: task.constraints: did not survive the crossing",
        decision=None,
        run_id="run-1",
        handoff_id="h-1",
        attempt=2,
        stage="validate",
        paths=["task.constraints", "note"],
        hint="mend the export function",
    )

    assert isinstance(error, HandoffBlocked)
    assert isinstance(error, Stopped)
    assert (error.run_id, error.handoff_id, error.attempt, error.stage) == ("run-1", "h-1", 2, "validate")
    assert (error.paths, error.decision) == (("task.constraints", "note"), None)
    assert str(error) == ("handoff h-1: task.constraints: did not survive the crossing\nhint: mend the export function")
