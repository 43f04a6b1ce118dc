"""Beliefs that can be worked out again: to lose them costs time and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from pairseek.store.schema import snapshots


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
