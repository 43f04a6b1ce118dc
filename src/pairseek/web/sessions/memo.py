"""Memo of results after a session's first answers, shared by sessions that began with the same parts.

The next pair is a function of the parts and the answers; only its sides depend on the session. So a study's first
answers lead to the same few pairs again and again. After more answers hardly any two people agree, and nothing is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from cachetools import LRUCache

from pairseek.core.types import Event

T = TypeVar("T")
Path: TypeAlias = tuple[tuple[object, ...], ...]

MAX_EVENTS = 12
"""Largest number of events after which results are kept."""
# Entries per memo, of about 1 kB each.
_MAX_ENTRIES = 4096


@dataclass(eq=False)
class Memo(Generic[T]):
    """Bounded cache of values by the events that they depend on; the least recently used entries go first."""

    _values: LRUCache[Path, T] = field(default_factory=lambda: LRUCache(_MAX_ENTRIES))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return len(self._values)

    def recall(self, events: Sequence[Event]) -> T | None:
        """Return the value after these events; None if it is not stored."""
        if len(events) > MAX_EVENTS:
            return None
        key = path_of(events)
        with self._lock:
            return self._values.get(key)

    def keep(self, events: Sequence[Event], value: T) -> None:
        """Store the value after these events, unless there are too many of them."""
        if len(events) > MAX_EVENTS:
            return
        key = path_of(events)
        with self._lock:
            self._values[key] = value

    def of(self, events: Sequence[Event], compute: Callable[[], T]) -> T:
        """Return the value after these events, and compute it if it is not stored."""
        value = self.recall(events)
        if value is None:
            value = compute()
            self.keep(events, value)
        return value


def path_of(events: Iterable[Event]) -> Path:
    """Return the outcomes of events independently of the side that each winner was on."""
    return tuple(
        (event.outcome, event.left, event.right) if event.winner is None else (event.outcome, event.winner, event.loser)
        for event in events
    )
