"""Server: one or more worker processes, warmed up before the port opens, with graceful shutdown."""

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
from pairseek.search.warmup import warm_up
from pairseek.store import meta, migrate, people
from pairseek.store.database import Database
from pairseek.web.access import auth
from pairseek.web.access.connections import protocol
from pairseek.web.app import create_app
from pairseek.web.operations import logs
from pairseek.web.sessions.warmup import warm_studies
from pairseek.web.settings import Settings
from pairseek.web.studies.catalogue import Study

# Seconds for requests in progress at shutdown.
GRACE_SECONDS = 10
# Seconds for which an idle connection stays open, which is longer than clients keep it for their next request.
_KEEP_ALIVE_SECONDS = 20
# Seconds after that for the process to exit.
_EXIT_SECONDS = 5.0
# Seconds after which a computing thread passes the interpreter lock to waiting threads. A request waits for the lock
# some twenty times, so Python's default of 5 ms would let a single export add 0.1 s to every answer.
_SWITCH_SECONDS = 0.0005
# Seconds after its start within which a worker's exit counts as early.
_EARLY_EXIT_SECONDS = 1.0
# Number of consecutive early exits after which workers are no longer replaced.
_MAX_EARLY_EXITS = 10
# Key in `meta`; the value is the hash of the password that the demo generated.
_DEMO_PASSWORD_KEY = "demo_password"

logger = logging.getLogger("pairseek.web")


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    workers: int,
    on_announced: Callable[[str], None] | None = None,
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
    on_announced
        Function that is called with the address once that is printed.
    demo
        Whether the database belongs to the demo, whose password is regenerated and printed at every start.
    """
    if not 1 <= workers <= 64:
        raise InvalidParameter(f"--workers is {workers}: give 1 to 64")
    if workers > 1 and not hasattr(os, "fork"):
        raise InvalidParameter(f"--workers is {workers}: this system cannot fork processes; give 1")
    with bind(host, port) as listening:
        if workers > 1:
            # Only a single-threaded process can be forked safely; each worker uses one core.
            set_thread_count(1)
        preloaded = prepare(settings, demo=demo)
        # Objects that live as long as the server are exempt from garbage collection in every worker.
        gc.collect()
        gc.freeze()
        address = announce(host, listening.getsockname()[1])
        if on_announced is not None:
            on_announced(settings.address.rstrip("/") or address)
        settings = settings if settings.address else replace(settings, address=address)
        if workers == 1:
            run(settings, listening, preloaded)
        else:
            Workers(settings, listening, workers, preloaded).run()


def prepare(settings: Settings, *, demo: bool = False) -> dict[int, Study]:
    """Create the tables and the first user, print their password, compile the kernels, and load studies."""
    database = Database(settings.database)
    try:
        migrate.prepare(database)
        password = _demo_password(database, settings) if demo else auth.create_first_user(database, settings.password)
        if demo and password is None:
            _say(f"Sign in as {auth.FIRST_USER} with the password that was set; pairseek user add changes it")
        if password is not None:
            _say(f"Sign in as {auth.FIRST_USER} with the password {password}  (shown once, stored as a hash)")
        warm_up()
        return warm_studies(database)
    finally:
        database.close()


def _demo_password(database: Database, settings: Settings) -> str | None:
    """Set and return a new password of the first user; if a person has set one, keep it and return None."""
    generated = auth.create_first_user(database, settings.password)

    def read(connection: sa.Connection) -> tuple[str | None, str | None]:
        user = people.user(connection, auth.FIRST_USER)
        return None if user is None else str(user["password"]), meta.value(connection, _DEMO_PASSWORD_KEY)

    if generated is None:
        current, last_generated = database.read(read)
        if settings.password or current is None or current != last_generated:
            return None
        generated = secrets.token_urlsafe(12)
        auth.set_password(database, auth.FIRST_USER, generated)
    current, _ = database.read(read)
    database.write(lambda connection: meta.put(connection, _DEMO_PASSWORD_KEY, str(current)))
    return generated


@contextlib.contextmanager
def bind(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that is bound to the address, but listens only when a worker is ready."""
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
    is_any = host in ("0.0.0.0", "::")
    name = own_address() if is_any else f"[{host}]" if ":" in host else host
    _say(f"pairseek at http://{name}:{port}" + (f" and http://127.0.0.1:{port}" if is_any else ""))
    return f"http://{name}:{port}"


def own_address() -> str:
    """Return the address of this machine in its network, without sending a packet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def run(settings: Settings, listening: socket.socket, preloaded: Mapping[int, Study]) -> None:
    """Serve in this process."""
    logs.set_up()
    _run_server(Server(settings, create_app(settings, preloaded)), listening)


class Server(uvicorn.Server):
    """HTTP server that drains at a signal, then exits within the grace period even if threads are still computing.

    Parameters
    ----------
    settings
        Settings of the server.
    app
        Application of this worker.
    """

    def __init__(self, settings: Settings, app: FastAPI) -> None:
        super().__init__(configuration_of(settings, app))
        self._app, self._drain_seconds = app, settings.drain_seconds
        self._exit_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain; shut down at an interrupt or a second signal."""
        is_first = self._exit_at is None
        self._exit_at = time.monotonic() + self._drain_seconds
        service = getattr(self._app.state, "service", None)
        if service is not None:
            service.readiness.drain()
        if is_first and self._drain_seconds and sig == signal.SIGTERM:
            _force_exit(self._drain_seconds)
        else:
            _force_exit()
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Shut down once the server has drained."""
        if self._exit_at is not None and time.monotonic() >= self._exit_at:
            self.should_exit = True
        return await super().on_tick(counter)


def _force_exit(delay: float = 0.0) -> None:
    """Exit after the delay and the grace period in any case, and write the tracebacks of all threads to stderr."""
    # This uses a C thread, which does not need the interpreter lock and can also end process 1 of a container.
    faulthandler.dump_traceback_later(delay + GRACE_SECONDS + _EXIT_SECONDS, exit=True, file=2)


def _run_server(server: uvicorn.Server, listening: socket.socket) -> None:
    # uvicorn raises the signal again after a graceful shutdown, which must not count as a failure.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    sys.setswitchinterval(_SWITCH_SECONDS)
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
        forwarded_allow_ips=[text for network in settings.proxies for text in _network_texts(network)],
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def _network_texts(network: IPv4Network | IPv6Network) -> list[str]:
    """Return a network as text; for IPv4, also in the form that a dual-stack socket reports."""
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
    preloaded
        Studies in memory, by id; all workers share this copy.
    """

    def __init__(
        self, settings: Settings, listening: socket.socket, count: int, preloaded: Mapping[int, Study]
    ) -> None:
        self._settings, self._listening, self._count, self._preloaded = settings, listening, count, preloaded
        self._stop = threading.Event()
        self._start_times: dict[int, float] = {}
        self._early_exits = 0
        # The write end closes when this process exits, and then the workers exit, too.
        self._read_end, self._write_end = os.pipe()

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
            os.close(self._write_end)
            os.close(self._read_end)

    def _start(self) -> None:
        pid = os.fork()
        if pid:
            self._start_times[pid] = time.monotonic()
            return
        code = 1
        try:
            os.close(self._write_end)
            self._work()
            code = 0
        finally:
            # The worker must not run the exit handlers of its parent.
            os._exit(code)

    def _work(self) -> None:
        server = Server(self._settings, create_app(self._settings, self._preloaded))

        def watch() -> None:
            os.read(self._read_end, 1)
            _force_exit()
            server.should_exit = True

        threading.Thread(target=watch, name="pairseek-parent", daemon=True).start()
        _run_server(server, self._listening)

    def _replace(self) -> None:
        for pid, started_at in list(self._start_times.items()):
            ended_pid, status = os.waitpid(pid, os.WNOHANG)
            if not ended_pid:
                continue
            del self._start_times[pid]
            logger.warning("worker exited", extra={"facts": {"code": os.waitstatus_to_exitcode(status)}})
            self._early_exits = self._early_exits + 1 if time.monotonic() - started_at < _EARLY_EXIT_SECONDS else 0
            if self._early_exits >= _MAX_EARLY_EXITS:
                logger.error("workers exit as soon as they start")
                self._stop.set()
                return
            self._start()

    def _end(self) -> None:
        for pid in self._start_times:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + self._settings.drain_seconds + GRACE_SECONDS + _EXIT_SECONDS
        while self._start_times:
            is_late = time.monotonic() > deadline
            for pid in list(self._start_times):
                if is_late:
                    os.kill(pid, signal.SIGKILL)
                ended_pid, _ = os.waitpid(pid, 0 if is_late else os.WNOHANG)
                if ended_pid:
                    del self._start_times[pid]
            time.sleep(0.02)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
