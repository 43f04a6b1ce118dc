"""Branch and bound over pairs of cells, best first.

Pairs of cells wait in a pool with an upper bound each. In every round the most promising are taken out: leaves are
looked at, pairs of larger cells are replaced by the pairs of their children. A round is a fixed set of work whatever
the number of threads, and so is what it finds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek._parallel import for_ranges
from pairseek._types import FloatArray, IntArray
from pairseek.candidates._bounds import CHANCE, bound_children, bound_pairs
from pairseek.candidates._tiles import look_at
from pairseek.candidates._view import View

CELL_COST = 64
"""The bound of a pair of cells takes about as long as a look at so many pairs of items, and counts as much."""

# Pairs of cells in a round: few until a first pair is found, which is what prunes; then many, to use all threads.
_FIRST_ROUND = 64
_ROUND = 4096
# Pairs of items in a round at most.
_LOOK = 8_000_000
# Beyond so many pairs of cells no more are made: those at hand are looked at whole.
_POOL = 4_000_000
# Pieces that a round is cut into, for the threads to share.
_PIECES = 32
# Equals up to rounding that are kept beside those wanted, to be told apart by the strategy's own score.
_TIES = 16


@dataclass(frozen=True, eq=False)
class Goal:
    """When a search may stop.

    Attributes
    ----------
    wanted
        How many of the best pairs.
    gap
        How far from the best they may be, as a share of best - `zero`.
    zero
        What a gap is measured from.
    budget
        Pairs of items that may be looked at.
    """

    wanted: int
    gap: float
    zero: float
    budget: int

    def cut(self, least: float) -> float:
        """A bound no higher than this need not be followed up once `least` is reached."""
        return (least - self.gap * self.zero) / (1.0 - self.gap)


@dataclass(frozen=True, eq=False)
class Found:
    """What a search has found.

    Attributes
    ----------
    keys
        Keys i n + j, i < j, of the best pairs looked at, best first, and equals up to rounding.
    bound
        No pair's utility is higher.
    looked
        Pairs of items looked at.
    """

    keys: IntArray
    bound: float
    looked: int


class _Pool:
    """Pairs of cells that wait."""

    def __init__(self, first: IntArray, second: IntArray, bounds: FloatArray) -> None:
        self.first, self.second, self.bounds = first, second, bounds

    def __len__(self) -> int:
        return len(self.bounds)

    def take(self, rows: IntArray) -> _Pool:
        return _Pool(self.first[rows], self.second[rows], self.bounds[rows])

    def split(self, count: int) -> tuple[_Pool, _Pool]:
        """The `count` highest, highest first, and the others."""
        if len(self) <= count:
            best, others = np.arange(len(self)), np.empty(0, dtype=np.int64)
        else:
            rows = np.argpartition(-self.bounds, count)
            best, others = rows[:count], rows[count:]
        return self.take(best[np.lexsort((best, -self.bounds[best]))]), self.take(others)

    def __add__(self, other: _Pool) -> _Pool:
        pairs = ((self.first, other.first), (self.second, other.second), (self.bounds, other.bounds))
        return _Pool(*(np.concatenate(pair) for pair in pairs))


class _Best:
    """The best pairs so far."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.utilities: FloatArray = np.full(wanted + _TIES, -np.inf)
        self.keys: IntArray = np.full(wanted + _TIES, -1)

    @property
    def least(self) -> float:
        """What a pair must exceed to be wanted."""
        return float(self.utilities[self.wanted - 1])

    def add(self, utilities: FloatArray, keys: IntArray) -> None:
        utilities, keys = np.append(self.utilities, utilities), np.append(self.keys, keys)
        rows = np.lexsort((keys, -utilities))[: len(self.keys)]
        self.utilities, self.keys = utilities[rows], keys[rows]


def best_first(view: View, resting: IntArray, goal: Goal) -> Found:
    """Search all pairs; `resting` holds the sorted keys of pairs that may not be asked."""
    root = np.zeros(1, dtype=np.int64)
    bounds = np.empty(1)
    bound_pairs(0, 1, root, root, view.cells, view.model, bounds)
    pool = _Pool(root, root, bounds)
    best = _Best(goal.wanted)
    looked, bounded = 0, 1
    dropped = -np.inf
    while True:
        keep = pool.bounds > goal.cut(best.least)
        dropped = max(dropped, float(np.max(pool.bounds, where=~keep, initial=-np.inf)))
        pool = pool.take(np.flatnonzero(keep))
        left = goal.budget - looked - CELL_COST * bounded
        if not len(pool) or (left <= 0 and best.keys[0] >= 0):
            break
        started = best.least > -np.inf
        chosen, pool = pool.split(max(_ROUND, len(pool) // 2) if started else _FIRST_ROUND)
        whole = (chosen.first >= view.tree.leaves) | (len(pool) > _POOL)
        tiles, later = _affordable(view, chosen.take(np.flatnonzero(whole)), left)
        parents = chosen.take(np.flatnonzero(~whole))
        affordable = max(1, left // (4 * CELL_COST))
        children = _children(view, parents.take(np.arange(len(parents))[:affordable]))
        bounded += len(children)
        pool = pool + later + children + parents.take(np.arange(len(parents))[affordable:])
        looked += _look(view, tiles, resting, best)
    top = float(best.utilities[0])
    return Found(best.keys[best.keys >= 0], max(top, dropped, float(np.max(pool.bounds, initial=-np.inf))), looked)


def _affordable(view: View, tiles: _Pool, left: int) -> tuple[_Pool, _Pool]:
    """As many tiles as a round and the budget allow, at least one, and the others."""
    spans = view.tree.spans(tiles.first), view.tree.spans(tiles.second)
    sizes = np.prod([span[:, 1] - span[:, 0] for span in spans], axis=0)
    count = max(1, int(np.searchsorted(np.cumsum(sizes), min(_LOOK, left), side="right")))
    return tiles.take(np.arange(len(tiles))[:count]), tiles.take(np.arange(len(tiles))[count:])


def _children(view: View, parents: _Pool) -> _Pool:
    pairs, bounds = np.empty((2, 4 * len(parents)), dtype=np.int64), np.empty(4 * len(parents))
    arguments = (parents.first, parents.second, view.cells, view.model, pairs, bounds)
    for_ranges(bound_children, len(parents), max(256, len(parents) // _PIECES), *arguments)
    return _Pool(pairs[0], pairs[1], bounds)


def _look(view: View, tiles: _Pool, resting: IntArray, best: _Best) -> int:
    """Look at tiles, add what is good to the best, and say how many pairs were looked at."""
    if not len(tiles):
        return 0
    spans = (view.tree.spans(tiles.first), view.tree.spans(tiles.second))
    rows = np.column_stack([tiles.first, tiles.second, *spans])
    chunk = max(4, len(tiles) // _PIECES)
    pieces = -(-len(tiles) // chunk)
    utilities = np.full((pieces, len(best.keys)), -np.inf)
    keys = np.full((pieces, len(best.keys)), -1)
    looked = np.zeros(pieces, dtype=np.int64)
    least = best.least
    scale = view.scale[0] if view.model[0] >= CHANCE else 0.0
    slack = 1e-12 * max(abs(least), scale) if least > -np.inf else 0.0
    plain = (view.model, view.cells, view.points, view.scale)
    arguments = (chunk, rows, plain, resting, (least, best.wanted, slack), (utilities, keys, looked))
    for_ranges(look_at, len(tiles), chunk, *arguments)
    best.add(utilities.ravel(), keys.ravel())
    return int(looked.sum())
