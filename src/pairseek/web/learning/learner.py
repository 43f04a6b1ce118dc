"""Learner of a worker: a background thread in which studies learn from their participants."""

from __future__ import annotations

from functools import partial

from pairseek.errors import StoreUnavailable
from pairseek.store import learning
from pairseek.store.database import Database
from pairseek.store.learning import LearningProgress
from pairseek.store.studies import StudyRow
from pairseek.web.learning import populations, similarity
from pairseek.web.learning.process import learn_in_process
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
        self.rounds = Rounds("learning", _ROUND_SECONDS, self.round)

    def start(self) -> None:
        """Start the thread."""
        self.rounds.start()

    def stop(self) -> None:
        """End the thread; a learning process continues until this process exits, but its result is lost."""
        self.rounds.stop()

    def check_soon(self) -> None:
        """Check studies immediately, because a session has finished or a similarity study has new answers."""
        self.rounds.wake()

    def request(self, study: Study, who: str) -> None:
        """Let a study learn as soon as possible at its owner's request.

        The database holds at most one request of a study until its learning begins, for all workers and servers.
        """
        self._database.write(lambda connection: learning.request(connection, study.row.id, who))
        self.rounds.wake()

    def round(self) -> None:
        """Let studies learn if their owner has requested it or they have enough new sessions."""
        # An error in one study must not prevent learning in the others.
        attempt_all(partial(self._learn_if_needed, study) for study in self._database.read(learning.progress))

    def _learn_if_needed(self, progress: LearningProgress) -> None:
        row = progress.study
        if self.rounds.stopped:
            return
        if progress.state.requested_by is not None:
            self._learn_requested(row)
        elif row.configuration.get("kind") == "similarity":
            if similarity.may_be_due(self._database, row.id, row.item_count):
                similarity.learn_if_due(self._database, self._catalogue.by_slug(row.slug), run=learn_in_process)
        elif populations.may_be_due(progress):
            populations.learn_if_due(self._database, self._catalogue.by_slug(row.slug), learn_in_process)

    def _learn_requested(self, row: StudyRow) -> None:
        who = self._database.write(lambda connection: learning.take_request(connection, row.id))
        if who is None:
            return
        try:
            done = self._learn_now(self._catalogue.by_slug(row.slug), who)
        except StoreUnavailable:
            self._database.write(lambda connection: learning.request(connection, row.id, who))
            raise
        if not done:
            # Another worker is learning. Answers may have been voided since it began, so try again in a later round.
            self._database.write(lambda connection: learning.request(connection, row.id, who))

    def _learn_now(self, study: Study, who: str) -> bool:
        if study.configuration.is_similarity:
            return similarity.learn_now(self._database, study, who, learn_in_process, log_version=True)
        return populations.learn_now(self._database, study, who, learn_in_process)
