"""Radius of a ball that holds a share of weighted points."""

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
def radius_of_share(points: FloatArray, weights: FloatArray, centre: FloatArray, share: float) -> float:
    """Return the least distance from the centre within which points have this share of the weight.

    Only the leading coordinates count, as many as the centre has. Hoare's selection, in O(n) on average: of the points
    between two bounds, those on one side of a pivot are left out, until all that remain are equally far.
    """
    n, d = len(points), len(centre)
    squares, masses = np.zeros(n), weights.copy()
    for i in range(n):
        for h in range(d):
            squares[i] += (points[i, h] - centre[h]) * (points[i, h] - centre[h])
    # Less rounding, so that a share that points of equal weight have is found.
    wanted = share * np.sum(weights) * (1.0 - 1e-12)
    low, high = 0, n
    while high - low > 1:
        first, middle, last = squares[low], squares[(low + high) // 2], squares[high - 1]
        pivot = max(min(first, middle), min(max(first, middle), last))
        # Nearer points move to the front, farther ones to the end.
        nearer, place, farther, mass, level = low, low, high, 0.0, 0.0
        while place < farther:
            if squares[place] < pivot:
                mass += masses[place]
                _swap(squares, masses, nearer, place)
                nearer += 1
                place += 1
            elif squares[place] > pivot:
                farther -= 1
                _swap(squares, masses, place, farther)
            else:
                level += masses[place]
                place += 1
        if mass >= wanted and nearer > low:
            high = nearer
        elif mass + level >= wanted or farther == high:
            return math.sqrt(pivot)
        else:
            wanted -= mass + level
            low = farther
    return math.sqrt(squares[low])
