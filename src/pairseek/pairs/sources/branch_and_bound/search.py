"""Branch and bound over pairs of cells, best first.

The frontier holds open pairs of cells with an upper bound each. Every round removes those of highest estimate: pairs of
leaves are scanned, pairs of larger cells are replaced by the pairs of their children. The work of a round, and hence
its result, does not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from pairseek.core.types import IntArray
from pairseek.numerics.parallel import for_ranges
from pairseek.pairs.sources.branch_and_bound import Goal, SearchResult
from pairseek.pairs.sources.branch_and_bound.bounds import CHANCE, bound_children
from pairseek.pairs.sources.branch_and_bound.frontier import Frontier, Incumbents, root_frontier
from pairseek.pairs.sources.branch_and_bound.scan import scan_tiles
from pairseek.pairs.sources.branch_and_bound.view import CatalogueView

CELL_COST = 64
"""Effort of a bound of a pair of cells, in visited pairs of items."""

# Pairs of cells in a round: few until a first incumbent allows pruning, then many, to use all threads.
_FIRST_ROUND = 64
_ROUND = 4096
# Limit of the scan effort of a round: in total, or per pair of cells in the frontier, which must be sorted.
_SCAN = 8_000_000
_SCAN_EACH = 16
# Size of the frontier beyond which pairs of cells are scanned instead of branched.
_LARGEST_FRONTIER = 4_000_000
# Number of pieces of a round, shared by the threads.
_PIECES = 32


def best_first(view: CatalogueView, resting: IntArray, goal: Goal) -> SearchResult:
    """Search all pairs; `resting` holds the sorted keys of pairs that may not be asked."""
    frontier, best = root_frontier(empty=view.empty), Incumbents(goal.wanted)
    visited, effort, dropped = 0, 0, -np.inf
    while True:
        frontier, highest = frontier.above(goal.threshold(best.least))
        dropped = max(dropped, highest)
        remaining = goal.budget - effort
        if not len(frontier) or (remaining <= 0 and len(best.found)):
            break
        started = best.least > -np.inf
        chosen, frontier = frontier.split_best(max(_ROUND, len(frontier) // 2) if started else _FIRST_ROUND)
        whole = (chosen.first >= view.tree.leaves) | (len(frontier) > _LARGEST_FRONTIER)
        tiles, parents = chosen.take(np.flatnonzero(whole)), chosen.take(np.flatnonzero(~whole))
        parents, waiting = parents.split(max(1, remaining // (4 * CELL_COST)))
        children = _children(view, parents, goal.threshold(best.least))
        undone, counts = _scan(view, tiles, resting, best, min(remaining, max(_SCAN, _SCAN_EACH * len(frontier))))
        visited += int(counts[0])
        effort += int(counts[1]) + CELL_COST * len(children)
        frontier = frontier + waiting + children + undone
    top = float(best.utilities[0])
    return SearchResult(best.found, top, max(top, dropped, frontier.highest), visited)


def _children(view: CatalogueView, parents: Frontier, enough: float) -> Frontier:
    """Branch: return the pairs of the children of pairs of cells."""
    pairs, bounds = np.empty((2, 4 * len(parents)), dtype=np.int64), np.empty((2, 4 * len(parents)))
    arguments = (parents.first, parents.second, (view.model, view.cells, view.cores), enough, pairs, bounds)
    for_ranges(bound_children, len(parents), max(256, len(parents) // _PIECES), *arguments)
    return Frontier(pairs[0], pairs[1], bounds[0], bounds[1])


def _scan(
    view: CatalogueView, tiles: Frontier, resting: IntArray, best: Incumbents, allowed: int
) -> tuple[Frontier, IntArray]:
    """Scan tiles and merge their best pairs; return the tiles not reached, and the pairs visited and effort."""
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
    target = (least, slack, float(best.wanted), max(1, allowed // pieces))
    plain = (view.model, view.cells, view.points, view.scale)
    for_ranges(scan_tiles, len(tiles), chunk, chunk, rows, plain, resting, target, (utilities, keys, counts))
    best.add(utilities.ravel(), keys.ravel())
    number = np.arange(len(tiles))
    return tiles.take(number[number % chunk >= counts[number // chunk, 0]]), counts[:, 1:].sum(axis=0)
