"""Attributes of a study's items that change from day to day, in numbered versions."""

from __future__ import annotations

import sqlalchemy as sa

from pairseek.store.database import now
from pairseek.store.schema import attributes


def version(connection: sa.Connection, study_id: int) -> int:
    """Return the version of the attributes; 0 if the study has none."""
    number = connection.execute(sa.select(attributes.c.version).where(attributes.c.study_id == study_id)).scalar()
    return int(number or 0)


def content(connection: sa.Connection, study_id: int) -> tuple[int, bytes] | None:
    """Return the version and the packed attributes of a study."""
    columns = (attributes.c.version, attributes.c.content)
    row = connection.execute(sa.select(*columns).where(attributes.c.study_id == study_id)).first()
    return None if row is None else (int(row[0]), bytes(row[1]))


def replace(connection: sa.Connection, study_id: int, expected_version: int, packed: bytes) -> bool:
    """Store a new version; return False if ``expected_version`` is no longer the current one.

    Two first versions at the same time raise an `IntegrityError`.
    """
    values = {"version": expected_version + 1, "content": packed, "changed_at": now()}
    if expected_version == 0:
        connection.execute(attributes.insert().values(study_id=study_id, **values))
        return True
    condition = (attributes.c.study_id == study_id) & (attributes.c.version == expected_version)
    return connection.execute(attributes.update().where(condition).values(values)).rowcount == 1
