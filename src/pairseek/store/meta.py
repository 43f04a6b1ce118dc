"""Single values of a database, by key."""

from __future__ import annotations

import sqlalchemy as sa

from pairseek.store.schema import meta


def value(connection: sa.Connection, key: str) -> str | None:
    """Return the value of a key; None if there is none."""
    found = connection.execute(sa.select(meta.c.value).where(meta.c.key == key)).scalar()
    return None if found is None else str(found)


def put(connection: sa.Connection, key: str, text: str) -> None:
    """Store the value of a key in place of an earlier one."""
    if not connection.execute(meta.update().where(meta.c.key == key).values(value=text)).rowcount:
        connection.execute(meta.insert().values(key=key, value=text))


def remove(connection: sa.Connection, key: str, text: str) -> None:
    """Remove a key if it has this value."""
    connection.execute(meta.delete().where((meta.c.key == key) & (meta.c.value == text)))
