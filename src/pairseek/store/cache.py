"""Beliefs and estimates that can be worked out again: to lose them costs time and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from pairseek._types import JSON
from pairseek.store.schema import estimates, snapshots


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A belief after ``count`` events of a search; ``digest`` says which events and which program."""

    session_id: str
    count: int
    digest: str
    content: bytes


def keep_snapshot(connection: sa.Connection, snapshot: Snapshot) -> None:
    """Replace the session's snapshot."""
    connection.execute(snapshots.delete().where(snapshots.c.session_id == snapshot.session_id))
    connection.execute(snapshots.insert().values({name: getattr(snapshot, name) for name in snapshot.__slots__}))


def snapshot_of(connection: sa.Connection, session_id: str) -> Snapshot | None:
    """The session's snapshot."""
    row = connection.execute(sa.select(snapshots).where(snapshots.c.session_id == session_id)).first()
    return None if row is None else Snapshot(*row)


def keep_estimates(connection: sa.Connection, session_id: str, rows: Sequence[JSON]) -> None:
    """Store estimates (``answered``, ``digest``, ``mean``, ``radius``) in place of older ones."""
    for row in rows:
        same = (estimates.c.session_id == session_id) & (estimates.c.answered == row["answered"])
        connection.execute(estimates.delete().where(same))
        connection.execute(estimates.insert().values(session_id=session_id, **row))


def estimates_of(connection: sa.Connection, session_ids: Sequence[str]) -> list[JSON]:
    """Stored estimates."""
    chosen = sa.select(estimates).where(estimates.c.session_id.in_(session_ids))
    return [dict(row) for row in connection.execute(chosen).mappings()]
