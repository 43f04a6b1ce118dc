"""What can be worked out again: to lose it costs time and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from pairseek._types import JSON
from pairseek.store.schema import foreseen, snapshots


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A belief after ``count`` events of a search; ``digest`` says which events and which program."""

    session_id: str
    count: int
    digest: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The query that follows each answer to an open one; ``digest`` says after which answers and by which program."""

    session_id: str
    query: str
    digest: str
    content: JSON


def keep(connection: sa.Connection, kept: Sequence[Snapshot | Foreseen]) -> None:
    """Replace what was kept of these sessions."""
    for kind, table in ((Snapshot, snapshots), (Foreseen, foreseen)):
        rows = [{name: getattr(one, name) for name in one.__slots__} for one in kept if isinstance(one, kind)]
        if rows:
            connection.execute(table.delete().where(table.c.session_id.in_([row["session_id"] for row in rows])))
            connection.execute(table.insert(), rows)


def snapshot_of(connection: sa.Connection, session_id: str) -> Snapshot | None:
    """The session's snapshot."""
    row = _one(connection, snapshots, session_id)
    return None if row is None else Snapshot(*row)


def foreseen_of(connection: sa.Connection, session_id: str) -> Foreseen | None:
    """What was foreseen of the session."""
    row = _one(connection, foreseen, session_id)
    return None if row is None else Foreseen(*row)


def _one(connection: sa.Connection, table: sa.Table, session_id: str) -> tuple[Any, ...] | None:
    row = connection.execute(sa.select(table).where(table.c.session_id == session_id)).first()
    return None if row is None else tuple(row)
