"""Housekeeping of a worker: retention periods, and traces of what was deleted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic

import sqlalchemy as sa

from pairseek.store import deletion, locks, meta, people, rates, sessions
from pairseek.store.database import Database, stamp
from pairseek.web import forgetting
from pairseek.web.access import auth
from pairseek.web.rounds import Rounds, attempt_all
from pairseek.web.studies.catalogue import Catalogue

# Seconds between two looks for deletions by other workers and commands, between two looks whether it is time to delete
# what has expired, and until it is.
_ROUND = 5.0
_LOOK = 300.0
_SELDOM = 3600.0
_DAY = 86_400.0
# Key of the time at which a worker of any server last deleted what has expired.
_DONE_AT = "housekeeping_at"
# Seconds after which a worker scrubs the database after a deletion by others, and the first pause after a failure.
_OTHERS = 60.0
_PAUSE = 5.0
# Attempts to scrub that failed in a row after which operators are told.
_OFTEN = 3
_PREVIEW_HOURS = 2


class Housekeeper:
    """Background thread that applies retention periods and clears the worker's memory after deletions.

    Parameters
    ----------
    database, catalogue
        Database and its studies.
    clear
        Removes everything that the worker has cached of sessions.
    """

    def __init__(self, database: Database, catalogue: Catalogue, clear: Callable[[], None]) -> None:
        self._database, self._catalogue, self._clear = database, catalogue, clear
        self._seen: str | None = None
        self._next = 0.0
        self._own = False
        self._scrub_at, self._pause, self._unscrubbed = 0.0, _PAUSE, 0
        self.rounds = Rounds("housekeeping", _ROUND, self.round)

    def start(self) -> None:
        """Start the thread."""
        self._seen = self._database.read(deletion.last_deletion)
        self.rounds.start()

    def stop(self) -> None:
        """End the thread after the step under way."""
        self.rounds.stop(10.0)

    def soon(self) -> None:
        """Remove the traces of a deletion by this worker at once."""
        self._own = True
        self.rounds.wake()

    @property
    def has_died(self) -> bool:
        """Whether the thread ended although nobody stopped it."""
        return self.rounds.has_died

    @property
    def problem(self) -> str | None:
        """Description of an error that persists."""
        if self._unscrubbed >= _OFTEN:
            return f"traces of deleted data could not be removed {self._unscrubbed} times in a row"
        return self.rounds.problem

    def round(self) -> None:
        """Apply retention periods once an hour, and remove traces of what was deleted since the last round."""
        attempt_all((self._look, self._clear_after_deletion, self._scrub))

    def _look(self) -> None:
        """Apply retention periods and delete what is over, if it is time to look whether that is due."""
        if monotonic() >= self._next:
            self._tidy()
            self._next = monotonic() + _LOOK

    def _clear_after_deletion(self) -> None:
        """Clear the memory of this worker if anyone has deleted something since the last round."""
        last = self._database.read(deletion.last_deletion)
        if last != self._seen:
            self._clear()
            self._seen = last

    def _tidy(self) -> None:
        """Apply retention periods and delete what is over, unless another worker or server did within the hour."""
        with locks.try_lock(self._database, "housekeeping") as held:
            if held and _is_due(self._database.read(lambda connection: meta.value(connection, _DONE_AT))):
                self._own = bool(forgetting.expire(self._database, self._catalogue)) or self._own
                self._database.write(_delete_old)

    def _scrub(self) -> None:
        """Scrub the database after a deletion; wait longer after each failure, as it rewrites the whole file."""
        if monotonic() < self._scrub_at:
            return
        time = self._database.read(deletion.unscrubbed)
        if time is None or not (self._own or time < stamp(datetime.now(UTC) - timedelta(seconds=_OTHERS))):
            return
        with locks.try_lock(self._database, "scrub") as held:
            if not held:
                return
            done = forgetting.scrub(self._database)
        if done:
            self._own, self._pause, self._unscrubbed = False, _PAUSE, 0
        else:
            self._unscrubbed += 1
            self._scrub_at, self._pause = monotonic() + self._pause, min(2 * self._pause, _SELDOM)


def _is_due(done_at: str | None) -> bool:
    """Return whether an hour has passed since a time; also if it lies ahead, because a clock was wrong."""
    now = datetime.now(UTC)
    recent = stamp(now - timedelta(seconds=_SELDOM)), stamp(now + timedelta(seconds=_LOOK))
    return done_at is None or not recent[0] < done_at <= recent[1]


def _delete_old(connection: sa.Connection) -> None:
    """Delete previews, logins, attempts to sign in and counts of starts that are over."""
    now = datetime.now(UTC)
    meta.put(connection, _DONE_AT, stamp(now))
    rates.forget(connection, _DAY)
    sessions.forget_preview(connection, stamp(now - timedelta(hours=_PREVIEW_HOURS)))
    people.tidy(connection, attempts_before=stamp(now - timedelta(minutes=auth.MINUTES)))
