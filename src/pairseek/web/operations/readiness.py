"""Readiness of a worker.

A worker is ready while it is not shutting down, its background threads are alive, and its database has the current
schema and accepts writes.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from time import monotonic

import sqlalchemy as sa

from pairseek.errors import PairseekError, StoreOutdated, StoreUnavailable
from pairseek.store import meta, migrate
from pairseek.store.database import Database, now
from pairseek.web.errors import Problem
from pairseek.web.operations.rounds import Background

# Least seconds between two trial writes, because anybody may request the readiness.
_MIN_SECONDS_BETWEEN_WRITES = 2.0
# Free bytes below which the disk of a SQLite file counts as full.
_MIN_FREE_BYTES = 20_000_000


class Readiness:
    """Readiness of a worker, including the result of its last trial write.

    Parameters
    ----------
    database
        Database of the worker.
    background
        Background work of the worker.
    """

    def __init__(self, database: Database, background: Sequence[Background] = ()) -> None:
        self._database, self._lock = database, threading.Lock()
        self._background = background
        self._tried_at = float("-inf")
        self._error: PairseekError | None = None
        self._draining = False

    def drain(self) -> None:
        """Report from now on that the worker is shutting down, so that proxies send requests elsewhere."""
        self._draining = True

    def problems(self) -> list[str]:
        """Return persistent errors of background work, which do not keep the worker from serving."""
        return [work.problem for work in self._background if work.problem is not None]

    def check(self) -> None:
        """Raise an error unless the worker is ready."""
        if self._draining:
            raise Problem(503, "draining", "this server is shutting down", hint="Send requests to another server.")
        if any(work.has_died for work in self._background):
            raise Problem(
                503,
                "background_ended",
                f"a background thread of this server has ended: {'; '.join(self.problems())}",
                hint="Restart this server; its log has the reason.",
            )
        version = migrate.current(self._database)
        if version != migrate.newest():
            raise StoreOutdated(f"the database has tables of version {version}")
        # Requests that arrive during a trial write get the result of the last one.
        if monotonic() - self._tried_at >= _MIN_SECONDS_BETWEEN_WRITES and self._lock.acquire(blocking=False):
            try:
                self._error = self._try_write()
                self._tried_at = monotonic()
            finally:
                self._lock.release()
        if self._error is not None:
            raise self._error

    def _try_write(self) -> PairseekError | None:
        try:
            self._check_space()
            self._database.write(_write)
        except PairseekError as error:
            return error
        return None

    def _check_space(self) -> None:
        path = self._database.path
        if path is not None:
            free = shutil.disk_usage(path.resolve().parent).free
            if free < _MIN_FREE_BYTES:
                raise StoreUnavailable("the disk of the database is full", f"{free:,} bytes are free")


def _write(connection: sa.Connection) -> None:
    meta.put(connection, "ready_at", now())
