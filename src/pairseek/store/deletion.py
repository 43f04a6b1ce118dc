"""Deletion of sessions and studies with everything that refers to them or was learned from them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store import findings as stored_findings
from pairseek.store import meta
from pairseek.store import parts as stored_parts
from pairseek.store.database import now
from pairseek.store.schema import (
    attributes,
    blurs,
    catalogues,
    events,
    findings,
    learned_from,
    learning,
    marks,
    media,
    parts,
    populations,
    queries,
    recording_pieces,
    recordings,
    sessions,
    studies,
    tokens,
)
from pairseek.store.studies import retire

# Key in `meta`; the value is random and changes with each deletion.
_LAST_DELETION_KEY = "last_deletion"
# Key in `meta`; the value is the time of a deletion whose traces have not been scrubbed yet.
_SCRUB_KEY = "scrub"
# Ids per statement; databases limit the number of parameters.
_BATCH_SIZE = 500


@dataclass(frozen=True, slots=True)
class Deleted:
    """Numbers of deleted sessions and answers, and versions of the populations dropped with them."""

    sessions: int = 0
    answers: int = 0
    populations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AffectedSession:
    """Session that began with a dropped population."""

    id: str
    population: int
    is_finished: bool
    catalogue: int


def sessions_of_person(connection: sa.Connection, study_id: int, person: str) -> list[str]:
    """Return the ids of a participant's sessions in a study; ``person`` is an id from a link or of a session."""
    condition = sa.or_(*(sessions.c[name] == person for name in ("id", "participant", "prolific_pid")))
    statement = sa.select(sessions.c.id).where((sessions.c.study_id == study_id) & condition)
    return list(connection.execute(statement.order_by(sessions.c.id)).scalars())


def sessions_ended_before(connection: sa.Connection, study_id: int, time: str | None) -> list[str]:
    """Return the ids of participants' sessions that ended before a time, or of all of them if it is None.

    A session without an end counts by its last event, and without events by its start.
    """
    last = sa.select(sa.func.max(events.c.at)).where(events.c.session_id == sessions.c.id).scalar_subquery()
    ended = sa.func.coalesce(sessions.c.finished_at, last, sessions.c.created_at)
    condition = (sessions.c.study_id == study_id) & (sessions.c.kind == "person")
    if time is not None:
        condition &= ended < time
    return list(connection.execute(sa.select(sessions.c.id).where(condition)).scalars())


def lock_sessions(connection: sa.Connection, session_ids: Sequence[str]) -> list[str]:
    """Lock sessions against answers and learning until the transaction ends; return the ids that exist."""
    locked: list[str] = []
    for ids in _batches(sorted(session_ids)):
        statement = sa.select(sessions.c.id).where(sessions.c.id.in_(ids)).order_by(sessions.c.id).with_for_update()
        locked += connection.execute(statement).scalars()
    return locked


def populations_learned_from(connection: sa.Connection, session_ids: Sequence[str]) -> list[tuple[int, int]]:
    """Return the (study id, version) of each population learned from any of these sessions."""
    versions: set[tuple[int, int]] = set()
    for ids in _batches(session_ids):
        statement = sa.select(learned_from.c.study_id, learned_from.c.version).where(learned_from.c.session_id.in_(ids))
        versions |= {(row.study_id, row.version) for row in connection.execute(statement)}
    return sorted(versions)


def drop_population(connection: sa.Connection, study_id: int, version: int) -> None:
    """Delete a population's content and facts; the row stays, because sessions refer to its version."""
    condition = (populations.c.study_id == study_id) & (populations.c.version == version)
    connection.execute(populations.update().where(condition).values(content=b"", facts=None, dropped_at=now()))
    condition = (learned_from.c.study_id == study_id) & (learned_from.c.version == version)
    connection.execute(learned_from.delete().where(condition))


def sessions_begun_with(connection: sa.Connection, study_id: int, versions: Iterable[int]) -> list[AffectedSession]:
    """Return the sessions that began with these population versions, locked until the transaction ends."""
    condition = (sessions.c.study_id == study_id) & sessions.c.population.in_(list(versions))
    names = ("id", "population", "finished_at", "catalogue")
    statement = sa.select(*(sessions.c[name] for name in names)).where(condition)
    rows = connection.execute(statement.order_by(sessions.c.id).with_for_update())
    return [AffectedSession(row.id, row.population, row.finished_at is not None, row.catalogue) for row in rows]


def replace_parts(
    connection: sa.Connection, session_ids: Sequence[str], content: JSON, *, without: Iterable[str] = ()
) -> None:
    """Replace the parts of sessions, detach their population, and remove keys from the details of their queries."""
    if not session_ids:
        return
    key, names = stored_parts.add(connection, content), set(without)
    for ids in _batches(session_ids):
        condition = sessions.c.id.in_(ids)
        connection.execute(sessions.update().where(condition).values(parts=key, population=None))
        if names:
            _strip_details(connection, ids, names)
    _delete_unused_parts(connection)


def _strip_details(connection: sa.Connection, session_ids: Sequence[str], names: set[str]) -> None:
    statement = sa.select(queries.c.session_id, queries.c.name, queries.c.details)
    rows = connection.execute(statement.where(queries.c.session_id.in_(session_ids))).all()
    changed = [
        {"of": row.session_id, "named": row.name, "kept": {k: v for k, v in row.details.items() if k not in names}}
        for row in rows
    ]
    condition = (queries.c.session_id == sa.bindparam("of")) & (queries.c.name == sa.bindparam("named"))
    if changed:
        connection.execute(queries.update().where(condition).values(details=sa.bindparam("kept")), changed)


def mark(connection: sa.Connection, reasons: Mapping[str, str], action: str, who: str) -> None:
    """Add a mark to sessions; ``reasons`` maps session ids to reasons."""
    time = now()
    rows = [
        {"session_id": key, "query": None, "action": action, "reason": reason, "who": who, "at": time}
        for key, reason in reasons.items()
    ]
    if rows:
        connection.execute(marks.insert(), rows)
    for ids in _batches(list(reasons)):
        connection.execute(sessions.update().where(sessions.c.id.in_(ids)).values(version=sessions.c.version + 1))


def delete_sessions(connection: sa.Connection, session_ids: Sequence[str]) -> Deleted:
    """Delete sessions with everything that refers to them, except populations, which must be dropped first."""
    count = answers = 0
    for ids in _batches(sorted(session_ids)):
        stored_findings.discard(connection, sa.select(sessions.c.study_id).where(sessions.c.id.in_(ids)))
        is_answer = (events.c.session_id.in_(ids)) & (events.c.kind == "answer")
        answers += connection.execute(sa.select(sa.func.count()).select_from(events).where(is_answer)).scalar_one()
        for table in (learned_from, blurs, marks, events, queries):
            connection.execute(table.delete().where(table.c.session_id.in_(ids)))
        count += connection.execute(sessions.delete().where(sessions.c.id.in_(ids))).rowcount
    _delete_unused_parts(connection)
    if count:
        _note_deletion(connection)
    return Deleted(count, answers)


def delete_study(connection: sa.Connection, study_id: int) -> Deleted | None:
    """Delete a study with its items, media, sessions, populations and tokens; return None if it does not exist."""
    # Locked, so that no session begins while the existing ones are deleted.
    if connection.execute(sa.select(studies.c.id).where(studies.c.id == study_id).with_for_update()).first() is None:
        return None
    session_ids = connection.execute(sa.select(sessions.c.id).where(sessions.c.study_id == study_id)).scalars().all()
    session_ids = lock_sessions(connection, session_ids)
    connection.execute(learned_from.delete().where(learned_from.c.study_id == study_id))
    deleted = delete_sessions(connection, session_ids)
    for table in (attributes, findings, learning, populations, media, recording_pieces, recordings, tokens, catalogues):
        connection.execute(table.delete().where(table.c.study_id == study_id))
    connection.execute(studies.delete().where(studies.c.id == study_id))
    retire(connection, study_id)
    _note_deletion(connection)
    return deleted


def last_deletion(connection: sa.Connection) -> str | None:
    """Return the id of the last deletion; workers clear their caches when it changes."""
    return meta.value(connection, _LAST_DELETION_KEY)


def unscrubbed_since(connection: sa.Connection) -> str | None:
    """Return the time of the last deletion; None if the database files have been scrubbed since."""
    return meta.value(connection, _SCRUB_KEY)


def note_scrub(connection: sa.Connection, time: str) -> None:
    """Record that the database files were scrubbed after the deletion at this time."""
    meta.remove(connection, _SCRUB_KEY, time)


def _note_deletion(connection: sa.Connection) -> None:
    # Random, because two concurrent deletions could both set a counter to the same value.
    meta.put(connection, _LAST_DELETION_KEY, secrets.token_hex(8))
    meta.put(connection, _SCRUB_KEY, now())


def _delete_unused_parts(connection: sa.Connection) -> None:
    # This also deletes the parts of previews and empty sessions deleted earlier, which may derive from a population.
    used = sa.exists().where(sessions.c.parts == parts.c.key)
    connection.execute(parts.delete().where(~used))


def _batches(values: Sequence[str]) -> Iterable[Sequence[str]]:
    return (values[start : start + _BATCH_SIZE] for start in range(0, len(values), _BATCH_SIZE))
