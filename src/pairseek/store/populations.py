"""Populations of a study, numbered and immutable until they are dropped, because sessions refer to them."""

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


def latest(connection: sa.Connection, study_id: int) -> int | None:
    """Return the newest version that was not dropped; None if the study has none."""
    mine = (populations.c.study_id == study_id) & populations.c.dropped_at.is_(None)
    version = connection.execute(sa.select(sa.func.max(populations.c.version)).where(mine)).scalar_one()
    return None if version is None else int(version)


def current(connection: sa.Connection, study_id: int) -> int | None:
    """Return the version with which sessions begin: the chosen version, or else the newest; None without a version."""
    chosen = connection.execute(sa.select(learning.c.chosen).where(learning.c.study_id == study_id)).scalar()
    if chosen == 0:
        return None
    if chosen is not None and is_usable(connection, study_id, chosen, lock=False):
        return int(chosen)
    return latest(connection, study_id)


def every(connection: sa.Connection, study_id: int) -> list[JSON]:
    """Return the versions of a study without their content, newest first."""
    names = ("version", "created_at", "created_by", "dropped_at", "facts")
    chosen = sa.select(*(populations.c[name] for name in names)).where(populations.c.study_id == study_id)
    return [dict(row) for row in connection.execute(chosen.order_by(populations.c.version.desc())).mappings()]


def learned_sessions(connection: sa.Connection, study_id: int, version: int) -> set[str]:
    """Return the sessions that a version was learned from."""
    same = (learned_from.c.study_id == study_id) & (learned_from.c.version == version)
    return set(connection.execute(sa.select(learned_from.c.session_id).where(same)).scalars())


def is_usable(connection: sa.Connection, study_id: int, version: int, *, lock: bool = True) -> bool:
    """Return whether a version exists; with ``lock``, nobody drops it until this transaction ends."""
    mine = (populations.c.study_id == study_id) & (populations.c.version == version)
    chosen = sa.select(populations.c.version).where(mine & populations.c.dropped_at.is_(None))
    return connection.execute(chosen.with_for_update(read=True) if lock else chosen).scalar() is not None


def content(connection: sa.Connection, study_id: int, version: int) -> bytes:
    """Return the content of a version."""
    chosen = (populations.c.study_id == study_id) & (populations.c.version == version)
    return bytes(connection.execute(sa.select(populations.c.content).where(chosen)).scalar_one())


def facts(connection: sa.Connection, study_id: int, version: int) -> JSON | None:
    """Return the facts stored with the content of a version; None if it has none."""
    chosen = (populations.c.study_id == study_id) & (populations.c.version == version)
    stored: JSON | None = connection.execute(sa.select(populations.c.facts).where(chosen)).scalar_one()
    return stored


def versions(connection: sa.Connection, study_id: int) -> list[int]:
    """Return the versions that were not dropped, oldest first."""
    mine = (populations.c.study_id == study_id) & populations.c.dropped_at.is_(None)
    chosen = sa.select(populations.c.version).where(mine).order_by(populations.c.version)
    return [int(version) for version in connection.execute(chosen).scalars()]


def created_at(connection: sa.Connection, study_id: int, version: int) -> str:
    """Return the time at which a version was learned."""
    chosen = (populations.c.study_id == study_id) & (populations.c.version == version)
    return str(connection.execute(sa.select(populations.c.created_at).where(chosen)).scalar_one())
