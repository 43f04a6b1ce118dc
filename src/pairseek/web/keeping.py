"""Beliefs and next queries put by in the store, so that a restart has little to work out again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeAlias

import sqlalchemy as sa

from pairseek.errors import StoreUnavailable
from pairseek.store import cache
from pairseek.web.ahead import Gate
from pairseek.web.live import Live
from pairseek.web.sessions import Sessions

# Seconds between two rounds, and that a belief waits for a quiet moment.
_ROUND = 1.0
_QUIET = 5.0
# A belief is kept after so many events, so that no more have to be gone through after a restart.
EVERY = 3
# So many go into one transaction.
_BATCH = 20
# Seconds that stopping may take.
_FAREWELL = 5.0

Kept: TypeAlias = cache.Snapshot | cache.Foreseen

logger = logging.getLogger("pairseek.web")


class Keeper:
    """Keeps beliefs and next queries, in one thread.

    Parameters
    ----------
    sessions
        Whose beliefs.
    gate
        Who comes first.
    """

    def __init__(self, sessions: Sessions, gate: Gate) -> None:
        self._sessions, self._gate = sessions, gate
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pairseek-keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Keep what is not kept yet, as far as there is time, and end."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_FAREWELL)
        until = time.monotonic() + _FAREWELL
        self._round(1, lambda: time.monotonic() > until)

    def _run(self) -> None:
        while not self._stopped.wait(_ROUND):
            self._round(EVERY, self._stopped.is_set)

    def _round(self, least: int, enough: Callable[[], bool]) -> None:
        """Go through all sessions, until it is enough or the store takes no more: first for what costs nothing."""
        if self._written(self._sessions.prepared, enough):
            self._written(lambda live: self._belief(live, least), enough)

    def _written(self, worth: Callable[[Live], Kept | None], enough: Callable[[], bool]) -> bool:
        batch: list[Kept] = []
        for live in self._sessions.all_live():
            if enough():
                break
            found = worth(live)
            if found is not None:
                batch.append(found)
            if len(batch) >= _BATCH:
                if not self._write(batch):
                    return False
                batch = []
        return self._write(batch)

    def _belief(self, live: Live, least: int) -> Kept | None:
        """The belief, after so many events more than the last that was kept."""
        if len(live.standing.search.history) - live.kept < least:
            return None
        self._gate.wait_idle(0.0 if self._stopped.is_set() else _QUIET)
        return self._sessions.snapshot(live)

    def _write(self, batch: list[Kept]) -> bool:
        """Store it; False where the store cannot take it."""
        if not batch:
            return True
        # In one order everywhere, so that workers who keep the same sessions do not wait for each other.
        batch = sorted(batch, key=lambda one: one.session_id)
        try:
            self._sessions.database.write(lambda connection: cache.keep(connection, batch))
        except StoreUnavailable:
            # The events are the truth; what was not kept costs a little time later.
            logger.warning("beliefs could not be kept")
            return False
        except sa.exc.IntegrityError:
            # Another worker kept the same at the same moment, which is as good.
            return True
        return True
