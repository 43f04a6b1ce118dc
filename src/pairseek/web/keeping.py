"""Beliefs put by in the store, now and then and at the end, so that a restart has little to work out again."""

from __future__ import annotations

import logging
import threading
import time

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
# Seconds that stopping may take.
_FAREWELL = 5.0

logger = logging.getLogger("pairseek.web")


class Keeper:
    """Keeps beliefs, in one thread.

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
        for live in self._sessions.all_live():
            if time.monotonic() > until or not self._keep(live, 1):
                return

    def _run(self) -> None:
        while not self._stopped.wait(_ROUND):
            for live in self._sessions.all_live():
                if self._stopped.is_set() or not self._keep(live, EVERY):
                    break

    def _keep(self, live: Live, least: int) -> bool:
        """Keep one belief where it is worth it; False where the store cannot take it."""
        if len(live.standing.search.history) - live.kept < least:
            return True
        self._gate.wait_idle(0.0 if self._stopped.is_set() else _QUIET)
        snapshot = self._sessions.snapshot(live)
        if snapshot is None:
            return True
        try:
            self._sessions.database.write(lambda connection: cache.keep_snapshot(connection, snapshot))
        except StoreUnavailable:
            # The events are the truth; a belief that was not kept costs a little time later.
            logger.warning("a belief could not be kept")
            return False
        return True
