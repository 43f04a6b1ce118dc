"""Learner of a worker: a background thread in which studies learn from their participants."""

from __future__ import annotations

from functools import partial
from queue import SimpleQueue

from pairseek.errors import StoreUnavailable
from pairseek.store import studies
from pairseek.store.database import Database
from pairseek.web.learning import populations, similarity
from pairseek.web.learning.process import learn_apart
from pairseek.web.operations.rounds import Rounds, attempt_all
from pairseek.web.studies.catalogue import Catalogue, Study

# Seconds between two checks for studies with enough new sessions.
_ROUND_SECONDS = 10.0


class Learner:
    """Background thread that lets studies learn when enough sessions have finished.

    Every worker has one, but only one worker at a time lets a study learn, in a separate process of low priority.

    Parameters
    ----------
    database, catalogue
        Database and its studies.
    """

    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database, self._catalogue = database, catalogue
        self._requests: SimpleQueue[tuple[str, str]] = SimpleQueue()
        self.rounds = Rounds("learning", _ROUND_SECONDS, self.round)

    def start(self) -> None:
        """Start the thread."""
        self.rounds.start()

    def stop(self) -> None:
        """End the thread; a learning process continues until this process exits, but its result is lost."""
        self.rounds.stop()

    def soon(self) -> None:
        """Check studies immediately, because a session has finished or a similarity study has new answers."""
        self.rounds.wake()

    def request(self, slug: str, who: str) -> None:
        """Let a study learn as soon as possible at its owner's request."""
        self._requests.put((slug, who))
        self.rounds.wake()

    def round(self) -> None:
        """Let studies learn if their owner has requested it or they have enough new sessions."""
        attempt_all([self._learn_all_requested, self._learn_all_due])

    def _learn_all_requested(self) -> None:
        attempt_all(partial(self._learn_requested, *self._requests.get()) for _ in range(self._requests.qsize()))

    def _learn_requested(self, slug: str, who: str) -> None:
        try:
            was_tried = self._learn_now(self._catalogue.by_slug(slug), who)
        except StoreUnavailable:
            self._requests.put((slug, who))
            raise
        if not was_tried:
            # Another worker is learning, but answers may have been voided since it began: the next round tries again.
            self._requests.put((slug, who))

    def _learn_all_due(self) -> None:
        # An error in one study must not prevent learning in the others.
        attempt_all(partial(self._learn_if_due, row.slug) for row in self._database.read(studies.all_studies))

    def _learn_if_due(self, slug: str) -> None:
        """Let a study learn if it has enough new sessions."""
        if self.rounds.stopped:
            return
        study = self._catalogue.by_slug(slug)
        if study.configuration.is_similarity:
            similarity.learn_if_due(self._database, study, run=learn_apart)
        else:
            populations.learn_if_due(self._database, study, learn_apart)

    def _learn_now(self, study: Study, who: str) -> bool:
        if study.configuration.is_similarity:
            return similarity.learn_now(self._database, study, who, learn_apart, log_version=True)
        return populations.learn_now(self._database, study, who, learn_apart)
