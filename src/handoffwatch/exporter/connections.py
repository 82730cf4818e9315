"""Connections of the exporter: one that asks for nothing is closed, so that it takes no place from Prometheus."""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S_MAX: Final = 5.0
"""The longest that a connection may take to send a request: half of Prometheus' default for a whole scrape."""


class PromptHttp(H11Protocol):
    """HTTP/1.1 of uvicorn, with a limit on the time in which a request must have come.

    uvicorn bounds the time between two requests, and neither that before the first one nor the one that a request may
    take to come: a client that says nothing, or a byte now and then, would keep its place for ever.
    """

    _too_late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a request, unless one is being answered."""
        super().data_received(data)
        if self._is_answering():
            self._stop_waiting()
        else:
            self._wait()

    def on_response_complete(self) -> None:
        """Stop waiting when the next request was there already."""
        super().on_response_complete()
        if self._is_answering():
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        if self._too_late is None and not self.transport.is_closing():
            self._too_late = self.loop.call_later(REQUEST_S_MAX, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._too_late is not None:
            self._too_late.cancel()
            self._too_late = None
