"""Posterior moments with reduced sampling variance: control variates by Stein's identity.

If a density π is known up to a constant and a vector field φ has zero normal component on the boundary of its support,
E[div φ + φ·∇log π] = 0. Functions of this form have a known mean, so regressing x and xx' on several of them removes
the variance they explain (Mira, Solgi, Imparato, Statistics and Computing 2013; Oates, Girolami, Chopin, JRSS-B 2017).
Here φ = B_i(x) g(x) e_i with B_i = (x_i - low_i)(high_i - x_i), which vanishes on the faces of the box (B_i = 1 without
a box), and g = 1 or a coordinate. Without answers this makes mean and covariance exact; after some answers it divides
their variance by five to twenty.
"""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.model.priors import Prior
from pairseek.numerics.jit import AnswerArrays, PriorArrays, kernel, log_slope, primitive
from pairseek.numerics.moments import SAMPLE_CHUNK, sample_moments
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.factors import Factors

# Least number of effective samples per control; with fewer, the regression would fit noise.
_SAMPLES_PER_CONTROL = 10
# Largest accepted ratio of a corrected to a plain variance, or its inverse, in any direction. A larger correction means
# that the controls have tails the regression cannot handle (nearly noiseless answers), and the plain moments are kept.
_MAX_VARIANCE_RATIO = 1.5
# Least number of samples on which the variance of every control must rest, measured as (Σwc²)²/Σ(wc²)². After nearly
# noiseless answers the gradient is huge in a thin layer with few samples, and regressing on those would increase the
# variance.
_MIN_CONTROL_SAMPLES = 18.0
# Samples whose products are added in one pass over the matrix.
_ROWS_PER_PASS = 4


@primitive
def _gradient(
    x: FloatArray, evidence: AnswerArrays, prior: PriorArrays, link: int, width: float, out: FloatArray
) -> None:
    """Write the gradient of the log posterior at x, ignoring the box."""
    slopes, offsets, decided = evidence
    _, _, centre, precision = prior
    m, d = slopes.shape
    for i in range(d):
        total = 0.0
        for h in range(d):
            total -= precision[i, h] * (x[h] - centre[h])
        out[i] = total
    for j in range(m):
        z = offsets[j]
        for i in range(d):
            z += slopes[j, i] * x[i]
        g = log_slope(z, decided[j], link, width)
        for i in range(d):
            out[i] += g * slopes[j, i]


@primitive
def _write_controls(x: FloatArray, mean: FloatArray, gradient: FloatArray, prior: PriorArrays, row: FloatArray) -> None:
    """Write the controls of one sample (first g = 1, then g a coordinate, symmetrized), then its targets c and cc'.

    Overwrites ``gradient``.
    """
    low, high, _, _ = prior
    d = len(x)
    pairs = d * (d + 1) // 2
    for i in range(d):
        row[d + pairs + i] = x[i] - mean[i]
        # isfinite compiles to a difference, which fast math may simplify to 0.
        if low[i] > -math.inf and high[i] < math.inf:
            scale = 0.25 * (high[i] - low[i]) * (high[i] - low[i])
            border = (x[i] - low[i]) * (high[i] - x[i]) / scale
            row[i] = (low[i] + high[i] - 2.0 * x[i]) / scale + border * gradient[i]
        else:
            border = 1.0
            row[i] = gradient[i]
        # From here on, the array holds B.
        gradient[i] = border
    k = 0
    for i in range(d):
        for h in range(i, d):
            a, b = row[d + pairs + i], row[d + pairs + h]
            row[d + k] = row[i] * b + row[h] * a
            if i == h:
                row[d + k] += 2.0 * gradient[i]
            row[2 * d + pairs + k] = a * b
            k += 1


@kernel
def _products(
    start: int,
    stop: int,
    points: FloatArray,
    weights: FloatArray,
    mean: FloatArray,
    evidence: AnswerArrays,
    prior: PriorArrays,
    link: int,
    width: float,
    out: FloatArray,
) -> None:
    """Write partial sums over rows r of controls and targets.

    Σ w r (first row), Σ w r_i r_j for controls i and all j >= i, and Σ (w r_j²)² for controls j (last row).
    """
    d = points.shape[1]
    controls = d + d * (d + 1) // 2
    total = out[start // SAMPLE_CHUNK]
    total[:] = 0.0
    rows = np.zeros((_ROWS_PER_PASS, 2 * controls))
    gradient = np.empty(d)
    for first in range(start, stop, _ROWS_PER_PASS):
        for r in range(_ROWS_PER_PASS):
            if first + r < stop:
                x = points[first + r]
                _gradient(x, evidence, prior, link, width, gradient)
                _write_controls(x, mean, gradient, prior, rows[r])
                root = math.sqrt(weights[first + r])
                for j in range(2 * controls):
                    total[0, j] += weights[first + r] * rows[r, j]
                    rows[r, j] *= root
                for j in range(controls):
                    square = rows[r, j] * rows[r, j]
                    total[1 + controls, j] += square * square
            else:
                rows[r, :] = 0.0
        a, b, c, e = rows[0], rows[1], rows[2], rows[3]
        for i in range(controls):
            line = total[1 + i]
            p, q, s, t = a[i], b[i], c[i], e[i]
            for j in range(i, 2 * controls):
                line[j] += p * a[j] + q * b[j] + s * c[j] + t * e[j]


@kernel
def _solve(matrix: FloatArray, vector: FloatArray) -> None:
    """Solve matrix x = vector in place by Cholesky; only the lower triangle of the matrix is used."""
    n = len(vector)
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                matrix[i, i] = math.sqrt(max(total, 1e-300))
            else:
                matrix[i, j] = total / matrix[j, j]
    for i in range(n):
        for k in range(i):
            vector[i] -= matrix[i, k] * vector[k]
        vector[i] /= matrix[i, i]
    for i in range(n - 1, -1, -1):
        vector[i] /= matrix[i, i]
        for k in range(i):
            vector[k] -= matrix[i, k] * vector[i]


def controlled_moments(
    points: FloatArray, weights: FloatArray, factors: Factors, prior: Prior
) -> tuple[FloatArray, FloatArray]:
    """Return the (d,) mean and (d, d) covariance of weighted samples, corrected by control variates.

    With lapses the moments stay uncorrected. O(n (m d + d⁴)) for n samples and m answers.
    """
    n, d = points.shape
    mean, covariance = sample_moments(points, weights)
    count = d + d * (d + 1) // 2
    low, high = prior.box(d)
    has_few_samples = 1.0 / np.sum(weights**2) < _SAMPLES_PER_CONTROL * count
    # For a half-bounded coordinate these fields do not vanish at the face, so Stein's identity fails.
    if has_few_samples or not factors.is_log_concave or np.any(np.isfinite(low) != np.isfinite(high)):
        return mean, covariance
    out = np.empty((-(-n // SAMPLE_CHUNK), 2 + count, 2 * count))
    quadratic, link = (*prior.box(d), *prior.quadratic(d)), factors.link
    for_ranges(
        _products, n, SAMPLE_CHUNK, points, weights, mean, factors.kernel_arrays, quadratic, link, factors.model[2], out
    )
    # After nearly noiseless answers squared gradients overflow, and the correction is rejected below.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        total = out.sum(axis=0)
        means, products = total[0], total[1:-1] - np.multiply.outer(total[0, :count], total[0])
        control_samples = np.diag(total[1:-1]) ** 2 / np.maximum(total[-1, :count], 1e-300)
        if np.min(control_samples) < _MIN_CONTROL_SAMPLES:
            return mean, covariance
        scale = np.sqrt(np.maximum(np.diag(products), 1e-300))
        gram = products[:, :count].T / np.multiply.outer(scale, scale) + 1e-9 * np.eye(count)
        solution = means[:count] / scale
        _solve(gram, solution)
        shift = -np.einsum("c,ct->t", solution / scale, products[:, count:])
        corrected = _symmetric(shift[d:], d) + covariance - np.multiply.outer(shift[:d], shift[:d])
        if not _is_plausible(corrected, covariance, shift[:d]):
            return mean, covariance
    return mean + shift[:d], corrected


def _symmetric(upper: FloatArray, d: int) -> FloatArray:
    out = np.empty((d, d))
    rows, columns = np.triu_indices(d)
    out[rows, columns] = out[columns, rows] = upper
    return out


def _is_plausible(corrected: FloatArray, covariance: FloatArray, shift: FloatArray) -> bool:
    if not np.all(np.isfinite(corrected)):
        return False
    values, vectors = np.linalg.eigh(covariance)
    if values[0] <= 1e-14 * values[-1]:
        return False
    whitener = vectors / np.sqrt(values)
    ratio = np.linalg.eigvalsh(whitener.T @ corrected @ whitener)
    is_close = np.linalg.norm(shift @ whitener) < _MAX_VARIANCE_RATIO - 1
    return bool(ratio[0] > 1 / _MAX_VARIANCE_RATIO and ratio[-1] < _MAX_VARIANCE_RATIO and is_close)
