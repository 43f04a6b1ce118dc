"""Client connections: limits on their number, on the framing of a request, and on the time that a request takes.

uvicorn reads requests without a header limit or a deadline, so one client could keep the process busy, or hold all its
file descriptors. `BoundedProtocol` adds these limits to uvicorn's httptools protocol. When there are too many
connections, a new one replaces the oldest that is waiting for its client, so that clients who send complete requests
are served while others hold connections open.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Network
from time import monotonic
from typing import Any, Self

from httptools import HttpParserCallbackError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pairseek.web.access.rates import address_of, network_of
from pairseek.web.errors import Problem
from pairseek.web.operations.metrics import CLOSED_CONNECTIONS
from pairseek.web.settings import Settings

MAX_HEAD_BYTES = 65_536
"""Maximum bytes of a request line with its headers.

In a chunked body, chunk sizes and trailers may take as many further bytes as the body itself.
"""
# Bytes parsed at a time, so that exceeding a limit is noticed soon.
_CHUNK_BYTES = 16_384
# Seconds for the head of a request, counted from the connection or the last reply.
_HEAD_SECONDS = 20.0
# Seconds for the body of a request, in addition to a second for every _BODY_BYTES_PER_SECOND bytes received.
_BODY_SECONDS = 20.0
_BODY_BYTES_PER_SECOND = 2_000
# Seconds for the rest of a body after the reply.
_LINGER_SECONDS = 30.0
# Seconds for which the number of unsent bytes of a reply may stay the same.
_UNSENT_SECONDS = 60.0
# Bytes of a body that are read and ignored after an early reply, so that the client sees the reply.
_MAX_IGNORED_BYTES = 32_000_000
# Requests of a connection that may wait for the reply to an earlier one.
_MAX_PIPELINED = 16
# Seconds between two checks of the time limits.
_SWEEP_SECONDS = 1.0
# File descriptors kept for the database, files and logs.
_RESERVED_DESCRIPTORS = 100


class Stage(Enum):
    """Stage of a connection, named by the event that it waits for."""

    HEAD = "the head of a request"
    BODY = "the body of a request"
    REPLY = "the reply of the application"


@dataclass(eq=False)
class Connections:
    """Open connections of one worker.

    Attributes
    ----------
    max_connections, max_per_address
        Largest number of connections, in total and from one address.
    proxies
        Networks of trusted proxies, which may have any number of connections.
    """

    max_connections: int
    max_per_address: int
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    _open: dict[BoundedProtocol, str] = field(default_factory=dict)
    _of_address: dict[str, dict[BoundedProtocol, None]] = field(default_factory=dict)
    _sweeping: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Create an empty set of connections with the limits of the settings, lowered if file descriptors are short."""
        most = max(1, min(settings.most_connections, _raise_descriptor_limit()))
        return cls(most, max(1, min(settings.most_connections_of_address, most // 2)), settings.proxies)

    def add(self, connection: BoundedProtocol, host: str) -> bool:
        """Add a connection, evicting one that waits for its client if necessary; return whether there was room."""
        address = address_of(host)
        trusted = address is not None and any(address in network for network in self.proxies)
        key = "" if trusted else network_of(host)
        same = self._of_address.setdefault(key, {})
        room = trusted or len(same) < self.max_per_address or self._evict(same)
        if not room or (len(self._open) >= self.max_connections and not self._evict(self._open)):
            if not same:
                self._of_address.pop(key, None)
            return False
        self._open[connection] = key
        self._of_address.setdefault(key, {})[connection] = None
        if not self._sweeping:
            self._sweeping = True
            connection.loop.call_later(_SWEEP_SECONDS, self._sweep, connection.loop)
        return True

    def remove(self, connection: BoundedProtocol) -> None:
        """Remove a connection if it is present."""
        key = self._open.pop(connection, None)
        if key is not None:
            same = self._of_address[key]
            del same[connection]
            if not same:
                del self._of_address[key]

    def _evict(self, among: Iterable[BoundedProtocol]) -> bool:
        """Close the oldest untrusted connection that waits for its client; return whether there was one."""
        oldest = next((connection for connection in among if self._open[connection] and connection.waits), None)
        if oldest is None:
            return False
        self.remove(oldest)
        oldest.abort("evicted")
        return True

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections whose client takes too long, now and every second while any are open."""
        moment = monotonic()
        for connection in list(self._open):
            connection.check(moment)
        self._sweeping = bool(self._open)
        if self._sweeping:
            loop.call_later(_SWEEP_SECONDS, self._sweep, loop)


class BoundedProtocol(HttpToolsProtocol):
    """HTTP protocol of one connection with limits.

    Parameters
    ----------
    shared
        Connections of the worker.
    arguments
        uvicorn's own arguments.
    """

    def __init__(self, shared: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._shared = shared
        self._stage, self._since = Stage.HEAD, monotonic()
        # Whether a message has begun and is incomplete; bytes received of it, and of its body.
        self._begun, self._received, self._body = False, 0, 0
        # Bytes not yet sent, and when their number last decreased.
        self._unsent, self._stuck_since = 0, 0.0

    @property
    def waits(self) -> bool:
        """Whether the connection waits for its client: to send a request, or to read a reply."""
        return self._stage is not Stage.REPLY or self.flow.write_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit a connection, or refuse it if there are too many."""
        super().connection_made(transport)
        if not self._shared.add(self, self.client[0] if self.client else ""):
            self._refuse(_TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._shared.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data chunk by chunk, and refuse a message whose framing is too large."""
        for start in range(0, len(data), _CHUNK_BYTES):
            if self.transport.is_closing():
                return
            chunk = data[start : start + _CHUNK_BYTES]
            super().data_received(chunk)
            self._received += len(chunk)
            if self._received - self._body > MAX_HEAD_BYTES + self._body:
                self._refuse(_TOO_LARGE)
            elif self._body > _MAX_IGNORED_BYTES and self.cycle.response_complete:
                self.abort("ignored")

    def on_message_begin(self) -> None:
        """Begin to count a message."""
        self._begun, self._received, self._body = True, 0, 0
        if self._stage is Stage.REPLY:
            self._wait_for(Stage.HEAD)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Hand the request over, unless too many are already waiting."""
        if len(self.pipeline) >= _MAX_PIPELINED:
            raise HttpParserCallbackError("too many pipelined requests")
        self._wait_for(Stage.BODY)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count the bytes of a body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is complete."""
        self._begun, self._received, self._body = False, 0, 0
        self._wait_for(Stage.HEAD if self.cycle.response_complete else Stage.REPLY)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of a body that was answered early."""
        if self._stage is Stage.REPLY and not self.pipeline:
            self._stage = Stage.HEAD
        self._since = monotonic()
        super().on_response_complete()

    def resume_writing(self) -> None:
        """Restart the time limit on unsent bytes, because the client reads again."""
        self._unsent = sys.maxsize
        super().resume_writing()

    def check(self, moment: float) -> None:
        """Close the connection if its client takes too long."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._stuck_since = moment
        self._unsent = unsent
        if unsent and moment - self._stuck_since > _UNSENT_SECONDS:
            self.abort("unread")
        elif moment - self._since > self._allowed(moment) and not self.transport.is_closing():
            if self._begun:
                self._refuse(_TOO_SLOW)
            else:
                # Without an error, because browsers open connections before they need them.
                self.abort("idle")

    def _allowed(self, moment: float) -> float:
        """Return the seconds that the current stage may take."""
        if self._stage is Stage.HEAD:
            return _HEAD_SECONDS
        if self._stage is Stage.REPLY:
            return float("inf")
        if self.cycle.response_complete:
            return _LINGER_SECONDS
        if self.flow.read_paused:
            # The application is holding up the body, not the client.
            self._since = moment
        return _BODY_SECONDS + self._body / _BODY_BYTES_PER_SECOND

    def abort(self, why: str) -> None:
        """Close the connection at once."""
        CLOSED_CONNECTIONS.labels(why).inc()
        self.transport.abort()

    def _unsupported_upgrade_warning(self) -> None:
        """Answer requests for another protocol with HTTP/1.1, without uvicorn's advice in the log."""

    def _wait_for(self, stage: Stage) -> None:
        self._stage, self._since = stage, monotonic()

    def _refuse(self, problem: Problem) -> None:
        """Close the connection, after sending an error unless a reply has begun."""
        CLOSED_CONNECTIONS.labels(problem.code).inc()
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(_raw_response(problem))
        self.transport.close()


_TOO_LARGE = Problem(
    431,
    "header_too_large",
    f"the headers of the request are larger than {MAX_HEAD_BYTES:,} bytes",
    hint="Send fewer and shorter headers; delete the cookies of this site.",
)
_TOO_SLOW = Problem(408, "too_slow", "the request took too long to arrive", hint="Send it again.")
_TOO_MANY = Problem(503, "too_many_connections", "too many connections are open", hint="Try again soon.", wait=5)


def _raw_response(problem: Problem) -> bytes:
    """Return a complete HTTP response, for connections whose request never reached the application."""
    body = json.dumps(problem.record()).encode()
    lines = [
        f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
        *(f"{name}: {value}" for name, value in problem.headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _raise_descriptor_limit() -> int:
    """Raise the limit on file descriptors and return the number of connections that they allow."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems refuse an unlimited soft limit.
        soft = 65_536 if hard == resource.RLIM_INFINITY else hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    # Half of them, because a connection may also have a file open.
    return max(soft - _RESERVED_DESCRIPTORS, soft // 2) // 2


def protocol(settings: Settings) -> Any:
    """Return the protocol factory for uvicorn's ``http`` setting."""
    return partial(BoundedProtocol, Connections.of(settings))
