"""Learner of a worker: studies that learn from their own people do so here, outside requests."""

from __future__ import annotations

from functools import partial
from queue import SimpleQueue

from pairseek.errors import StoreUnavailable
from pairseek.store import studies
from pairseek.store.database import Database
from pairseek.web.learning import populations, similarity
from pairseek.web.learning.process import learn_apart
from pairseek.web.rounds import Rounds, attempt_all
from pairseek.web.studies.catalogue import Catalogue, Study

# Seconds between two looks for studies that have enough new sessions.
_ROUND = 10.0


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
        self._requests: SimpleQueue[tuple[str, str]] = SimpleQueue()
        self.rounds = Rounds("learning", _ROUND, self.round)

    def start(self) -> None:
        """Start the thread."""
        self.rounds.start()

    def stop(self) -> None:
        """End the thread. A study that is learning goes on in its process until this one ends; the result is lost."""
        self.rounds.stop()

    def soon(self) -> None:
        """Look at once, because a session has finished or a similarity study has new answers."""
        self.rounds.wake()

    def request(self, slug: str, who: str) -> None:
        """Let a study learn as soon as possible, because its owner wants it."""
        self._requests.put((slug, who))
        self.rounds.wake()

    def round(self) -> None:
        """Let every study learn whose owner wants it, or that has enough new sessions."""
        attempt_all([self._look_at_requests, self._look_at_studies])

    def _look_at_requests(self) -> None:
        attempt_all(partial(self._learn_requested, *self._requests.get()) for _ in range(self._requests.qsize()))

    def _learn_requested(self, slug: str, who: str) -> None:
        try:
            done = self._learn_now(self._catalogue.named(slug), who)
        except StoreUnavailable:
            self._requests.put((slug, who))
            raise
        if not done:
            # Answers may have been voided since the learning that is under way began: the next round tries again.
            self._requests.put((slug, who))

    def _look_at_studies(self) -> None:
        # A study that fails keeps no other from learning.
        attempt_all(partial(self._look, row.slug) for row in self._database.read(studies.every))

    def _look(self, slug: str) -> None:
        """Let a study learn if it has enough new sessions."""
        if self.rounds.stopped:
            return
        study = self._catalogue.named(slug)
        if study.configuration.is_similarity:
            similarity.learn_if_due(self._database, study, run=learn_apart)
        else:
            populations.learn_if_due(self._database, study, learn_apart)

    def _learn_now(self, study: Study, who: str) -> bool:
        if study.configuration.is_similarity:
            return similarity.learn_now(self._database, study, who, learn_apart, noted=True)
        return populations.learn_now(self._database, study, who, learn_apart)
