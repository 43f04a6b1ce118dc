"""Learner of a worker: studies that learn from their own people do so here, outside requests."""

from __future__ import annotations

import logging
import threading
from queue import SimpleQueue

import sqlalchemy as sa

from pairseek.errors import PairseekError
from pairseek.learning.process import learn_apart
from pairseek.store import studies
from pairseek.store.database import Database
from pairseek.web.data import populations
from pairseek.web.studies.catalogue import Catalogue

# Seconds between two looks for studies that have enough new sessions.
_ROUND = 10.0

logger = logging.getLogger("pairseek.web")


class Learner:
    """Background thread that lets studies learn when enough sessions have finished.

    Every worker has one. The work itself is done in a process of low priority, and one worker at a time does it.

    Parameters
    ----------
    database, catalogue
        Database and its studies.
    """

    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database, self._catalogue = database, catalogue
        self._stopped, self._wanted = threading.Event(), threading.Event()
        self._requests: SimpleQueue[tuple[str, str]] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pairseek-learner", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread. A study that is learning goes on in its process, whose result is discarded."""
        self._stopped.set()
        self._wanted.set()

    def soon(self) -> None:
        """Look at once, because a session has finished."""
        self._wanted.set()

    def request(self, slug: str, who: str) -> None:
        """Let a study learn as soon as possible, because its owner wants it."""
        self._requests.put((slug, who))
        self._wanted.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.round()
            except (PairseekError, sa.exc.SQLAlchemyError):
                # The next round tries again.
                logger.warning("a round of learning failed", exc_info=True)
            self._wanted.wait(_ROUND)
            self._wanted.clear()

    def round(self) -> None:
        """Let every study learn whose owner wants it, or that has enough new sessions."""
        while not self._requests.empty():
            slug, who = self._requests.get()
            populations.learn_now(self._database, self._catalogue.named(slug), who, learn_apart)
        for row in self._database.read(studies.every):
            if self._stopped.is_set():
                return
            populations.learn_if_due(self._database, self._catalogue.named(row.slug), learn_apart)
