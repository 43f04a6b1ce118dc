"""Walking along the edges of a polytope {w : normals w <= offsets} from a vertex that is known.

The textbook simplex method in the form that serves many linear programmes over one slowly changing set: a vertex
is kept with the d rows that are tight there (its basis), so that the next programme starts where an earlier one
ended, and it may stop as soon as it has come high enough. Everything is computed from the rows anew at every
vertex, so that errors do not grow and the size of the set does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pairseek.core.types import FloatArray, IntArray

MULTIPLIER_TOLERANCE = 1e-11
RATE_TOLERANCE = 1e-11
PIVOTS_PER_ROW = 4
"""A walk that makes more pivots than this many times the number of rows is given up."""


class Walk(NamedTuple):
    """Where a walk went.

    Attributes
    ----------
    vertices
        The vertices visited, the first one left out.
    bases
        Their tight rows.
    top
        Height of the last.
    """

    vertices: list[FloatArray]
    bases: list[IntArray]
    top: float


def climb(
    normals: FloatArray, offsets: FloatArray, basis: IntArray, direction: FloatArray, enough: float = np.inf
) -> Walk | None:
    """From the vertex of `basis` up to the highest vertex along `direction`, or one higher than `enough`.

    None if the walk fails: a basis of rounding errors, or too many pivots.

    Parameters
    ----------
    normals, offsets
        (m, d) and (m,): the rows.
    basis
        (d,) independent rows that are tight at a vertex.
    direction
        (d,) what to maximise.
    """
    walk = Walk([], [], 0.0)
    basis = basis.copy()
    for _ in range(PIVOTS_PER_ROW * len(offsets)):
        try:
            edges = np.linalg.inv(normals[basis])
        except np.linalg.LinAlgError:
            return None
        vertex = edges @ offsets[basis]
        if walk.bases:
            walk.vertices.append(vertex)
        height = float(direction @ vertex)
        multipliers = direction @ edges
        leaving = int(np.argmin(multipliers))
        if height > enough or multipliers[leaving] >= -MULTIPLIER_TOLERANCE:
            return walk._replace(top=height)
        rates = -(normals @ edges[:, leaving])
        rates[basis] = 0.0
        ahead = np.flatnonzero(rates > RATE_TOLERANCE)
        if not len(ahead):
            return None
        steps = (offsets[ahead] - normals[ahead] @ vertex) / rates[ahead]
        basis[leaving] = ahead[np.argmin(steps)]
        walk.bases.append(basis.copy())
    return None
