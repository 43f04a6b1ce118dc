"""Population versions of a study. Sessions refer to them, so they never change until they are dropped."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store.database import now
from pairseek.store.schema import learned_from, learning, populations


def add(
    connection: sa.Connection,
    study_id: int,
    content: bytes,
    who: str,
    sessions: Sequence[str],
    facts: JSON | None = None,
) -> int:
    """Add a population that was learned from sessions, and return its version, counted from 1.

    Raises `IntegrityError` on a concurrent insert, and if one of the sessions was deleted.
    """
    highest = sa.select(sa.func.max(populations.c.version)).where(populations.c.study_id == study_id)
    version = int(connection.execute(highest).scalar() or 0) + 1
    values = {"study_id": study_id, "version": version, "content": content, "created_by": who, "facts": facts}
    connection.execute(populations.insert().values(created_at=now(), **values))
    if sessions:
        rows = [{"study_id": study_id, "version": version, "session_id": key} for key in sorted(sessions)]
        connection.execute(learned_from.insert(), rows)
    return version


def newest(connection: sa.Connection, study_id: int) -> int | None:
    """Return the newest version that was not dropped; None if the study has none."""
    condition = (populations.c.study_id == study_id) & populations.c.dropped_at.is_(None)
    version = connection.execute(sa.select(sa.func.max(populations.c.version)).where(condition)).scalar_one()
    return None if version is None else int(version)


def current(connection: sa.Connection, study_id: int) -> int | None:
    """Return the version that new sessions begin with: the chosen one, else the newest, else None."""
    chosen = connection.execute(sa.select(learning.c.chosen).where(learning.c.study_id == study_id)).scalar()
    if chosen == 0:
        return None
    if chosen is not None and is_usable(connection, study_id, chosen, lock=False):
        return int(chosen)
    return newest(connection, study_id)


def summaries(connection: sa.Connection, study_id: int) -> list[JSON]:
    """Return the versions of a study without their content, newest first."""
    names = ("version", "created_at", "created_by", "dropped_at", "facts")
    statement = sa.select(*(populations.c[name] for name in names)).where(populations.c.study_id == study_id)
    return [dict(row) for row in connection.execute(statement.order_by(populations.c.version.desc())).mappings()]


def sessions_learned_from(connection: sa.Connection, study_id: int, version: int) -> set[str]:
    """Return the ids of the sessions that a version was learned from."""
    condition = (learned_from.c.study_id == study_id) & (learned_from.c.version == version)
    return set(connection.execute(sa.select(learned_from.c.session_id).where(condition)).scalars())


def is_usable(connection: sa.Connection, study_id: int, version: int, *, lock: bool = True) -> bool:
    """Return whether a version was not dropped; with ``lock``, nobody drops it until the transaction ends."""
    condition = (populations.c.study_id == study_id) & (populations.c.version == version)
    statement = sa.select(populations.c.version).where(condition & populations.c.dropped_at.is_(None))
    return connection.execute(statement.with_for_update(read=True) if lock else statement).scalar() is not None


def content(connection: sa.Connection, study_id: int, version: int) -> bytes:
    """Return the content of a version."""
    condition = (populations.c.study_id == study_id) & (populations.c.version == version)
    return bytes(connection.execute(sa.select(populations.c.content).where(condition)).scalar_one())


def facts(connection: sa.Connection, study_id: int, version: int) -> JSON | None:
    """Return the facts stored with the content of a version; None if it has none."""
    condition = (populations.c.study_id == study_id) & (populations.c.version == version)
    stored: JSON | None = connection.execute(sa.select(populations.c.facts).where(condition)).scalar_one()
    return stored


def versions(connection: sa.Connection, study_id: int) -> list[int]:
    """Return the versions that were not dropped, oldest first."""
    condition = (populations.c.study_id == study_id) & populations.c.dropped_at.is_(None)
    statement = sa.select(populations.c.version).where(condition).order_by(populations.c.version)
    return [int(version) for version in connection.execute(statement).scalars()]


def created_at(connection: sa.Connection, study_id: int, version: int) -> str:
    """Return the time at which a version was learned."""
    condition = (populations.c.study_id == study_id) & (populations.c.version == version)
    return str(connection.execute(sa.select(populations.c.created_at).where(condition)).scalar_one())
