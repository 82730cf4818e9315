"""An HTTP/1.1 server on loopback that really misbehaves: it drops, resets, stalls, cuts answers short, and keeps a log.

Each wire attempt of a test asks its script for a target before it connects, and the connection that then arrives gets
what the script says. A connection that nobody asked for is a stray: a client that repeats requests by itself.
"""

from __future__ import annotations

import contextlib
import http
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CALL_ID_HEADER: Final = "X-Call-Id"
STALL_S: Final = 0.05
"""How long a client waits for a server that says nothing."""
PATIENCE_S: Final = 10.0
"""How long anything else may take on a busy machine before the test fails."""
BODY: Final = b'{"orders": ["4417", "4418"]}'


class Fault(StrEnum):
    """What becomes of a wire attempt; `unread` is before the request was read, without it after."""

    ANSWERED = "answered"
    REFUSED = "refused"
    CONNECT_STALLED = "connect_stalled"
    PLAIN_ON_TLS = "plain_on_tls"
    DROPPED_UNREAD = "dropped_unread"
    RESET_UNREAD = "reset_unread"
    STALLED_UNREAD = "stalled_unread"
    DROPPED = "dropped"
    RESET = "reset"
    STALLED = "stalled"
    CUT_IN_STATUS_LINE = "cut_in_status_line"
    CUT_IN_HEADERS = "cut_in_headers"
    CUT_IN_BODY = "cut_in_body"
    CUT_IN_CHUNK = "cut_in_chunk"
    RESET_IN_BODY = "reset_in_body"
    STALLED_IN_BODY = "stalled_in_body"
    GARBAGE = "garbage"


_UNREAD: Final = {Fault.PLAIN_ON_TLS, Fault.DROPPED_UNREAD, Fault.RESET_UNREAD, Fault.STALLED_UNREAD}
_STALLS: Final = {Fault.STALLED_UNREAD, Fault.STALLED, Fault.STALLED_IN_BODY}
_RESETS: Final = {Fault.RESET_UNREAD, Fault.RESET, Fault.RESET_IN_BODY}
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_HALF_A_BODY: Final = _HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY[:10])
_SENT: Final = {
    Fault.CUT_IN_STATUS_LINE: b"HTTP/1.1 2",
    Fault.CUT_IN_HEADERS: _HEAD + b"Content-Le",
    Fault.CUT_IN_BODY: _HALF_A_BODY,
    Fault.CUT_IN_CHUNK: _HEAD + b"Transfer-Encoding: chunked\r\n\r\n1c\r\n" + BODY[:10],
    Fault.RESET_IN_BODY: _HALF_A_BODY,
    Fault.STALLED_IN_BODY: _HALF_A_BODY,
    Fault.GARBAGE: b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    Fault.PLAIN_ON_TLS: b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
}


@dataclass(frozen=True, slots=True)
class Act:
    """What the server does with one wire attempt; status and Retry-After are those of an answer."""

    fault: Fault = Fault.ANSWERED
    status: int = 200
    retry_after: str | None = None

    def __str__(self) -> str:
        if self.fault is not Fault.ANSWERED:
            return self.fault.value
        return str(self.status) if self.retry_after is None else f"{self.status} after {self.retry_after[:30]}"


GOOD: Final = Act()


@dataclass(frozen=True, slots=True)
class Seen:
    """One connection: whose it was, what was done with it, and whether its request had reached the server whole."""

    call_id: str
    act: Act
    reached: bool


@dataclass(frozen=True, slots=True)
class Target:
    """Where the next wire attempt of a call goes, and how long its client waits."""

    url: str
    call_id: str
    connect_timeout_s: float
    read_timeout_s: float


class Script:
    """What happens to the wire attempts of one logical call, in turn; after its end all is well."""

    def __init__(self, server: FaultyServer, call_id: str, acts: Iterable[Act]) -> None:
        self.call_id = call_id
        self.attempts = 0
        self._server = server
        self._acts = deque(acts)

    def target(self) -> Target:
        """Begin a wire attempt."""
        self.attempts += 1
        return self._server.expect(self.call_id, self._acts.popleft() if self._acts else GOOD)


class FaultyServer:
    """The server; its one thread takes connections in the order in which they were made.

    Attributes:
        strays: What nobody asked for: a connection without a script, or a request under another call's id.
    """

    def __init__(self) -> None:
        self.strays: list[str] = []
        self._listener = _listening(backlog=128)
        self._closed_port = socket.socket()
        self._closed_port.bind(("127.0.0.1", 0))
        self._full = _listening(backlog=0)
        self._fillers = [_half_open(self._full) for _ in range(3)]
        self._changed = threading.Condition()
        self._expected: deque[tuple[str, Act]] = deque()
        self._busy = self._closing = False
        self._seen: list[Seen] = []
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, name="faulty-server", daemon=True)
        self._thread.start()

    def play(self, call_id: str, acts: Iterable[Act]) -> Script:
        """Return the script of a new call; what was held open for earlier ones is closed."""
        self._let_go()
        return Script(self, call_id, acts)

    def expect(self, call_id: str, act: Act) -> Target:
        """Return where a wire attempt must go so that this becomes of it."""
        listener = {Fault.REFUSED: self._closed_port, Fault.CONNECT_STALLED: self._full}.get(act.fault, self._listener)
        if listener is self._listener:
            with self._changed:
                self._expected.append((call_id, act))
        scheme = "https" if act.fault is Fault.PLAIN_ON_TLS else "http"
        return Target(
            f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/orders",
            call_id,
            STALL_S if act.fault is Fault.CONNECT_STALLED else PATIENCE_S,
            STALL_S if act.fault in _STALLS else PATIENCE_S,
        )

    def seen(self, call_id: str) -> list[Seen]:
        """Return what became of each connection of a call, once the server has dealt with all that were announced."""
        with self._changed:
            idle = self._changed.wait_for(lambda: not self._expected and not self._busy, PATIENCE_S)
            assert idle, f"connections that never came: {list(self._expected)}"
            return [seen for seen in self._seen if seen.call_id == call_id]

    def reached(self, call_id: str) -> int:
        """Return how many requests of a call reached the server whole."""
        return sum(seen.reached for seen in self.seen(call_id))

    def close(self) -> None:
        """Deal with what is still queued, then stop."""
        self._closing = True
        with contextlib.suppress(OSError):
            socket.create_connection(self._listener.getsockname(), PATIENCE_S).close()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the server hangs"
        self._let_go()
        for each in (self._listener, self._closed_port, *self._fillers, self._full):
            each.close()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with self._changed:
                self._busy = True
                call_id, act = self._expected.popleft() if self._expected else ("", GOOD)
            if not call_id and self._closing and _has_ended(connection):
                connection.close()
                return
            try:
                self._deal(connection, call_id, act)
            except OSError as error:
                self.strays.append(f"{call_id}: {act}: {error!r}")
                connection.close()
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()

    def _deal(self, connection: socket.socket, call_id: str, act: Act) -> None:
        """Do to a connection what its act says. Even an unread request has arrived, so that every run is the same."""
        connection.settimeout(PATIENCE_S)
        arrived: str | None = None
        if act.fault not in _UNREAD:
            arrived = _read_request(connection)
        elif not _readable(connection, PATIENCE_S):
            raise TimeoutError("no request came")
        if act.fault is Fault.PLAIN_ON_TLS:
            connection.recv(65_536)
        if not call_id or arrived not in (None, call_id):
            self.strays.append(f"{call_id}: {act}: a request of call {arrived!r}")
        self._seen.append(Seen(arrived or call_id, act, arrived is not None))
        # A client that has given up meanwhile no longer takes what is sent.
        with contextlib.suppress(ConnectionError):
            connection.sendall(_answer(act) if act.fault is Fault.ANSWERED else _SENT.get(act.fault, b""))
        if act.fault in _RESETS:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            return
        if act.fault not in _STALLS:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        if act.fault in _STALLS or act.fault is Fault.DROPPED_UNREAD:
            # A socket that is closed over unread data resets; this one is to say no more than that it ended.
            with self._changed:
                self._held.append(connection)
            return
        connection.close()

    def _let_go(self) -> None:
        with self._changed:
            held, self._held = self._held, []
        for connection in held:
            connection.close()


@contextlib.contextmanager
def faulty_server() -> Iterator[FaultyServer]:
    """Give a server, and assert at the end that it saw nothing that nobody asked for."""
    server = FaultyServer()
    try:
        yield server
    finally:
        server.close()
    assert server.strays == []


def _listening(backlog: int) -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(backlog)
    return listener


def _half_open(listener: socket.socket) -> socket.socket:
    """Take a place in a listener's queue; once it is full Linux lets further clients wait for their connection."""
    filler = socket.socket()
    filler.setblocking(False)
    filler.connect_ex(listener.getsockname())
    return filler


def _readable(connection: socket.socket, timeout_s: float) -> bool:
    return bool(select.select([connection], [], [], timeout_s)[0])


def _has_ended(connection: socket.socket) -> bool:
    return _readable(connection, PATIENCE_S) and not connection.recv(1, socket.MSG_PEEK)


def _read_request(connection: socket.socket) -> str:
    """Read a request with its body and return the id of its call.

    Raises:
        ConnectionError: It ended before it was whole.
    """
    data = _read_until(connection, b"", lambda data: b"\r\n\r\n" in data)
    head, _, body = data.partition(b"\r\n\r\n")
    pairs = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    length = int(headers.get("content-length", "0"))
    _read_until(connection, body, lambda data: len(data) >= length)
    return headers.get(CALL_ID_HEADER.lower(), "")


def _read_until(connection: socket.socket, data: bytes, is_whole: Callable[[bytes], bool]) -> bytes:
    while not is_whole(data):
        more = connection.recv(65_536)
        if not more:
            raise ConnectionError("the request ended before it was whole")
        data += more
    return data


def _answer(act: Act) -> bytes:
    try:
        phrase = http.HTTPStatus(act.status).phrase
    except ValueError:
        phrase = "Unnamed"
    lines = [f"HTTP/1.1 {act.status} {phrase}", "Content-Type: application/json", "Connection: close"]
    if act.retry_after is not None:
        lines.append(f"retry-after: {act.retry_after}")
    body = b"" if act.status in {204, 304} else BODY
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
