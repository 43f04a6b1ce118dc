"""Queries and events of sessions, both append-only."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store.schema import events, queries, sessions


@dataclass(frozen=True, slots=True)
class AskedPair:
    """Pair that was asked; answers refer to it by its name."""

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
    """An answer, or the undo of an answer."""

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
    # Whether the sound or video of each side was played: yes, no, failed or unknown; None for a pair without media.
    played: dict[str, str] | None = None


class AnsweredPair(NamedTuple):
    """Pair with its answer, reduced to the fields on which later pairs depend.

    A named tuple is fast to build, and each read rebuilds all pairs of a session.

    Attributes
    ----------
    name, kind, left, right
        The pair that was asked.
    outcome
        The answer.
    anchor
        In a similarity study, the item with which the other two are compared.
    void
        Whether a researcher has voided the answer.
    """

    name: str
    kind: str
    left: str
    right: str
    outcome: str
    anchor: str | None = None
    void: bool = False


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of a session.

    Attributes
    ----------
    done
        Answers that stand, in order.
    undone
        Outcomes of undone answers, by the name of their pair.
    events
        Number of stored events.
    version
        Version of the session when the answers were read; None if it had no events.
    """

    done: tuple[AnsweredPair, ...] = ()
    undone: Mapping[str, str] = field(default_factory=dict)
    events: int = 0
    version: int | None = None


class VersionConflict(Exception):
    """Raised when a session has changed since it was read; read it again."""


# Statements are built once, because building takes as long as executing.
_NEXT_VERSION = (
    sessions.update()
    .where((sessions.c.id == sa.bindparam("session")) & (sessions.c.version == sa.bindparam("seen")))
    .values(version=sessions.c.version + 1)
)
_ADD_EVENT = events.insert()
_ADD_QUERY = queries.insert()
_QUERY_BY_NAME = sa.select(queries).where(
    (queries.c.session_id == sa.bindparam("session")) & (queries.c.name == sa.bindparam("query"))
)
_SESSION_IDS: sa.BindParameter[str] = sa.bindparam("session_ids", expanding=True)
_EVENTS = sa.select(events).where(events.c.session_id.in_(_SESSION_IDS)).order_by(events.c.session_id, events.c.number)
_QUERIES = (
    sa.select(queries)
    .where(queries.c.session_id.in_(_SESSION_IDS))
    .order_by(queries.c.session_id, queries.c.position, queries.c.asked_at)
)
# Only the anchor is read from the details; decoding all of them would take longer than everything else.
_EVENTS_WITH_PAIRS = (
    sa.select(
        sessions.c.version,
        events.c.kind,
        queries.c.name,
        queries.c.kind,
        queries.c.left,
        queries.c.right,
        events.c.outcome,
        queries.c.details["anchor"].as_string(),
    )
    .select_from(events)
    .join(queries, (queries.c.session_id == events.c.session_id) & (queries.c.name == events.c.query))
    .join(sessions, sessions.c.id == events.c.session_id)
    .where(events.c.session_id == sa.bindparam("session"))
    .order_by(events.c.number)
)
_QUERIES_SINCE = (
    sa.select(queries)
    .where((queries.c.session_id == sa.bindparam("session")) & (queries.c.position >= sa.bindparam("first")))
    .order_by(queries.c.position, queries.c.asked_at)
)


def add_event(connection: sa.Connection, event: EventRow, *, version: int) -> None:
    """Add an event and increment the session's version; raise `VersionConflict` if that is no longer ``version``."""
    changed = connection.execute(_NEXT_VERSION, {"session": event.session_id, "seen": version})
    if changed.rowcount != 1:
        raise VersionConflict
    connection.execute(_ADD_EVENT, _values(event))


def add_pair(connection: sa.Connection, pair: AskedPair) -> None:
    """Store a pair that was asked; names are unique within a session."""
    connection.execute(_ADD_QUERY, _values(pair))


def was_asked(connection: sa.Connection, session_id: str, query: str) -> bool:
    """Return whether a session has a query with this name."""
    return connection.execute(_QUERY_BY_NAME, {"session": session_id, "query": query}).first() is not None


def events_of(connection: sa.Connection, session_ids: Sequence[str]) -> list[EventRow]:
    """Return all events, session by session, in order."""
    return [EventRow(*row) for row in connection.execute(_EVENTS, {"session_ids": session_ids}).all()]


def queries_of(connection: sa.Connection, session_ids: Sequence[str]) -> list[AskedPair]:
    """Return all queries, session by session, in order."""
    return [AskedPair(*row) for row in connection.execute(_QUERIES, {"session_ids": session_ids}).all()]


def answers_of(connection: sa.Connection, session_id: str) -> Answers:
    """Return the answers of a session."""
    # Fetch all rows at once: row by row takes 10 % longer and releases the interpreter lock at each row.
    rows = connection.execute(_EVENTS_WITH_PAIRS, {"session": session_id}).all()
    if not rows:
        return Answers()
    kept = remaining_answers(row[1] for row in rows)
    remaining = set(kept)
    # Interned strings are shared by all sessions.
    done = tuple(
        AnsweredPair._make((*(text and sys.intern(text) for text in rows[index][2:]), False)) for index in kept
    )
    undone = {row[2]: row[6] for index, row in enumerate(rows) if row[1] == "answer" and index not in remaining}
    return Answers(done, undone, len(rows), rows[0][0])


def remaining_answers(kinds: Iterable[str]) -> list[int]:
    """Return the indices, among events of these kinds, of the answers that were not undone."""
    indices: list[int] = []
    for index, kind in enumerate(kinds):
        if kind == "answer":
            indices.append(index)
        else:
            indices.pop()
    return indices


def queries_since(connection: sa.Connection, session_id: str, position: int) -> list[AskedPair]:
    """Return the queries of a session from a position onwards, in order."""
    rows = connection.execute(_QUERIES_SINCE, {"session": session_id, "first": position})
    return [AskedPair(*row) for row in rows]


def _values(row: EventRow | AskedPair) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}
