"""Functions in daemon threads of their own: whoever waits for one may leave it behind, and only so many run at once."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class ThreadsExhausted(Exception):
    """As many threads run as may at once; the function was not called."""


class DaemonThreads:
    """Calls functions in threads that nobody has to wait for. Thread-safe.

    A thread that hangs counts until its function returns; it never holds up the end of the process.

    Args:
        name: What the threads are called.
        threads_max: How many may run at once, those left behind included.
    """

    def __init__(self, name: str, *, threads_max: int) -> None:
        self._name = name
        self._threads_max = threads_max
        self._places = threading.BoundedSemaphore(threads_max)

    def start(self, function: Callable[[], T]) -> Future[T]:
        """Call `function` in a new thread, in a copy of the caller's context, and return where its result will be.

        Raises:
            ThreadsExhausted: No further thread may run now.
        """
        if not self._places.acquire(blocking=False):
            raise ThreadsExhausted(f"{self._threads_max} threads run already")
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                try:
                    result = context.run(function)
                finally:
                    self._places.release()
            except BaseException as error:  # noqa: BLE001 - it goes to whoever waits
                future.set_exception(error)
            else:
                future.set_result(result)

        try:
            threading.Thread(target=run, name=self._name, daemon=True).start()
        except BaseException:
            self._places.release()
            raise
        return future
