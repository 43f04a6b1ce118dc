"""What a search over pairs of cells carries from round to round: the pairs that wait, and the best so far."""

from __future__ import annotations

import numpy as np

from pairseek.core.types import FloatArray, IntArray

# Equals up to rounding that are kept beside those wanted, to be told apart by the strategy's own score.
_TIES = 16


class Pool:
    """Pairs of cells that wait. Not changed once made.

    Attributes
    ----------
    first, second
        Cells.
    bounds
        No pair of items of the two cells has a higher utility.
    promises
        A guess of the best there is in them, for the order in which they are looked at.
    """

    def __init__(self, first: IntArray, second: IntArray, bounds: FloatArray, promises: FloatArray) -> None:
        self.first, self.second, self.bounds, self.promises = first, second, bounds, promises

    def __len__(self) -> int:
        return len(self.bounds)

    def __add__(self, other: Pool) -> Pool:
        return Pool(
            np.concatenate([self.first, other.first]),
            np.concatenate([self.second, other.second]),
            np.concatenate([self.bounds, other.bounds]),
            np.concatenate([self.promises, other.promises]),
        )

    @property
    def highest(self) -> float:
        """The highest bound; -inf if nothing waits."""
        return float(np.max(self.bounds, initial=-np.inf))

    def take(self, rows: IntArray) -> Pool:
        """Some of them."""
        return Pool(self.first[rows], self.second[rows], self.bounds[rows], self.promises[rows])

    def cut(self, count: int) -> tuple[Pool, Pool]:
        """The first `count`, and the others."""
        rows = np.arange(len(self))
        return self.take(rows[:count]), self.take(rows[count:])

    def above(self, bound: float) -> tuple[Pool, float]:
        """Those whose bounds are higher, and the highest bound of the others."""
        keep = self.bounds > bound
        dropped = float(np.max(self.bounds, where=~keep, initial=-np.inf))
        return self.take(np.flatnonzero(keep)), dropped

    def most_promising(self, count: int) -> tuple[Pool, Pool]:
        """The `count` of highest promise, highest first, and the others."""
        if len(self) <= count:
            best, others = np.arange(len(self)), np.empty(0, dtype=np.int64)
        else:
            rows = np.argpartition(-self.promises, count)
            best, others = rows[:count], rows[count:]
        return self.take(best[np.lexsort((best, -self.promises[best]))]), self.take(others)


def all_pairs(*, empty: bool) -> Pool:
    """The root with itself, of which nothing is known yet; nothing where no item may be asked about."""
    root = np.zeros(0 if empty else 1, dtype=np.int64)
    return Pool(root, root, np.full(len(root), np.inf), np.full(len(root), np.inf))


class Best:
    """The best pairs of items so far, best first, equals by key; key -1 and utility -inf where there is none yet."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.utilities: FloatArray = np.full(wanted + _TIES, -np.inf)
        self.keys: IntArray = np.full(wanted + _TIES, -1)

    @property
    def least(self) -> float:
        """What a pair must exceed to be wanted."""
        return float(self.utilities[self.wanted - 1])

    @property
    def found(self) -> IntArray:
        """Keys of those that there are."""
        return self.keys[self.keys >= 0]

    def add(self, utilities: FloatArray, keys: IntArray) -> None:
        """Take in more. No pair may be given twice."""
        utilities, keys = np.append(self.utilities, utilities), np.append(self.keys, keys)
        rows = np.lexsort((keys, -utilities))[: len(self.keys)]
        self.utilities, self.keys = utilities[rows], keys[rows]
