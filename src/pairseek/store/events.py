"""Queries and events of sessions, which are append-only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store.schema import events, queries, sessions


@dataclass(frozen=True, slots=True)
class QueryRow:
    """Query that was asked."""

    session_id: str
    name: str
    position: int
    kind: str
    left: str
    right: str
    asked_at: str
    details: JSON


@dataclass(frozen=True, slots=True)
class EventRow:
    """Answer, or undo of an answer."""

    session_id: str
    number: int
    query: str
    kind: str
    outcome: str | None
    rt_ms: int | None
    shown_at: str | None
    sent_at: str | None
    attempt: int | None
    at: str
    server_ms: float | None
    # Whether each sound or video of the pair was played, by its side; None if it had none.
    played: dict[str, str] | None = None


class AnsweredRow(NamedTuple):
    """Event with the part of its query on which the next one depends; of an undo, ``outcome`` is None.

    ``version`` is that of the session when the row was read.
    """

    version: int
    event: str
    outcome: str | None
    name: str
    kind: str
    left: str
    right: str
    search: str | None
    anchor: str | None


class VersionConflict(Exception):
    """Raised when the session has changed since it was read; read it again."""


# Statements are built once, because building takes as long as executing.
_NEXT_VERSION = (
    sessions.update()
    .where((sessions.c.id == sa.bindparam("session")) & (sessions.c.version == sa.bindparam("seen")))
    .values(version=sessions.c.version + 1)
)
_ADD_EVENT, _ADD_QUERY = events.insert(), queries.insert()
_SAME_QUERY = sa.select(queries).where(
    (queries.c.session_id == sa.bindparam("session")) & (queries.c.name == sa.bindparam("query"))
)
_CHOSEN: sa.BindParameter[str] = sa.bindparam("chosen", expanding=True)
_EVENTS = sa.select(events).where(events.c.session_id.in_(_CHOSEN)).order_by(events.c.session_id, events.c.number)
_QUERIES = (
    sa.select(queries)
    .where(queries.c.session_id.in_(_CHOSEN))
    .order_by(queries.c.session_id, queries.c.position, queries.c.asked_at)
)
# Of the details of an answered query two texts are read, because decoding all of them takes longer than the rest.
_ANSWERED = (
    sa.select(
        sessions.c.version,
        events.c.kind,
        events.c.outcome,
        queries.c.name,
        queries.c.kind,
        queries.c.left,
        queries.c.right,
        queries.c.details["search"].as_string(),
        queries.c.details["anchor"].as_string(),
    )
    .select_from(events)
    .join(queries, (queries.c.session_id == events.c.session_id) & (queries.c.name == events.c.query))
    .join(sessions, sessions.c.id == events.c.session_id)
    .where(events.c.session_id == sa.bindparam("session"))
    .order_by(events.c.number)
)
_QUERIES_FROM = (
    sa.select(queries)
    .where((queries.c.session_id == sa.bindparam("session")) & (queries.c.position >= sa.bindparam("first")))
    .order_by(queries.c.position, queries.c.asked_at)
)


def add_event(connection: sa.Connection, event: EventRow, *, version: int) -> None:
    """Add an event and increment the session's version; raise `VersionConflict` if it is not ``version``."""
    changed = connection.execute(_NEXT_VERSION, {"session": event.session_id, "seen": version})
    if changed.rowcount != 1:
        raise VersionConflict
    connection.execute(_ADD_EVENT, _values(event))


def add_query(connection: sa.Connection, query: QueryRow) -> QueryRow:
    """Store a query unless it is stored already, and return the stored one."""
    stored = connection.execute(_SAME_QUERY, {"session": query.session_id, "query": query.name}).first()
    return insert_query(connection, query) if stored is None else QueryRow(*stored)


def insert_query(connection: sa.Connection, query: QueryRow) -> QueryRow:
    """Store a query that is known not to be stored yet, and return it."""
    connection.execute(_ADD_QUERY, _values(query))
    return query


def was_asked(connection: sa.Connection, session_id: str, query: str) -> bool:
    """Return whether a session has a query of this name."""
    return connection.execute(_SAME_QUERY, {"session": session_id, "query": query}).first() is not None


def events_of(connection: sa.Connection, session_ids: Sequence[str]) -> list[EventRow]:
    """Return all events, session by session, in order."""
    return [EventRow(*row) for row in connection.execute(_EVENTS, {"chosen": session_ids}).all()]


def queries_of(connection: sa.Connection, session_ids: Sequence[str]) -> list[QueryRow]:
    """Return all queries, session by session, in order."""
    return [QueryRow(*row) for row in connection.execute(_QUERIES, {"chosen": session_ids}).all()]


def answered_of(connection: sa.Connection, session_id: str) -> list[AnsweredRow]:
    """Return all events of a session in order, each with its query."""
    # All at once: row by row takes a tenth longer, and the lock of the interpreter changes hands at each.
    return [AnsweredRow._make(row) for row in connection.execute(_ANSWERED, {"session": session_id}).all()]


def queries_from(connection: sa.Connection, session_id: str, position: int) -> list[QueryRow]:
    """Return the queries of a session that were asked at a position or later, in order."""
    found = connection.execute(_QUERIES_FROM, {"session": session_id, "first": position})
    return [QueryRow(*row) for row in found]


def _values(row: EventRow | QueryRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}
