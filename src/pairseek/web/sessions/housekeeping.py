"""Housekeeping of a worker: deletion of expired data, and removal of the traces of deleted data."""

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
from pairseek.web.studies.recruitment import close_due

# Seconds between two checks for deletions by other workers and commands.
_ROUND_SECONDS = 5.0
# Seconds between two checks whether the deletion of expired data is due.
_CHECK_SECONDS = 300.0
# Seconds between two deletions of expired data.
_EXPIRY_SECONDS = 3600.0
_DAY_SECONDS = 86_400.0
# Key in `meta`; the value is the time at which a worker of any server last deleted expired data.
_LAST_EXPIRY_KEY = "housekeeping_at"
# Seconds that a worker waits before it scrubs after a deletion by another process.
_SCRUB_DELAY_SECONDS = 60.0
# Seconds that a worker pauses after the first failure to scrub; they double with each failure.
_SCRUB_PAUSE_SECONDS = 5.0
# Number of consecutive failures to scrub after which operators are told.
_MIN_REPORTED_FAILURES = 3
# Hours after which previews are deleted.
_PREVIEW_HOURS = 2


class Housekeeper:
    """Background thread that deletes expired data, and clears the worker's memory after deletions.

    Parameters
    ----------
    database, catalogue
        Database and its studies.
    clear
        Function that clears the worker's caches of sessions.
    """

    def __init__(self, database: Database, catalogue: Catalogue, clear: Callable[[], None]) -> None:
        self._database, self._catalogue, self._clear = database, catalogue, clear
        self._last_deletion: str | None = None
        self._next_check = 0.0
        self._has_deleted = False
        self._next_scrub, self._scrub_pause, self._failed_scrubs = 0.0, _SCRUB_PAUSE_SECONDS, 0
        self.rounds = Rounds("housekeeping", _ROUND_SECONDS, self.round)

    def start(self) -> None:
        """Start the thread."""
        self._last_deletion = self._database.read(deletion.last_deletion)
        self.rounds.start()

    def stop(self) -> None:
        """End the thread after its current step."""
        self.rounds.stop(10.0)

    def clear_soon(self) -> None:
        """Remove the traces of a deletion by this worker in a round that begins immediately."""
        self._has_deleted = True
        self.rounds.wake()

    @property
    def has_died(self) -> bool:
        """Whether the thread has ended without being stopped."""
        return self.rounds.has_died

    @property
    def problem(self) -> str | None:
        """Description of an error that persists."""
        if self._failed_scrubs >= _MIN_REPORTED_FAILURES:
            return f"traces of deleted data could not be removed {self._failed_scrubs} times in a row"
        return self.rounds.problem

    def round(self) -> None:
        """Close studies, delete expired data once an hour, and remove the traces of deletions since the last round."""
        attempt_all((self._check_expiry, self._clear_after_deletion, self._scrub))

    def _check_expiry(self) -> None:
        """Every few minutes, close studies whose date has passed, and check whether the deletion of data is due."""
        if monotonic() >= self._next_check:
            close_due(self._database)
            self._expire()
            self._next_check = monotonic() + _CHECK_SECONDS

    def _clear_after_deletion(self) -> None:
        """Clear the caches of this worker if anything was deleted since the last round."""
        last = self._database.read(deletion.last_deletion)
        if last != self._last_deletion:
            self._clear()
            self._last_deletion = last

    def _expire(self) -> None:
        """Delete expired data, unless another worker or server has done so within the hour."""
        with locks.try_lock(self._database, "housekeeping") as held:
            if held and _is_expiry_due(
                self._database.read(lambda connection: meta.value(connection, _LAST_EXPIRY_KEY))
            ):
                self._has_deleted = bool(forgetting.expire(self._database, self._catalogue)) or self._has_deleted
                self._database.write(_delete_outdated)

    def _scrub(self) -> None:
        """Scrub the database after a deletion; wait longer after each failure, because a scrub rewrites the file."""
        if monotonic() < self._next_scrub:
            return
        time = self._database.read(deletion.unscrubbed_since)
        if time is None or not (
            self._has_deleted or time < stamp(datetime.now(UTC) - timedelta(seconds=_SCRUB_DELAY_SECONDS))
        ):
            return
        with locks.try_lock(self._database, "scrub") as held:
            if not held:
                return
            is_scrubbed = forgetting.scrub(self._database)
        if is_scrubbed:
            self._has_deleted, self._scrub_pause, self._failed_scrubs = False, _SCRUB_PAUSE_SECONDS, 0
        else:
            BACKGROUND_FAILURES.labels("housekeeping").inc()
            self._failed_scrubs += 1
            self._next_scrub = monotonic() + self._scrub_pause
            self._scrub_pause = min(2 * self._scrub_pause, _EXPIRY_SECONDS)


def _is_expiry_due(last_expiry: str | None) -> bool:
    """Return whether the last expiry was over an hour ago, or lies in the future because a clock was wrong."""
    now = datetime.now(UTC)
    earliest, latest = stamp(now - timedelta(seconds=_EXPIRY_SECONDS)), stamp(now + timedelta(seconds=_CHECK_SECONDS))
    return last_expiry is None or not earliest < last_expiry <= latest


def _delete_outdated(connection: sa.Connection) -> None:
    """Delete outdated previews, logins, sign-in attempts and rate limits of session starts."""
    now = datetime.now(UTC)
    meta.put(connection, _LAST_EXPIRY_KEY, stamp(now))
    rates.delete_unused(connection, _DAY_SECONDS)
    sessions.delete_previews(connection, stamp(now - timedelta(hours=_PREVIEW_HOURS)))
    people.delete_expired(connection, attempts_before=stamp(now - timedelta(minutes=auth.ATTEMPT_MINUTES)))
