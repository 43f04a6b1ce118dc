"""Keeper of the newest findings: computed in a separate thread, however often they are asked for and answers change.

A study has at most one computation that runs, among all workers and servers of a database, and in each worker at most
one that has yet to begin, which will include every answer stored before it begins. A worker whose computation would
begin while another worker computes gives it up: pages get the newest findings in its memory, and downloads ask again.
Workers do not share findings: each computes its own.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from cachetools import LRUCache

from pairseek.errors import InvalidChoices
from pairseek.store import sessions
from pairseek.store.database import Database
from pairseek.store.locks import try_lock
from pairseek.web.errors import Problem
from pairseek.web.operations.rounds import note_failure
from pairseek.web.results.findings import CACHE, GroupFindings, StudyFindings, no_ranking, study_findings
from pairseek.web.studies.catalogue import Study

# Studies whose findings are in memory.
_CACHE_SIZE = 32
# Seconds that a download waits for findings.
_WAIT_SECONDS = 30.0
# Seconds until a download asks again while another worker computes findings of the study.
_RETRY_SECONDS = 0.2
# While people answer, pages have findings computed again only after a pause of this many times what they last took.
_PAUSE = 2.0


@dataclass(frozen=True, eq=False)
class _Computed:
    """Findings, the fingerprint of the sessions that they include, and the times when their computation ran."""

    findings: StudyFindings
    fingerprint: int
    began_at: float
    ended_at: float

    @property
    def is_rested(self) -> bool:
        """Whether the pause after the computation is over."""
        return time.time() - self.ended_at >= _PAUSE * (self.ended_at - self.began_at)


class FindingsKeeper:
    """Findings of the studies of a database.

    Parameters
    ----------
    database
        Database of the studies.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._cache: LRUCache[int, _Computed] = LRUCache(_CACHE_SIZE)
        self._clearings = 0
        # Computations by the id of their study: those that have yet to begin, with the study as last asked for, and
        # the one that runs, with the fingerprint of its sessions.
        self._queued: dict[int, tuple[Study, Future[StudyFindings | None]]] = {}
        self._running: dict[int, tuple[int, Future[StudyFindings | None]]] = {}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="pairseek-findings")

    def look(self, study: Study, *, since: float | None = None) -> tuple[StudyFindings | None, bool]:
        """Return the newest findings in memory and whether they are current; if not, have them computed.

        They are current if they include all answers; with a time ``since``, if they include all answers until then.
        """
        fingerprint = self._fingerprint(study)
        with self._lock:
            computed = self._cache.get(study.row.id)
            if computed is None:
                self._request(study, fingerprint)
                return None, False
            if computed.fingerprint == fingerprint or (since is not None and computed.began_at >= since):
                return computed.findings, True
            if computed.is_rested:
                self._request(study, fingerprint)
            return computed.findings, False

    def wait_for_current(self, study: Study) -> StudyFindings:
        """Return findings with all present answers once they are computed; raise a `Problem` after half a minute."""
        until = time.monotonic() + _WAIT_SECONDS
        fingerprint = self._fingerprint(study)
        while True:
            with self._lock:
                computed = self._cache.get(study.row.id)
                if computed is not None and computed.fingerprint == fingerprint:
                    return computed.findings
                running = self._request(study, fingerprint)
            try:
                findings = running.result(max(0.0, until - time.monotonic()))
            except TimeoutError:
                findings = None
            if findings is not None:
                return findings
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

    def _fingerprint(self, study: Study) -> int:
        """Return a number that changes with the sessions and the items of a study."""
        kinds = ["person", "simulated"]
        rows = self._database.read(lambda connection: sessions.versions_of_study(connection, study.row.id, kinds))
        return hash((study.row.additions, str(rows)))

    def _request(self, study: Study, fingerprint: int) -> Future[StudyFindings | None]:
        """Return the computation that will include all present answers; the caller holds the lock."""
        number = study.row.id
        running = self._running.get(number)
        if running is not None and running[0] == fingerprint:
            return running[1]
        queued = self._queued.get(number)
        future = self._worker.submit(self._compute, number) if queued is None else queued[1]
        self._queued[number] = study, future
        return future

    def _compute(self, number: int) -> StudyFindings | None:
        """Compute findings and keep them; return None if another worker is computing findings of this study."""
        with self._lock:
            study, future = self._queued.pop(number)
        try:
            with try_lock(self._database, f"findings-{number}") as held:
                return self._compute_alone(study, future) if held else None
        except Exception:
            # Logged here, because nobody may be waiting for the future.
            note_failure("findings")
            raise

    def _compute_alone(self, study: Study, future: Future[StudyFindings | None]) -> StudyFindings:
        number, began_at, fingerprint = study.row.id, time.time(), self._fingerprint(study)
        with self._lock:
            self._running[number] = fingerprint, future
            clearings = self._clearings
        try:
            findings = study_findings(self._database, study)
            with self._lock:
                # Findings that may include somebody who has been deleted meanwhile are not kept.
                if clearings == self._clearings:
                    self._cache[number] = _Computed(findings, fingerprint, began_at, time.time())
            return findings
        finally:
            with self._lock:
                del self._running[number]

    def clear_cache(self) -> None:
        """Remove all findings from memory after a deletion."""
        CACHE.clear()
        with self._lock:
            self._cache.clear()
            self._clearings += 1

    def close(self) -> None:
        """Stop the thread."""
        self._worker.shutdown(cancel_futures=True)
