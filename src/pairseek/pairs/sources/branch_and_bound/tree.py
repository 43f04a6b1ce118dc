"""Balanced k-d tree of cells over the items, built once per catalogue, independently of beliefs and answers.

Every cell is bisected at the median of its widest axis until its parts hold at most `MAX_LEAF_ITEMS` items. All leaves
have the same depth, so the tree is implicit: the children of cell c are 2c + 1 and 2c + 2, and cell t of level v holds
the positions t n >> v to (t + 1) n >> v of one ordering of the items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.core.lazy import cached_by_array
from pairseek.core.types import FloatArray, IntArray

MAX_LEAF_ITEMS = 64
"""Largest number of items in a leaf: enough to fill vector registers, few enough for tight bounds."""
LANES = 16
"""Number of positions a kernel reads at a time; columns are padded with this many NaN."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Implicit k-d tree of n points.

    Attributes
    ----------
    order
        (n,) rows of the points, contiguous for every cell.
    points
        (n, d) points in that order.
    columns
        (d, n + LANES) coordinates relative to `middle` along the principal axes.
    middle
        (d,) mean of the points.
    reach
        Upper bound on the distance of any point from `middle`.
    depth
        Level of the leaves; the root has level 0.
    centre, half
        (cells, d) centres and half widths of the cells' boxes along the principal axes.
    """

    order: IntArray
    points: FloatArray
    columns: FloatArray
    middle: FloatArray
    reach: float
    depth: int
    centre: FloatArray
    half: FloatArray

    @property
    def leaves(self) -> int:
        """Index of the first leaf, equal to the number of inner cells."""
        return (1 << self.depth) - 1

    @classmethod
    def of(cls, points: FloatArray) -> Tree:
        """Build the tree in O(n log n) time and O(n) memory."""
        n, d = points.shape
        depth = max(0, int(np.ceil(np.log2(n / MAX_LEAF_ITEMS))))
        middle = points.mean(axis=0)
        columns = np.full((d, n + LANES), np.nan)
        columns[:, :n] = ((points - middle) @ _principal_axes(points - middle)).T
        reach = float(np.max(np.abs(columns[:, :n]))) * d**0.5
        order = _partition(columns[:, :n], depth)
        low, high = boxes(columns, n, depth)
        # The margin keeps points inside their boxes despite rounding of the rotation.
        centre, half = (low + high) / 2, (high - low) / 2 + 1e-14 * reach
        return cls(order, points[order], columns, middle, reach, depth, centre, half)

    def spans(self, cells: IntArray) -> IntArray:
        """Return the (m, 2) half-open ranges of positions of m cells."""
        n = len(self.order)
        level = np.floor(np.log2(cells + 1)).astype(np.int64)
        number = cells + 1 - (np.int64(1) << level)
        return np.stack([number * n >> level, (number + 1) * n >> level], axis=1)


@cached_by_array
def tree_of(points: FloatArray) -> Tree:
    """Return the tree of these points, cached for a read-only array."""
    return Tree.of(points)


def boxes(columns: FloatArray, n: int, depth: int) -> tuple[FloatArray, FloatArray]:
    """Return the (cells, c) minima and maxima of c columns in each cell, ignoring NaN."""
    starts = np.arange(1 << depth) * n >> depth
    return _propagate(np.fmin, columns[:, :n], starts, np.inf), _propagate(np.fmax, columns[:, :n], starts, -np.inf)


def _propagate(extreme: np.ufunc, columns: FloatArray, starts: IntArray, empty: float) -> FloatArray:
    """Return the (cells, c) extremes, propagated from the leaves to the root."""
    levels = [extreme.reduceat(columns, starts, axis=1)]
    while levels[-1].shape[1] > 1:
        levels.append(extreme(levels[-1][:, ::2], levels[-1][:, 1::2]))
    out = np.concatenate(levels[::-1], axis=1).T
    return np.ascontiguousarray(np.where(np.isnan(out), empty, out))


def _partition(columns: FloatArray, depth: int) -> IntArray:
    """Reorder the columns in place so that cells are contiguous at every level, and return the order."""
    n = columns.shape[1]
    order = np.arange(n)
    for level in range(depth):
        for t in range(1 << level):
            first, middle, last = (h * n >> (level + 1) for h in (2 * t, 2 * t + 1, 2 * t + 2))
            inside = columns[:, first:last]
            x = inside[np.argmax(inside.max(axis=1) - inside.min(axis=1))]
            # Use only the median's value: the arrangement of a partition differs between processors, and the questions
            # must not.
            median = np.partition(x, middle - first)[middle - first]
            left = x < median
            left[np.flatnonzero(x == median)[: middle - first - np.count_nonzero(left)]] = True
            rows = np.concatenate([np.flatnonzero(left), np.flatnonzero(~left)])
            columns[:, first:last] = inside[:, rows]
            order[first:last] = order[first:last][rows]
    return order


def _principal_axes(centred: FloatArray) -> FloatArray:
    """Return the (d, d) principal axes as columns, scaling the points first so that no square overflows."""
    centred = centred / max(float(np.max(np.abs(centred))), np.finfo(float).tiny)
    return np.asarray(np.linalg.eigh(centred.T @ centred)[1])
