"""`/metrics` served from the program itself."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, start_http_server


class MetricsServer:
    """A small HTTP server in a daemon thread.

    Attributes:
        port: The port it listens on.
    """

    def __init__(self, registry: CollectorRegistry, *, port: int, address: str) -> None:
        self._server, self._thread = start_http_server(port, addr=address, registry=registry)
        self.port = int(self._server.server_port)

    def close(self) -> None:
        """Stop listening and wait for the thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
