"""Best-first branch and bound over pairs of cells.

The frontier holds open pairs of cells, each with an upper bound. Every round removes the pairs with the highest
estimates: pairs of leaves are scanned, pairs of larger cells are replaced by the pairs of their children. The work of a
round, and hence its result, does not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from pairseek.core.types import IntArray
from pairseek.numerics.parallel import for_ranges
from pairseek.pairs.sources.branch_and_bound import SearchResult, StoppingCriterion
from pairseek.pairs.sources.branch_and_bound.bounds import CHANCE, bound_children
from pairseek.pairs.sources.branch_and_bound.frontier import Frontier, Incumbents, root_frontier
from pairseek.pairs.sources.branch_and_bound.scan import scan_tiles
from pairseek.pairs.sources.branch_and_bound.view import CatalogueView

CELL_EFFORT = 64
"""Cost of bounding a pair of cells, in visited pairs of items."""

# Pairs of cells per round: few until a first incumbent allows pruning, then many, to use all threads.
_FIRST_ROUND = 64
_ROUND = 4096
# Limits on the scan effort of a round, whichever is larger: in total, and per pair of cells in the frontier, which must
# be sorted.
_SCAN_EFFORT = 8_000_000
_SCAN_EFFORT_PER_CELL_PAIR = 16
# Beyond this frontier size, pairs of cells are scanned instead of branched.
_MAX_FRONTIER = 4_000_000
# Number of pieces of a round, distributed over the threads.
_PIECES = 32


def best_first(view: CatalogueView, resting: IntArray, criterion: StoppingCriterion) -> SearchResult:
    """Search all pairs; `resting` holds the sorted keys of pairs that must not be asked."""
    frontier, best = root_frontier(empty=view.is_empty), Incumbents(criterion.count)
    visited, effort, dropped = 0, 0, -np.inf
    while True:
        frontier, highest = frontier.pruned(criterion.threshold(best.utility_to_exceed))
        dropped = max(dropped, highest)
        remaining = criterion.budget - effort
        if not len(frontier) or (remaining <= 0 and len(best.occupied)):
            break
        started = best.utility_to_exceed > -np.inf
        chosen, frontier = frontier.split_best(max(_ROUND, len(frontier) // 2) if started else _FIRST_ROUND)
        is_scanned = (chosen.first >= view.tree.leaves) | (len(frontier) > _MAX_FRONTIER)
        tiles, parents = chosen.take(np.flatnonzero(is_scanned)), chosen.take(np.flatnonzero(~is_scanned))
        parents, waiting = parents.split(max(1, remaining // (4 * CELL_EFFORT)))
        children = _children(view, parents, criterion.threshold(best.utility_to_exceed))
        allowed = min(remaining, max(_SCAN_EFFORT, _SCAN_EFFORT_PER_CELL_PAIR * len(frontier)))
        unscanned, counts = _scan(view, tiles, resting, best, allowed)
        visited += int(counts[0])
        effort += int(counts[1]) + CELL_EFFORT * len(children)
        frontier = frontier + waiting + children + unscanned
    top = float(best.utilities[0])
    return SearchResult(best.occupied, top, max(top, dropped, frontier.highest), visited)


def _children(view: CatalogueView, parents: Frontier, threshold: float) -> Frontier:
    """Branch: return the child pairs of pairs of cells."""
    pairs, bounds = np.empty((2, 4 * len(parents)), dtype=np.int64), np.empty((2, 4 * len(parents)))
    arguments = (parents.first, parents.second, (view.model, view.cells, view.cores), threshold, pairs, bounds)
    for_ranges(bound_children, len(parents), max(256, len(parents) // _PIECES), *arguments)
    return Frontier(pairs[0], pairs[1], bounds[0], bounds[1])


def _scan(
    view: CatalogueView, tiles: Frontier, resting: IntArray, best: Incumbents, allowed: int
) -> tuple[Frontier, IntArray]:
    """Scan tiles and merge their best pairs; return the unscanned tiles, and the pairs visited and the effort."""
    if not len(tiles):
        return tiles, np.zeros(2, dtype=np.int64)
    spans = view.tree.spans(tiles.first), view.tree.spans(tiles.second)
    rows = np.column_stack([tiles.first, tiles.second, *spans])
    chunk = max(4, len(tiles) // _PIECES)
    pieces = -(-len(tiles) // chunk)
    utilities, keys = np.full((pieces, len(best.keys)), -np.inf), np.full((pieces, len(best.keys)), -1)
    counts = np.zeros((pieces, 3), dtype=np.int64)
    least = best.utility_to_exceed
    scale = view.scale[0] if view.model[0] >= CHANCE else 0.0
    slack = 1e-12 * max(abs(least), scale) if least > -np.inf else 0.0
    target = (least, slack, float(best.count), max(1, allowed // pieces))
    inputs = (view.model, view.cells, view.points, view.scale)
    for_ranges(scan_tiles, len(tiles), chunk, chunk, rows, inputs, resting, target, (utilities, keys, counts))
    best.add(utilities.ravel(), keys.ravel())
    number = np.arange(len(tiles))
    return tiles.take(number[number % chunk >= counts[number // chunk, 0]]), counts[:, 1:].sum(axis=0)
