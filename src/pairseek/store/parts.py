"""Resolved parts of searches, stored once for all sessions that use them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pairseek.core.types import JSON
from pairseek.store.schema import parts


def add(connection: sa.Connection, content: JSON) -> str:
    """Store parts unless they are already stored, and return their key, a hash of the content."""
    key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    connection.execute(insert(parts).values(key=key, content=content).on_conflict_do_nothing())
    return key


def contents(connection: sa.Connection, keys: Iterable[str]) -> dict[str, JSON]:
    """Return the parts with these keys."""
    rows = connection.execute(sa.select(parts.c.key, parts.c.content).where(parts.c.key.in_(set(keys))))
    return {str(row.key): row.content for row in rows}
