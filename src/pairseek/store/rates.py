"""Token buckets shared by all workers and servers.

With PostgreSQL the database provides the time, because servers' clocks differ. With SQLite all processes run on one
machine and share its monotonic clock, which starts again from zero when the machine restarts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pairseek.store.schema import rates

# Seconds by which a clock may go back when it is adjusted.
_CLOCK_TOLERANCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """Token bucket that holds ``count`` tokens and refills within ``seconds``."""

    key: str
    count: int
    seconds: float

    def refilled(self, tokens: float, elapsed: float) -> float:
        """Return the number of tokens after ``elapsed`` seconds; a bucket is full if the clock went back to zero."""
        if elapsed < -_CLOCK_TOLERANCE_SECONDS:
            return float(self.count)
        return min(float(self.count), tokens + max(0.0, elapsed) * self.count / self.seconds)


def tokens(connection: sa.Connection, buckets: Sequence[Bucket]) -> list[float]:
    """Return the number of tokens in each bucket without taking any."""
    moment = _clock(connection)
    statement = sa.select(rates).where(rates.c.key.in_([bucket.key for bucket in buckets]))
    stored = {row.key: (row.tokens, moment - row.at) for row in connection.execute(statement)}
    return [bucket.refilled(*stored.get(bucket.key, (float(bucket.count), 0.0))) for bucket in buckets]


def take(connection: sa.Connection, buckets: Sequence[Bucket]) -> list[float]:
    """Take one token from each bucket if none is empty; return the numbers of tokens before that."""
    # Rows are locked in the order of their keys, so that concurrent callers cannot deadlock.
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    for bucket in sorted(buckets, key=lambda bucket: bucket.key):
        new = {"key": bucket.key, "tokens": float(bucket.count), "at": 0.0}
        connection.execute(insert(rates).values(new).on_conflict_do_nothing())
        connection.execute(sa.select(rates.c.key).where(rates.c.key == bucket.key).with_for_update())
    available = tokens(connection, buckets)
    if min(available) >= 1:
        moment = _clock(connection)
        for bucket, count in zip(buckets, available, strict=True):
            update = rates.update().where(rates.c.key == bucket.key)
            connection.execute(update.values(tokens=count - 1, at=moment))
    return available


def delete_unused(connection: sa.Connection, seconds: float) -> None:
    """Delete buckets unused for this many seconds, and buckets from before the clock was reset."""
    moment = _clock(connection)
    connection.execute(
        rates.delete().where((rates.c.at < moment - seconds) | (rates.c.at > moment + _CLOCK_TOLERANCE_SECONDS))
    )


def _clock(connection: sa.Connection) -> float:
    if connection.dialect.name != "postgresql":
        return time.monotonic()
    return float(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
