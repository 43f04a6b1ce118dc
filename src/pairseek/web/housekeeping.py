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
        self._seen = 0
        self._next = 0.0
        self._thread = threading.Thread(target=self._run, name="pairseek-housekeeping", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._seen = self._database.read(deletion.count_of_deletions)
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the step under way."""
        self._stopped.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def soon(self) -> None:
        """Look for deletions at once."""
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
            forgetting.expire(self._database, self._catalogue)
            self._database.write(_tidy)
            self._next = monotonic() + _SELDOM
        count = self._database.read(deletion.count_of_deletions)
        if count != self._seen:
            self._clear()
            self._seen = count
        forgetting.scrub(self._database)


def _tidy(connection: sa.Connection) -> None:
    """Delete previews, logins and attempts to sign in that are over."""
    now = datetime.now(UTC)
    sessions.forget_preview(connection, stamp(now - timedelta(hours=_PREVIEW_HOURS)))
    people.tidy(connection, attempts_before=stamp(now - timedelta(minutes=auth.MINUTES)))
