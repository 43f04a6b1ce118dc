"""Warm-started linear programmes of the extended nu-SVM, by the dual simplex method.

The dual of min -nu rho + mean(ξ), Zw >= rho - ξ, ξ >= 0, w̃·w = 2 seeks the point of the reduced convex hull
{Z'α : Σα = nu, 0 <= α <= 1/m} that is farthest along -w̃. That point lies on a facet, which is spanned by the k rows on
the margin and has w as its normal. When w̃ changes, the ray usually leaves through the same facet or an adjacent one.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from pairseek.core.types import BoolArray, FloatArray, IntArray

MARGIN_TOLERANCE = 1e-9
"""Largest distance from the margin of a row that counts as on it, relative to the farthest row."""
FEASIBILITY_TOLERANCE = 1e-12
"""Largest violation of 0 <= α <= 1/m that counts as none, and largest rate that counts as 0."""
MAX_PIVOTS = 100
"""Largest number of pivots, after which the linear programme is solved from scratch."""


class Separator(NamedTuple):
    """A solution of the nu-SVM.

    Attributes
    ----------
    weights
        (k,) w.
    margin
        rho.
    """

    weights: FloatArray
    margin: float


class Facet(NamedTuple):
    """A facet of the reduced convex hull.

    Attributes
    ----------
    margin_rows
        (k,) rows on the margin: 0 <= α <= 1/m.
    is_below
        (m,) mask of the rows below the margin, α = 1/m; the others are above it, α = 0.
    """

    margin_rows: IntArray
    is_below: BoolArray

    @classmethod
    def of_solution(cls, rows: FloatArray, separator: Separator) -> Self | None:
        """Return the facet of a solution; None if the solution is degenerate."""
        excess = rows @ separator.weights - separator.margin
        slack = MARGIN_TOLERANCE * float(np.abs(excess).max())
        margin_rows = np.flatnonzero(np.abs(excess) <= slack)
        return cls(margin_rows, excess < -slack) if len(margin_rows) == rows.shape[1] else None

    def pivoted(self, rows: FloatArray, nu: float, reference: FloatArray) -> tuple[Self, Separator] | None:
        """Return the facet through which the ray along -w̃ leaves, by dual simplex pivots from this one, or None.

        The facet comes with its separator: the normal w with w̃·w = 2, and rho.

        Parameters
        ----------
        rows
            (m, k) examples z.
        reference
            (k,) w̃.
        """
        m, k = rows.shape
        margin_rows, is_below = self.margin_rows.copy(), self.is_below.copy()
        for _ in range(MAX_PIVOTS):
            facet = type(self)(margin_rows, is_below)
            try:
                inverse = np.asarray(np.linalg.inv(facet._system(rows, reference)), dtype=np.float64)
            except np.linalg.LinAlgError:
                return None
            right_side = np.append(-rows[is_below].sum(axis=0) / m, nu - np.count_nonzero(is_below) / m)
            alphas = (inverse @ right_side)[:k]
            violation = np.maximum(-alphas, alphas - 1.0 / m)
            leaving = int(np.argmax(violation))
            if violation[leaving] <= FEASIBILITY_TOLERANCE:
                separator = _separator(inverse)
                return (facet, separator) if facet._supports(rows, separator) else None
            rises = bool(alphas[leaving] < 0.0)
            entering = _entering(rows, facet, inverse, leaving, rises=rises)
            if entering is None:
                return None
            is_below[margin_rows[leaving]] = not rises
            is_below[entering] = False
            margin_rows[leaving] = entering
        return None

    def _supports(self, rows: FloatArray, separator: Separator) -> bool:
        """Return whether every row lies on the side of the margin that the facet assumes."""
        excess = rows @ separator.weights - separator.margin
        excess[self.margin_rows] = 0.0
        return bool(np.all(np.where(self.is_below, -excess, excess) >= -MARGIN_TOLERANCE * np.abs(excess).max()))

    def _system(self, rows: FloatArray, reference: FloatArray) -> FloatArray:
        """Return the (k + 1, k + 1) matrix of Z'α + λ w̃ and Σα in the unknowns α of the rows on the margin, and λ."""
        k = len(reference)
        system = np.ones((k + 1, k + 1))
        system[:k, :k], system[:k, k], system[k, k] = rows[self.margin_rows].T, reference, 0.0
        return system


def _separator(inverse: FloatArray) -> Separator:
    return Separator(2.0 * inverse[-1, :-1], -2.0 * float(inverse[-1, -1]))


def _entering(rows: FloatArray, facet: Facet, inverse: FloatArray, leaving: int, *, rises: bool) -> int | None:
    """Return the row that enters the basis, by the ratio test, when row `leaving` leaves; None if no row can."""
    weights, margin = _separator(inverse)
    rates = rows @ inverse[leaving, :-1] + inverse[leaving, -1]
    slopes = np.where(facet.is_below, rates, -rates) * (1.0 if rises else -1.0)
    slopes[facet.margin_rows] = 0.0
    eligible = np.flatnonzero(slopes > FEASIBILITY_TOLERANCE)
    if not len(eligible):
        return None
    excess = np.abs(rows[eligible] @ weights - margin)
    return int(eligible[np.argmin(excess / slopes[eligible])])
