"""The Chebyshev centre of a polytope: the centre of its largest inscribed ball (Boyd and Vandenberghe, 8.5.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from pairseek.core.types import BoolArray, FloatArray

MULTIPLIER_TOLERANCE = 1e-9
"""A row with a larger multiplier is tight for every largest ball."""


def chebyshev(normals: FloatArray, offsets: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray | None:
    """Return the (d,) centre of the largest ball in {w : normals w <= offsets}; None if the set is empty.

    If the largest ball is not unique, as in a long box, the slack of the rows that are not tight is maximised next, and
    so on lexicographically. The centre of a long box is therefore its middle.

    Parameters
    ----------
    normals, offsets
        (m, d) unit normals and (m,) offsets.
    low, high
        (d,) bounds of the set, used to normalise it: the solver's tolerances are absolute, and the set may be tiny.
    """
    middle, unit = (low + high) / 2, float(np.max(high - low)) / 2
    point = _deepest(normals, (offsets - normals @ middle) / unit)
    return None if point is None else np.asarray(middle + unit * point)


def _deepest(rows: FloatArray, slack: FloatArray) -> FloatArray | None:
    """Return the point of largest minimal slack, lexicographically: over all rows, then over those not yet tight."""
    m, d = rows.shape
    depth = np.zeros(m)
    fixed = np.zeros(m, dtype=np.bool_)
    best: FloatArray | None = None
    while True:
        solution = _maximise_smallest_slack(rows, slack - depth, fixed)
        if solution.x is None:
            return best
        best = solution.x[:d]
        tight = ~fixed & (solution.ineqlin.marginals < -MULTIPLIER_TOLERANCE)
        depth[tight] = solution.x[d]
        fixed |= tight
        if not tight.any() or np.linalg.matrix_rank(rows[fixed]) == d:
            return best


def _maximise_smallest_slack(rows: FloatArray, slack: FloatArray, fixed: BoolArray) -> Any:
    """Solve the linear programme that maximises the smallest slack of the rows that are not fixed."""
    d = rows.shape[1]
    table = np.column_stack([rows, np.where(fixed, 0.0, 1.0)])
    objective = np.zeros(d + 1)
    objective[d] = -1.0
    return scipy.optimize.linprog(objective, A_ub=table, b_ub=slack, bounds=(None, None), method="highs")
