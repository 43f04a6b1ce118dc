"""A procedure is a fold over the history; remembering its newest states makes the next step cheap."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from pairseek.core.types import Event

State = TypeVar("State")

CAPACITY = 8
"""States remembered: the newest, what an undo or two goes back to, and what either answer would lead to."""


class Memo(Generic[State]):
    """The states that the newest histories led to.

    A state must not change once it is here. Then whether a history was seen to grow, was cut short by an undo
    or is seen for the first time makes no difference to what `fold` returns, only to the time it takes.
    Histories are compared event by event, not by a hash. Copies and pickles start empty; the entries are
    replaced as a whole, so two threads at once lose at most an entry.
    """

    def __init__(self) -> None:
        self._entries: tuple[tuple[Hashable, tuple[Event, ...], State], ...] = ()

    def __reduce__(self) -> tuple[type[Memo[State]], tuple[()]]:
        return type(self), ()

    def fold(
        self,
        key: Hashable,
        history: Sequence[Event],
        start: Callable[[], State],
        step: Callable[[State, Event, int], State],
    ) -> State:
        """The state after `history`: ``step(state, event, position)`` over its events, from ``start()``.

        Parameters
        ----------
        key
            All that the states depend on besides the history.
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


class Recent(Generic[Value]):
    """The results of a pure function for the newest of its arguments."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._known: dict[Hashable, Value] = {}

    def __reduce__(self) -> tuple[type[Recent[Value]], tuple[int]]:
        return type(self), (self._capacity,)

    def recall(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """``compute()``, or what it gave for this key."""
        known = self._known
        value = known[key] if key in known else compute()
        others = [entry for entry in known.items() if entry[0] != key]
        self._known = dict([*others[-self._capacity + 1 :], (key, value)])
        return value
