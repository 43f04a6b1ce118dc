"""Readiness of a worker.

A worker is ready while it is not shutting down, its background threads are alive, and its database has the current
schema and accepts writes in time.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic

import sqlalchemy as sa

from pairseek.errors import PairseekError, StoreUnavailable
from pairseek.store import meta
from pairseek.store.database import Database, now
from pairseek.web.errors import Problem
from pairseek.web.operations.rounds import Background

# Least seconds between two trial writes, because anybody may request the readiness.
_MIN_SECONDS_BETWEEN_WRITES = 2.0
# Seconds that a trial write may take.
_MAX_WRITE_SECONDS = 2.0
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
        self._database, self._background = database, background
        # One thread, because a trial write can hang for as long as another process locks the database.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="pairseek-ready")
        self._trial: Future[PairseekError | None] | None = None
        self._tried_at = float("-inf")
        self._draining = False

    def close(self) -> None:
        """Stop the thread, without waiting for a write that hangs."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def drain(self) -> None:
        """Report from now on that the worker is shutting down, so that proxies send requests elsewhere."""
        self._draining = True

    def problems(self) -> list[str]:
        """Return persistent errors of background work, which do not keep the worker from serving."""
        return [work.problem for work in self._background if work.problem is not None]

    async def check(self) -> None:
        """Raise an error unless the worker is ready, by the result of a trial write of the last seconds."""
        if self._draining:
            raise Problem(503, "draining", "this server is shutting down", hint="Send requests to another server.")
        if any(work.has_died for work in self._background):
            raise Problem(
                503,
                "background_ended",
                f"a background thread of this server has ended: {'; '.join(self.problems())}",
                hint="Restart this server; its log has the reason.",
            )
        if self._trial is None or (self._trial.done() and monotonic() - self._tried_at >= _MIN_SECONDS_BETWEEN_WRITES):
            self._tried_at = monotonic()
            self._trial = self._worker.submit(self._try_write)
        remaining = self._tried_at + _MAX_WRITE_SECONDS - monotonic()
        try:
            error = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._trial)), max(0.0, remaining))
        except TimeoutError:
            raise StoreUnavailable(
                "the database does not accept writes in time", f"a trial write takes over {_MAX_WRITE_SECONDS:g} s"
            ) from None
        if error is not None:
            raise error

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
