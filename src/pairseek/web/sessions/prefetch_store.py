"""Background storage of prefetched queries, which saves their recomputation after a restart."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import sqlalchemy as sa

from pairseek.errors import StoreUnavailable
from pairseek.store import cache
from pairseek.store.cache import Prefetched
from pairseek.web.rounds import Rounds, logged
from pairseek.web.sessions.service import Sessions

# Interval in seconds between two rounds.
_ROUND = 1.0
# Seconds for which a person has thought before it is worth it: storing costs as much as computing one pair.
_SETTLED = 4.0
# Number of sessions in one transaction.
_BATCH = 20
# Maximum time in seconds for stopping.
_STOP_SECONDS = 5.0

logger = logging.getLogger("pairseek.web")


class PrefetchWriter:
    """Background thread that stores prefetched queries.

    Parameters
    ----------
    sessions
        Sessions whose queries are stored.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self.rounds = Rounds("prefetch-writer", _ROUND, self.round)

    def start(self) -> None:
        """Start the thread."""
        self.rounds.start()

    def stop(self) -> None:
        """Store the remaining prefetched queries, as far as time allows, and end the thread."""
        self.rounds.stop(_STOP_SECONDS)
        until = time.monotonic() + _STOP_SECONDS
        logged("prefetch-writer", lambda: self._store(lambda: time.monotonic() > until, 0.0))()

    def round(self) -> None:
        """Store the prefetched queries of people who have thought for a while."""
        self._store(lambda: self.rounds.stopped, _SETTLED)

    def _store(self, enough: Callable[[], bool], settled: float) -> None:
        """Store the prefetched queries of all sessions that have waited so long, until ``enough`` or an error."""
        since = time.monotonic() - settled
        batch: list[Prefetched] = []
        for live in self._sessions.all_live():
            if enough():
                break
            found = self._sessions.to_save(live, since)
            if found is not None:
                batch.append(found)
            if len(batch) >= _BATCH:
                if not self._write(batch):
                    return
                batch = []
        if batch:
            self._write(batch)

    def _write(self, batch: list[Prefetched]) -> bool:
        """Store prefetched queries; return False where the store cannot take them."""
        # A fixed order prevents deadlocks between workers that store the same sessions.
        batch = sorted(batch, key=lambda one: one.session_id)
        try:
            self._sessions.database.write(lambda connection: cache.store(connection, batch))
        except StoreUnavailable:
            # The cache is optional: missing queries are computed again.
            logger.warning("prefetched queries could not be stored")
            return False
        except sa.exc.IntegrityError:
            # Another worker has stored the same queries concurrently.
            return True
        return True
