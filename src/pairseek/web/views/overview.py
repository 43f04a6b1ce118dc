"""Participants on the dashboard, cached by session version."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from cachetools import LRUCache

from pairseek.core.types import JSON
from pairseek.store import sessions
from pairseek.store.database import Database
from pairseek.store.sessions import SessionRow
from pairseek.web.pages.contexts.maps import MapPoint
from pairseek.web.pages.contexts.study import PersonRow
from pairseek.web.results.quality import NO_ANSWERS, manner_of, quality_indicators
from pairseek.web.sessions import history
from pairseek.web.settings import Settings
from pairseek.web.studies.catalogue import Study
from pairseek.web.views.result import project

# Twice the largest study: every visit reads all sessions in order, so a smaller cache would evict each before its use.
_CACHE_SIZE = 2 * Settings.most_sessions
# Sessions read per batch.
_BATCH_SIZE = 200

ParticipantEntry: TypeAlias = tuple[PersonRow, MapPoint | None]
"""Participant's row in the list, and their point on the map if they have an estimate."""
_CacheKey: TypeAlias = tuple[str, int, bool]


class Overview:
    """Participants of the studies of a database.

    Parameters
    ----------
    database
        Database of the studies.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._cache: LRUCache[_CacheKey, ParticipantEntry] = LRUCache(_CACHE_SIZE)

    def participants(self, study: Study) -> list[ParticipantEntry]:
        """Return all participants of a study except previews, newest first.

        Only changed sessions are read again. Sessions without an answer are never read: their row says everything, and
        they are not on the map.
        """
        number = study.row.id
        rows = self._database.read(lambda c: sessions.of_study(c, number, ["person", "simulated"]))[::-1]
        with self._lock:
            entries = {row.id: _empty(row) if row.version == 0 else self._cache.get(_cache_key(row)) for row in rows}
        missing = [row for row in rows if entries[row.id] is None]
        for start in range(0, len(missing), _BATCH_SIZE):
            batch = missing[start : start + _BATCH_SIZE]
            for session in history.read_histories(self._database, study, batch):
                estimates = history.estimate_history(study, session)
                entry = person_row(study, session, estimates), _point(study, session, estimates)
                entries[session.row.id] = entry
                # Do not cache the entry if events or marks have been added since the row was read.
                if len(session.events) + len(session.marks) == session.row.version:
                    self._store(_cache_key(session.row), entry)
        return [row_entry for row in rows if (row_entry := entries[row.id]) is not None]

    def clear_cache(self) -> None:
        """Clear the cache after a deletion."""
        with self._lock:
            self._cache.clear()

    def _store(self, key: _CacheKey, entry: ParticipantEntry) -> None:
        with self._lock:
            self._cache[key] = entry


def _empty(row: SessionRow) -> ParticipantEntry:
    """Return the entry of a participant who has not answered yet."""
    return {
        "session": row.id,
        "name": row.participant_name,
        "status": "asking" if row.finished_at is None else "finished",
        "answers": 0,
        "started": row.created_at,
        "median_seconds": None,
        "simulated": row.kind == "simulated",
        "voided": False,
        "quality": NO_ANSWERS,
    }, None


def _cache_key(row: SessionRow) -> _CacheKey:
    return row.id, row.version, row.finished_at is not None


def person_row(study: Study, session: history.SessionHistory, estimates: Sequence[JSON]) -> PersonRow:
    """Return the row of a participant; ``estimates`` contains the estimate after each answer."""
    row, done = session.row, session.done
    quality = quality_indicators(study.configuration, done, session.checks, manner_of(estimates))
    median = quality["median_ms"]
    return {
        "session": row.id,
        "name": row.participant_name,
        "status": "asking" if row.finished_at is None else "finished",
        "answers": sum(answered.outcome != "skip" for answered in done),
        "started": row.created_at,
        "median_seconds": None if median is None else median / 1000,
        "simulated": row.kind == "simulated",
        "voided": session.is_void,
        "quality": quality,
    }


def _point(study: Study, session: history.SessionHistory, estimates: Sequence[JSON]) -> MapPoint | None:
    estimate = history.latest_estimate(study, session, estimates)
    if estimate["radius"] is None or not study.items.d:
        return None
    return {
        "session": session.row.id,
        "name": session.row.participant_name,
        "point": project(study.items, np.array(estimate["mean"]))[0],
        "radius": estimate["radius"],
        "simulated": session.row.kind == "simulated",
        "voided": session.is_void,
    }
