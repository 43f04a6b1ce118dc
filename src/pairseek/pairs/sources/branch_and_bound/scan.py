"""Exhaustive scan of the pairs of two cells: vectorised sums, a prefilter, and exact utilities of the rest."""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import BoolArray, FloatArray, IntArray
from pairseek.numerics.jit import inner, kernel
from pairseek.numerics.pair_kernels import CONSTANT, DECAYING, pair_constant
from pairseek.pairs.sources.branch_and_bound.bounds import (
    HIGHEST_COST,
    LOWEST_COST,
    SHELL,
    CellArrays,
    PairExtremes,
    PointArrays,
    UtilityModel,
)
from pairseek.pairs.sources.branch_and_bound.finalists import TARGET_COUNT, TARGET_SLACK, TARGET_UTILITY, consider
from pairseek.pairs.sources.branch_and_bound.prefilter import (
    MAX_LOGIT,
    MAX_MARGIN,
    MIN_VARIANCE,
    PREFILTER_SIZE,
    REACH_FROM,
    REACH_TO,
    set_prefilter,
)
from pairseek.pairs.sources.branch_and_bound.tree import LANES

ROW_EFFORT = 4
"""Effort of checking an item against a cell, in visited pairs."""
HIT_EFFORT = 8
"""Effort of a pair that passes the first conditions, in visited pairs."""
# Positions computed together.
_POSITIONS_PER_BLOCK = 64
# Up to this many positions of a block are scanned without checking them against the box of the other cell.
_MAX_UNCHECKED = 2


@inner
def _limits(
    block: int,
    full: int,
    columns: FloatArray,
    centre: FloatArray,
    half: FloatArray,
    weights: FloatArray,
    end: int,
    out: FloatArray,
) -> None:
    """Compute the minimum (end 0) or maximum (end 1) of Σ weights Δ² over a box, for each of `full` positions."""
    for t in range(full):
        out[t] = 0.0
    for h in range(len(weights)):
        c, w, weight = centre[h], half[h], weights[h]
        x = columns[h, block : block + full]
        if (weight > 0.0) == (end == 1):
            for t in range(full):
                far = abs(x[t] - c) + w
                out[t] += weight * (far * far)
        else:
            for t in range(full):
                near = max(abs(x[t] - c) - w, 0.0)
                out[t] += weight * (near * near)


@inner
def _weighted_squares(
    i: int, block: int, full: int, columns: FloatArray, weights: FloatArray, sums: FloatArray
) -> None:
    """Compute Σ weights Δ² of one position and `full` others, four axes at a time to save loads and stores."""
    d = len(weights)
    for t in range(full):
        sums[t] = 0.0
    for h in range(0, d - 3, 4):
        x0, x1, x2, x3 = columns[h, i], columns[h + 1, i], columns[h + 2, i], columns[h + 3, i]
        w0, w1, w2, w3 = weights[h], weights[h + 1], weights[h + 2], weights[h + 3]
        y0 = columns[h, block : block + full]
        y1 = columns[h + 1, block : block + full]
        y2 = columns[h + 2, block : block + full]
        y3 = columns[h + 3, block : block + full]
        for t in range(full):
            z0, z1, z2, z3 = x0 - y0[t], x1 - y1[t], x2 - y2[t], x3 - y3[t]
            sums[t] += (w0 * (z0 * z0) + w1 * (z1 * z1)) + (w2 * (z2 * z2) + w3 * (z3 * z3))
    for h in range(d - d % 4, d):
        x, w = columns[h, i], weights[h]
        y = columns[h, block : block + full]
        for t in range(full):
            sums[t] += w * ((x - y[t]) * (x - y[t]))


@inner
def _hits(full: int, sums: FloatArray, costs: FloatArray, cost: float, prefilter: FloatArray, hit: BoolArray) -> int:
    """Mark in `hit` the positions that meet the first conditions, and return their number."""
    low, high, window = prefilter[REACH_FROM], prefilter[REACH_TO], prefilter[MAX_MARGIN]
    count = 0
    for t in range(full):
        inside = (sums[t] >= low) & (sums[t] <= high) & (abs(costs[t] - cost) <= window)
        hit[t] = inside
        count += 1 if inside else 0
    return count


@inner
def _passes(
    i: int, j: int, columns: FloatArray, values: FloatArray, k: float, noise: int, prefilter: FloatArray, trusted: float
) -> bool:
    """Return whether a pair meets all conditions of the prefilter."""
    d = len(values)
    square = 0.0
    variance = 0.0
    for h in range(d):
        part = (columns[h, i] - columns[h, j]) ** 2
        square += part
        variance += values[h] * part
    if square < trusted:
        # For nearly coincident points, rotated coordinates do not determine the direction of their difference.
        return True
    constant = pair_constant(2.0 * math.sqrt(square), k, noise)
    if not constant > 0.0:
        # The conditions on the logit do not apply if k_pq underflows.
        return True
    if 4.0 * constant * constant * variance < prefilter[MIN_VARIANCE]:
        return False
    # The slack covers the cancellation error in the difference of costs.
    margin = abs(columns[d, j] - columns[d, i]) - 1e-13 * (columns[d, j] + columns[d, i])
    return bool(constant * margin <= prefilter[MAX_LOGIT])


@inner
def _rows(
    block: int,
    full: int,
    b: int,
    points: PointArrays,
    cells: CellArrays,
    noise: int,
    weights: FloatArray,
    prefilter: FloatArray,
    out: tuple[FloatArray, BoolArray],
) -> bool:
    """Mark in `out` the positions that may reach the target with an item of cell b; return False if none may.

    Resting items are NaN and never marked.
    """
    columns, still = points[0], points[1]
    centre, half, still_centre, still_half, ranges, values = cells
    d = len(values)
    limits, marks = out
    costs, shells = columns[d, block : block + full], columns[d + 1, block : block + full]
    low, high = ranges[b, LOWEST_COST] - prefilter[MAX_MARGIN], ranges[b, HIGHEST_COST] + prefilter[MAX_MARGIN]
    shell = math.sqrt(max(prefilter[REACH_FROM], 0.0)) - ranges[b, SHELL] if noise == CONSTANT else 0.0
    count = 0
    for t in range(full):
        marks[t] = (shells[t] >= shell) & (costs[t] >= low) & (costs[t] <= high)
        count += 1 if marks[t] else 0
    if count <= _MAX_UNCHECKED:
        # Scanning this few positions costs no more than checking them.
        return count > 0
    near = noise == DECAYING
    source, middle, width = (still, still_centre[b], still_half[b]) if near else (columns, centre[b], half[b])
    _limits(block, full, source, middle, width, weights, 0 if near else 1, limits)
    for t in range(full):
        marks[t] &= (limits[t] <= prefilter[REACH_TO]) if near else (limits[t] >= prefilter[REACH_FROM])
    return True


@kernel
def scan_tiles(  # noqa: C901 - a call with this many arrays costs as much as a row of pairs
    start: int,
    stop: int,
    chunk: int,
    tiles: IntArray,
    view: tuple[UtilityModel, CellArrays, PointArrays, PairExtremes],
    resting: IntArray,
    goal: tuple[float, float, float, float],
    out: tuple[FloatArray, IntArray, IntArray],
) -> None:
    """Scan those pairs of the tiles from start to stop that may reach the goal, and keep the best.

    ``tiles`` has rows (cell, cell, from, to, from, to) with the ranges of positions of the two cells. ``view`` is
    (model, cells, points, scale). ``goal`` is (utility to reach, tolerance below it within which ties are kept, number
    of pairs to find, effort after which no new tile is started). ``out`` is (utilities, keys, counts), with one row per
    chunk of tiles; counts are tiles scanned, pairs visited and effort.
    """
    model, cells, points, scale = view
    columns, values = points[0], scale[5]
    noise, k, d = model[1], model[2], len(values)
    best, counts = (out[0][start // chunk], out[1][start // chunk]), out[2][start // chunk]
    target = np.empty(3)
    target[TARGET_UTILITY], target[TARGET_SLACK], target[TARGET_COUNT] = goal[0], goal[1], goal[2]
    trusted = (1e-6 * scale[3]) ** 2
    prefilter, weights, vector = np.empty(PREFILTER_SIZE), np.empty(d), np.empty(d)
    limits, marks = np.empty(_POSITIONS_PER_BLOCK), np.empty(_POSITIONS_PER_BLOCK, dtype=np.bool_)
    sums, hit = np.empty(_POSITIONS_PER_BLOCK), np.empty(_POSITIONS_PER_BLOCK, dtype=np.bool_)
    filtered = np.nan
    for row in range(start, stop):
        if row > start and counts[2] >= goal[3]:
            break
        counts[0] += 1
        for above in range(tiles[row, 2], tiles[row, 3], _POSITIONS_PER_BLOCK):
            height = min(_POSITIONS_PER_BLOCK, tiles[row, 3] - above)
            counts[2] += ROW_EFFORT * height
            for i in range(above, above + height):
                # A single best pair rarely improves. The last of a thousand improves often, and a new prefilter per row
                # would then cost more than it saves.
                if target[TARGET_UTILITY] != filtered and (i == above or target[TARGET_COUNT] == 1.0):
                    filtered = target[TARGET_UTILITY]
                    set_prefilter(filtered - target[TARGET_SLACK], scale, model, weights, prefilter)
                if i == above:
                    full = (height + LANES - 1) // LANES * LANES
                    if not _rows(above, full, tiles[row, 1], points, cells, noise, weights, prefilter, (limits, marks)):
                        break
                if not marks[i - above]:
                    continue
                for block in range(
                    i + 1 if tiles[row, 0] == tiles[row, 1] else tiles[row, 4], tiles[row, 5], _POSITIONS_PER_BLOCK
                ):
                    size = min(_POSITIONS_PER_BLOCK, tiles[row, 5] - block)
                    full = (size + LANES - 1) // LANES * LANES
                    _weighted_squares(i, block, full, columns, weights, sums)
                    hits = _hits(full, sums, columns[d, block : block + full], columns[d, i], prefilter, hit)
                    counts[1] += size
                    counts[2] += size + HIT_EFFORT * hits
                    for t in range(size if hits > 0 else 0):
                        if hit[t] and _passes(i, block + t, columns, values, k, noise, prefilter, trusted):
                            consider(i, block + t, points, model, resting, target, best, vector)
