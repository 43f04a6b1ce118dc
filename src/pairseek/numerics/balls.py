"""Weighted quantiles of distances: radii of credible balls."""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import inner, kernel


@inner
def _swap(squares: FloatArray, masses: FloatArray, i: int, j: int) -> None:
    squares[i], squares[j] = squares[j], squares[i]
    masses[i], masses[j] = masses[j], masses[i]


@kernel
def quantile_radius(points: FloatArray, weights: FloatArray, centre: FloatArray, level: float) -> float:
    """Return the radius of the smallest ball around the centre that contains this fraction of the weight.

    If the centre has fewer coordinates than the points, only the leading ones count. Hoare's selection takes O(n) on
    average: it discards the points on one side of a pivot until all remaining points have the same distance.
    """
    n, d = len(points), len(centre)
    squares, masses = np.zeros(n), weights.copy()
    for i in range(n):
        for h in range(d):
            squares[i] += (points[i, h] - centre[h]) * (points[i, h] - centre[h])
    # Equally weighted points can reach the level exactly; rounding must not hide that.
    target = level * np.sum(weights) * (1.0 - 1e-12)
    low, high = 0, n
    while high - low > 1:
        first, middle, last = squares[low], squares[(low + high) // 2], squares[high - 1]
        pivot = max(min(first, middle), min(max(first, middle), last))
        # Nearer points move to the front, farther ones to the end.
        nearer, current, farther, nearer_mass, pivot_mass = low, low, high, 0.0, 0.0
        while current < farther:
            if squares[current] < pivot:
                nearer_mass += masses[current]
                _swap(squares, masses, nearer, current)
                nearer += 1
                current += 1
            elif squares[current] > pivot:
                farther -= 1
                _swap(squares, masses, current, farther)
            else:
                pivot_mass += masses[current]
                current += 1
        if nearer_mass >= target and nearer > low:
            high = nearer
        elif nearer_mass + pivot_mass >= target or farther == high:
            return math.sqrt(pivot)
        else:
            target -= nearer_mass + pivot_mass
            low = farther
    return math.sqrt(squares[low])
