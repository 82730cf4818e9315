"""Threads that may be left behind: bounded, in the caller's context, and gone when their function returns."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from handoffwatch.threads import DaemonThreads, ThreadsExhausted

NAME: ContextVar[str] = ContextVar("name", default="nobody")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hanging functions wait for; it opens when the test is over."""
    opened = threading.Event()
    yield opened
    opened.set()


def _fail() -> None:
    raise KeyError("no such order")


def test_start_gives_the_result_when_the_function_returns() -> None:
    """Whoever waits gets what it returned."""
    assert DaemonThreads("test", threads_max=1).start(lambda: 7).result(timeout=60) == 7


def test_start_gives_the_exception_when_the_function_raises() -> None:
    """Whoever waits gets what it raised."""
    error = DaemonThreads("test", threads_max=1).start(_fail).exception(timeout=60)
    assert (type(error), str(error)) == (KeyError, "'no such order'")


def test_function_runs_in_a_named_daemon_thread_and_in_a_copy_of_the_context_when_started() -> None:
    """It sees what its caller sees, changes nothing there, and holds up no exit."""
    NAME.set("caller")

    def look() -> tuple[str, str, bool]:
        seen = NAME.get()
        NAME.set("thread")
        thread = threading.current_thread()
        return seen, thread.name, thread.daemon

    assert DaemonThreads("handoffwatch-test", threads_max=1).start(look).result(timeout=60) == (
        "caller",
        "handoffwatch-test",
        True,
    )
    assert NAME.get() == "caller"


def test_start_is_refused_when_as_many_threads_hang_as_may_run(gate: threading.Event) -> None:
    """What hangs is bounded, and the function is not called."""
    threads = DaemonThreads("test", threads_max=2)
    hanging = [threads.start(gate.wait) for _ in range(2)]
    called: list[int] = []

    with pytest.raises(ThreadsExhausted, match=r"^2 threads run already$"):
        threads.start(lambda: called.append(1))

    assert called == []
    gate.set()
    assert [each.result(timeout=60) for each in hanging] == [True, True]
    threads.start(lambda: called.append(2)).result(timeout=60)
    assert called == [2]


def test_place_is_free_when_its_function_has_ended_in_whatever_way() -> None:
    """A place that is not given back would be lost for good."""
    threads = DaemonThreads("test", threads_max=1)
    for _ in range(50):
        assert threads.start(_fail).exception(timeout=60) is not None
        assert threads.start(lambda: None).result(timeout=60) is None


def test_place_is_free_when_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is out of threads says so, and goes on when there are some again."""
    threads = DaemonThreads("test", threads_max=1)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match=r"^can't start new thread$"):
            threads.start(lambda: None)

    assert threads.start(lambda: 7).result(timeout=60) == 7
