"""Rate limits: session starts per address across all servers; per worker, requests per address, session and token."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from time import monotonic
from typing import Self

from cachetools import TTLCache

from pairseek.store import rates
from pairseek.store.database import Database
from pairseek.store.rates import Bucket
from pairseek.web.errors import Problem
from pairseek.web.settings import Settings

# Seconds of each period.
_PERIODS = {"minute": 60.0, "day": 86_400.0}
# Largest number of keys with a bucket in memory.
_MAX_KEYS = 20_000
# Prefix length of the IPv6 network that one client controls.
_IPV6_PREFIX = 64


class Rate:
    """Rate limit per key: a token bucket of ``count`` requests that refills within a period.

    It uses the monotonic clock, which is unaffected when the time of day is changed.

    Parameters
    ----------
    what
        Name of what is limited, for the error message.
    count
        Maximum number in a period.
    period
        ``minute`` or ``day``.
    """

    def __init__(self, what: str, count: int, period: str = "minute") -> None:
        self._what, self.count, self.period = what, count, period
        self.seconds = _PERIODS[period]
        self._lock = threading.Lock()
        # A bucket expires after a period without use, because it is full again by then.
        self._buckets: TTLCache[str, tuple[float, float]] = TTLCache(_MAX_KEYS, self.seconds, timer=lambda: monotonic())

    def check(self, key: str) -> None:
        """Count one request; raise a `Problem` with the waiting time if the limit is exceeded."""
        moment = monotonic()
        with self._lock:
            # Token bucket: (tokens, time of the last update).
            tokens, since = self._buckets.get(key, (float(self.count), moment))
            tokens = min(self.count, tokens + (moment - since) * self.count / self.seconds)
            self._buckets[key] = (tokens - 1 if tokens >= 1 else tokens, moment)
        self.require(tokens)

    def require(self, tokens: float) -> None:
        """Raise a `Problem` with the waiting time unless a bucket has a token."""
        if tokens < 1:
            full = round(self.seconds)
            wait = max(1, math.ceil((1 - tokens) * full / self.count)) if self.count else full
            raise Problem(
                429,
                "too_many",
                f"more than {self.count:,} {self._what} in a {self.period}",
                hint=f"Wait {wait} s and try again; acknowledged answers are stored.",
                wait=wait,
            )


class SharedRates:
    """Rate limits across all workers and servers, kept as token buckets in the database.

    Requests that exceed a limit in this worker already are refused without asking the database.

    Parameters
    ----------
    database, secret
        Database of the buckets, and the key of the hashes under which they are stored.
    limits
        Rate limits, none of which may be exceeded.
    """

    def __init__(self, database: Database, secret: str, *limits: Rate) -> None:
        self._database, self._secret, self._limits = database, secret, limits

    def check(self, key: str) -> None:
        """Count one request; raise a `Problem` with the waiting time if a limit is exceeded."""
        for limit in self._limits:
            limit.check(key)
        buckets = [Bucket(self._hashed(limit.period, key), limit.count, limit.seconds) for limit in self._limits]
        # Read first, so that refused requests do not hold up the writing of answers.
        self._require(self._database.read(lambda connection: rates.tokens(connection, buckets)))
        self._require(self._database.write(lambda connection: rates.take(connection, buckets)))

    def _require(self, tokens: Sequence[float]) -> None:
        for limit, count in zip(self._limits, tokens, strict=True):
            limit.require(count)

    def _hashed(self, period: str, key: str) -> str:
        # Keyed, because addresses are few enough to be guessed from a plain hash.
        return hmac.new(self._secret.encode(), f"starts:{period}:{key}".encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Rates:
    """Rate limits of the service."""

    starts: SharedRates
    answers: Rate
    calls: Rate

    @classmethod
    def of(cls, settings: Settings, database: Database, secret: str) -> Self:
        """Create the rate limits from the settings."""
        starts = (
            Rate("sessions begun from one address", settings.starts_per_minute),
            Rate("sessions begun from one address", settings.starts_per_day, "day"),
        )
        return cls(
            SharedRates(database, secret, *starts),
            Rate("answers or messages in one session", settings.answers_per_minute),
            Rate("calls with one token", settings.calls_per_minute),
        )


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Parse a host as an address, IPv4-mapped IPv6 as IPv4; return None if it is not an address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return address if address.version == 4 else address.ipv4_mapped or address


def network_of(host: str) -> str:
    """Return the key of an address: itself for IPv4, its /64 network for IPv6."""
    address = address_of(host)
    if address is None:
        return host
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False)) if address.version == 6 else str(address)
