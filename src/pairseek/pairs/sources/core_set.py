"""The part of a large catalogue among which pairs are proposed.

A good pair consists of items that are far apart along directions in which the belief is still wide. Such items are far
from the middle of the catalogue, whatever the belief, so that a few thousand items hold pairs as good as all: half of
them the farthest ones, by two measures of distance, and half at random, for pairs of items that are liked equally.
"""

from __future__ import annotations

import numpy as np

from pairseek.core.lazy import cached_by_array
from pairseek.core.types import FloatArray, IntArray

SIZE = 4096
"""Number of items. The proposed pair had, on average, 0.999 to 1.007 of the information of one among all items: in
4 to 32 dimensions, 12,000 to 40,000 items, over 20 questions each."""


@cached_by_array
def core_set(points: FloatArray) -> IntArray:
    """Return the sorted rows of about `SIZE` of the points; of all, where they are fewer."""
    n, d = points.shape
    if n <= SIZE:
        return np.arange(n)
    # Coordinate by coordinate, so that the last digits do not depend on the processor.
    relative, absolute = np.zeros(n), np.zeros(n)
    for h in range(d):
        moved = points[:, h] - np.mean(points[:, h])
        square = moved * moved
        variance = float(np.mean(square))
        if variance > 0.0:
            # The directions that answers have settled are mostly those of large variance, so that the others count as
            # much; before the first answer, the belief has the variances of the items.
            relative += square / variance
            absolute += square * variance
    chosen = np.zeros(n, dtype=np.bool_)
    for distance in (relative, absolute):
        chosen[np.argsort(-distance, kind="stable")[: SIZE // 4]] = True
    others = np.flatnonzero(~chosen)
    chosen[np.random.default_rng([n, d]).choice(others, SIZE - int(np.sum(chosen)), replace=False)] = True
    return np.flatnonzero(chosen)
