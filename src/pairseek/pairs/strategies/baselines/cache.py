"""Caches of pure functions: `FoldCache` for folds over the history, `LRUCache` for recent arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from pairseek.core.types import Event

State = TypeVar("State")

CAPACITY = 8
"""Number of cached states: enough for the latest history, for one or two undos, and for either next answer."""


class FoldCache(Generic[State]):
    """Cache of the states of a fold over the most recent histories.

    Cached states must not be mutated. The cache then only affects the time of `fold`, never its result, whether the
    history has grown, was shortened by an undo, or is new. Histories are compared event by event, not by a hash. Copies
    and pickles start empty. The tuple of entries is replaced as a whole, so a race between threads loses at most one
    entry.
    """

    def __init__(self) -> None:
        self._entries: tuple[tuple[Hashable, tuple[Event, ...], State], ...] = ()

    def __reduce__(self) -> tuple[type[FoldCache[State]], tuple[()]]:
        return type(self), ()

    def fold(
        self,
        key: Hashable,
        history: Sequence[Event],
        start: Callable[[], State],
        step: Callable[[State, Event, int], State],
    ) -> State:
        """Return the state after `history`: ``step(state, event, position)`` folded over its events, from ``start()``.

        Parameters
        ----------
        key
            Everything the states depend on apart from the history.
        """
        events = tuple(history)
        length, state = self._longest_prefix(key, events)
        if state is None:
            length, state = 0, start()
        for position in range(length, len(events)):
            state = step(state, events[position], position)
            if len(events) - position <= CAPACITY:
                self._remember(key, events[: position + 1], state)
        return state

    def _longest_prefix(self, key: Hashable, events: tuple[Event, ...]) -> tuple[int, State | None]:
        best: tuple[int, State | None] = 0, None
        for other, prefix, state in self._entries:
            longer = best[1] is None or len(prefix) > best[0]
            if longer and other == key and prefix == events[: len(prefix)]:
                best = len(prefix), state
        return best

    def _remember(self, key: Hashable, events: tuple[Event, ...], state: State) -> None:
        others = (entry for entry in self._entries if entry[:2] != (key, events))
        self._entries = ((key, events, state), *others)[:CAPACITY]


Value = TypeVar("Value")


class LRUCache(Generic[Value]):
    """Least-recently-used cache of a pure function."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: dict[Hashable, Value] = {}

    def __reduce__(self) -> tuple[type[LRUCache[Value]], tuple[int]]:
        return type(self), (self._capacity,)

    def recall(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the cached value for this key, or compute and cache it."""
        values = self._values
        value = values[key] if key in values else compute()
        others = [entry for entry in values.items() if entry[0] != key]
        self._values = dict([*others[-self._capacity + 1 :], (key, value)])
        return value
