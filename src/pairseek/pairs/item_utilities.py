"""Mean and covariance of the utilities of items under a belief.

The utility of an item is u = appeal - k|w - x|² + ε, in logits of a person of reliability 1 under constant noise; see
`residual_unit` for the unit of ε under the other kinds. All utilities share the term -k|w|², which is left out: what
remains is linear in the user point and in ε, so that means and covariances are exact, and differences Gaussian where
the belief is.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from pairseek.core.types import Belief, FloatArray, IntArray
from pairseek.model.responses import Response
from pairseek.pairs.features import residual_unit


def expected_utilities(points: FloatArray, appeal: FloatArray, belief: Belief, response: Response) -> FloatArray:
    """Return the (n,) expected utilities, but for a part that is common to all."""
    utility = np.asarray(appeal - response.typical_k * np.sum((points - belief.mean) ** 2, axis=1))
    if belief.residuals is not None:
        utility[belief.residuals.rows] += residual_unit(points, response) * belief.residuals.mean
    return utility


def utility_covariance(
    points: FloatArray, rows: IntArray, others: IntArray, belief: Belief, response: Response
) -> FloatArray:
    """Return the (m, n) covariances of the utilities of m items with those of n items, but for a common part."""
    steep = [2.0 * response.typical_k * (points[some] - belief.mean) for some in (rows, others)]
    covariance: FloatArray = np.einsum("md,nd->mn", np.einsum("md,de->me", steep[0], belief.covariance), steep[1])
    found = belief.residuals
    if found is None:
        return covariance
    unit = residual_unit(points, response)
    place = np.full(len(points), -1)
    place[found.rows] = np.arange(len(found.rows))
    shown = [np.flatnonzero(place[some] >= 0) for some in (rows, others)]
    known = [place[some[here]] for some, here in zip((rows, others), shown, strict=True)]
    own = found.deviation**2 * (rows[:, None] == others)
    own[np.ix_(*shown)] = found.covariance[np.ix_(*known)]
    covariance += unit**2 * own
    covariance[:, shown[1]] += unit * np.einsum("md,dn->mn", steep[0], found.cross[:, known[1]])
    covariance[shown[0]] += unit * np.einsum("nd,dm->mn", steep[1], found.cross[:, known[0]])
    return covariance


def own_deviations(points: FloatArray, belief: Belief, response: Response) -> FloatArray:
    """Return the (n,) deviations of the utilities less the common part that is 0 for an item at the mean."""
    centred = points - belief.mean
    variance = (2.0 * response.typical_k) ** 2 * np.einsum("nd,de,ne->n", centred, belief.covariance, centred)
    found = belief.residuals
    if found is not None:
        unit = residual_unit(points, response)
        residual = np.full(len(points), found.deviation**2)
        residual[found.rows] = np.diag(found.covariance)
        variance += unit**2 * residual
        steep = 2.0 * response.typical_k * centred[found.rows]
        variance[found.rows] += 2.0 * unit * np.einsum("sd,ds->s", steep, found.cross)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def highest_reach(points: FloatArray, appeal: FloatArray, belief: Belief, response: Response, count: int) -> IntArray:
    """Return the rows of the `count` items that reach highest, each with a partner of its own utility opposite to it.

    The better of two items of equal expected utility is expected to add s/sqrt(2π), s the deviation of their
    difference; that of an item and its mirror image in the mean is twice its own.
    """
    utility = expected_utilities(points, appeal, belief, response)
    if len(utility) <= count:
        return np.arange(len(utility))
    reach = utility + 2.0 * own_deviations(points, belief, response) / np.sqrt(2.0 * np.pi)
    return np.sort(np.argpartition(-reach, count)[:count])


def expected_excess(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return E max(u, 0) of Gaussian variables: s h(m/s) with h(t) = φ(t) + t Φ(t)."""
    # Below -40 deviations the excess is 0 in double precision.
    t = np.maximum(mean / np.maximum(deviation, 1e-300), -40.0)
    excess = np.maximum(np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) + t * ndtr(t), 0.0)
    return np.asarray(np.where(deviation > 0.0, deviation * excess, np.maximum(mean, 0.0)))


def expected_maximum(first: FloatArray, second: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return E max of two Gaussian variables with these means, and this deviation of their difference.

    It is the larger mean plus s h(-|δ|/s), h(t) = φ(t) + t Φ(t), and increases with all three arguments.
    """
    return np.asarray(np.maximum(first, second) + expected_excess(-np.abs(first - second), deviation))
