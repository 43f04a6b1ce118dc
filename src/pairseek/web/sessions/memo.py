"""Memo of the pairs that follow the first answers, shared by the sessions that began with the same parts.

People who answered alike are asked alike: the pair is a function of the parts and the answers, and only its sides
depend on the session. So the first answers of a study lead to the same few pairs again and again. After more answers
hardly two people agree, and nothing is kept.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from pairseek.candidates.context import Selection, SelectionContext, Source
from pairseek.core.types import Event

T = TypeVar("T")

DEEPEST = 12
"""Number of events up to which results are kept."""
# Entries of each kind, of about 0.5 kB.
_MOST = 4096


@dataclass(eq=False)
class Memo:
    """Bounded cache of values by the events that they follow from; the oldest unused entries go first."""

    _known: OrderedDict[bytes, object] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return len(self._known)

    def recall(self, key: bytes) -> tuple[object] | None:
        """Return the value of a key, in a tuple; None if there is none."""
        with self._lock:
            if key not in self._known:
                return None
            self._known.move_to_end(key)
            return (self._known[key],)

    def keep(self, key: bytes, value: object) -> None:
        """Store the value of a key."""
        with self._lock:
            self._known[key] = value
            while len(self._known) > _MOST:
                self._known.popitem(last=False)

    def of(self, events: list[Event], compute: Callable[[], T]) -> T:
        """Return the value after these events, computed unless it is known."""
        if len(events) > DEEPEST:
            return compute()
        key = path_key(events)
        found = self.recall(key)
        if found is not None:
            return found[0]  # type: ignore[return-value]
        value = compute()
        self.keep(key, value)
        return value


@dataclass(frozen=True, eq=False)
class RecallingSource:
    """Source of pairs that recalls what another source has chosen after the same events.

    A choice for which the other source drew random numbers of the session is not kept.

    Attributes
    ----------
    source
        Source that chooses.
    memo
        Memo of the choices.
    """

    source: Source
    memo: Memo = field(default_factory=Memo)

    @property
    def stands_for(self) -> Source:
        """Source that records name in place of this one: it chooses the same pairs."""
        return self.source

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the choice of the source."""
        if len(context.history) > DEEPEST or context.pending:
            return self.source.choose(context, rng)
        resting = context.resting
        key = path_key(
            context.history, repr(context.strategy).encode(), resting.pairs.tobytes(), resting.items.tobytes()
        )
        found = self.memo.recall(key)
        if found is not None:
            assert found[0] is None or isinstance(found[0], Selection)
            return found[0]
        before = rng.bit_generator.state
        chosen = self.source.choose(context, rng)
        if rng.bit_generator.state == before:
            self.memo.keep(key, chosen)
        return chosen


def path_key(events: Iterable[Event], *further: bytes) -> bytes:
    """Return a hash of what was said, which does not depend on the side on which a winner stood."""
    digest = hashlib.sha256()
    for event in events:
        sides = (event.left, event.right) if event.winner is None else (event.winner, event.loser)
        digest.update(f"{event.outcome}\0{sides[0]!r}\0{sides[1]!r}\0".encode())
    for part in further:
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()
