"""Deletion of participants and studies, and of the populations that were learned from them.

A population that was learned from a deleted session is dropped in the same transaction, and a study that learns by
itself learns again from the other people. Of the sessions that began with
it, finished ones keep their stored results and cannot be recomputed; the others go on with the parts that the study has
without a population. Both get a mark that says so.
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
from pairseek.web.rounds import attempt_all
from pairseek.web.sessions.parts import SessionParts, dropped_record
from pairseek.web.studies.catalogue import Catalogue, Study

T = TypeVar("T")
RETENTION = "pairseek (retention)"
"""Name in the audit log of the deletions that the setting ``retention`` of a study causes."""
# Estimates in the details of a query. What was expected of the answers, and for how long, stays as it was shown.
_ESTIMATES = ("mean", "radius", "reliability")
_TRIES = 5


class Gone(Problem):
    """Raised when there is nothing to delete, because it was never there or was deleted before."""

    def __init__(self, what: str, received: str) -> None:
        super().__init__(
            404, "not_found", f"there is no {what} with this name", received=received, hint="Check the name."
        )


@dataclass(frozen=True, slots=True)
class Expired:
    """Deletions of one study whose retention period is over."""

    slug: str
    deleted: Deleted


def find(database: Database, study: Study, person: str) -> list[str]:
    """Return the sessions of a participant; ``person`` is an id of the link, a Prolific id or the id of a session."""
    return database.read(lambda connection: deletion.sessions_of_person(connection, study.row.id, person))


def forget(database: Database, study: Study, person: str, who: str) -> Deleted:
    """Delete all sessions of a participant in a study; raise a `Problem` if there are none."""

    def run(connection: sa.Connection) -> Deleted:
        found = deletion.sessions_of_person(connection, study.row.id, person)
        return _forget(connection, study, found, who, "forget")

    deleted = _repeated(database, run)
    if not deleted.sessions:
        raise Gone("participant", person[:200])
    return deleted


def forget_session(database: Database, study: Study, session_id: str, who: str) -> Deleted:
    """Delete one session."""
    deleted = _repeated(database, lambda connection: _forget(connection, study, [session_id], who, "forget"))
    if not deleted.sessions:
        raise Gone("session", session_id)
    return deleted


def delete_study(database: Database, study: Study, who: str) -> Deleted:
    """Delete a study with all of its data; do nothing if it is gone."""

    def run(connection: sa.Connection) -> Deleted:
        deleted = deletion.delete_study(connection, study.row.id)
        if deleted is None:
            return Deleted()
        facts = {"sessions": deleted.sessions, "answers": deleted.answers}
        studies.note(connection, who, "delete_study", study.row.slug, **facts)
        return deleted

    return _repeated(database, run)


def expire(database: Database, catalogue: Catalogue) -> list[Expired]:
    """Delete the sessions of all studies whose retention period is over."""
    found: list[Expired] = []

    def expire_study(row: studies.StudyRow) -> None:
        setting = row.configuration.get("retention")
        if setting is None:
            return
        limit = stamp(datetime.now(UTC) - timedelta(days=setting["days"]))
        if setting["after"] == "close" and (row.is_open or row.closed_at is None or row.closed_at >= limit):
            return
        until = limit if setting["after"] == "session" else "9999"
        if database.read(lambda connection: deletion.ended_before(connection, row.id, until)):
            found.append(Expired(row.slug, _repeated(database, _expiring(catalogue.named(row.slug), until))))

    # A study that fails keeps no other from being cleaned.
    attempt_all(partial(expire_study, row) for row in database.read(studies.every))
    return found


def _expiring(study: Study, until: str) -> Callable[[sa.Connection], Deleted]:
    def run(connection: sa.Connection) -> Deleted:
        # Read again in the transaction that deletes, because someone may have answered since.
        ids = deletion.ended_before(connection, study.row.id, until)
        return _forget(connection, study, ids, RETENTION, "expire")

    return run


def _forget(connection: sa.Connection, study: Study, ids: Sequence[str], who: str, action: str) -> Deleted:
    """Delete sessions, and drop the populations that were learned from them."""
    # Locked first: a population that someone is learning from them now is then complete and seen, or fails.
    ids = deletion.lock(connection, ids)
    versions = [version for _, version in deletion.learned(connection, ids)]
    if populations.latest(connection, study.row.id) in versions:
        learning.restart(connection, study.row.id)
    for version in versions:
        deletion.drop_population(connection, study.row.id, version)
    deleted = deletion.delete_sessions(connection, ids)
    _replace_parts(connection, study, versions, who)
    if deleted.sessions:
        # No id and no name: the log must not hold what was forgotten.
        facts = {"sessions": deleted.sessions, "answers": deleted.answers}
        studies.note(connection, who, action, study.row.slug, **facts)
    for version in versions:
        studies.note(connection, who, "drop_population", study.row.slug, version=version)
    return Deleted(deleted.sessions, deleted.answers, tuple(versions))


def _replace_parts(connection: sa.Connection, study: Study, versions: Sequence[int], who: str) -> None:
    """Replace the parts of sessions that began with dropped populations, and mark these sessions."""
    began = deletion.began_with(connection, study.row.id, versions)
    for version in versions:
        ended = [one.id for one in began if one.finished and one.population == version]
        deletion.replace_parts(connection, ended, dropped_record(version))
    for number in {one.catalogue for one in began if not one.finished}:
        going = [one.id for one in began if not one.finished and one.catalogue == number]
        record = SessionParts.resolved(study.configuration, study.at(number).items).record
        deletion.replace_parts(connection, going, record, without=_ESTIMATES)
    reasons = {
        one.id: f"began with population {one.population}, which was learned from a participant who was forgotten"
        for one in began
    }
    deletion.mark(connection, reasons, "dropped", who)


def scrub(database: Database) -> bool:
    """Remove what deleted rows leave in the files of the database; return False if it must be tried again later."""
    time = database.read(deletion.unscrubbed)
    if time is None:
        return True
    if not database.scrub():
        return False
    database.write(lambda connection: deletion.scrubbed(connection, time))
    # This write, too, must not leave a copy of a page behind.
    return database.scrub(rewrite=False)


def in_words(deleted: Deleted) -> str:
    """Return what was deleted as a sentence."""
    text = f"Deleted {plural(deleted.sessions, 'session')} with {plural(deleted.answers, 'answer')}."
    if deleted.populations:
        versions = ", ".join(map(str, deleted.populations))
        text += f" Dropped what had been learned from them: population {versions}."
        text += " A study that learns by itself replaces it soon; in another, learn again."
    return text


def _repeated(database: Database, function: Callable[[sa.Connection], T]) -> T:
    """Run a deletion; repeat it if a session began or a population was learned at the same time."""
    for _ in range(_TRIES - 1):
        try:
            return database.write(function)
        except sa.exc.IntegrityError:
            continue
    return database.write(function)
