"""Malformed, oversized, slow and repeated requests to every route of the application.

The routes are read from the application itself, so that a new one is covered without a change here. All traffic goes to
this machine, and is bounded in number and time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field

from starlette.routing import Mount, Route

from pairseek.web.app import create_app
from pairseek.web.settings import Settings

# Seconds after which a client that has sent less than it declared hangs up.
_HANGS_UP = 1.0
WRONG_METHODS = ("PATCH", "TRACE", "OPTIONS", "HEAD", "BREW")
ODD = (
    "",
    "%00",
    "%2e%2e%2f",
    "a" * 300,
    "%F0%9F%8E%A8",
    "%ff",
    "'--",
    "{{7*7}}",
    "..%5c",
    "-1",
    "99999999999999999999",
    "%0d%0aX:1",
)
BODIES = (
    {"query": "p1", "outcome": "left", "rt_ms": 5},
    {"query": "p1"},
    {"query": "p1", "lost_at": "2026-01-01T00:00:00Z", "ms": 5},
    {"participant": "ann", "seed": 3},
    {"participants": ["ann", "bob"], "days": 3},
    {"configuration": {"title": "T"}, "items": [{"id": "a", "coordinates": [0]}, {"id": "b", "coordinates": [1]}]},
)
VALUES = (None, True, -1, 2**63, 1e308, "", "x" * 5000, "\u0000", "\ud800", [], {}, [[[[]]]], {"a": {"b": {}}}, "NaN")
RAW = (
    b"",
    b"{",
    b"\xff\xfe\x00",
    b"null",
    b"[" * 20_000,
    b'{"a":' * 5000,
    b'{"query": NaN}',
    b"9" * 5000,
    b"a=1&" * 300,
    b"csrf=x&name=%00&password=%ff",
    b'--b\r\nContent-Disposition: form-data; name="items"; filename="x.csv"\r\n\r\nid,x\r\n--b--\r\n',
    b"--b\r\n" * 2000,
    b"PK\x03\x04" + bytes(200),
)
KINDS = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=b",
    "text/plain",
    "",
    "x" * 500,
)


def routes() -> list[tuple[str, frozenset[str]]]:
    """Return the paths and methods of all routes of the application."""
    paths = []
    for prefix, route in every_route(create_app(Settings(database="unused.db")).routes):
        if isinstance(route, Mount):
            paths.append((f"{prefix}{route.path}/{{file}}", frozenset({"GET"})))
        elif isinstance(route, Route) or hasattr(route, "methods"):
            paths.append((f"{prefix}{route.path}", frozenset(route.methods or {"GET"})))
    return sorted(set(paths), key=lambda route: (route[0], sorted(route[1])))


def every_route(routes, prefix=""):
    """Yield routes with the prefix of their paths, including those of nested routers."""
    for route in routes:
        inner = getattr(getattr(route, "original_router", None) or getattr(route, "router", None), "routes", None)
        if inner is None or isinstance(route, Mount):
            yield prefix, route
        else:
            yield from every_route(inner, prefix + getattr(getattr(route, "include_context", None), "prefix", ""))


@dataclass(frozen=True)
class Request:
    """Request to a route as bytes, in pieces with pauses in between."""

    route: str
    pieces: tuple[bytes, ...]
    pause: float = 0.0
    short: bool = False
    """Whether less may be sent than declared, so that there need not be a reply."""


@dataclass
class Abuser:
    """Draws requests.

    ``known`` fills parameters of paths, ``credentials`` are headers of people whom the service knows. ``form`` is a
    header and a token with which the forms of a researcher are valid.
    """

    known: dict[str, tuple[str, ...]]
    credentials: tuple[bytes, ...] = (b"",)
    form: tuple[bytes, str] | None = None
    seed: int = 0
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def path(self, route: str) -> str:
        def filled(parameter: re.Match[str]) -> str:
            name = parameter[1].partition(":")[0]
            usual = self.known.get(name, ())
            return self.rng.choice(usual) if usual and self.rng.random() < 0.7 else self.rng.choice(ODD)

        path = re.sub(r"\{([^}]*)\}", filled, route)
        extra = self.rng.random()
        if extra < 0.1:
            return f"{path}?{'&'.join(f'p{k}={self.rng.choice(ODD)}' for k in range(20))}"
        if extra < 0.2:
            keys = ("participant", "PROLIFIC_PID", "query", "page", "next", "count", "signature", "until", "filling")
            return f"{path}?" + "&".join(f"{key}={self.rng.choice(ODD)}" for key in keys)
        return path

    def body(self) -> bytes:
        if self.rng.random() < 0.5:
            return self.rng.choice(RAW)
        record = json.loads(json.dumps(self.rng.choice(BODIES)))
        for _ in range(self.rng.randrange(3)):
            record[self.rng.choice([*record, "more"])] = self.rng.choice(VALUES)
        return json.dumps(record).encode()

    def trick(self, body: bytes) -> tuple[list[bytes], bytes, str]:
        """Return headers and a body, occasionally invalid, and the length to declare."""
        rng, size = self.rng, str(len(body))
        big = b"x" * 400_000
        tricks = [
            ([], body, rng.choice(["-1", "1e3", "999999999999", "0x10", str(len(body) + 1)])),
            ([], big, str(len(big))),
            ([b"X-Long: " + b"y" * rng.choice([9_000, 70_000, 200_000])], body, size),
            ([b"X-%d: y" % k for k in range(300)], body, size),
            ([b"Cookie: " + b"; ".join(b"pairseek_who_which=%d" % k for k in range(100))], body, size),
            ([b"Authorization: " + rng.choice([b"Bearer", b"Bearer \xff", b"Basic eA==", b"B" * 5000])], body, size),
            ([b"Accept: text/html"], body, size),
            ([b"Transfer-Encoding: chunked"], rng.choice([b"5\r\nabc", b"zz\r\n", b"0\r\n\r\n", b"ffffffff\r\n"]), ""),
        ]
        return rng.choice(tricks) if rng.random() < 0.25 else ([], body, size)

    def request(self, route: str, methods: frozenset[str], *, slow: bool = False) -> Request:
        """Return a malformed, oversized or plain request to a route; ``slow`` ones send their bytes one by one."""
        method = self.rng.choice(WRONG_METHODS) if self.rng.random() < 0.1 else self.rng.choice(sorted(methods))
        body = b"" if method in ("GET", "HEAD") and self.rng.random() < 0.8 else self.body()
        more, body, size = self.trick(body)
        headers = [self.rng.choice(self.credentials), f"Content-Type: {self.rng.choice(KINDS)}".encode(), *more]
        if self.form is not None and method == "POST" and route != "/logout" and self.rng.random() < 0.15:
            values = f"&name=x&scopes=read&reason=r&count={self.rng.choice([0, 1, 2, -5, 10**9])}&title=T"
            body = f"csrf={self.form[1]}{values}".encode()
            size, headers = str(len(body)), [self.form[0], f"Content-Type: {KINDS[1]}".encode()]
        path = self.path(route)
        if self.rng.random() < 0.03:
            path += "/" + "a" * self.rng.choice([5_000, 60_000])
        lines = [f"{method} {path} HTTP/1.1".encode(errors="replace"), b"Host: localhost", b"X-Pairseek: 1"]
        lines += filter(None, headers)
        if size:
            lines.append(f"Content-Length: {size}".encode())
        content = b"\r\n".join(lines) + b"\r\nConnection: close\r\n\r\n" + body
        if slow:
            return Request(route, tuple(content[k : k + 1] for k in range(60)), 0.15, short=True)
        return Request(route, (content,), short=size != str(len(body)))


@dataclass
class Outcome:
    """Outcome: replies by status, failures with the request that caused them, and requests by route."""

    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    routes: Counter[str] = field(default_factory=Counter)

    def note(self, request: Request, status: int, reply: bytes) -> None:
        self.routes[request.route] += 1
        self.statuses[status] += 1
        if status >= 500 and status != 503:
            self.failures.append(f"{status} {b''.join(request.pieces)[:300]!r} {reply[-300:]!r}")


async def send(port: int, request: Request, patience: float = 30.0) -> tuple[int, bytes]:
    """Send a request; return the status, 0 if the server closed the connection without a reply, and the reply."""
    reply = b""
    with contextlib.suppress(OSError, EOFError, TimeoutError):
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                with contextlib.suppress(OSError):
                    for piece in request.pieces:
                        writer.write(piece)
                        await writer.drain()
                        if request.pause:
                            await asyncio.sleep(request.pause)
                # A request whose body is shorter than declared gets no reply until the client hangs up.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(patience, _HANGS_UP) if request.short else patience):
                        while piece := await reader.read(1 << 16):
                            reply = (reply + piece)[:100_000]
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    status = re.match(rb"HTTP/1\.1 (\d{3})", reply)
    return (int(status[1]) if status else 0), reply


async def attack(port: int, abuser: Abuser, seconds: float, at_once: int = 16) -> Outcome:
    """Send requests to all routes in turn for this time; every tenth is slow, and every fifth is sent five times."""
    outcome, until = Outcome(), time.monotonic() + seconds
    targets, number = routes(), 0

    async def client() -> None:
        nonlocal number
        while time.monotonic() < until:
            number += 1
            mine = number
            route, methods = targets[mine % len(targets)]
            request = abuser.request(route, methods, slow=mine % 10 == 0)
            for _ in range(5 if mine % 5 == 1 else 1):
                outcome.note(request, *await send(port, request))

    await asyncio.gather(*(client() for _ in range(at_once)))
    return outcome
