"""Branch and bound over pairs of cells, best first.

Pairs of cells wait in a pool with an upper bound each. In every round the most promising are taken out: leaves are
looked at, pairs of larger cells are replaced by the pairs of their children. A round is a fixed set of work whatever
the number of threads, and so is what it finds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.candidates.branch_and_bound.bounds import CHANCE, bound_children
from pairseek.candidates.branch_and_bound.frontier import Best, Pool, all_pairs
from pairseek.candidates.branch_and_bound.scan import look_at
from pairseek.candidates.branch_and_bound.view import View
from pairseek.core.types import IntArray
from pairseek.numerics.parallel import for_ranges

CELL_COST = 64
"""The bound of a pair of cells takes about as long as a look at so many pairs of items, and counts as much."""

# Pairs of cells in a round: few until a first pair is found, which is what prunes; then many, to use all threads.
_FIRST_ROUND = 64
_ROUND = 4096
# Effort in a round at most, in looks: in all, or for each pair of cells in the pool, which must be sorted.
_LOOK = 8_000_000
_LOOK_EACH = 16
# Beyond so many pairs of cells no more are made: those at hand are looked at whole.
_POOL = 4_000_000
# Pieces that a round is cut into, for the threads to share.
_PIECES = 32


@dataclass(frozen=True)
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
        Pairs of items that may be looked at. The checks that spare looks count too: see `CELL_COST` and `_tiles`. Only
        where nothing that may be asked was found yet does a search go on beyond it.
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
    utility
        That of the best.
    bound
        No pair's utility is higher.
    looked
        Pairs of items looked at.
    """

    keys: IntArray
    utility: float
    bound: float
    looked: int


def best_first(view: View, resting: IntArray, goal: Goal) -> Found:
    """Search all pairs; `resting` holds the sorted keys of pairs that may not be asked."""
    pool, best = all_pairs(empty=view.empty), Best(goal.wanted)
    looked, effort, dropped = 0, 0, -np.inf
    while True:
        pool, highest = pool.above(goal.cut(best.least))
        dropped = max(dropped, highest)
        left = goal.budget - effort
        if not len(pool) or (left <= 0 and len(best.found)):
            break
        started = best.least > -np.inf
        chosen, pool = pool.most_promising(max(_ROUND, len(pool) // 2) if started else _FIRST_ROUND)
        whole = (chosen.first >= view.tree.leaves) | (len(pool) > _POOL)
        tiles, parents = chosen.take(np.flatnonzero(whole)), chosen.take(np.flatnonzero(~whole))
        parents, waiting = parents.cut(max(1, left // (4 * CELL_COST)))
        children = _children(view, parents, goal.cut(best.least))
        undone, counts = _look(view, tiles, resting, best, min(left, max(_LOOK, _LOOK_EACH * len(pool))))
        looked += int(counts[0])
        effort += int(counts[1]) + CELL_COST * len(children)
        pool = pool + waiting + children + undone
    top = float(best.utilities[0])
    return Found(best.found, top, max(top, dropped, pool.highest), looked)


def _children(view: View, parents: Pool, enough: float) -> Pool:
    """The pairs of the children of pairs of cells."""
    pairs, bounds = np.empty((2, 4 * len(parents)), dtype=np.int64), np.empty((2, 4 * len(parents)))
    arguments = (parents.first, parents.second, (view.model, view.cells, view.cores), enough, pairs, bounds)
    for_ranges(bound_children, len(parents), max(256, len(parents) // _PIECES), *arguments)
    return Pool(pairs[0], pairs[1], bounds[0], bounds[1])


def _look(view: View, tiles: Pool, resting: IntArray, best: Best, allowed: int) -> tuple[Pool, IntArray]:
    """Look at tiles and add what is good to the best: the tiles left undone, pairs looked at and effort."""
    if not len(tiles):
        return tiles, np.zeros(2, dtype=np.int64)
    spans = view.tree.spans(tiles.first), view.tree.spans(tiles.second)
    rows = np.column_stack([tiles.first, tiles.second, *spans])
    chunk = max(4, len(tiles) // _PIECES)
    pieces = -(-len(tiles) // chunk)
    utilities, keys = np.full((pieces, len(best.keys)), -np.inf), np.full((pieces, len(best.keys)), -1)
    counts = np.zeros((pieces, 3), dtype=np.int64)
    least = best.least
    scale = view.scale[0] if view.model[0] >= CHANCE else 0.0
    slack = 1e-12 * max(abs(least), scale) if least > -np.inf else 0.0
    aim = (least, slack, float(best.wanted), max(1, allowed // pieces))
    plain = (view.model, view.cells, view.points, view.scale)
    for_ranges(look_at, len(tiles), chunk, chunk, rows, plain, resting, aim, (utilities, keys, counts))
    best.add(utilities.ravel(), keys.ravel())
    number = np.arange(len(tiles))
    return tiles.take(number[number % chunk >= counts[number // chunk, 0]]), counts[:, 1:].sum(axis=0)
