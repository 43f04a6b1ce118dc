"""Keeper of the newest findings: stored for all workers, and computed in a process of low priority.

However often findings are asked for and answers change, a study has at most one computation that runs and one that has
yet to begin, among all workers and servers of a database. Both are numbered, so a page knows which computation includes
the answers that it has been asked about. Asking reads one row, and a worker reads findings once.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import partial

from cachetools import LRUCache

from pairseek._version import __version__
from pairseek.errors import InvalidChoices
from pairseek.store import findings as stored
from pairseek.store import sessions
from pairseek.store.database import Database
from pairseek.store.findings import FindingsRow
from pairseek.store.locks import try_lock
from pairseek.web.errors import Problem
from pairseek.web.operations.rounds import Rounds, attempt_all
from pairseek.web.results.findings import GroupFindings, StudyFindings, no_ranking
from pairseek.web.results.findings_process import findings_in_process
from pairseek.web.results.packing import unpack
from pairseek.web.studies.catalogue import Catalogue, Study

# Studies whose findings are in memory.
_CACHE_SIZE = 32
# Seconds until a worker looks for findings that are wanted and that no other worker computes.
_ROUND_SECONDS = 10.0
# Seconds that a download waits for findings, and seconds until it looks again.
_WAIT_SECONDS = 30.0
_RETRY_SECONDS = 0.2


@dataclass(frozen=True, eq=False)
class NewestFindings:
    """Newest findings of a study, if there are any.

    Attributes
    ----------
    findings
        The findings; None if there are none yet.
    is_current
        Whether they include all answers.
    computation
        Number of the computation that includes all answers.
    """

    findings: StudyFindings | None
    is_current: bool
    computation: int


@dataclass(frozen=True, slots=True)
class FindingsStatus:
    """Whether findings are current, and the time when they were computed; None if there are none."""

    is_current: bool
    computed_at: str | None


class FindingsKeeper:
    """Findings of the studies of a database, and the background thread that has them computed.

    Parameters
    ----------
    database, catalogue
        Database and its studies.
    """

    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database, self._catalogue = database, catalogue
        self._lock = threading.Lock()
        # Findings by the id of their study, with the number of their computation.
        self._cache: LRUCache[int, tuple[int, StudyFindings]] = LRUCache(_CACHE_SIZE)
        self.rounds = Rounds("findings", _ROUND_SECONDS, self.round)

    def start(self) -> None:
        """Start the thread."""
        self.rounds.start()

    def stop(self) -> None:
        """End the thread; a computation continues until this process exits, but its result is lost."""
        self.rounds.stop()

    def look(self, study: Study) -> NewestFindings:
        """Return the newest findings; if they are not current, have them computed."""
        row, state = self._row(study), self._state(study)
        if row.sessions == state:
            return NewestFindings(self._load(study, row), is_current=True, computation=row.done)
        return NewestFindings(self._load(study, row), is_current=False, computation=self._request(study, row))

    def status(self, study: Study, since: int | None = None) -> FindingsStatus:
        """Return whether findings include all answers, or at least those that the computation ``since`` includes.

        If not, have them computed.
        """
        row = self._row(study)
        if since is None or since > row.wanted:
            is_current, is_coming = row.sessions == self._state(study), False
        else:
            is_current, is_coming = row.sessions is not None and row.done >= since, row.wanted > row.done
        if not is_current and not is_coming:
            self._request(study, row)
        return FindingsStatus(is_current, row.computed_at)

    def wait_for_current(self, study: Study) -> StudyFindings:
        """Return findings with all present answers once they are computed; raise a `Problem` after half a minute."""
        until = time.monotonic() + _WAIT_SECONDS
        newest = self.look(study)
        findings = newest.findings if newest.is_current else None
        while findings is None:
            if time.monotonic() >= until:
                raise Problem(
                    503,
                    "findings_not_ready",
                    f"the findings of the study {study.row.slug!r} are being computed",
                    received=study.row.slug,
                    hint="Try again in a moment.",
                    wait=10,
                )
            time.sleep(_RETRY_SECONDS)
            if self.status(study, newest.computation).is_current:
                findings = self._load(study, self._row(study))
        return findings

    def group_findings(self, study: Study) -> GroupFindings:
        """Wait for the current findings and return them; raise `InvalidChoices` if there is nothing to rank.

        They leave out void and flagged people.
        """
        if study.configuration.is_similarity:
            raise no_ranking(study)
        findings = self.wait_for_current(study).careful
        if isinstance(findings, InvalidChoices):
            raise InvalidChoices(str(findings), reason=findings.reason, count=findings.count)
        return findings

    def _row(self, study: Study) -> FindingsRow:
        return self._database.read(lambda connection: stored.row_of(connection, study.row.id))

    def _state(self, study: Study) -> str:
        """Return a text that changes with the sessions and the items of a study, and with the program."""
        kinds = ["person", "simulated"]
        state = self._database.read(lambda connection: sessions.state_of_study(connection, study.row.id, kinds))
        return f"{__version__} {study.row.additions},{state}"

    def _request(self, study: Study, row: FindingsRow) -> int:
        """Have findings computed with all present answers, and return the number of the computation."""
        if row.wanted > row.begun:
            return row.wanted
        number = self._database.write(lambda connection: stored.request(connection, study.row.id))
        self.rounds.wake()
        return number

    def _load(self, study: Study, row: FindingsRow) -> StudyFindings | None:
        """Return the findings of a row; None if there are none, or only findings of another version or of old items."""
        if row.sessions is None or not row.sessions.startswith(f"{__version__} "):
            return None
        with self._lock:
            number, findings = self._cache.get(study.row.id, (0, None))
        if findings is None or number != row.done:
            content = self._database.read(lambda connection: stored.content(connection, study.row.id))
            findings = content and unpack(content[1], study.all_items)
            if content and findings:
                with self._lock:
                    self._cache[study.row.id] = content[0], findings
        return findings

    def round(self) -> None:
        """Compute the findings that are wanted, study by study."""
        attempt_all(partial(self._compute, study_id) for study_id in self._database.read(stored.wanted))

    def _compute(self, study_id: int) -> None:
        """Compute and store findings, unless another worker does so or has done so meanwhile."""
        with try_lock(self._database, f"findings-{study_id}") as held:
            if self.rounds.stopped or not held or not self._is_wanted(study_id):
                return
            number = self._database.write(lambda connection: stored.begin(connection, study_id))
            try:
                state = self._state(self._catalogue.reread(study_id))
                packed = findings_in_process(self._database, study_id)
            except Exception:
                # The study may have been deleted meanwhile.
                if self._is_wanted(study_id):
                    raise
                return
            self._database.write(lambda connection: stored.keep(connection, study_id, number, state, packed))
        # Meanwhile, the next computation may have been requested by another worker, which could not begin it.
        self.rounds.wake()

    def _is_wanted(self, study_id: int) -> bool:
        return study_id in self._database.read(stored.wanted)

    def clear_cache(self) -> None:
        """Remove all findings from memory after a deletion."""
        with self._lock:
            self._cache.clear()
