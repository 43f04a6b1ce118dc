"""Rate limits per worker: by address, by session and by token."""

from __future__ import annotations

import ipaddress
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from time import monotonic
from typing import Self

from pairseek.web.errors import Problem
from pairseek.web.settings import Settings

_PERIODS = {"minute": 60.0, "day": 86_400.0}
_KEYS = 20_000
# Prefix length of the IPv6 network that one client controls.
_NETWORK = 64


class Rate:
    """Rate limit per key: a token bucket of ``count`` requests that refills within a period.

    It uses the monotonic clock, which a change of the time of day does not move.

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
        self._what, self._count, self._period = what, count, period
        self._seconds = _PERIODS[period]
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, key: str) -> None:
        """Count one request; raise a `Problem` with the waiting time if the limit is exceeded."""
        moment = monotonic()
        with self._lock:
            # Token bucket: (tokens, time of the last update).
            tokens, since = self._known.pop(key, (float(self._count), moment))
            tokens = min(self._count, tokens + (moment - since) * self._count / self._seconds)
            self._known[key] = (tokens - 1 if tokens >= 1 else tokens, moment)
            while len(self._known) > _KEYS:
                self._known.popitem(last=False)
        if tokens < 1:
            full = round(self._seconds)
            wait = max(1, math.ceil((1 - tokens) * full / self._count)) if self._count else full
            raise Problem(
                429,
                "too_many",
                f"more than {self._count:,} {self._what} in a {self._period}",
                hint=f"Wait {wait} s and try again; acknowledged answers are stored.",
                wait=wait,
            )


@dataclass(frozen=True, slots=True)
class Rates:
    """Rate limits of the service."""

    starts: Rate
    daily_starts: Rate
    answers: Rate
    calls: Rate

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Create the rate limits from the settings."""
        return cls(
            Rate("sessions begun from one address", settings.starts_per_minute),
            Rate("sessions begun from one address", settings.starts_per_day, "day"),
            Rate("answers or messages in one session", settings.answers_per_minute),
            Rate("calls with one token", settings.calls_per_minute),
        )


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is, IPv4 where it is written as IPv6; None if it is not one."""
    try:
        known = ipaddress.ip_address(host)
    except ValueError:
        return None
    return known if known.version == 4 else known.ipv4_mapped or known


def network_of(host: str) -> str:
    """Return the key of an address: itself for IPv4, its /64 network for IPv6."""
    known = address_of(host)
    if known is None:
        return host
    return str(ipaddress.ip_network((known, _NETWORK), strict=False)) if known.version == 6 else str(known)
