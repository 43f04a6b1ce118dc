"""Memo of the pairs that follow the first answers, shared by the sessions that began with the same parts.

People who answered alike are asked alike: the pair is a function of the parts and the answers, and only its sides
depend on the session. So the first answers of a study lead to the same few pairs again and again. After more answers
hardly two people agree, and nothing is kept.
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

DEEPEST = 12
"""Number of events up to which results are kept."""
# Entries of each kind, of about 1 kB.
_MOST = 4096


@dataclass(eq=False)
class Memo(Generic[T]):
    """Bounded cache of values by the events that they follow from; the oldest unused entries go first."""

    _known: LRUCache[Path, T] = field(default_factory=lambda: LRUCache(_MOST))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return len(self._known)

    def recall(self, events: Sequence[Event]) -> T | None:
        """Return the value after these events; None if it is not known."""
        if len(events) > DEEPEST:
            return None
        key = path_of(events)
        with self._lock:
            return self._known.get(key)

    def keep(self, events: Sequence[Event], value: T) -> None:
        """Store the value after these events, unless they are many."""
        if len(events) > DEEPEST:
            return
        key = path_of(events)
        with self._lock:
            self._known[key] = value

    def of(self, events: Sequence[Event], compute: Callable[[], T]) -> T:
        """Return the value after these events, computed unless it is known."""
        value = self.recall(events)
        if value is None:
            value = compute()
            self.keep(events, value)
        return value


def path_of(events: Iterable[Event]) -> Path:
    """Return what was said, whichever side a winner stood on."""
    return tuple(
        (event.outcome, event.left, event.right) if event.winner is None else (event.outcome, event.winner, event.loser)
        for event in events
    )
