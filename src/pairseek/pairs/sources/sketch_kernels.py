"""Kernels that sketch items along the leading axes of a belief, and scan pairs of sketched items."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.jit import inner, kernel
from pairseek.numerics.pair_kernels import CONSTANT, pair_constant
from pairseek.numerics.tables import S_MAX, interpolate
from pairseek.pairs.sources.branch_and_bound.bounds import TABLE, UtilityModel, utility_value
from pairseek.pairs.sources.branch_and_bound.finalists import contains, insert_sorted

ScanModel: TypeAlias = tuple[int, int, float, float, FloatArray, FloatArray, float, float]
"""A model, the residual variance of a logit, and the highest standard deviation of a logit."""

KEPT_PAIRS = 64
"""Number of pairs that a scan keeps, to be scored exactly."""

# Items computed together, so that all loops over them use vector registers.
_LANES = 512
# The highest squared mean of a good pair is first looked up at these multiples of the least standard deviation of its
# logit.
_FIRST_MULTIPLES = (1.01, 1.05)
# Smaller least deviations count as this one.
_MIN_DEVIATION = 0.05
# Factor between the further deviations at which the highest squared mean is looked up.
_DEVIATION_FACTOR = 1.2
# Factor on the resulting bound, which is approximate.
_BOUND_SLACK = 1.2
# The bound is recomputed once the utility reached has grown by this factor.
_REFRESH_FACTOR = 1.02
# Highest |m| of a good pair, in units of sqrt(1 + s²).
_MAX_RATIO = 40.0


@kernel
def multiply(start: int, stop: int, matrix: FloatArray, block: FloatArray, out: FloatArray) -> None:
    """Write rows of a matrix product whose digits do not depend on the number of threads."""
    for row in range(start, stop):
        out[row, :] = 0.0
        for h in range(matrix.shape[1]):
            x = matrix[row, h]
            for c in range(block.shape[1]):
                out[row, c] += x * block[h, c]


@kernel
def best_of_strata(values: FloatArray, cost: FloatArray, low: float, bounds: FloatArray, out: IntArray) -> None:
    """Write the positions of the highest values of each stratum, the first among equals, padded with -1.

    Values below ``low`` are skipped. The number of strata is a power of two, and ``bounds`` holds the sorted upper
    bounds of all but the last.
    """
    strata, count = out.shape
    out[:] = -1
    if count == 0:
        return
    threshold = np.full(strata, -math.inf)
    for position in range(len(values)):
        if values[position] < low:
            continue
        stratum, step = 0, strata // 2
        while step > 0:
            # No branch here: it would be mispredicted half of the time.
            stratum += step if bounds[stratum + step - 1] < cost[position] else 0
            step //= 2
        if not values[position] > threshold[stratum]:
            continue
        best = out[stratum]
        slot = count - 1
        while slot > 0 and (best[slot - 1] < 0 or values[position] > values[best[slot - 1]]):
            best[slot] = best[slot - 1]
            slot -= 1
        best[slot] = position
        if best[count - 1] >= 0:
            threshold[stratum] = values[best[count - 1]]


@kernel
def write_mean(points: FloatArray, rows: IntArray, step: int, out: FloatArray) -> None:
    """Write the mean of every `step`-th of the points in these rows."""
    out[:] = 0.0
    for position in range(0, len(rows), step):
        for h in range(len(out)):
            out[h] += points[rows[position], h]
    out /= -(-len(rows) // step)


@kernel
def sketch_items(  # noqa: C901
    start: int,
    stop: int,
    points: FloatArray,
    rows: IntArray,
    frame: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    values: FloatArray,
    model: tuple[int, float],
    columns: FloatArray,
    magnitudes: FloatArray,
) -> None:
    """Write the columns and magnitudes of a `Sketch` for the positions from start to stop.

    Processes one coordinate of many items at a time, so that the loops use vector registers.
    """
    middle, mean, axes, credit = frame
    noise, k = model
    d, r = axes.shape
    moved = np.empty(_LANES)
    for begin in range(start, stop, _LANES):
        width = min(_LANES, stop - begin)
        potential, reach, energy = magnitudes[:, begin : begin + width]
        tail, cost = columns[r:, begin : begin + width]
        energy[:] = 0.0
        for j in range(width):
            cost[j] = -credit[begin + j]
        for c in range(r):
            columns[c, begin : begin + width] = 0.0
        for h in range(d):
            for j in range(width):
                moved[j] = points[rows[begin + j], h]
            for j in range(width):
                cost[j] += (moved[j] - mean[h]) * (moved[j] - mean[h])
                moved[j] -= middle[h]
                energy[j] += moved[j] * moved[j]
            for c in range(r):
                line, weight = columns[c, begin : begin + width], axes[h, c]
                for j in range(width):
                    line[j] += moved[j] * weight
        reach[:] = 0.0
        for j in range(width):
            tail[j] = energy[j]
        for c in range(r):
            line, weight = columns[c, begin : begin + width], values[c]
            for j in range(width):
                tail[j] -= line[j] * line[j]
                reach[j] += weight * line[j] * line[j]
        for j in range(width):
            tail[j] = max(tail[j], 0.0)
            length = 4.0 * math.sqrt(energy[j])
            deviation = 4.0 * math.sqrt(reach[j] + values[r] * tail[j])
            potential[j] = pair_constant(length, k, noise) * deviation if length > 0.0 else 0.0
            # values[r + 1] bounds all other eigenvalues.
            reach[j] += values[r + 1] * tail[j] if tail[j] > 0.0 else 0.0


@kernel
def write_value_at(s: float, gain: float, model: UtilityModel, out: FloatArray) -> None:
    """Write the bound on the utility at mean 0 and standard deviation s."""
    shape, _, _, penalty, _, table = model
    out[0] = utility_value(shape, penalty, table, 0.0, s, 0.0, gain)


@inner
def _least_deviation(reached: float, shape: int, table: FloatArray) -> float:
    """Return a standard deviation below which no pair exceeds a utility, to save table lookups; 0 if unknown."""
    low, high = 0.0, S_MAX
    for _ in range(20):
        middle = 0.5 * (low + high)
        if interpolate(table, 0.0, middle) <= reached:
            low = middle
        else:
            high = middle
    return low if shape == TABLE else 0.0


@inner
def _highest_square(reached: float, s: float, table: FloatArray) -> float:
    """Return the highest m² at which a pair with standard deviation s exceeds a utility."""
    low, high = 0.0, _MAX_RATIO * math.sqrt(1.0 + s * s)
    for _ in range(16):
        middle = 0.5 * (low + high)
        if interpolate(table, middle, s) > reached:
            low = middle
        else:
            high = middle
    return high * high


@inner
def _highest_line(reached: float, low: float, high: float, table: FloatArray) -> tuple[float, float]:
    """Return a and b such that a pair exceeds a utility only if m² <= a + b (s² - low²), which saves most lookups.

    The bound is approximate. The highest such m² is nearly linear in s² from 0 on or, with ties, from their squared
    width on. It bends slowly and in one direction, so a few values of s cover the range from `low` to `high`.
    """
    near = max(low, _MIN_DEVIATION) * _FIRST_MULTIPLES[0]
    s = max(low, _MIN_DEVIATION) * _FIRST_MULTIPLES[1]
    first = _highest_square(reached, near, table)
    slope = (_highest_square(reached, s, table) - first) / (s * s - near * near)
    while s < high:
        s = min(_DEVIATION_FACTOR * s, high)
        slope = max(slope, (_highest_square(reached, s, table) - first) / (s * s - near * near))
    return _BOUND_SLACK * first, _BOUND_SLACK * slope


@inner
def _variances(
    item: FloatArray, columns: FloatArray, values: FloatArray, begin: int, width: int, out: FloatArray
) -> None:
    """Write Δ'ΣΔ of an item and the columns from `begin` on."""
    r = len(item) - 2
    for j in range(width):
        out[j] = values[r] * (item[r] + columns[r, begin + j])
    for c in range(r):
        x, weight = item[c], values[c]
        line = columns[c, begin : begin + width]
        for j in range(width):
            out[j] += weight * (x - line[j]) * (x - line[j])


@inner
def _distances(item: FloatArray, columns: FloatArray, values: FloatArray, j: int) -> tuple[float, float]:
    """Return |Δ|² and |ΣΔ|² of an item and column j."""
    r = len(item) - 2
    square = item[r] + columns[r, j]
    reach = values[r] * values[r] * square
    for c in range(r):
        part = (item[c] - columns[c, j]) * (item[c] - columns[c, j])
        square += part
        reach += values[c] * values[c] * part
    return square, reach


@kernel
def scan_pairs(
    start: int,
    stop: int,
    items: FloatArray,
    columns: FloatArray,
    values: FloatArray,
    model: ScanModel,
    names: tuple[IntArray, IntArray, int],
    resting: IntArray,
    is_triangle: int,
    chunk: int,
    utilities: FloatArray,
    keys: IntArray,
) -> None:
    """Keep the best pairs, by the sketch, between the first items from start to stop and all second items.

    ``names`` is (rows of the first items, rows of the second items, number of items). ``is_triangle`` is 1 if both
    lists are identical, so that only half of the pairs are scanned. Otherwise a pair of two first items is kept only
    once, at the earlier of them.
    """
    shape, noise, k, penalty, table, bound_table, residual_variance, highest = model
    rows, others, total = names
    r, m = columns.shape[0] - 2, columns.shape[1]
    best, kept = utilities[start // chunk], keys[start // chunk]
    variances, slacks = np.empty(_LANES), np.empty(_LANES)
    reached, lowest, min_variance = math.nan, 0.0, 0.0
    refresh_above, slope, intercept = 0.0, 0.0, math.inf
    for i in range(start, stop):
        if best[KEPT_PAIRS - 1] != reached:
            reached = best[KEPT_PAIRS - 1]
            lowest = _least_deviation(reached, shape, bound_table)
            # Under constant noise, variances are compared without taking a root.
            min_variance = max(lowest * lowest - residual_variance, 0.0) / (4.0 * k * k) if noise == CONSTANT else 0.0
        if noise == CONSTANT and shape == TABLE and reached > refresh_above:
            refresh_above = reached * _REFRESH_FACTOR
            intercept, slope = _highest_line(reached, lowest, highest, bound_table)
            intercept += slope * (residual_variance - lowest * lowest)
        for begin in range(is_triangle * (i + 1), m, _LANES):
            width = min(_LANES, m - begin)
            _variances(items[i], columns, values, begin, width, variances)
            for j in range(width):
                difference = items[i, r + 1] - columns[r + 1, begin + j]
                possible = intercept + slope * 4.0 * k * k * variances[j] - k * k * difference * difference
                slacks[j] = min(possible, variances[j] - min_variance)
            for j in range(width):
                if slacks[j] < 0.0:
                    continue
                square, reach = _distances(items[i], columns, values, begin + j)
                variance = variances[j]
                margin = abs(items[i, r + 1] - columns[r + 1, begin + j])
                length = 2.0 * math.sqrt(square)
                constant = pair_constant(length, k, noise)
                s = math.sqrt(4.0 * constant * constant * variance + residual_variance)
                if s < lowest or not square > 0.0:
                    continue
                gain = reach / variance if variance > 0.0 else 0.0
                u = utility_value(shape, penalty, table, constant * margin, s, margin / length, gain)
                p, q = rows[i], others[begin + j]
                key = min(p, q) * total + max(p, q)
                if (
                    u > best[KEPT_PAIRS - 1]
                    and p != q
                    and not (contains(key, resting) or (not is_triangle and q in rows[:i]))
                ):
                    insert_sorted(u, key, best, kept)
