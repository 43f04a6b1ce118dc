"""The set of user points that agree with all answers: a box cut by half spaces."""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
import scipy

from pairseek.core.types import FloatArray, IntArray
from pairseek.strategies.baselines.chebyshev import chebyshev
from pairseek.strategies.baselines.simplex import climb

TOLERANCE = 1e-10
"""A plane divides the region if it reaches farther than this on both sides, in widths of the box."""
JITTER = 1e-12
"""Rows are moved outwards by up to this much, in widths of the box: no more than d then meet in a point, and a
walk cannot go round in circles. It is far below the tolerance."""
GOLDEN = 0.6180339887498949
REMEMBERED = 1024
"""Vertices remembered."""


class Region:
    """A polytope that knows some of its vertices.

    A plane with known vertices on both sides divides the region. Only if all are on one side a linear programme
    decides; it starts at the best of them, and the vertices on its way are remembered. So the region learns
    with use, while the set itself never changes: `cut` gives a new one.

    Parameters
    ----------
    low, high
        (d,) bounds of the box.
    """

    normals: FloatArray
    """(m, d) unit normals: w is inside if normals w <= offsets."""
    offsets: FloatArray
    """(m,) offsets."""
    low: FloatArray
    """(d,) lowest coordinates of the region."""
    high: FloatArray
    """(d,) highest coordinates of the region."""
    centre: FloatArray
    """(d,) a point inside."""
    reach: float
    """No point of the region is farther from the centre."""
    empty: bool
    """The answers contradict each other; the rows are those from before the first contradiction."""

    def __init__(self, low: FloatArray, high: FloatArray) -> None:
        d = len(low)
        self._width = float(np.max(high - low))
        self.normals = np.concatenate([np.eye(d), -np.eye(d)])
        self.offsets = np.concatenate([high, -low]) + self._jitter(np.arange(2 * d))
        self.empty = False
        self._bases: IntArray = np.arange(2 * d).reshape(2, d)
        self._vertices: FloatArray = np.stack([self.offsets[:d], -self.offsets[d:]])
        self._place(low, high, (low + high) / 2)

    def _jitter(self, rows: IntArray) -> FloatArray:
        """Multiples of the golden ratio, modulo one: no two alike, and the same every time."""
        return np.asarray(self._width * JITTER * (1.0 + np.modf(rows * GOLDEN)[0]) / 2)

    def _place(self, low: FloatArray, high: FloatArray, centre: FloatArray) -> None:
        self.low, self.high, self.centre = low, high, centre
        self._half = np.maximum(high - centre, centre - low) + self.tolerance
        self.reach = float(np.linalg.norm(self._half))

    @property
    def tolerance(self) -> float:
        """How far the region must reach on either side of a plane to be divided by it."""
        return TOLERANCE * self._width

    def side(self, normal: FloatArray, offset: float) -> int:
        """0 if the plane normal·w = offset divides the region, 1 if normal·w is greater on it, -1 if less.

        An empty region counts as divided by every plane.

        Parameters
        ----------
        normal
            (d,) unit vector.
        """
        if self.empty:
            return 0
        middle = float(normal @ self.centre) - offset
        if abs(middle) > float(np.abs(normal) @ self._half):
            return 1 if middle > 0 else -1
        heights = self._vertices @ normal - offset
        above, below = float(heights.max(initial=-np.inf)), float(heights.min(initial=np.inf))
        if above <= self.tolerance:
            above = self._support(normal, offset + self.tolerance) - offset
        if below >= -self.tolerance:
            below = -self._support(-normal, self.tolerance - offset) - offset
        if above > self.tolerance and below < -self.tolerance:
            return 0
        return 1 if above + below > 0 else -1

    def _support(self, direction: FloatArray, enough: float = np.inf) -> float:
        """Greatest direction·w on the region, or one that is more than `enough`."""
        if len(self._vertices):
            start = int(np.argmax(self._vertices @ direction))
            walk = climb(self.normals, self.offsets, self._bases[start], direction, enough)
            if walk is not None:
                if walk.bases:
                    self._vertices = np.concatenate([self._vertices, walk.vertices])[-REMEMBERED:]
                    self._bases = np.concatenate([self._bases, walk.bases])[-REMEMBERED:]
                return walk.top
        return self._programme(direction)

    def _programme(self, direction: FloatArray) -> float:
        """The same by HiGHS, in coordinates in which the region has size one: its tolerances are absolute."""
        scale = float(np.max(self._half))
        slack = (self.offsets - self.normals @ self.centre) / scale
        found = scipy.optimize.linprog(-direction, A_ub=self.normals, b_ub=slack, bounds=(None, None), method="highs")
        inside = self.centre if found.x is None else self.centre + scale * found.x
        return float(direction @ inside)

    def cut(self, normal: FloatArray, offset: float) -> Self:
        """The part where normal·w >= offset; an empty region if there is none."""
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part.__dict__.pop("deepest", None)
        side = part.side(normal, offset)
        if self.empty or side > 0:
            return self
        if side < 0:
            part.empty = True
            return part
        row = len(self.offsets)
        part.normals = np.concatenate([self.normals, -normal[None]])
        part.offsets = np.append(self.offsets, self._jitter(np.array([row])) - offset)
        kept = part._vertices @ normal > offset
        part._vertices, part._bases = part._vertices[kept], part._bases[kept]
        part._enclose()
        return part

    def _enclose(self) -> None:
        """Puts the tightest box around the region: a plane that misses the box misses the region."""
        axes = np.eye(len(self.low))
        high = np.array([self._support(axis) for axis in axes])
        low = np.array([-self._support(-axis) for axis in axes])
        centre = self._vertices.mean(axis=0) if len(self._vertices) else (low + high) / 2
        self._place(low, high, centre)

    @cached_property
    def deepest(self) -> FloatArray:
        """(d,) Chebyshev centre; of an empty region, the one from before the contradiction."""
        if len(self.offsets) == 2 * len(self.low):
            return (self.low + self.high) / 2
        found = chebyshev(self.normals, self.offsets, self.low, self.high)
        return self.centre if found is None else found
