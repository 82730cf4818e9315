"""`/metrics` served from the program itself."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, start_http_server

from handoffwatch.errors import ConfigError


class MetricsServer:
    """A small HTTP server in a daemon thread.

    Attributes:
        address: The address it listens on.
        port: The port it listens on.

    Raises:
        ConfigError: It cannot listen there.
    """

    def __init__(self, registry: CollectorRegistry, *, port: int, address: str) -> None:
        try:
            self._server, self._thread = start_http_server(port, addr=address, registry=registry)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"metrics: {address} port {port}: cannot listen: {getattr(error, 'strerror', None) or error}",
                hint="choose another port; port=0 takes a free one",
            ) from None
        self.address = address
        self.port = int(self._server.server_port)

    def __repr__(self) -> str:
        return f"<MetricsServer http://{self.address}:{self.port}/metrics>"

    def close(self) -> None:
        """Stop listening and wait for the thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
