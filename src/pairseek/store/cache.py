"""Cache of prefetched queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store.schema import prefetched


@dataclass(frozen=True, slots=True)
class Prefetched:
    """Prefetched queries: the query that follows each answer to the open one.

    Attributes
    ----------
    session_id, query
        The session and its open query.
    digest
        Hash of the answers before and of the program: the cached queries are valid only where it is the same.
    content
        For each answer, the query that follows it; an answer that ends the session has none.
    """

    session_id: str
    query: str
    digest: str
    content: JSON


# Built once, because building takes as long as executing.
_OF_SESSION = sa.select(prefetched).where(prefetched.c.session_id == sa.bindparam("session"))


def store(connection: sa.Connection, rows: Sequence[Prefetched]) -> None:
    """Store prefetched queries in place of earlier ones of the same sessions."""
    names = [row.session_id for row in rows]
    connection.execute(prefetched.delete().where(prefetched.c.session_id.in_(names)))
    connection.execute(prefetched.insert(), [{name: getattr(row, name) for name in row.__slots__} for row in rows])


def prefetched_of(connection: sa.Connection, session_id: str) -> Prefetched | None:
    """Return the prefetched queries of a session."""
    row = connection.execute(_OF_SESSION, {"session": session_id}).first()
    return None if row is None else Prefetched(*row)
