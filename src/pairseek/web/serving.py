"""Running the service: one process or several, warmed before the port opens, stopped in order."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict

import numpy as np
import uvicorn

from pairseek._parallel import set_thread_count
from pairseek.errors import InvalidParameter
from pairseek.items import Items
from pairseek.posteriors import Particles
from pairseek.search import Search
from pairseek.store import migrate
from pairseek.store.database import Database
from pairseek.web import auth, logs
from pairseek.web.app import create_app
from pairseek.web.metrics import FOLDER
from pairseek.web.settings import Settings

# Seconds for requests under way when it is told to stop, and for a worker to be gone after that.
GRACE = 10
_LAST = 10.0
# A worker that ends so soon after its start so often in a row will not be started again.
_SOON, _OFTEN = 5.0, 5
_WORKER = "PAIRSEEK_WORKER"

logger = logging.getLogger("pairseek.web")


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    workers: int,
    announced: Callable[[str], None] | None = None,
    new_password: bool = False,
) -> None:
    """Serve until a signal says stop.

    Parameters
    ----------
    settings
        Of the server.
    host, port
        Where it listens.
    workers
        Number of processes.
    announced
        Called with the address once it is said.
    new_password
        Give the first user a new password, which is said, even where there is one.
    """
    if not 1 <= workers <= 64:
        raise InvalidParameter(f"--workers is {workers}: give 1 to 64")
    with bound(host, port) as listening:
        prepare(settings, new_password=new_password)
        if workers == 1:
            warm_up()
        address = announce(host, listening.getsockname()[1])
        if announced is not None:
            announced(address)
        if workers == 1:
            run(settings, listening)
        else:
            Workers(settings, listening, workers).run()


def prepare(settings: Settings, *, new_password: bool = False) -> None:
    """Make the tables and the first user, and say the password once."""
    database = Database(settings.database)
    try:
        migrate.ready(database)
        password = auth.first_user(database, settings.password)
        if new_password and password is None:
            password = secrets.token_urlsafe(12)
            auth.set_password(database, auth.FIRST_USER, password)
    finally:
        database.close()
    if password is not None:
        _say(f"Sign in as {auth.FIRST_USER} with the password {password}  (said once, stored as a hash only)")


def warm_up() -> None:
    """Go once through all that an answer takes, so that nothing is compiled while a person waits."""
    points = np.random.default_rng(0).normal(size=(600, 3))
    for noise_free in (Items(points[:40]), Items(points)):
        search = Search(noise_free, posterior=Particles(200), rng=0)
        for _ in range(6):
            query = search.ask()
            search.tell(query, winner=query.left)
        search.recommend(3)


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that has the address; it listens once a worker is ready."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise InvalidParameter(
                f"cannot listen at {host}, port {port}: {error.strerror}; give another --host or --port"
            ) from None
        yield listening


def announce(host: str, port: int) -> str:
    """Say where it is; the address for others, where it listens to others."""
    everywhere = host in ("0.0.0.0", "::")
    shown = own_address() if everywhere else f"[{host}]" if ":" in host else host
    _say(f"pairseek at http://{shown}:{port}" + (f" and http://127.0.0.1:{port}" if everywhere else ""))
    return f"http://{shown}:{port}"


def own_address() -> str:
    """The machine's address as its network sees it. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def run(settings: Settings, listening: socket.socket) -> None:
    """Serve in this process."""
    logs.set_up()
    _served(uvicorn.Server(_configuration(settings)), listening)


def _served(server: uvicorn.Server, listening: socket.socket) -> None:
    # The server stops in order and then raises the signal again; an orderly stop is no failure.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server.run(sockets=[listening])


def _configuration(settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(settings),
        access_log=False,
        server_header=False,
        log_config=None,
        proxy_headers=True,
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=64_000,
    )


class Workers:
    """Several processes that share a socket; one that dies is replaced.

    Parameters
    ----------
    settings, listening
        What they serve, and where.
    count
        How many.
    """

    def __init__(self, settings: Settings, listening: socket.socket, count: int) -> None:
        self._settings, self._listening, self._count = settings, listening, count
        self._stop = threading.Event()
        self._processes: list[tuple[subprocess.Popen[bytes], float]] = []
        self._deaths = 0

    def run(self) -> None:
        """Keep them running until a signal says stop."""
        logs.set_up()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        folder = tempfile.mkdtemp(prefix="pairseek-metrics-")
        # While the writing end is open somewhere, this process lives: workers end when it does not.
        reading, writing = os.pipe()
        try:
            self._processes = [self._started(folder, reading) for _ in range(self._count)]
            while not self._stop.wait(0.2):
                self._replace(folder, reading)
        finally:
            self._end()
            os.close(writing)
            os.close(reading)
            shutil.rmtree(folder, ignore_errors=True)

    def _started(self, folder: str, reading: int) -> tuple[subprocess.Popen[bytes], float]:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        task = {
            "settings": asdict(self._settings),
            "socket": self._listening.fileno(),
            "parent": reading,
            "threads": max(1, cores // self._count),
        }
        process = subprocess.Popen(
            [sys.executable, "-c", "from pairseek.web.serving import work; work()"],
            env={**os.environ, _WORKER: json.dumps(task), FOLDER: folder},
            pass_fds=[self._listening.fileno(), reading],
        )
        return process, time.monotonic()

    def _replace(self, folder: str, reading: int) -> None:
        for index, (process, began) in enumerate(self._processes):
            if process.poll() is None:
                continue
            logger.warning("a worker ended", extra={"facts": {"code": process.returncode}})
            self._deaths = self._deaths + 1 if time.monotonic() - began < _SOON else 0
            if self._deaths >= _OFTEN:
                logger.error("workers end as soon as they start")
                self._stop.set()
                return
            self._processes[index] = self._started(folder, reading)

    def _end(self) -> None:
        for process, _ in self._processes:
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + GRACE + _LAST
        for process, _ in self._processes:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def work() -> None:
    """One worker, as `Workers` starts it."""
    task = json.loads(os.environ.pop(_WORKER))
    settings = Settings(**task["settings"])
    set_thread_count(task["threads"])
    logs.set_up()
    warm_up()
    server = uvicorn.Server(_configuration(settings))

    def watch() -> None:
        # The pipe has nobody who writes; it ends when the parent does.
        os.read(task["parent"], 1)
        server.should_exit = True

    threading.Thread(target=watch, name="pairseek-parent", daemon=True).start()
    with socket.socket(fileno=task["socket"]) as listening:
        _served(server, listening)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
