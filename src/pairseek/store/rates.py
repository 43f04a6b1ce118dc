"""Token buckets that all workers and servers share.

Times are those of the database in PostgreSQL, because the clocks of servers differ. SQLite is on one machine, whose
monotonic clock all processes share; it begins anew when the machine does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pairseek.store.schema import rates

# Seconds by which a clock that is being adjusted may go back.
_CLOCK = 1.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """Token bucket: of ``count`` tokens, which refill within ``seconds``."""

    key: str
    count: int
    seconds: float

    def refilled(self, tokens: float, elapsed: float) -> float:
        """Return the tokens after a time; all of them where a clock that began anew makes it negative."""
        if elapsed < -_CLOCK:
            return float(self.count)
        return min(float(self.count), tokens + max(0.0, elapsed) * self.count / self.seconds)


def tokens(connection: sa.Connection, buckets: Sequence[Bucket]) -> list[float]:
    """Return the tokens in buckets without taking any."""
    moment, stored = _clock(connection), _stored(connection, buckets)
    return [_now_in(bucket, stored, moment) for bucket in buckets]


def take(connection: sa.Connection, buckets: Sequence[Bucket]) -> list[float]:
    """Take one token from each bucket if every one has it; return the tokens that were there before."""
    # In one order, so that concurrent callers do not wait for each other in a circle.
    ordered = sorted(buckets, key=lambda bucket: bucket.key)
    for bucket in ordered:
        new = {"key": bucket.key, "tokens": float(bucket.count), "at": 0.0}
        connection.execute(_insert(connection).values(new).on_conflict_do_nothing())
        connection.execute(sa.select(rates.c.key).where(rates.c.key == bucket.key).with_for_update())
    found = tokens(connection, buckets)
    if min(found) >= 1:
        moment = _clock(connection)
        for bucket, there in zip(buckets, found, strict=True):
            changed = rates.update().where(rates.c.key == bucket.key)
            connection.execute(changed.values(tokens=there - 1, at=moment))
    return found


def forget(connection: sa.Connection, seconds: float) -> None:
    """Delete buckets from which nothing was taken for some time, and those of a clock that began anew since."""
    moment = _clock(connection)
    connection.execute(rates.delete().where((rates.c.at < moment - seconds) | (rates.c.at > moment + _CLOCK)))


def _stored(connection: sa.Connection, buckets: Sequence[Bucket]) -> dict[str, tuple[float, float]]:
    chosen = sa.select(rates).where(rates.c.key.in_([bucket.key for bucket in buckets]))
    return {row.key: (row.tokens, row.at) for row in connection.execute(chosen)}


def _now_in(bucket: Bucket, stored: dict[str, tuple[float, float]], moment: float) -> float:
    there, at = stored.get(bucket.key, (float(bucket.count), moment))
    return bucket.refilled(there, moment - at)


def _clock(connection: sa.Connection) -> float:
    if connection.dialect.name != "postgresql":
        return time.monotonic()
    return float(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


def _insert(connection: sa.Connection) -> Any:
    return (postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert)(rates)
