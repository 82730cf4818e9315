"""The life of an exporter process: bind, serve and settle, and drain when told to stop."""

from __future__ import annotations

import ipaddress
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

import uvicorn

from handoffwatch.errors import ConfigError, HandoffwatchError
from handoffwatch.exporter.connections import PromptHttp
from handoffwatch.exporter.log_lines import log_to_stderr
from handoffwatch.exporter.off_loop import OffLoop
from handoffwatch.exporter.served import Served, find_served
from handoffwatch.exporter.web import web_app

Say = Callable[[str], None]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_CONNECTIONS_MAX: Final = 100
_HEADER_BYTES_MAX: Final = 16_384
_BACKLOG: Final = 128


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the command line says; None leaves it to the settings.

    Attributes:
        config: The settings file.
        app: `module:attribute` of the user's Watch.
        address: Address to listen on.
        port: Port to listen on; 0 takes a free one.
    """

    config: str | None = None
    app: str | None = None
    address: str | None = None
    port: int | None = None


def serve(options: ServeOptions, *, say: Say) -> None:
    """Serve until SIGTERM or SIGINT, then drain and return. Call it from the main thread.

    Args:
        options: What the command line says.
        say: Takes one line at a time for the person who started the process.

    Raises:
        ConfigError: Settings, app, address or port are wrong.
        HandoffwatchError: The server or the settler ended by itself.
    """
    served = find_served(config=options.config, app=options.app)
    log_to_stderr()
    address = options.address if options.address is not None else served.settings.address
    port = options.port if options.port is not None else served.settings.port
    listener = _listen(address, port)
    say(f"ledger {served.watch.settings.ledger.shown}")
    say(served.settling)
    _open_ledger(served, say)
    parts = Parts()
    with _stop_on_signals(parts.stop):
        server = _server(served)
        parts.start("server", lambda: server.run(sockets=[listener]))
        if served.app is not None:
            parts.start("settler", lambda: _settle(served, parts.stop))
            served.watch.start_selftest()
        say(f"listening on {_url(address, listener)}{_exposure(listener)}")
        parts.stop.wait()
    say("draining")
    server.should_exit = True
    unfinished = parts.join(served.settings.drain_s)
    served.watch.close()
    say(f"stopped, without waiting for the {' and the '.join(unfinished)}" if unfinished else "stopped")
    if parts.crashed:
        raise HandoffwatchError(parts.crashed, hint="the lines above say why; a supervisor may start the process again")


@dataclass(slots=True)
class Parts:
    """The threads of the process; any one that ends by itself stops the whole."""

    stop: threading.Event = field(default_factory=threading.Event)
    crashed: str = ""
    _threads: dict[str, threading.Thread] = field(default_factory=dict)

    def start(self, name: str, body: Callable[[], object]) -> None:
        """Run `body` in a daemon thread: it cannot hold the end of the process."""

        def guarded() -> None:
            try:
                body()
            finally:
                if not self.stop.is_set():
                    self.crashed = f"exporter: {name}: ended by itself"
                    self.stop.set()

        self._threads[name] = threading.Thread(target=guarded, name=f"handoffwatch-{name}", daemon=True)
        self._threads[name].start()

    def join(self, seconds: float) -> list[str]:
        """Wait for all threads together; return the names of those that have not ended."""
        end_s = time.monotonic() + seconds
        for thread in self._threads.values():
            thread.join(max(0.0, end_s - time.monotonic()))
        return [name for name, thread in self._threads.items() if thread.is_alive()]


def _listen(address: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        ConfigError: The address is none, or none of this machine, or the port is taken or not allowed.
    """
    try:
        family, _, _, _, target = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(target[:2], family=family, backlog=_BACKLOG)
    except ValueError:
        raise ConfigError(
            "exporter: address: must be an IP address or a host name, got a text that can be neither",
            hint="choose another with --address or exporter.address",
        ) from None
    except OSError as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise ConfigError(
            f"exporter: {address} port {port}: cannot listen: {str(reason).lower()}",
            hint="choose another with --address or --port; --port 0 takes a free port",
        ) from None


def _url(address: str, listener: socket.socket) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{listener.getsockname()[1]}"


def _exposure(listener: socket.socket) -> str:
    """Return a warning when others than this machine can ask: the exporter has no authentication of its own."""
    is_private = ipaddress.ip_address(listener.getsockname()[0]).is_loopback
    return "" if is_private else " (reachable from other machines, without authentication)"


def _server(served: Served) -> uvicorn.Server:
    limits = served.settings
    off_loop = OffLoop(slots=limits.scrapes_max, wait_s_max=limits.scrape_s_max)
    return uvicorn.Server(
        uvicorn.Config(
            web_app(served, off_loop),
            http=PromptHttp,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS_MAX,
            h11_max_incomplete_event_size=_HEADER_BYTES_MAX,
            timeout_graceful_shutdown=max(1, math.floor(limits.drain_s) - 1),
        )
    )


def _open_ledger(served: Served, say: Say) -> None:
    """Open the ledger now, so that its series are there at the first scrape; when it is down, serve without them."""
    if problem := served.ledger_problem():
        say(f"the ledger cannot be read, it is tried again at every request: {problem}")


def _settle(served: Served, stop: threading.Event) -> None:
    served.watch.settler().serve(stop)


@contextmanager
def _stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """Set `stop` on the first SIGTERM or SIGINT; afterwards a second one ends the process at once, as usual."""

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
