"""Participants in the dashboard, cached by session version."""

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
from pairseek.web.views.result import flat

# More than the sessions of a study, because each visit goes through all of them in order.
_KEPT = 2 * Settings.most_sessions
# Number of sessions read in one batch.
_BATCH = 200

Seen: TypeAlias = tuple[PersonRow, MapPoint | None]
"""A participant's row in the list, and their point on the map, if there is an estimate."""
_State: TypeAlias = tuple[str, int, bool]


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
        self._known: LRUCache[_State, Seen] = LRUCache(_KEPT)

    def of(self, study: Study) -> list[Seen]:
        """Return all participants of a study except previews, newest first; only changed sessions are read again.

        Sessions without an answer are not read at all: their row says everything, and the map does not show them.
        """
        number = study.row.id
        rows = self._database.read(lambda c: sessions.of_study(c, number, ["person", "simulated"]))[::-1]
        with self._lock:
            known = {row.id: _empty(row) if row.version == 0 else self._known.get(_state(row)) for row in rows}
        missing = [row for row in rows if known[row.id] is None]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            for one in history.read_histories(self._database, study, batch):
                along = history.estimates_along(study, one)
                seen = person(study, one, along), _point(study, one, along)
                known[one.row.id] = seen
                # Rows that are newer than the session's version are not cached.
                if len(one.events) + len(one.marks) == one.row.version:
                    self._keep(_state(one.row), seen)
        return [found for row in rows if (found := known[row.id]) is not None]

    def clear_cache(self) -> None:
        """Remove all participants from memory, because some of them were deleted."""
        with self._lock:
            self._known.clear()

    def _keep(self, state: _State, seen: Seen) -> None:
        with self._lock:
            self._known[state] = seen


def _empty(row: SessionRow) -> Seen:
    """Return a participant who has not answered yet."""
    return {
        "session": row.id,
        "name": row.participant or row.prolific_pid,
        "status": "asking" if row.finished_at is None else "finished",
        "answers": 0,
        "started": row.created_at,
        "median_seconds": None,
        "simulated": row.kind == "simulated",
        "voided": False,
        "quality": NO_ANSWERS,
    }, None


def _state(row: SessionRow) -> _State:
    return row.id, row.version, row.finished_at is not None


def person(study: Study, one: history.SessionHistory, along: Sequence[JSON]) -> PersonRow:
    """Return the row of a participant; ``along`` holds the estimate after each answer."""
    row, done = one.row, one.done
    quality = quality_indicators(study.configuration, done, one.checks, manner_of(along))
    median = quality["median_ms"]
    return {
        "session": row.id,
        "name": row.participant or row.prolific_pid,
        "status": "asking" if row.finished_at is None else "finished",
        "answers": sum(answered.outcome != "skip" for answered in done),
        "started": row.created_at,
        "median_seconds": None if median is None else median / 1000,
        "simulated": row.kind == "simulated",
        "voided": one.is_void,
        "quality": quality,
    }


def _point(study: Study, one: history.SessionHistory, along: Sequence[JSON]) -> MapPoint | None:
    found = history.latest_estimate(study, one, along)
    if found["radius"] is None or not study.items.d:
        return None
    return {
        "session": one.row.id,
        "name": one.row.participant or one.row.prolific_pid,
        "point": flat(study.items, np.array(found["mean"]))[0],
        "radius": found["radius"],
        "simulated": one.row.kind == "simulated",
        "voided": one.is_void,
    }
