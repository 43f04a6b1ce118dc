"""Caches of pure functions: `FoldCache` for folds over the history, `LRUCache` for recent arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from pairseek.core.types import Event

State = TypeVar("State")

CAPACITY = 8
"""Number of cached states: the latest one, those after one or two undos, and those after either next answer."""


class FoldCache(Generic[State]):
    """Cache of the states of a fold over the history, for the latest histories.

    Cached states must not be mutated. The cache then affects only the time of `fold` and never its result, whether a
    history grows, was shortened by an undo, or is new. Histories are compared event by event, not by a hash. Copies and
    pickles start empty. The tuple of entries is replaced as a whole, so that a race between threads loses at most one
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
            Everything that the states depend on besides the history.
        """
        events = tuple(history)
        known, state = self._longest(key, events)
        if state is None:
            known, state = 0, start()
        for position in range(known, len(events)):
            state = step(state, events[position], position)
            if len(events) - position <= CAPACITY:
                self._remember(key, events[: position + 1], state)
        return state

    def _longest(self, key: Hashable, events: tuple[Event, ...]) -> tuple[int, State | None]:
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
        self._known: dict[Hashable, Value] = {}

    def __reduce__(self) -> tuple[type[LRUCache[Value]], tuple[int]]:
        return type(self), (self._capacity,)

    def recall(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the cached value of this key, or compute and cache it."""
        known = self._known
        value = known[key] if key in known else compute()
        others = [entry for entry in known.items() if entry[0] != key]
        self._known = dict([*others[-self._capacity + 1 :], (key, value)])
        return value
