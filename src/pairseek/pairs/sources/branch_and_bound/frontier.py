"""State of a branch and bound: the frontier of open pairs of cells, and the incumbents."""

from __future__ import annotations

import numpy as np

from pairseek.core.types import FloatArray, IntArray

# Number of near ties kept in addition to the best `count` pairs; the strategy's own score breaks them.
_MAX_TIES = 16


class Frontier:
    """Open pairs of cells, immutable.

    Attributes
    ----------
    first, second
        Indices of the cells.
    bounds
        Upper bounds on the utility of pairs of items from the two cells.
    estimates
        Estimates of the upper bounds, which determine the order of expansion.
    """

    def __init__(self, first: IntArray, second: IntArray, bounds: FloatArray, estimates: FloatArray) -> None:
        self.first, self.second, self.bounds, self.estimates = first, second, bounds, estimates

    def __len__(self) -> int:
        return len(self.bounds)

    def __add__(self, other: Frontier) -> Frontier:
        return Frontier(
            np.concatenate([self.first, other.first]),
            np.concatenate([self.second, other.second]),
            np.concatenate([self.bounds, other.bounds]),
            np.concatenate([self.estimates, other.estimates]),
        )

    @property
    def highest(self) -> float:
        """The highest bound; -inf if the frontier is empty."""
        return float(np.max(self.bounds, initial=-np.inf))

    def take(self, rows: IntArray) -> Frontier:
        """Return a subset of the pairs of cells."""
        return Frontier(self.first[rows], self.second[rows], self.bounds[rows], self.estimates[rows])

    def split(self, count: int) -> tuple[Frontier, Frontier]:
        """Split into the first `count` pairs of cells and the others."""
        rows = np.arange(len(self))
        return self.take(rows[:count]), self.take(rows[count:])

    def pruned(self, bound: float) -> tuple[Frontier, float]:
        """Drop pairs of cells without a higher bound; return the remaining ones, and the highest bound dropped."""
        insert_sorted = self.bounds > bound
        dropped = float(np.max(self.bounds, where=~insert_sorted, initial=-np.inf))
        return self.take(np.flatnonzero(insert_sorted)), dropped

    def split_best(self, count: int) -> tuple[Frontier, Frontier]:
        """Split into the `count` pairs of cells with the highest estimates, in descending order, and the others."""
        if len(self) <= count:
            best, others = np.arange(len(self)), np.empty(0, dtype=np.int64)
        else:
            rows = np.argpartition(-self.estimates, count)
            best, others = rows[:count], rows[count:]
        return self.take(best[np.lexsort((best, -self.estimates[best]))]), self.take(others)


def root_frontier(*, empty: bool) -> Frontier:
    """Return the initial frontier: the root paired with itself, without a bound, or nothing if every item rests."""
    root = np.zeros(0 if empty else 1, dtype=np.int64)
    return Frontier(root, root, np.full(len(root), np.inf), np.full(len(root), np.inf))


class Incumbents:
    """The best pairs of items so far, in descending order, ties by key; empty slots have key -1, utility -inf."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.utilities: FloatArray = np.full(count + _MAX_TIES, -np.inf)
        self.keys: IntArray = np.full(count + _MAX_TIES, -1)

    @property
    def utility_to_exceed(self) -> float:
        """Utility that a pair must exceed to enter the best `count` pairs."""
        return float(self.utilities[self.count - 1])

    @property
    def occupied(self) -> IntArray:
        """Keys of the occupied slots."""
        return self.keys[self.keys >= 0]

    def add(self, utilities: FloatArray, keys: IntArray) -> None:
        """Merge further pairs, none of which may already be present."""
        utilities, keys = np.append(self.utilities, utilities), np.append(self.keys, keys)
        rows = np.lexsort((keys, -utilities))[: len(self.keys)]
        self.utilities, self.keys = utilities[rows], keys[rows]
