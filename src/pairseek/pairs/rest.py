"""Rest rules: how many questions pass before a pair or an item may be shown again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.text import plural
from pairseek.core.types import BoolArray, IntArray
from pairseek.errors import InvalidParameter


@dataclass(frozen=True)
class Rest:
    """Number of questions for which a pair, or an item, rests after it was shown.

    Parameters
    ----------
    pair
        0: a pair may be repeated immediately. None (the default): as late as possible, that is, only after every other
        permitted pair has been shown.
    item
        0 (the default): an item may occur in consecutive questions.

    Examples
    --------
    >>> import pairseek as ps
    >>> items = ps.Items([[0.0], [1.0], [2.0], [3.0]], ids=["a", "b", "c", "d"])
    >>> rest = ps.Rest(pair=None, item=1)   # an item pauses for one question
    >>> search = ps.Search(items, rest=rest, rng=7)
    >>> first = search.ask()
    >>> search.skip(first)
    >>> second = search.ask()
    >>> {first.left, first.right} & {second.left, second.right}
    set()
    """

    pair: Annotated[int | None, Limit(0, 10_000)] = None
    item: Annotated[int, Limit(0, 10_000)] = 0

    def __post_init__(self) -> None:
        for name, value in (("pair", self.pair), ("item", self.item)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise InvalidParameter(
                    f"Rest({name}={value!r}) is invalid: give a whole number of questions, at least 0", field=name
                )

    def after(self, shown: Sequence[tuple[int, int]], n: int) -> Iterator[Resting]:
        """Yield the resting sets after these pairs of rows were shown (oldest first), strictest first.

        If a resting set leaves no pair, the caller tries the next. Explicit numbers are never relaxed; "as late as
        possible" is relaxed one pair at a time, starting with the pair shown longest ago.
        """
        items = shown[-self.item :] if self.item else []
        if self.pair is not None:
            yield Resting.of(n, shown[-self.pair :] if self.pair else [], items, self._rule())
            return
        # Each pair occurs once, at its latest position.
        latest = list(dict.fromkeys((min(pair), max(pair)) for pair in reversed(shown)))[::-1]
        for resting in range(len(latest), -1, -1):
            yield Resting.of(n, latest[len(latest) - resting :], items, self._rule())

    def _rule(self) -> str:
        pair = "" if self.pair is None else f"a pair rests {plural(self.pair, 'question')}"
        item = f"an item rests {plural(self.item, 'question')}" if self.item else ""
        return " and ".join(filter(None, (pair, item))) or "no pair rests"


@dataclass(frozen=True, eq=False)
class Resting:
    """Pairs and items that must not be asked now.

    Attributes
    ----------
    n
        Number of items.
    pairs
        Sorted keys i n + j, i < j, of resting pairs.
    items
        Sorted rows of resting items.
    rule
        Description of the rule, for the error raised when no pair is left.
    """

    n: int
    pairs: IntArray
    items: IntArray
    rule: str

    @classmethod
    def of(
        cls, n: int, pairs: Sequence[tuple[int, int]], items: Sequence[tuple[int, int]], rule: str = "no pair rests"
    ) -> Resting:
        """Return the resting set, given resting pairs of rows, and pairs of rows whose items rest.

        Rows of -1, items that are no longer asked about, are ignored.
        """
        keys = sorted({min(i, j) * n + max(i, j) for i, j in pairs if min(i, j) >= 0})
        rows = sorted({row for pair in items for row in pair if row >= 0})
        return cls(n, np.array(keys, dtype=np.int64), np.array(rows, dtype=np.int64), rule)

    def also(self, pairs: Sequence[tuple[int, int]]) -> Resting:
        """Return the resting set extended by the items of these pairs."""
        if not pairs:
            return self
        rows = np.array([row for pair in pairs for row in pair], dtype=np.int64)
        return Resting(self.n, self.pairs, np.union1d(self.items, rows), self.rule)

    def count_permitted(self) -> int:
        """Return the number of pairs that may be asked now."""
        free = self.n - len(self.items)
        resting = np.isin(self.pairs // self.n, self.items) | np.isin(self.pairs % self.n, self.items)
        return free * (free - 1) // 2 - int(np.sum(~resting))

    def allows(self, first: IntArray, second: IntArray) -> BoolArray:
        """Return an (m,) mask: True if neither the pair nor one of its items rests, and the two items differ."""
        is_allowed = first != second
        if len(self.items):
            resting = np.zeros(self.n, dtype=np.bool_)
            resting[self.items] = True
            is_allowed &= ~(resting[first] | resting[second])
        if len(self.pairs):
            # Look up only candidates whose items both occur in resting pairs, which are few.
            touched = np.zeros(self.n, dtype=np.bool_)
            touched[self.pairs // self.n] = touched[self.pairs % self.n] = True
            rows = np.flatnonzero(touched[first] & touched[second])
            a, b = first[rows], second[rows]
            is_allowed[rows] &= ~np.isin(np.minimum(a, b) * self.n + np.maximum(a, b), self.pairs)
        return np.asarray(is_allowed)
