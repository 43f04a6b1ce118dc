"""Squared distances from many points to one."""

from __future__ import annotations

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import kernel
from pairseek.numerics.parallel import for_ranges

_CHUNK_ROWS = 1 << 16


def squared_distances(points: FloatArray, centre: FloatArray) -> FloatArray:
    """Return the (n,) squared distances from (n, d) points to one point."""
    out = np.zeros(len(points))
    if points.shape[1]:
        for_ranges(_squared, len(points), _CHUNK_ROWS, points, np.ascontiguousarray(centre), out)
    return out


@kernel
def _squared(start: int, stop: int, points: FloatArray, centre: FloatArray, out: FloatArray) -> None:
    for row in range(start, stop):
        square = 0.0
        for i in range(points.shape[1]):
            square += (points[row, i] - centre[i]) ** 2
        out[row] = square
