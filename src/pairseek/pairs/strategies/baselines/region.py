"""The polytope of user points consistent with all answers: a box cut by half spaces."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy

from pairseek.core.lazy import cached_property
from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.constants import GOLDEN_FRACTION
from pairseek.pairs.strategies.baselines.chebyshev import chebyshev
from pairseek.pairs.strategies.baselines.simplex import maximise

MIN_CUT_DEPTH = 1e-10
"""Smallest extent of the region on either side of a plane that divides it, in widths of the box."""
JITTER = 1e-12
"""Largest outward perturbation of a row, in widths of the box. It makes vertices nondegenerate, which prevents the
simplex method from cycling, and is far below the tolerance."""

MAX_CACHED_VERTICES = 1024
"""Largest number of cached vertices."""


class Region:
    """A polytope with a cache of some of its vertices.

    A plane with cached vertices on both sides divides the region. Only if all of them are on one side, a linear
    programme is solved, starting at the best vertex, and the vertices on its path are cached. The set itself is
    immutable: `cut` returns a new region.

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
    """(d,) an interior point."""
    reach: float
    """Upper bound on the distance of any point of the region from the centre."""
    is_empty: bool
    """Whether the answers contradict each other; the rows are then those from before the first contradiction."""

    def __init__(self, low: FloatArray, high: FloatArray) -> None:
        d = len(low)
        self._width = float(np.max(high - low))
        self.normals = np.concatenate([np.eye(d), -np.eye(d)])
        self.offsets = np.concatenate([high, -low]) + self._jitter(np.arange(2 * d))
        self.is_empty = False
        self._bases: IntArray = np.arange(2 * d).reshape(2, d)
        self._vertices: FloatArray = np.stack([self.offsets[:d], -self.offsets[d:]])
        self._set_box(low, high, (low + high) / 2)

    def _jitter(self, rows: IntArray) -> FloatArray:
        """Return deterministic, pairwise distinct perturbations: multiples of the golden ratio modulo 1."""
        return np.asarray(self._width * JITTER * (1.0 + np.modf(rows * GOLDEN_FRACTION)[0]) / 2)

    def _set_box(self, low: FloatArray, high: FloatArray, centre: FloatArray) -> None:
        self.low, self.high, self.centre = low, high, centre
        self._half = np.maximum(high - centre, centre - low) + self.tolerance
        self.reach = float(np.linalg.norm(self._half))

    @property
    def tolerance(self) -> float:
        """Smallest extent of the region on either side of a plane that divides it."""
        return MIN_CUT_DEPTH * self._width

    def side(self, normal: FloatArray, offset: float) -> int:
        """Return 0 if the plane normal·w = offset divides the region, 1 or -1 if the region is above or below it.

        An empty region counts as divided by every plane.

        Parameters
        ----------
        normal
            (d,) unit vector.
        """
        if self.is_empty:
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

    def _support(self, direction: FloatArray, threshold: float = np.inf) -> float:
        """Return the maximum of direction·w over the region, or a value above `threshold`."""
        if len(self._vertices):
            start = int(np.argmax(self._vertices @ direction))
            path = maximise(self.normals, self.offsets, self._bases[start], direction, threshold)
            if path is not None:
                if path.bases:
                    self._vertices = np.concatenate([self._vertices, path.vertices])[-MAX_CACHED_VERTICES:]
                    self._bases = np.concatenate([self._bases, path.bases])[-MAX_CACHED_VERTICES:]
                return path.objective
        return self._solve_with_highs(direction)

    def _solve_with_highs(self, direction: FloatArray) -> float:
        """Return the maximum of direction·w by HiGHS, in units of the region because its tolerances are absolute."""
        scale = float(np.max(self._half))
        slack = (self.offsets - self.normals @ self.centre) / scale
        solution = scipy.optimize.linprog(
            -direction, A_ub=self.normals, b_ub=slack, bounds=(None, None), method="highs"
        )
        optimum = self.centre if solution.x is None else self.centre + scale * solution.x
        return float(direction @ optimum)

    def cut(self, normal: FloatArray, offset: float) -> Self:
        """Return the part with normal·w >= offset, which may be empty."""
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part.__dict__.pop("chebyshev_centre", None)
        side = part.side(normal, offset)
        if self.is_empty or side > 0:
            return self
        if side < 0:
            part.is_empty = True
            return part
        row = len(self.offsets)
        part.normals = np.concatenate([self.normals, -normal[None]])
        part.offsets = np.append(self.offsets, self._jitter(np.array([row])) - offset)
        kept = part._vertices @ normal > offset
        part._vertices, part._bases = part._vertices[kept], part._bases[kept]
        part._enclose()
        return part

    def _enclose(self) -> None:
        """Compute the bounding box of the region; a plane that misses the box misses the region."""
        axes = np.eye(len(self.low))
        high = np.array([self._support(axis) for axis in axes])
        low = np.array([-self._support(-axis) for axis in axes])
        centre = self._vertices.mean(axis=0) if len(self._vertices) else (low + high) / 2
        self._set_box(low, high, centre)

    @cached_property
    def chebyshev_centre(self) -> FloatArray:
        """(d,) Chebyshev centre; for an empty region, the one from before the contradiction."""
        if len(self.offsets) == 2 * len(self.low):
            return (self.low + self.high) / 2
        centre = chebyshev(self.normals, self.offsets, self.low, self.high)
        return self.centre if centre is None else centre
