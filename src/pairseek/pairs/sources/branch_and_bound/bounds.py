"""Upper bounds on the utility of all pairs of two cells.

With Δ = p - q along the eigenvectors of the covariance Σ (eigenvalues λ): |a|² = 4 sum(Δ²) and a'Σa = 4 sum(λ Δ²). The
logit at μ is k_pq times cost_q - cost_p, a difference of one number per item: the cost of item x is |x - μ|² + (top
appeal - appeal)/k, an affine function of its utility. The utility of a pair increases with s = k_pq sqrt(a'Σa) and
decreases with |m|, so its value at the highest s and the lowest |m| over the boxes of two cells is an upper bound.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.jit import inner, kernel, primitive
from pairseek.numerics.pair_kernels import CONSTANT, DECAYING, NORMALIZED, pair_constant, steepest_length
from pairseek.numerics.tables import interpolate

# Factors that round the quantities in a bound outwards. They cover the relative error of a standard deviation,
# 1.6e-14 (d + 1) (see `pair_kernels.pair_geometry`), in up to 600 dimensions.
_UP = 1.0 + 1e-11
_DOWN = 1.0 - 1e-11
# Represents infinity, but is finite because it may be multiplied by zero.
_HUGE = 1e300

UtilityModel: TypeAlias = tuple[int, int, float, float, FloatArray, FloatArray]
CellArrays: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
PointArrays: TypeAlias = tuple[FloatArray, FloatArray, IntArray, FloatArray, FloatArray, FloatArray, FloatArray]
PairExtremes: TypeAlias = tuple[float, float, float, float, float, FloatArray]
"""Inputs of the kernels: see `CatalogueView`."""

# Kinds of utility, in the order of `SHAPE_KINDS`.
TABLE = 0
TRACE = 1
CHANCE = 2
DISTANCE = 3
# Columns of the ranges of a cell: lowest and highest cost, and largest norm of x - middle in the metric of Σ.
LOWEST_COST = 0
HIGHEST_COST = 1
SHELL = 2


@inner
def utility_value(
    shape: int, penalty: float, table: FloatArray, m: float, s: float, distance: float, gain: float
) -> float:
    """Return the utility for |m|, s, the ``distance`` of μ from the plane, and the ``gain`` |Σa|²/(a'Σa)."""
    if shape == DISTANCE:
        return s - penalty * distance
    # Clamp at 0: neither a negative number nor NaN may become an index.
    tabulated = interpolate(table, m if m > 0.0 else 0.0, s if s > 0.0 else 0.0)
    if shape == CHANCE:
        return s - penalty * abs(tabulated - 0.5)
    return gain * tabulated if shape == TRACE else tabulated


@primitive
def steepness(length: float, k: float, noise: int) -> float:
    """Return k_pq |a| at |a| = length."""
    return k if noise == NORMALIZED else pair_constant(length, k, noise) * length


@inner
def highest_mean(
    cell_a: int, cell_b: int, centre: FloatArray, half: FloatArray, values: FloatArray, power: float
) -> float:
    """Return the maximum of sum(λ w)/sum(w), w = λ^power Δ², over two boxes.

    This is a linear fractional programme over a box: at the optimum, exactly the axes whose λ exceeds the objective
    have their highest weight. ``power`` is 0.0 or 1.0: a float, because numba would compile a version for each literal
    integer.
    """
    d = len(values)
    numerator = 0.0
    denominator = 0.0
    for h in range(d):
        low = max(abs(centre[cell_a, h] - centre[cell_b, h]) - half[cell_a, h] - half[cell_b, h], 0.0)
        weight = low * low if power == 0.0 else values[h] * low * low
        numerator += values[h] * weight
        denominator += weight
    for h in range(d):
        if denominator > 0.0 and values[h] * denominator <= numerator:
            break
        gap = abs(centre[cell_a, h] - centre[cell_b, h])
        reach = half[cell_a, h] + half[cell_b, h]
        low = max(gap - reach, 0.0)
        more = (gap + reach) * (gap + reach) - low * low
        if power == 1.0:
            more *= values[h]
        numerator += values[h] * more
        denominator += more
    return float(min(numerator / denominator, values[0]) if denominator > 0.0 else values[0])


@inner
def distances(cell_a: int, cell_b: int, centre: FloatArray, half: FloatArray) -> tuple[float, float]:
    """Return the minimum and maximum of |a| = 2|p - q| over two boxes."""
    near = 0.0
    far = 0.0
    for h in range(centre.shape[1]):
        gap = abs(centre[cell_a, h] - centre[cell_b, h])
        reach = half[cell_a, h] + half[cell_b, h]
        low = max(gap - reach, 0.0)
        near += low * low
        far += (gap + reach) * (gap + reach)
    return 2.0 * math.sqrt(near) * _DOWN, 2.0 * math.sqrt(far) * _UP


@inner
def highest_deviation(cell_a: int, cell_b: int, centre: FloatArray, half: FloatArray, values: FloatArray) -> float:
    """Return the maximum of sqrt(a'Σa) over two boxes."""
    total = 0.0
    for h in range(len(values)):
        wide = abs(centre[cell_a, h] - centre[cell_b, h]) + half[cell_a, h] + half[cell_b, h]
        total += values[h] * wide * wide
    return 2.0 * math.sqrt(total)


@inner
def lowest_margin(cell_a: int, cell_b: int, ranges: FloatArray) -> float:
    """Return the minimum of |cost_q - cost_p| over two cells."""
    # The slack covers the cancellation error in the difference.
    slack = 1e-13 * (ranges[cell_a, HIGHEST_COST] + ranges[cell_b, HIGHEST_COST])
    low = max(
        ranges[cell_b, LOWEST_COST] - ranges[cell_a, HIGHEST_COST],
        ranges[cell_a, LOWEST_COST] - ranges[cell_b, HIGHEST_COST],
    )
    return float(max(low - slack, 0.0))


@inner
def cell_bound(cell_a: int, cell_b: int, cells: CellArrays, model: UtilityModel, threshold: float) -> float:
    """Return an upper bound on the utility of pairs of one item from each cell; -inf if a cell is empty.

    The coarse bound is returned if it does not exceed `threshold`. ``still_centre`` and ``still_half`` are the boxes
    along the principal axes of the items, which do not move with the belief.
    """
    centre, half, still_centre, still_half, ranges, values = cells
    shape, noise, k, penalty, _, table = model
    if not (
        ranges[cell_a, LOWEST_COST] <= ranges[cell_a, HIGHEST_COST]
        and ranges[cell_b, LOWEST_COST] <= ranges[cell_b, HIGHEST_COST]
    ):
        return -np.inf
    shortest, longest = 0.0, 0.0
    least, most, steep = k, k, _HUGE
    if noise != CONSTANT or shape == DISTANCE:
        shortest, longest = distances(cell_a, cell_b, still_centre, still_half)
        least = pair_constant(longest, k, noise)
        # Constant and decaying noise are finite at |a| = 0; k_pq never increases with |a|.
        finite = shortest > 0.0 or noise in (CONSTANT, DECAYING)
        most = pair_constant(shortest, k, noise) if finite else _HUGE
        steep = steepness(steepest_length(shortest, longest, noise), k, noise)
    margin = lowest_margin(cell_a, cell_b, ranges)
    m = margin * least * _DOWN if margin > 0.0 else 0.0
    distance = margin / longest * _DOWN if shape == DISTANCE and longest > 0.0 else 0.0
    # The coarse bound uses only the shells; the boxes are evaluated only if it exceeds `threshold`.
    s = min(steep * math.sqrt(values[0]), most * 2.0 * (ranges[cell_a, SHELL] + ranges[cell_b, SHELL])) * _UP
    gain = values[0]
    for refinement in range(2):
        if refinement == 1:
            s = min(s, most * highest_deviation(cell_a, cell_b, centre, half, values) * _UP)
            if noise != CONSTANT:
                s = min(s, steep * math.sqrt(highest_mean(cell_a, cell_b, centre, half, values, 0.0)) * _UP)
            if shape == TRACE:
                gain = highest_mean(cell_a, cell_b, centre, half, values, 1.0)
        bound = utility_value(shape, penalty, table, m, s, distance, gain)
        if not bound > threshold:
            break
    if not abs(bound) < np.inf:
        # An infinite bound is returned as it is; NaN bounds nothing, so it becomes infinity.
        return bound if abs(bound) == np.inf else np.inf
    return bound + 1e-12 * max(abs(bound), s if shape >= CHANCE else 0.0)


@kernel
def bound_pairs(
    start: int, stop: int, first: IntArray, second: IntArray, cells: CellArrays, model: UtilityModel, out: FloatArray
) -> None:
    """Compute upper bounds for listed pairs of cells."""
    for row in range(start, stop):
        out[row] = cell_bound(first[row], second[row], cells, model, -np.inf)


@kernel
def bound_children(
    start: int,
    stop: int,
    first: IntArray,
    second: IntArray,
    view: tuple[UtilityModel, CellArrays, CellArrays],
    threshold: float,
    pairs: IntArray,
    out: FloatArray,
) -> None:
    """Compute the child pairs of listed pairs of cells, four columns each, with upper bounds and estimates.

    ``view`` is (model, cells, cores). The bound of a duplicate pair is -inf. An estimate is the bound for the cores of
    the cells: not guaranteed, but a better prediction of the best utility. It is computed only if the bound exceeds
    `threshold`.
    """
    model, cells, cores = view
    for row in range(start, stop):
        left, right = 2 * first[row] + 1, 2 * second[row] + 1
        for child in range(4):
            cell_a, cell_b = left + (child >> 1), right + (child & 1)
            column = 4 * row + child
            pairs[0, column] = cell_a
            pairs[1, column] = cell_b
            # A cell paired with itself yields its children in both orders; one of the two pairs is a duplicate.
            bound = -np.inf if left == right and child == 2 else cell_bound(cell_a, cell_b, cells, model, threshold)
            out[0, column] = bound
            out[1, column] = bound
            if bound > threshold and model[1] != CONSTANT:
                out[1, column] = cell_bound(cell_a, cell_b, cores, model, -np.inf)
