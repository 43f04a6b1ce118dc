"""Memo of results after a session's first answers, shared by sessions that began with the same parts.

The next pair is a function of the parts and the answers; only its sides depend on the session. So the first answers
lead to the same few pairs again and again. After more answers hardly any two people agree, and nothing is stored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from cachetools import LRUCache

from pairseek.core.types import Event

T = TypeVar("T")
OutcomesKey: TypeAlias = tuple[tuple[object, ...], ...]

MAX_EVENTS = 12
"""Largest number of events after which results are stored."""
# Largest number of entries, of about 1 kB each.
_MAX_ENTRIES = 4096


@dataclass(eq=False)
class Memo(Generic[T]):
    """Bounded cache of values by the events on which they depend; the least recently used are dropped first."""

    _values: LRUCache[OutcomesKey, T] = field(default_factory=lambda: LRUCache(_MAX_ENTRIES))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return len(self._values)

    def recall(self, events: Sequence[Event]) -> T | None:
        """Return the value after these events; None if it is not stored."""
        if len(events) > MAX_EVENTS:
            return None
        key = outcomes_key(events)
        with self._lock:
            return self._values.get(key)

    def keep(self, events: Sequence[Event], value: T) -> None:
        """Store the value after these events unless they are too many."""
        if len(events) > MAX_EVENTS:
            return
        key = outcomes_key(events)
        with self._lock:
            self._values[key] = value

    def get_or_compute(self, events: Sequence[Event], compute: Callable[[], T]) -> T:
        """Return the stored value after these events, or else compute and store it."""
        value = self.recall(events)
        if value is None:
            value = compute()
            self.keep(events, value)
        return value


def outcomes_key(events: Iterable[Event]) -> OutcomesKey:
    """Return the outcomes of events, regardless of the sides on which the winners were."""
    return tuple(
        (event.outcome, event.left, event.right) if event.winner is None else (event.outcome, event.winner, event.loser)
        for event in events
    )
