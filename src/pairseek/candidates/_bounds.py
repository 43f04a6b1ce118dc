"""Upper bounds of a utility over all pairs of two cells.

With Δ = p - q along the eigenvectors of Σ (eigenvalues λ): |a|² = 4 Σ Δ², a'Σa = 4 Σ λ Δ², and
a·μ - b = |q - μ|² - |p - μ|², a difference of one number for each item. A utility grows with s = k_pq sqrt(a'Σa) and
falls with |m|, so its value at the highest s and the lowest |m| that the boxes of two cells allow is a bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pairseek._kernels import kernel, primitive
from pairseek._pairs import pair_constant
from pairseek._tables import interpolate

# Outward rounding of what a bound is computed from.
_UP = 1.0 + 1e-12
_DOWN = 1.0 - 1e-12

TABLE, TRACE, CHANCE, DISTANCE = range(4)
CONSTANT, NORMALIZED, DECAYING = range(3)


@primitive
def value(model: Any, m: float, s: float, distance: float, gain: float) -> float:
    """The utility at |m|, s, distance of μ from the plane, and |Σa|²/(a'Σa)."""
    shape, _, _, penalty, table = model
    if shape == TABLE:
        return interpolate(table, m, s)
    if shape == TRACE:
        return gain * interpolate(table, m, s)
    if shape == CHANCE:
        return s - penalty * abs(interpolate(table, m, s) - 0.5)
    return s - penalty * distance


@primitive
def steepest(length: float, k: float, noise: int) -> float:
    """k_pq |a| at |a| = length."""
    if noise == NORMALIZED:
        return k
    return pair_constant(length, k, noise) * length


@primitive
def _between(low: float, high: float, other_low: float, other_high: float) -> tuple[float, float]:
    """The range of a difference of two numbers of given ranges."""
    return low - other_high, high - other_low


@primitive
def highest_mean(a: int, b: int, centre: Any, half: Any, values: Any, power: int) -> float:
    """The highest Σ λ w/Σ w, w = λ^power Δ², over two boxes: high weights for large λ, low ones for small.

    A linear fractional programme over a box: the best takes the highest weights exactly where λ exceeds the optimum.
    """
    d = len(values)
    numerator = 0.0
    denominator = 0.0
    for h in range(d):
        low = max(abs(centre[a, h] - centre[b, h]) - half[a, h] - half[b, h], 0.0)
        weight = low * low if power == 0 else values[h] * low * low
        numerator += values[h] * weight
        denominator += weight
    for h in range(d):
        if denominator > 0.0 and values[h] * denominator <= numerator:
            break
        gap = abs(centre[a, h] - centre[b, h])
        reach = half[a, h] + half[b, h]
        low = max(gap - reach, 0.0)
        more = (gap + reach) * (gap + reach) - low * low
        if power == 1:
            more *= values[h]
        numerator += values[h] * more
        denominator += more
    return min(numerator / denominator, values[0]) if denominator > 0.0 else values[0]


@primitive
def cell_bound(a: int, b: int, cells: Any, model: Any) -> float:
    """An upper bound of the utility over pairs of an item of cell a and one of cell b; -inf where there is none."""
    centre, half, still_centre, still_half, ranges, values = cells
    shape, noise, k, _, _ = model
    if not (ranges[a, 0] <= ranges[a, 1] and ranges[b, 0] <= ranges[b, 1]):
        return -np.inf
    d = len(values)
    near = 0.0
    far = 0.0
    variance = 0.0
    for h in range(d):
        gap = abs(still_centre[a, h] - still_centre[b, h])
        reach = still_half[a, h] + still_half[b, h]
        low = max(gap - reach, 0.0)
        near += low * low
        far += (gap + reach) * (gap + reach)
        wide = abs(centre[a, h] - centre[b, h]) + half[a, h] + half[b, h]
        variance += values[h] * wide * wide
    shortest = 2.0 * math.sqrt(near) * _DOWN
    longest = 2.0 * math.sqrt(far) * _UP
    along = math.sqrt(highest_mean(a, b, centre, half, values, 0))
    deviation = 2.0 * math.sqrt(variance)
    # s = k_pq |a| sqrt(mean of λ): k_pq |a| is highest at an end, or at |a| = 1 for decaying noise.
    least = pair_constant(longest, k, noise)
    # Huge and not infinite: it may be multiplied by zero.
    most = pair_constant(shortest, k, noise) if shortest > 0.0 or noise != NORMALIZED else 1e300
    best_length = min(max(shortest, 1.0), longest) if noise == DECAYING else longest
    steep = steepest(best_length, k, noise)
    s = min(steep * along, most * deviation) * _UP
    low, high = _between(ranges[b, 0], ranges[b, 1], ranges[a, 0], ranges[a, 1])
    appeal_low, appeal_high = _between(ranges[a, 2], ranges[a, 3], ranges[b, 2], ranges[b, 3])
    # The end of the range of k_pq that brings m nearest to zero.
    slack = 1e-13 * (ranges[a, 1] + ranges[b, 1])
    low -= slack
    high += slack
    m_low = (low * least if low > 0.0 else low * most) + appeal_low
    m_high = (high * most if high > 0.0 else high * least) + appeal_high
    m = max(m_low, -m_high, 0.0) * _DOWN
    distance = 0.0
    if shape == DISTANCE:
        if appeal_low == 0.0 and appeal_high == 0.0:
            distance = max(low, -high, 0.0) / longest * _DOWN
        elif least > 0.0 and steep > 0.0:
            distance = m / steep * _DOWN
    gain = 1.0
    if shape == TRACE:
        gain = highest_mean(a, b, centre, half, values, 1)
    bound = value(model, m, s, distance, gain)
    return bound + 1e-12 * max(abs(bound), s if shape >= CHANCE else 0.0)


@kernel
def bound_pairs(start: int, stop: int, first: Any, second: Any, cells: Any, model: Any, out: Any) -> None:
    """Bounds for listed pairs of cells."""
    for row in range(start, stop):
        out[row] = cell_bound(first[row], second[row], cells, model)


@kernel
def bound_children(
    start: int, stop: int, first: Any, second: Any, cells: Any, model: Any, pairs: Any, out: Any
) -> None:
    """The pairs of children of listed pairs of cells, four rows each, and their bounds; -inf where a pair repeats."""
    for row in range(start, stop):
        a, b = 2 * first[row] + 1, 2 * second[row] + 1
        for child in range(4):
            x, y = a + (child >> 1), b + (child & 1)
            place = 4 * row + child
            pairs[0, place] = x
            pairs[1, place] = y
            # A cell with itself has its two children in either order: once is enough.
            out[place] = -np.inf if a == b and child == 2 else cell_bound(x, y, cells, model)
