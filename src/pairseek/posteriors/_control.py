"""Moments of a belief with most of the sampling noise taken out: control variates by Stein's identity.

For a density π that is known up to a constant and a field φ whose normal component vanishes on the border of its
support, E[div φ + φ·∇log π] = 0. Such functions are uncorrelated with nothing and have a known mean, so the
regression of x and xx' on them takes out what they explain (Mira, Solgi, Imparato, Statistics and Computing 2013;
Oates, Girolami, Chopin, JRSS-B 2017). Here φ = B_i(x) g(x) e_i with B_i = (x_i - low_i)(high_i - x_i), which
vanishes on the faces of the box (B_i = 1 without a box), and g = 1 or a coordinate. For the prior alone this makes
mean and covariance exact; after some answers it divides their variance by five to twenty.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pairseek._kernels import LOGISTIC, exp_minus, kernel, log_ndtr, primitive
from pairseek._parallel import for_ranges
from pairseek._types import Evidence, FloatArray
from pairseek.priors import Prior
from pairseek.responses import Response

_CHUNK = 500
# Samples for each control, at least: below, the regression would fit noise.
_SAMPLES_PER_CONTROL = 10
# A corrected variance may differ from the plain one by this factor in any direction; more means that the
# controls have tails the regression cannot handle (almost noiseless answers), and the plain moments stand.
_TRUST = 1.5


@primitive
def _slope(z: float, decided: float, link: int) -> float:
    """d/dz of `log_answer`."""
    if link == LOGISTIC:
        u = exp_minus(abs(z))
        rising = (u if z > 0.0 else 1.0) / (1.0 + u)
        return rising if decided > 0.0 else rising - 0.5
    up = math.exp(-0.5 * z * z - 0.9189385332046727 - log_ndtr(z))
    if decided > 0.0:
        return up
    return 0.5 * (up - math.exp(-0.5 * z * z - 0.9189385332046727 - log_ndtr(-z)))


@kernel
def gradients(start: int, stop: int, points: Any, evidence: Any, prior: Any, link: int, out: Any) -> None:
    """Rows of the gradient of the log posterior, as if there were no box."""
    slopes, offsets, decided = evidence
    centre, precision = prior
    m, d = slopes.shape
    for row in range(start, stop):
        for i in range(d):
            total = 0.0
            for h in range(d):
                total -= precision[i, h] * (points[row, h] - centre[h])
            out[row, i] = total
        for j in range(m):
            z = offsets[j]
            for i in range(d):
                z += slopes[j, i] * points[row, i]
            g = _slope(z, decided[j], link)
            for i in range(d):
                out[row, i] += g * slopes[j, i]


def _controls(points: FloatArray, centred: FloatArray, gradient: FloatArray, prior: Prior) -> FloatArray:
    """(n, d + d(d+1)/2): fields with g = 1, then with g a coordinate, symmetrised to halve their number."""
    n, d = points.shape
    low, high = prior.box(d)
    bounded = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    scale = (high - low) ** 2 / 4
    border = np.where(bounded, (points - low) * (high - points) / scale, 1.0)
    plain = np.where(bounded, (low + high - 2 * points) / scale, 0.0) + border * gradient
    rows, columns = np.triu_indices(d)
    out = np.empty((n, d + len(rows)))
    out[:, :d] = plain
    out[:, d:] = plain[:, rows] * centred[:, columns] + plain[:, columns] * centred[:, rows]
    out[:, d:][:, rows == columns] += 2 * border
    return out


def controlled_moments(
    points: FloatArray,
    weights: FloatArray,
    evidence: Evidence,
    prior: Prior,
    response: Response,
) -> tuple[FloatArray, FloatArray]:
    """(d,) mean and (d, d) covariance of weighted samples, corrected by control variates.

    O(n d (m + d³)) for n samples and m answers.
    """
    n, d = points.shape
    mean = weights @ points
    centred = points - mean
    covariance = (centred * weights[:, None]).T @ centred
    count = d + d * (d + 1) // 2
    if 1.0 / np.sum(weights**2) < _SAMPLES_PER_CONTROL * count:
        return mean, covariance
    gradient = np.empty((n, d))
    data = (evidence.slopes, evidence.offsets, evidence.decided)
    for_ranges(gradients, n, _CHUNK, points, data, prior.quadratic(d), response.link, gradient)
    controls = _controls(points, centred, gradient, prior)
    rows, columns = np.triu_indices(d)
    targets = np.concatenate([centred, centred[:, rows] * centred[:, columns]], axis=1)
    control_means = weights @ controls
    root = np.sqrt(weights)[:, None]
    left = root * (controls - control_means)
    right = root * (targets - weights @ targets)
    gram = left.T @ left
    diagonal = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    gram = gram / np.outer(diagonal, diagonal) + 1e-9 * np.eye(count)
    shift = -(control_means / diagonal) @ np.linalg.solve(gram, (left.T @ right) / diagonal[:, None])
    corrected = np.empty((d, d))
    corrected[rows, columns] = corrected[columns, rows] = shift[d:]
    corrected += covariance - np.outer(shift[:d], shift[:d])
    if not _trustworthy(corrected, covariance, shift[:d]):
        return mean, covariance
    return mean + shift[:d], corrected


def _trustworthy(corrected: FloatArray, covariance: FloatArray, shift: FloatArray) -> bool:
    if not np.all(np.isfinite(corrected)):
        return False
    values, vectors = np.linalg.eigh(covariance)
    if values[0] <= 1e-14 * values[-1]:
        return False
    whitener = vectors / np.sqrt(values)
    ratio = np.linalg.eigvalsh(whitener.T @ corrected @ whitener)
    return bool(ratio[0] > 1 / _TRUST and ratio[-1] < _TRUST and np.linalg.norm(shift @ whitener) < _TRUST - 1)
