"""Kernels for the loss of triplets and its gradient, in blocks: gather distances, differentiate, scatter.

A loss depends on s = |anchor - near|² and t = |anchor - far|², and its gradient only on the two partial derivatives.
Each method is therefore a vectorised loop over s and t, between a gather and a scatter over the three items of each
triplet.

Coordinates are zero-padded to a multiple of four columns, so that loops over columns can be unrolled. The gradient of
the padding is zero.
"""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.jit import exp_minus, kernel, primitive

LANES = 4
BLOCK_SIZE = 256
# Number of factors multiplied before taking a logarithm; each is above 1e-37, so the product does not underflow.
FACTORS_PER_LOG = 8

# Kinds of loss.
LOGISTIC_LOSS = 0
RATIO_LOSS = 1
POWER_LOSS = 2
HINGE_LOSS = 3


@primitive
def _logistic(
    n: int, near: FloatArray, far: FloatArray, slope_near: FloatArray, slope_far: FloatArray, factor: FloatArray
) -> float:
    """Compute STE: log(1 + e^-z), z = t - s."""
    total = 0.0
    for r in range(n):
        z = far[r] - near[r]
        e = exp_minus(abs(z))
        likelier = 1.0 / (1.0 + e)
        violation = likelier if z < 0.0 else 1.0 - likelier
        slope_near[r] = violation
        slope_far[r] = -violation
        factor[r] = likelier
        total += max(-z, 0.0)
    return total


@primitive
def _ratio(
    n: int,
    mu: float,
    near: FloatArray,
    far: FloatArray,
    slope_near: FloatArray,
    slope_far: FloatArray,
    factor: FloatArray,
) -> float:
    """Compute CKL: -log((μ + t)/(2μ + s + t))."""
    for r in range(n):
        s, t = mu + near[r], mu + far[r]
        both = 1.0 / (s + t)
        slope_near[r] = both
        slope_far[r] = both - 1.0 / t
        factor[r] = t * both
    return 0.0


@primitive
def _power(
    n: int,
    alpha: float,
    near: FloatArray,
    far: FloatArray,
    slope_near: FloatArray,
    slope_far: FloatArray,
    factor: FloatArray,
) -> float:
    """Compute t-STE: log(1 + e^-z), z = (α + 1)/2 log((α + t)/(α + s))."""
    half = 0.5 * (alpha + 1.0)
    total = 0.0
    for r in range(n):
        s, t = alpha + near[r], alpha + far[r]
        z = half * math.log(t / s)
        e = exp_minus(abs(z))
        likelier = 1.0 / (1.0 + e)
        violation = (likelier if z < 0.0 else 1.0 - likelier) * half
        slope_near[r] = violation / s
        slope_far[r] = -violation / t
        factor[r] = likelier
        total += max(-z, 0.0)
    return total


@primitive
def _hinge(
    n: int, near: FloatArray, far: FloatArray, slope_near: FloatArray, slope_far: FloatArray, factor: FloatArray
) -> float:
    """Compute GNMDS: max(0, 1 + s - t)², convex in the inner products and differentiable everywhere."""
    total = 0.0
    for r in range(n):
        shortfall = max(0.0, 1.0 + near[r] - far[r])
        slope_near[r] = 2.0 * shortfall
        slope_far[r] = -2.0 * shortfall
        factor[r] = 1.0
        total += shortfall * shortfall
    return total


@primitive
def _gather(first: int, n: int, triplets: IntArray, points: FloatArray, near: FloatArray, far: FloatArray) -> None:
    """Compute the squared distances of ``n`` triplets, starting at ``first``."""
    for r in range(n):
        i, j, k = triplets[first + r, 0], triplets[first + r, 1], triplets[first + r, 2]
        s, t = 0.0, 0.0
        for h in range(0, points.shape[1], LANES):
            u0, u1 = points[i, h] - points[j, h], points[i, h + 1] - points[j, h + 1]
            u2, u3 = points[i, h + 2] - points[j, h + 2], points[i, h + 3] - points[j, h + 3]
            v0, v1 = points[i, h] - points[k, h], points[i, h + 1] - points[k, h + 1]
            v2, v3 = points[i, h + 2] - points[k, h + 2], points[i, h + 3] - points[k, h + 3]
            s += u0 * u0 + u1 * u1 + u2 * u2 + u3 * u3
            t += v0 * v0 + v1 * v1 + v2 * v2 + v3 * v3
        near[r] = s
        far[r] = t


@primitive
def _scatter(
    first: int,
    n: int,
    triplets: IntArray,
    points: FloatArray,
    slope_near: FloatArray,
    slope_far: FloatArray,
    gradient: FloatArray,
) -> None:
    """Add the contributions of ``n`` triplets, starting at ``first``, to the gradient."""
    for r in range(n):
        i, j, k = triplets[first + r, 0], triplets[first + r, 1], triplets[first + r, 2]
        a, b = 2.0 * slope_near[r], 2.0 * slope_far[r]
        for h in range(0, points.shape[1], LANES):
            u0, u1 = a * (points[i, h] - points[j, h]), a * (points[i, h + 1] - points[j, h + 1])
            u2, u3 = a * (points[i, h + 2] - points[j, h + 2]), a * (points[i, h + 3] - points[j, h + 3])
            v0, v1 = b * (points[i, h] - points[k, h]), b * (points[i, h + 1] - points[k, h + 1])
            v2, v3 = b * (points[i, h + 2] - points[k, h + 2]), b * (points[i, h + 3] - points[k, h + 3])
            gradient[i, h] += u0 + v0
            gradient[i, h + 1] += u1 + v1
            gradient[i, h + 2] += u2 + v2
            gradient[i, h + 3] += u3 + v3
            gradient[j, h] -= u0
            gradient[j, h + 1] -= u1
            gradient[j, h + 2] -= u2
            gradient[j, h + 3] -= u3
            gradient[k, h] -= v0
            gradient[k, h + 1] -= v1
            gradient[k, h + 2] -= v2
            gradient[k, h + 3] -= v3


@primitive
def _log_product(n: int, factor: FloatArray) -> float:
    """Return the sum of the logarithms of the factors."""
    total = 0.0
    for begin in range(0, n, FACTORS_PER_LOG):
        product = 1.0
        for r in range(begin, min(begin + FACTORS_PER_LOG, n)):
            product *= factor[r]
        total += math.log(product)
    return total


@kernel
def triplet_loss(
    start: int,
    stop: int,
    triplets: IntArray,
    points: FloatArray,
    kind: int,
    parameter: float,
    piece: int,
    gradients: FloatArray,
    losses: FloatArray,
) -> None:
    """Write the loss and gradient of triplets ``start`` to ``stop`` to row start // piece of the outputs."""
    row = start // piece
    gradient = gradients[row]
    gradient[:, :] = 0.0
    near, far, factor = np.empty(BLOCK_SIZE), np.empty(BLOCK_SIZE), np.empty(BLOCK_SIZE)
    slope_near, slope_far = np.empty(BLOCK_SIZE), np.empty(BLOCK_SIZE)
    total = 0.0
    for first in range(start, stop, BLOCK_SIZE):
        n = min(BLOCK_SIZE, stop - first)
        _gather(first, n, triplets, points, near, far)
        if kind == LOGISTIC_LOSS:
            total += _logistic(n, near, far, slope_near, slope_far, factor)
        elif kind == RATIO_LOSS:
            total += _ratio(n, parameter, near, far, slope_near, slope_far, factor)
        elif kind == POWER_LOSS:
            total += _power(n, parameter, near, far, slope_near, slope_far, factor)
        else:
            total += _hinge(n, near, far, slope_near, slope_far, factor)
        total -= _log_product(n, factor)
        _scatter(first, n, triplets, points, slope_near, slope_far, gradient)
    losses[row] = total


@kernel
def squared_distances(
    start: int, stop: int, triplets: IntArray, points: FloatArray, near: FloatArray, far: FloatArray
) -> None:
    """Compute |anchor - near|² and |anchor - far|² of each triplet."""
    for r in range(start, stop):
        i, j, k = triplets[r, 0], triplets[r, 1], triplets[r, 2]
        s, t = 0.0, 0.0
        for h in range(points.shape[1]):
            u, v = points[i, h] - points[j, h], points[i, h] - points[k, h]
            s += u * u
            t += v * v
        near[r] = s
        far[r] = t


@kernel
def logit_variances(
    start: int,
    stop: int,
    rows: IntArray,
    gradients: FloatArray,
    covariance: FloatArray,
    along: FloatArray,
    inner: FloatArray,
    out: FloatArray,
) -> None:
    """Write the variances of the logits of triplets ``start`` to ``stop``.

    ``gradients`` are (m, 3d), and ``covariance`` is (nd, nd), item by item. Asking t triplets reduces a variance by
    g' along inner along' g, with (nd, t) ``along`` and (t, t) ``inner``.
    """
    d, t = gradients.shape[1] // 3, inner.shape[0]
    shared = np.empty(t)
    for row in range(start, stop):
        total = 0.0
        shared[:] = 0.0
        for first in range(3):
            for i in range(d):
                g, position = gradients[row, first * d + i], rows[row, first] * d + i
                part = 0.0
                for second in range(3):
                    base = rows[row, second] * d
                    for j in range(d):
                        part += covariance[position, base + j] * gradients[row, second * d + j]
                total += g * part
                for u in range(t):
                    shared[u] += g * along[position, u]
        for u in range(t):
            part = 0.0
            for v in range(t):
                part += inner[u, v] * shared[v]
            total -= shared[u] * part
        out[row] = max(total, 0.0)
