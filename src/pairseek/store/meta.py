"""Key-value pairs of a database."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pairseek.store.schema import meta


def value(connection: sa.Connection, key: str) -> str | None:
    """Return the value of a key; None if it has no value."""
    text = connection.execute(sa.select(meta.c.value).where(meta.c.key == key)).scalar()
    return None if text is None else str(text)


def put(connection: sa.Connection, key: str, text: str) -> None:
    """Set the value of a key."""
    statement = _insert(connection, key, text)
    connection.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": text}))


def put_if_missing(connection: sa.Connection, key: str, text: str) -> str:
    """Set the value of a key unless it has one, and return its value; concurrent callers get the same value."""
    connection.execute(_insert(connection, key, text).on_conflict_do_nothing())
    return str(value(connection, key))


def _insert(connection: sa.Connection, key: str, text: str) -> Any:
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return insert(meta).values(key=key, value=text)


def remove(connection: sa.Connection, key: str, text: str) -> None:
    """Remove a key if it has this value."""
    connection.execute(meta.delete().where((meta.c.key == key) & (meta.c.value == text)))


def remove_older(connection: sa.Connection, prefix: str, until: str) -> None:
    """Remove the keys with a prefix whose values are objects in JSON with a time ``at`` before this one."""
    rows = connection.execute(sa.select(meta.c.key, meta.c.value).where(meta.c.key.startswith(prefix, autoescape=True)))
    old = [key for key, text in rows if json.loads(text)["at"] < until]
    connection.execute(meta.delete().where(meta.c.key.in_(old)))
