"""Populations of a study: numbered and immutable, because sessions refer to them."""

from __future__ import annotations

import sqlalchemy as sa

from pairseek.store.database import now
from pairseek.store.schema import populations


def add(connection: sa.Connection, study_id: int, content: bytes, who: str) -> int:
    """Add a population and return its version, counted from 1; raise `IntegrityError` on a concurrent insert."""
    version = (latest(connection, study_id) or 0) + 1
    values = {"study_id": study_id, "version": version, "content": content, "created_by": who}
    connection.execute(populations.insert().values(created_at=now(), **values))
    return version


def latest(connection: sa.Connection, study_id: int) -> int | None:
    """Return the newest version; None if there is none."""
    newest = sa.select(sa.func.max(populations.c.version)).where(populations.c.study_id == study_id)
    found = connection.execute(newest).scalar_one()
    return None if found is None else int(found)


def content(connection: sa.Connection, study_id: int, version: int) -> bytes:
    """Return the content of a version."""
    chosen = (populations.c.study_id == study_id) & (populations.c.version == version)
    return bytes(connection.execute(sa.select(populations.c.content).where(chosen)).scalar_one())
