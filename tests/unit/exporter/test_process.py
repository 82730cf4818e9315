"""The threads of the exporter process."""

from __future__ import annotations

import threading

from handoffwatch.exporter.process import Parts


def test_parts_stop_the_whole_when_one_ends_by_itself() -> None:
    """A process without its server or settler is no exporter: it ends, and says which part ended."""
    parts = Parts()

    parts.start("server", lambda: parts.stop.wait(10))
    parts.start("settler", lambda: None)

    assert parts.stop.wait(10)
    assert parts.join(10) == []
    assert parts.crashed == "exporter: settler: ended by itself"


def test_parts_name_what_has_not_ended_when_the_time_is_over() -> None:
    """What is told to stop and does not is left behind; it did not crash."""
    parts = Parts()
    release = threading.Event()
    parts.start("server", lambda: release.wait(10))
    parts.stop.set()

    assert parts.join(0) == ["server"]
    release.set()
    assert parts.join(10) == []
    assert parts.crashed == ""
