"""Readiness of a worker.

A worker is ready if it goes on serving, its background threads live, and its database has the current schema and takes
writes.
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
from pairseek.web.rounds import Background

# Anyone may ask, so a write is tried at most once in so many seconds.
_SECONDS = 2.0
# Bytes on the disk of a SQLite file below which it counts as full.
_LEAST_FREE = 20_000_000


class Readiness:
    """Whether a database can be used, with the result of the last write that was tried.

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
        self._tried = float("-inf")
        self._error: PairseekError | None = None
        self._draining = False

    def drain(self) -> None:
        """Report from now on that the worker is about to end, so that proxies send requests elsewhere."""
        self._draining = True

    def problems(self) -> list[str]:
        """Return what keeps failing in the background: answers are served all the same."""
        return [work.problem for work in self._background if work.problem is not None]

    def check(self) -> None:
        """Raise an error unless the database can be used, the background threads live and the worker goes on."""
        if self._draining:
            raise Problem(503, "draining", "this server is about to end", hint="Send requests to another server.")
        if any(work.has_died for work in self._background):
            raise Problem(
                503,
                "background_ended",
                f"a background thread of this server is missing: {'; '.join(self.problems())}",
                hint="Start this server again; its log has the reason.",
            )
        version = migrate.current(self._database)
        if version != migrate.newest():
            raise StoreOutdated(f"the database has tables of version {version}")
        # Those who ask while a write is being tried get the last result.
        if monotonic() - self._tried >= _SECONDS and self._lock.acquire(blocking=False):
            try:
                self._error = self._trial()
                self._tried = monotonic()
            finally:
                self._lock.release()
        if self._error is not None:
            raise self._error

    def _trial(self) -> PairseekError | None:
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
            if free < _LEAST_FREE:
                raise StoreUnavailable("the disk of the database is full", f"{free:,} bytes are free")


def _write(connection: sa.Connection) -> None:
    meta.put(connection, "ready_at", now())
