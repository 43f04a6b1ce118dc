"""A tree of cells over the items: built once for a catalogue, whatever is believed and asked later.

Every cell is cut in two at the median of its widest axis until the parts hold at most `LEAF` items. All leaves are
at the same depth, so nothing but arithmetic is needed to walk: the children of cell c are 2c + 1 and 2c + 2, and
cell number t of level v holds the positions from t n >> v to (t + 1) n >> v of one order of the items.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairseek._kernels import kernel
from pairseek._parallel import for_ranges
from pairseek._types import FloatArray, IntArray

LEAF = 64
"""Items in a leaf at most: enough to fill vector registers, few enough to bound well."""
LANES = 16
"""Kernels read positions so many at a time: columns are longer than there are items by that, and filled with NaN."""

_LEAVES_CHUNK = 64
_kept: dict[int, tuple[weakref.ref[FloatArray], Tree]] = {}


@dataclass(frozen=True, eq=False)
class Tree:
    """Cells over n points.

    Attributes
    ----------
    order
        (n,) rows of the points, cell by cell.
    points
        (n, d) the points in that order.
    columns
        (d, n + LANES) their coordinates from `middle` along the principal axes.
    middle
        (d,) mean of the points.
    reach
        No point is farther from it.
    depth
        Level of the leaves; the root has level 0.
    centre, half
        (cells, d) middle and half widths of the cells' boxes along the principal axes.
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
        """Index of the first leaf; also the number of cells that are no leaves."""
        return (1 << self.depth) - 1

    @classmethod
    def of(cls, points: FloatArray) -> Tree:
        """Build it. O(n log n) time, O(n) memory."""
        n, d = points.shape
        depth = max(0, int(np.ceil(np.log2(n / LEAF))))
        middle = points.mean(axis=0)
        along = np.ascontiguousarray((points - middle) @ _principal_axes(points - middle))
        order = np.arange(n)
        for level in range(depth):
            for_ranges(_cut, 1 << level, max(1, (1 << level) // 8), along, order, level)
        columns = np.full((d, n + LANES), np.nan)
        columns[:, :n] = along.T
        reach = float(np.max(np.abs(along))) * d**0.5
        low, high = boxes(columns, n, depth)
        # Rounding of the rotation must not put a point outside its box.
        centre, half = (low + high) / 2, (high - low) / 2 + 1e-14 * reach
        return cls(order, points[order], columns, middle, reach, depth, centre, half)

    def spans(self, cells: IntArray) -> IntArray:
        """(m, 2) first and last + 1 position of each of m cells."""
        n = len(self.order)
        level = np.floor(np.log2(cells + 1)).astype(np.int64)
        number = cells + 1 - (np.int64(1) << level)
        return np.stack([number * n >> level, (number + 1) * n >> level], axis=1)


def tree_of(points: FloatArray) -> Tree:
    """The tree of these points; the same one again for the same read-only array."""
    if points.flags.writeable:
        return Tree.of(points)
    key = id(points)
    found = _kept.get(key)
    if found is not None and found[0]() is points:
        return found[1]
    tree = Tree.of(points)
    _kept[key] = weakref.ref(points, lambda _: _kept.pop(key, None)), tree
    return tree


def boxes(columns: FloatArray, n: int, depth: int) -> tuple[FloatArray, FloatArray]:
    """(cells, c) lowest and highest of each of c columns in each cell; NaN takes no part."""
    shape = ((2 << depth) - 1, len(columns))
    low, high = np.empty(shape), np.empty(shape)
    for_ranges(_leaf_boxes, 1 << depth, _LEAVES_CHUNK, columns, n, depth, low, high)
    _merge_boxes(depth, low, high)
    return low, high


def _principal_axes(centred: FloatArray) -> FloatArray:
    """(d, d) axes as columns; scaled first, so that no square overflows."""
    centred = centred / max(float(np.max(np.abs(centred))), np.finfo(float).tiny)
    return np.asarray(np.linalg.eigh(centred.T @ centred)[1])


@kernel
def _cut(start: int, stop: int, along: Any, order: Any, level: int) -> None:
    """Reorder rows so that both halves of each of the cells start to stop of a level are contiguous."""
    n, d = along.shape
    for t in range(start, stop):
        first, last = (t * n) >> level, ((t + 1) * n) >> level
        middle = ((2 * t + 1) * n) >> (level + 1)
        # Not a literal: numba would compile the selection a second time for it.
        axis = d - 1
        widest = -1.0
        for h in range(d):
            low = high = along[first, h]
            for r in range(first + 1, last):
                low = min(low, along[r, h])
                high = max(high, along[r, h])
            if high - low > widest:
                widest = high - low
                axis = h
        _select(along, axis, order, first, last - 1, middle)


@kernel
def _select(along: Any, axis: int, order: Any, left: int, right: int, middle: int) -> None:
    """Hoare's selection: nothing before `middle` is greater than what stands there, nothing after is smaller.

    Whole rows are exchanged, so that each cell is read from one place.
    """
    while left < right:
        pivot = along[(left + right) >> 1, axis]
        i, j = left, right
        while i <= j:
            while along[i, axis] < pivot:
                i += 1
            while along[j, axis] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                for h in range(along.shape[1]):
                    along[i, h], along[j, h] = along[j, h], along[i, h]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@kernel
def _leaf_boxes(start: int, stop: int, columns: Any, n: int, depth: int, low: Any, high: Any) -> None:
    offset = (1 << depth) - 1
    for t in range(start, stop):
        for h in range(len(columns)):
            least, most = np.inf, -np.inf
            for r in range((t * n) >> depth, ((t + 1) * n) >> depth):
                x = columns[h, r]
                if x < least:
                    least = x
                if x > most:
                    most = x
            low[offset + t, h] = least
            high[offset + t, h] = most


@kernel
def _merge_boxes(depth: int, low: Any, high: Any) -> None:
    for cell in range((1 << depth) - 2, -1, -1):
        left = 2 * cell + 1
        for h in range(low.shape[1]):
            low[cell, h] = min(low[left, h], low[left + 1, h])
            high[cell, h] = max(high[left, h], high[left + 1, h])
