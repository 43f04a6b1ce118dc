"""Deletion of participants and studies, and of the populations learned from them.

A population that was learned from a deleted session is dropped in the same transaction, and a study with automatic
learning learns again from the other people. Finished sessions that began with the population keep their stored results,
but can no longer be recomputed; unfinished sessions continue without a population. Both get a mark in the audit log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import sqlalchemy as sa

from pairseek.core.text import plural
from pairseek.store import deletion, learning, populations, studies
from pairseek.store.database import Database, stamp
from pairseek.store.deletion import Deleted
from pairseek.web.errors import Problem
from pairseek.web.operations.rounds import attempt_all
from pairseek.web.sessions.parts import SessionParts, dropped_record
from pairseek.web.studies.catalogue import Catalogue, Study

T = TypeVar("T")
RETENTION_ACTOR = "pairseek (retention)"
"""Name in the audit log for deletions at the end of a study's retention period."""
# Keys of a query's details with estimates, which are removed. Predictions and the forecast of remaining answers were
# shown or stored before the answer, and are kept.
_ESTIMATE_KEYS = ("mean", "radius", "reliability")
_MAX_ATTEMPTS = 5


class NothingToDelete(Problem):
    """Raised when the participant or session to delete never existed or was already deleted."""

    def __init__(self, what: str, received: str) -> None:
        super().__init__(
            404, "not_found", f"there is no {what} with this name", received=received, hint="Check the name."
        )


@dataclass(frozen=True, slots=True)
class RetentionDeletion:
    """Deletion of the sessions of a study whose retention period is over."""

    slug: str
    deleted: Deleted


def sessions_of_person(database: Database, study: Study, person: str) -> list[str]:
    """Return the ids of a participant's sessions; ``person`` is the id in a link, a Prolific id or a session id."""
    return database.read(lambda connection: deletion.sessions_of_person(connection, study.row.id, person))


def forget(database: Database, study: Study, person: str, who: str) -> Deleted:
    """Delete all sessions of a participant in a study; raise `NothingToDelete` if there are none."""

    def run(connection: sa.Connection) -> Deleted:
        ids = deletion.sessions_of_person(connection, study.row.id, person)
        return _forget(connection, study, ids, who, "forget")

    deleted = _with_retries(database, run)
    if not deleted.sessions:
        raise NothingToDelete("participant", person[:200])
    return deleted


def forget_session(database: Database, study: Study, session_id: str, who: str) -> Deleted:
    """Delete one session; raise `NothingToDelete` if it does not exist."""
    deleted = _with_retries(database, lambda connection: _forget(connection, study, [session_id], who, "forget"))
    if not deleted.sessions:
        raise NothingToDelete("session", session_id)
    return deleted


def delete_study(database: Database, study: Study, who: str) -> Deleted:
    """Delete a study with all of its data; if it does not exist, do nothing and return an empty `Deleted`."""

    def run(connection: sa.Connection) -> Deleted:
        deleted = deletion.delete_study(connection, study.row.id)
        if deleted is None:
            return Deleted()
        facts = {"sessions": deleted.sessions, "answers": deleted.answers}
        studies.log_action(connection, who, "delete_study", study.row.slug, **facts)
        return deleted

    return _with_retries(database, run)


def expire(database: Database, catalogue: Catalogue) -> list[RetentionDeletion]:
    """Delete the sessions of all studies whose retention period is over."""
    deletions: list[RetentionDeletion] = []

    def expire_study(row: studies.StudyRow) -> None:
        setting = row.configuration.get("retention")
        if setting is None:
            return
        limit = stamp(datetime.now(UTC) - timedelta(days=setting["days"]))
        if setting["after"] == "close" and (row.is_open or row.closed_at is None or row.closed_at >= limit):
            return
        until = limit if setting["after"] == "session" else None
        if database.read(lambda connection: deletion.sessions_ended_before(connection, row.id, until)):
            deletions.append(
                RetentionDeletion(row.slug, _with_retries(database, _expiry(catalogue.by_slug(row.slug), until)))
            )

    # An error in one study must not prevent deletions in the others.
    attempt_all(partial(expire_study, row) for row in database.read(studies.all_studies))
    return deletions


def _expiry(study: Study, until: str | None) -> Callable[[sa.Connection], Deleted]:
    def run(connection: sa.Connection) -> Deleted:
        # Read the sessions again in the deleting transaction, because someone may have answered since.
        ids = deletion.sessions_ended_before(connection, study.row.id, until)
        return _forget(connection, study, ids, RETENTION_ACTOR, "expire")

    return run


def _forget(connection: sa.Connection, study: Study, ids: Sequence[str], who: str, action: str) -> Deleted:
    """Delete sessions, and drop the populations that were learned from them."""
    # Lock first: a population that is being learned from these sessions is then either already stored and found below,
    # or cannot be stored at all.
    ids = deletion.lock_sessions(connection, ids)
    versions = [version for _, version in deletion.populations_learned_from(connection, ids)]
    if populations.newest(connection, study.row.id) in versions:
        learning.forget_attempt(connection, study.row.id)
    for version in versions:
        deletion.drop_population(connection, study.row.id, version)
    deleted = deletion.delete_sessions(connection, ids)
    _replace_parts(connection, study, versions, who)
    if deleted.sessions:
        # The log must not contain what was forgotten, so ids and names are left out.
        facts = {"sessions": deleted.sessions, "answers": deleted.answers}
        studies.log_action(connection, who, action, study.row.slug, **facts)
    for version in versions:
        studies.log_action(connection, who, "drop_population", study.row.slug, version=version)
    return Deleted(deleted.sessions, deleted.answers, tuple(versions))


def _replace_parts(connection: sa.Connection, study: Study, versions: Sequence[int], who: str) -> None:
    """Replace the parts of sessions that began with dropped populations, and mark these sessions."""
    affected = deletion.sessions_begun_with(connection, study.row.id, versions)
    for version in versions:
        finished = [session.id for session in affected if session.is_finished and session.population == version]
        deletion.replace_parts(connection, finished, dropped_record(version))
    for number in {session.catalogue for session in affected if not session.is_finished}:
        unfinished = [session.id for session in affected if not session.is_finished and session.catalogue == number]
        record = SessionParts.resolved(study.configuration, study.with_catalogue(number).items).record
        deletion.replace_parts(connection, unfinished, record, without=_ESTIMATE_KEYS)
    reasons = {
        session.id: f"began with population {session.population}, which was learned from a participant who was "
        f"forgotten"
        for session in affected
    }
    deletion.mark(connection, reasons, "dropped", who)


def scrub(database: Database) -> bool:
    """Remove the traces of deleted rows from the database files; return whether that succeeded."""
    time = database.read(deletion.unscrubbed_since)
    if time is None:
        return True
    if not database.scrub():
        return False
    database.write(lambda connection: deletion.note_scrub(connection, time))
    # The write may itself leave an old copy of a page in the file, so scrub once more.
    return database.scrub(rewrite=False)


def deletion_summary(deleted: Deleted) -> str:
    """Describe a deletion in sentences."""
    text = f"Deleted {plural(deleted.sessions, 'session')} with {plural(deleted.answers, 'answer')}."
    if deleted.populations:
        versions = ", ".join(map(str, deleted.populations))
        text += f" Dropped the population learned from them: version {versions}."
        text += " A study with automatic learning will replace it soon; in other studies, learn again."
    return text


def _with_retries(database: Database, function: Callable[[sa.Connection], T]) -> T:
    """Run a deletion; retry if a session began or a population was learned at the same time."""
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            return database.write(function)
        except sa.exc.IntegrityError:
            continue
    return database.write(function)
