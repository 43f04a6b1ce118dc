"""Single values of a database, by key."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pairseek.store.schema import meta


def value(connection: sa.Connection, key: str) -> str | None:
    """Return the value of a key; None if there is none."""
    found = connection.execute(sa.select(meta.c.value).where(meta.c.key == key)).scalar()
    return None if found is None else str(found)


def put(connection: sa.Connection, key: str, text: str) -> None:
    """Store the value of a key in place of an earlier one."""
    added = _insert(connection, key, text)
    connection.execute(added.on_conflict_do_update(index_elements=["key"], set_={"value": text}))


def put_first(connection: sa.Connection, key: str, text: str) -> str:
    """Store the value of a key unless it has one, and return its value; concurrent callers get the same."""
    connection.execute(_insert(connection, key, text).on_conflict_do_nothing())
    return str(value(connection, key))


def _insert(connection: sa.Connection, key: str, text: str) -> Any:
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return insert(meta).values(key=key, value=text)


def remove(connection: sa.Connection, key: str, text: str) -> None:
    """Remove a key if it has this value."""
    connection.execute(meta.delete().where((meta.c.key == key) & (meta.c.value == text)))
