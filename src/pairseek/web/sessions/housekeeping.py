"""Housekeeping of a worker: retention periods, and removal of the traces of deleted data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic

import sqlalchemy as sa

from pairseek.store import deletion, locks, meta, people, rates, sessions
from pairseek.store.database import Database, stamp
from pairseek.web.access import auth
from pairseek.web.operations.metrics import BACKGROUND_FAILURES
from pairseek.web.operations.rounds import Rounds, attempt_all
from pairseek.web.sessions import forgetting
from pairseek.web.studies.catalogue import Catalogue

# Seconds between two checks for deletions by other workers and commands.
_ROUND_SECONDS = 5.0
# Seconds between two checks whether expired data is due for deletion.
_CHECK_SECONDS = 300.0
# Seconds between two deletions of expired data.
_EXPIRY_SECONDS = 3600.0
_DAY = 86_400.0
# Key of the time at which a worker of any server last deleted expired data.
_DONE_AT_KEY = "housekeeping_at"
# Seconds that a worker waits before it scrubs after a deletion by another process.
_SCRUB_DELAY_SECONDS = 60.0
# Seconds that a worker pauses after the first failure to scrub.
_SCRUB_PAUSE_SECONDS = 5.0
# Consecutive failures to scrub after which operators are told.
_MIN_REPORTED_FAILURES = 3
# Hours after which previews are deleted.
_PREVIEW_HOURS = 2


class Housekeeper:
    """Background thread that applies retention periods and clears the worker's memory after deletions.

    Parameters
    ----------
    database, catalogue
        Database and its studies.
    clear
        Function that clears the worker's caches of sessions.
    """

    def __init__(self, database: Database, catalogue: Catalogue, clear: Callable[[], None]) -> None:
        self._database, self._catalogue, self._clear = database, catalogue, clear
        self._seen: str | None = None
        self._check_at = 0.0
        self._deleted_here = False
        self._scrub_at, self._pause, self._unscrubbed = 0.0, _SCRUB_PAUSE_SECONDS, 0
        self.rounds = Rounds("housekeeping", _ROUND_SECONDS, self.round)

    def start(self) -> None:
        """Start the thread."""
        self._seen = self._database.read(deletion.last_deletion)
        self.rounds.start()

    def stop(self) -> None:
        """End the thread after the step under way."""
        self.rounds.stop(10.0)

    def soon(self) -> None:
        """Remove the traces of a deletion by this worker in a round that begins now."""
        self._deleted_here = True
        self.rounds.wake()

    @property
    def has_died(self) -> bool:
        """Whether the thread has ended without being stopped."""
        return self.rounds.has_died

    @property
    def problem(self) -> str | None:
        """Description of an error that persists."""
        if self._unscrubbed >= _MIN_REPORTED_FAILURES:
            return f"traces of deleted data could not be removed {self._unscrubbed} times in a row"
        return self.rounds.problem

    def round(self) -> None:
        """Apply retention periods once an hour, and remove the traces of deletions since the last round."""
        attempt_all((self._expire_if_time, self._clear_after_deletion, self._scrub))

    def _expire_if_time(self) -> None:
        """Delete expired data if it is time to check whether that is due."""
        if monotonic() >= self._check_at:
            self._expire()
            self._check_at = monotonic() + _CHECK_SECONDS

    def _clear_after_deletion(self) -> None:
        """Clear the caches of this worker if anything was deleted since the last round."""
        last = self._database.read(deletion.last_deletion)
        if last != self._seen:
            self._clear()
            self._seen = last

    def _expire(self) -> None:
        """Delete expired data, unless another worker or server has done so within the hour."""
        with locks.try_lock(self._database, "housekeeping") as held:
            if held and _is_due(self._database.read(lambda connection: meta.value(connection, _DONE_AT_KEY))):
                self._deleted_here = bool(forgetting.expire(self._database, self._catalogue)) or self._deleted_here
                self._database.write(_delete_outdated)

    def _scrub(self) -> None:
        """Scrub the database after a deletion; wait longer after each failure, because it rewrites the whole file."""
        if monotonic() < self._scrub_at:
            return
        time = self._database.read(deletion.unscrubbed_since)
        if time is None or not (
            self._deleted_here or time < stamp(datetime.now(UTC) - timedelta(seconds=_SCRUB_DELAY_SECONDS))
        ):
            return
        with locks.try_lock(self._database, "scrub") as held:
            if not held:
                return
            done = forgetting.scrub(self._database)
        if done:
            self._deleted_here, self._pause, self._unscrubbed = False, _SCRUB_PAUSE_SECONDS, 0
        else:
            BACKGROUND_FAILURES.labels("housekeeping").inc()
            self._unscrubbed += 1
            self._scrub_at, self._pause = monotonic() + self._pause, min(2 * self._pause, _EXPIRY_SECONDS)


def _is_due(done_at: str | None) -> bool:
    """Return whether an hour has passed since a time, or the time lies in the future because a clock was wrong."""
    now = datetime.now(UTC)
    recent = stamp(now - timedelta(seconds=_EXPIRY_SECONDS)), stamp(now + timedelta(seconds=_CHECK_SECONDS))
    return done_at is None or not recent[0] < done_at <= recent[1]


def _delete_outdated(connection: sa.Connection) -> None:
    """Delete outdated previews, logins, sign-in attempts and rate limits of session starts."""
    now = datetime.now(UTC)
    meta.put(connection, _DONE_AT_KEY, stamp(now))
    rates.forget(connection, _DAY)
    sessions.delete_previews(connection, stamp(now - timedelta(hours=_PREVIEW_HOURS)))
    people.delete_expired(connection, attempts_before=stamp(now - timedelta(minutes=auth.ATTEMPT_MINUTES)))
