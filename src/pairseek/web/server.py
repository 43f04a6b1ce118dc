"""Server: one or several worker processes, warmed up before the port opens, with graceful shutdown."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from types import FrameType

import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI

from pairseek.errors import InvalidParameter
from pairseek.numerics.parallel import set_thread_count
from pairseek.store import meta, migrate, people
from pairseek.store.database import Database
from pairseek.web import logs
from pairseek.web.access import auth
from pairseek.web.access.connections import protocol
from pairseek.web.app import create_app
from pairseek.web.sessions.warmup import warm_studies, warm_up
from pairseek.web.settings import Settings
from pairseek.web.studies.catalogue import Study

# Seconds for requests in progress at shutdown, and then for the process to exit.
GRACE = 10
_LAST = 5.0
# Workers that exit within _SOON seconds of their start, _OFTEN times in a row, are not restarted.
_SOON, _OFTEN = 1.0, 10

# Key of the hash of a password that the demo drew.
_DRAWN = "demo_password"

logger = logging.getLogger("pairseek.web")


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    workers: int,
    announced: Callable[[str], None] | None = None,
    demo: bool = False,
) -> None:
    """Run the server until it receives a signal.

    Parameters
    ----------
    settings
        Settings of the server.
    host, port
        Address to listen on.
    workers
        Number of processes.
    announced
        Called with the address once it is announced.
    demo
        Whether the database is the demo's own, whose password is drawn anew and printed at every start.
    """
    if not 1 <= workers <= 64:
        raise InvalidParameter(f"--workers is {workers}: give 1 to 64")
    if workers > 1 and not hasattr(os, "fork"):
        raise InvalidParameter(f"--workers is {workers}: this system cannot fork processes; give 1")
    with bound(host, port) as listening:
        if workers > 1:
            # Only a single-threaded process can be forked safely; each worker uses one core.
            set_thread_count(1)
        known = prepare(settings, demo=demo)
        # What lives as long as the server is not looked at again by the garbage collector, in any worker.
        gc.collect()
        gc.freeze()
        address = announce(host, listening.getsockname()[1])
        if announced is not None:
            announced(settings.address.rstrip("/") or address)
        settings = settings if settings.address else replace(settings, address=address)
        if workers == 1:
            run(settings, listening, known)
        else:
            Workers(settings, listening, workers, known).run()


def prepare(settings: Settings, *, demo: bool = False) -> dict[int, Study]:
    """Create tables and first user, print its password once, compile the kernels, and load the studies."""
    database = Database(settings.database)
    try:
        migrate.ready(database)
        password = _demo_password(database, settings) if demo else auth.first_user(database, settings.password)
        if demo and password is None:
            _say(f"Sign in as {auth.FIRST_USER} with the password that was given; pairseek user add sets another")
        if password is not None:
            _say(f"Sign in as {auth.FIRST_USER} with the password {password}  (shown once, stored as a hash)")
        warm_up()
        return warm_studies(database)
    finally:
        database.close()


def _demo_password(database: Database, settings: Settings) -> str | None:
    """Return a new password of the first user; None, and change nothing, if a person has given the present one."""
    drawn = auth.first_user(database, settings.password)

    def stored(connection: sa.Connection) -> tuple[str | None, str | None]:
        user = people.user(connection, auth.FIRST_USER)
        return None if user is None else str(user["password"]), meta.value(connection, _DRAWN)

    if drawn is None:
        present, known = database.read(stored)
        if settings.password or present is None or present != known:
            return None
        drawn = secrets.token_urlsafe(12)
        auth.set_password(database, auth.FIRST_USER, drawn)
    present, _ = database.read(stored)
    database.write(lambda connection: meta.put(connection, _DRAWN, str(present)))
    return drawn


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket bound to the address; it listens once a worker is ready."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else "a port is a number from 0 to 65535"
            raise InvalidParameter(
                f"cannot listen at {host}, port {port}: {reason}; give another --host or --port"
            ) from None
        yield listening


def announce(host: str, port: int) -> str:
    """Print the address of the server and return it."""
    everywhere = host in ("0.0.0.0", "::")
    shown = own_address() if everywhere else f"[{host}]" if ":" in host else host
    _say(f"pairseek at http://{shown}:{port}" + (f" and http://127.0.0.1:{port}" if everywhere else ""))
    return f"http://{shown}:{port}"


def own_address() -> str:
    """Return the address of this machine in its network, without sending a packet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def run(settings: Settings, listening: socket.socket, known: Mapping[int, Study]) -> None:
    """Serve in this process."""
    logs.set_up()
    _served(Server(settings, create_app(settings, known)), listening)


class Server(uvicorn.Server):
    """HTTP server that drains, and then ends within the grace, also while threads still compute.

    Parameters
    ----------
    settings
        Settings of the server.
    app
        Application of this worker.
    """

    def __init__(self, settings: Settings, app: FastAPI) -> None:
        super().__init__(configuration_of(settings, app))
        self._app, self._drain = app, settings.drain_seconds
        self._leave_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain, or to shut down at an interrupt or a second signal."""
        first = self._leave_at is None
        self._leave_at = time.monotonic() + self._drain
        service = getattr(self._app.state, "service", None)
        if service is not None:
            service.readiness.drain()
        if first and self._drain and sig == signal.SIGTERM:
            _end_hard(self._drain)
        else:
            _end_hard()
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Shut down once the server has drained."""
        if self._leave_at is not None and time.monotonic() >= self._leave_at:
            self.should_exit = True
        return await super().on_tick(counter)


def _end_hard(later: float = 0.0) -> None:
    """End this process after the grace, whatever it does then; write to standard error where its threads are."""
    # A thread in C, which needs no lock of Python, and also ends process 1 of a container.
    faulthandler.dump_traceback_later(later + GRACE + _LAST, exit=True, file=2)


def _served(server: uvicorn.Server, listening: socket.socket) -> None:
    # uvicorn raises the signal again after a graceful shutdown, which must not count as a failure.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server.run(sockets=[listening])


def configuration_of(settings: Settings, app: FastAPI) -> uvicorn.Config:
    """Return the configuration of the HTTP server for an application."""
    return uvicorn.Config(
        app,
        access_log=False,
        server_header=False,
        log_config=None,
        http=protocol(settings),
        ws="none",
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=[text for network in settings.proxies for text in _written(network)],
        timeout_graceful_shutdown=GRACE,
    )


def _written(network: IPv4Network | IPv6Network) -> list[str]:
    """Return a network as text, and an IPv4 network also in the form that a socket of both kinds reports."""
    mapped = [f"::ffff:{network.network_address}/{96 + network.prefixlen}"] if network.version == 4 else []
    return [str(network), *mapped]


class Workers:
    """Worker processes that share a socket, forked from this one; a worker that dies is replaced.

    Parameters
    ----------
    settings, listening
        Settings of the server, and its socket.
    count
        Number of processes.
    known
        Studies that have been read; all workers share this copy.
    """

    def __init__(self, settings: Settings, listening: socket.socket, count: int, known: Mapping[int, Study]) -> None:
        self._settings, self._listening, self._count, self._known = settings, listening, count, known
        self._stop = threading.Event()
        self._began: dict[int, float] = {}
        self._deaths = 0
        # The write end is closed when this process exits, which makes the workers exit.
        self._reading, self._writing = os.pipe()

    def run(self) -> None:
        """Keep the workers running until a signal arrives."""
        logs.set_up()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        try:
            for _ in range(self._count):
                self._start()
            while not self._stop.wait(0.1):
                self._replace()
        finally:
            self._end()
            os.close(self._writing)
            os.close(self._reading)

    def _start(self) -> None:
        pid = os.fork()
        if pid:
            self._began[pid] = time.monotonic()
            return
        code = 1
        try:
            os.close(self._writing)
            self._work()
            code = 0
        finally:
            # Exit handlers of the parent process must not run in the worker.
            os._exit(code)

    def _work(self) -> None:
        server = Server(self._settings, create_app(self._settings, self._known))

        def watch() -> None:
            os.read(self._reading, 1)
            _end_hard()
            server.should_exit = True

        threading.Thread(target=watch, name="pairseek-parent", daemon=True).start()
        _served(server, self._listening)

    def _replace(self) -> None:
        for pid, began in list(self._began.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            del self._began[pid]
            logger.warning("worker exited", extra={"facts": {"code": os.waitstatus_to_exitcode(status)}})
            self._deaths = self._deaths + 1 if time.monotonic() - began < _SOON else 0
            if self._deaths >= _OFTEN:
                logger.error("workers end as soon as they start")
                self._stop.set()
                return
            self._start()

    def _end(self) -> None:
        for pid in self._began:
            os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + self._settings.drain_seconds + GRACE + _LAST
        while self._began:
            late = time.monotonic() > until
            for pid in list(self._began):
                if late:
                    os.kill(pid, signal.SIGKILL)
                ended, _ = os.waitpid(pid, 0 if late else os.WNOHANG)
                if ended:
                    del self._began[pid]
            time.sleep(0.02)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
