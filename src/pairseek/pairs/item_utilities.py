"""Mean and covariance of item utilities under a belief.

The utility of an item is u = appeal - k|w - x|² + ε, in logits of a person of reliability 1 under constant noise; see
`residual_unit` for the unit of ε under other noise kinds. The term -k|w|², shared by all utilities, is dropped. The
rest is linear in the user point and in ε, so means and covariances are exact, and differences are Gaussian if the
belief is.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from pairseek.core.types import Belief, FloatArray, IntArray
from pairseek.model.responses import Response
from pairseek.pairs.features import residual_unit


def expected_utilities(points: FloatArray, appeal: FloatArray, belief: Belief, response: Response) -> FloatArray:
    """Return the (n,) expected utilities, up to a constant shared by all items."""
    utility = np.asarray(appeal - response.typical_k * np.sum((points - belief.mean) ** 2, axis=1))
    if belief.residuals is not None:
        utility[belief.residuals.rows] += residual_unit(points, response) * belief.residuals.mean
    return utility


def utility_covariance(
    points: FloatArray, rows: IntArray, others: IntArray, belief: Belief, response: Response
) -> FloatArray:
    """Return the (m, n) covariances between the utilities of m and n items, without the shared term."""
    gradients = [2.0 * response.typical_k * (points[side] - belief.mean) for side in (rows, others)]
    covariance: FloatArray = np.einsum(
        "md,nd->mn", np.einsum("md,de->me", gradients[0], belief.covariance), gradients[1]
    )
    residuals = belief.residuals
    if residuals is None:
        return covariance
    unit = residual_unit(points, response)
    index = np.full(len(points), -1)
    index[residuals.rows] = np.arange(len(residuals.rows))
    # Items that were shown: their positions among rows and others, and their indices among the residuals.
    shown = [np.flatnonzero(index[side] >= 0) for side in (rows, others)]
    indices = [index[side[positions]] for side, positions in zip((rows, others), shown, strict=True)]
    between_residuals = residuals.deviation**2 * (rows[:, None] == others)
    between_residuals[np.ix_(*shown)] = residuals.covariance[np.ix_(*indices)]
    covariance += unit**2 * between_residuals
    covariance[:, shown[1]] += unit * np.einsum("md,dn->mn", gradients[0], residuals.cross[:, indices[1]])
    covariance[shown[0]] += unit * np.einsum("nd,dm->mn", gradients[1], residuals.cross[:, indices[0]])
    return covariance


def item_deviations(points: FloatArray, belief: Belief, response: Response) -> FloatArray:
    """Return the (n,) standard deviations of the utilities, each relative to an item at the posterior mean."""
    centred = points - belief.mean
    variance = (2.0 * response.typical_k) ** 2 * np.einsum("nd,de,ne->n", centred, belief.covariance, centred)
    residuals = belief.residuals
    if residuals is not None:
        unit = residual_unit(points, response)
        residual_variance = np.full(len(points), residuals.deviation**2)
        residual_variance[residuals.rows] = np.diag(residuals.covariance)
        variance += unit**2 * residual_variance
        gradients = 2.0 * response.typical_k * centred[residuals.rows]
        variance[residuals.rows] += 2.0 * unit * np.einsum("sd,ds->s", gradients, residuals.cross)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def promising_rows(points: FloatArray, appeal: FloatArray, belief: Belief, response: Response, count: int) -> IntArray:
    """Return the rows of the `count` most promising items: liked, uncertain, or both.

    They are ordered by the expected maximum of the item and its mirror image in the posterior mean. The better of two
    items with equal expected utility is expected to add s/sqrt(2π), where s is the standard deviation of their
    difference, here twice the item's own standard deviation.
    """
    utility = expected_utilities(points, appeal, belief, response)
    if len(utility) <= count:
        return np.arange(len(utility))
    reach = utility + 2.0 * item_deviations(points, belief, response) / np.sqrt(2.0 * np.pi)
    return np.sort(np.argpartition(-reach, count)[:count])


def expected_excess(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return E max(u, 0) of Gaussian variables: s h(m/s) with h(t) = φ(t) + t Φ(t)."""
    # Below -40 standard deviations the excess is 0 in double precision.
    t = np.maximum(mean / np.maximum(deviation, 1e-300), -40.0)
    excess = np.maximum(np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) + t * ndtr(t), 0.0)
    return np.asarray(np.where(deviation > 0.0, deviation * excess, np.maximum(mean, 0.0)))


def expected_maximum(first: FloatArray, second: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return E max of two Gaussian variables, given both means and the standard deviation of their difference.

    It equals the larger mean plus s h(-|δ|/s), with h(t) = φ(t) + t Φ(t), and increases in all three arguments.
    """
    return np.asarray(np.maximum(first, second) + expected_excess(-np.abs(first - second), deviation))
