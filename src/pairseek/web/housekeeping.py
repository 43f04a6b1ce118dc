"""Housekeeping of a worker: retention periods, and traces of what was deleted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic

import sqlalchemy as sa

from pairseek.errors import PairseekError
from pairseek.store import deletion, people, sessions
from pairseek.store.database import Database, stamp
from pairseek.web import auth
from pairseek.web.data import forgetting
from pairseek.web.studies.catalogue import Catalogue

# Seconds between two looks for deletions by other workers and commands, and between two looks for what has expired.
_ROUND = 5.0
_SELDOM = 3600.0
# Seconds after which a worker scrubs the database after a deletion by others, and the first pause after a failure.
_OTHERS = 60.0
_PAUSE = 5.0
_PREVIEW_HOURS = 2

logger = logging.getLogger("pairseek.web")


class Housekeeper:
    """Background thread that applies retention periods and clears the worker's memory after deletions.

    Parameters
    ----------
    database, catalogue
        Database and its studies.
    clear
        Removes everything that the worker has cached of sessions.
    """

    def __init__(self, database: Database, catalogue: Catalogue, clear: Callable[[], None]) -> None:
        self._database, self._catalogue, self._clear = database, catalogue, clear
        self._stopped, self._wanted = threading.Event(), threading.Event()
        self._seen: str | None = None
        self._next = 0.0
        self._own = False
        self._scrub_at, self._pause = 0.0, _PAUSE
        self._thread = threading.Thread(target=self._run, name="pairseek-housekeeping", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._seen = self._database.read(deletion.last_deletion)
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the step under way."""
        self._stopped.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def soon(self) -> None:
        """Remove the traces of a deletion by this worker at once."""
        self._own = True
        self._wanted.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.round()
            except (PairseekError, sa.exc.SQLAlchemyError):
                # The next round tries again.
                logger.warning("housekeeping failed", exc_info=True)
            self._wanted.wait(_ROUND)
            self._wanted.clear()

    def round(self) -> None:
        """Apply retention periods once an hour, and remove traces of what was deleted since the last round."""
        if monotonic() >= self._next:
            self._own = bool(forgetting.expire(self._database, self._catalogue)) or self._own
            self._database.write(_tidy)
            self._next = monotonic() + _SELDOM
        last = self._database.read(deletion.last_deletion)
        if last != self._seen:
            self._clear()
            self._seen = last
        self._scrub()

    def _scrub(self) -> None:
        """Scrub the database after a deletion; wait longer after each failure, as it rewrites the whole file."""
        if monotonic() < self._scrub_at:
            return
        time = self._database.read(deletion.unscrubbed)
        if time is None or not (self._own or time < stamp(datetime.now(UTC) - timedelta(seconds=_OTHERS))):
            return
        if forgetting.scrub(self._database):
            self._own, self._pause = False, _PAUSE
        else:
            self._scrub_at, self._pause = monotonic() + self._pause, min(2 * self._pause, _SELDOM)


def _tidy(connection: sa.Connection) -> None:
    """Delete previews, logins and attempts to sign in that are over."""
    now = datetime.now(UTC)
    sessions.forget_preview(connection, stamp(now - timedelta(hours=_PREVIEW_HOURS)))
    people.tidy(connection, attempts_before=stamp(now - timedelta(minutes=auth.MINUTES)))
