"""Numba kernels of the E-step and the M-step of a population fit.

The logit of a choice is base_w - base_l + (V_w - V_l)·z + offset for a person at z. The posterior of z is a Gaussian
N(μ, Σ), so the logit is Gaussian too. The offset is 0, or -t for a choice where ties of half-width t were possible; a
tie is two choices, one in each direction, with the offset t.
"""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.jit import kernel, primitive

# Weights and variances of a mixture of four centred normals that approximates the logistic distribution: a
# least-squares fit to the distribution function and the density between 0 and 16, with errors below 2e-5.
MIXTURE = np.array(
    [
        [0.08961975698731378, 0.4338333828948632, 0.4013285464784413, 0.07521831363938154],
        [0.9573639567277966**2, 1.3919300765185756**2, 2.0417670121608396**2, 3.03538328596948**2],
    ]
)
_ROOT_HALF = math.sqrt(0.5)
_NORMAL_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
# Convergence tolerance of a posterior: the squared Newton decrement.
_DECREMENT_TOLERANCE = 1e-6
# Convergence tolerance of a posterior: the relative error of the covariance.
_COVARIANCE_TOLERANCE = 1e-3


@primitive
def logistic_expectations(mean: float, variance: float, mixture: FloatArray) -> tuple[float, float, float]:
    """Return E f(-z), E f'(z) and E log f(z) for z ~ N(mean, variance) and f logistic.

    The mixture of normals that approximates f makes all three analytic: a normal z only adds to the variances of the
    components, and -log f(z) = E max(L - z, 0) for a logistic L.
    """
    miss = slope = value = 0.0
    for i in range(mixture.shape[1]):
        deviation = math.sqrt(mixture[1, i] + variance)
        x = mean / deviation
        below = 0.5 * mixture[0, i] * math.erfc(x * _ROOT_HALF)
        density = mixture[0, i] * _NORMAL_DENSITY * math.exp(-0.5 * x * x)
        miss += below
        slope += density / deviation
        value += mean * below - deviation * density
    return miss, slope, value


@primitive
def curvature_bound(x: float) -> float:
    """Return tanh(x/2)/(2x), the curvature of the Jaakkola-Jordan parabola, which bounds -log f, tight at ±x."""
    return math.tanh(0.5 * x) / (2.0 * x) if x > 1e-4 else 0.25


@primitive
def logit(
    a: int,
    b: int,
    base: FloatArray,
    factors: FloatArray,
    mu: FloatArray,
    sigma: FloatArray,
    delta: FloatArray,
    sigma_delta: FloatArray,
) -> tuple[float, float]:
    """Return the mean and variance of the logit of a over b; write δ = V_a - V_b to `delta` and Σδ to `sigma_delta`."""
    mean, variance = base[a] - base[b], 0.0
    for i in range(len(mu)):
        delta[i] = factors[a, i] - factors[b, i]
        mean += delta[i] * mu[i]
    for i in range(len(mu)):
        sigma_delta[i] = 0.0
        for j in range(len(mu)):
            sigma_delta[i] += sigma[i, j] * delta[j]
        variance += delta[i] * sigma_delta[i]
    return mean, max(variance, 0.0)


@primitive
def add_square(matrix: FloatArray, factor: float, delta: FloatArray) -> None:
    """Add factor · δδ' to the matrix in place."""
    for i in range(len(delta)):
        for j in range(len(delta)):
            matrix[i, j] += factor * delta[i] * delta[j]


@kernel
def update_posteriors(
    start: int,
    stop: int,
    starts: IntArray,
    rows: IntArray,
    weight: FloatArray,
    offset: FloatArray,
    base: FloatArray,
    factors: FloatArray,
    precision: FloatArray,
    mixture: FloatArray,
    rounds: int,
    mean: FloatArray,
    covariance: FloatArray,
    evidence: FloatArray,
) -> None:
    """Update the Gaussian posterior of each person in place, and write evidence lower bounds.

    The updates maximise E log p(choices | z) - KL(q | prior) over q = N(μ, Σ). At the maximum
    Σ^-1 = prior precision + Σ E f' δδ'. μ moves by Newton steps. Far from the maximum the steps use
    `curvature_bound` in place of f', which prevents overshooting.
    """
    d = factors.shape[1]
    prior_log_determinant = np.linalg.slogdet(precision)[1]
    delta, sigma_delta = np.empty(d), np.empty(d)
    for p in range(start, stop):
        mu, sigma = mean[p], covariance[p]
        total = 0.0
        for iteration in range(rounds + 1):
            curvature, curvature_upper, gradient, total = precision.copy(), precision.copy(), -precision @ mu, 0.0
            for r in range(starts[p], starts[p + 1]):
                m, v = logit(rows[r, 0], rows[r, 1], base, factors, mu, sigma, delta, sigma_delta)
                m += offset[r]
                miss, slope, value = logistic_expectations(m, v, mixture)
                total += weight[r] * value
                gradient += weight[r] * miss * delta
                add_square(curvature, weight[r] * slope, delta)
                add_square(curvature_upper, weight[r] * curvature_bound(math.sqrt(m * m + v)), delta)
            step = np.linalg.solve(curvature, gradient)
            decrement = np.sum(step * gradient)
            is_close = decrement < _DECREMENT_TOLERANCE and abs(np.sum(sigma * curvature) - d) < _COVARIANCE_TOLERANCE
            if iteration == rounds or is_close:
                break
            # Damp the precision update by half: the undamped fixed-point iteration can diverge, because a larger
            # covariance lowers the curvature, which enlarges the covariance again.
            sigma[:] = np.linalg.inv(0.5 * (np.linalg.inv(sigma) + curvature))
            mu += step if decrement < 1.0 else np.linalg.solve(curvature_upper, gradient)
        divergence = np.sum(precision * sigma) + np.sum(mu * (precision @ mu)) - d - prior_log_determinant
        evidence[p] = total - 0.5 * (divergence - np.linalg.slogdet(sigma)[1])


@primitive
def add_block(matrix: FloatArray, i: int, j: int, factor: float, block: FloatArray) -> None:
    """Add a multiple of a (q, q) block at block row i and block column j, in place."""
    q = len(block)
    for a in range(q):
        for b in range(q):
            matrix[i * q + a, j * q + b] += factor * block[a, b]


@kernel
def accumulate_gradients(
    starts: IntArray,
    rows: IntArray,
    weight: FloatArray,
    offset: FloatArray,
    trust: FloatArray,
    base: FloatArray,
    factors: FloatArray,
    mixture: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
    slope_out: FloatArray,
    curve_out: FloatArray,
    offset_out: FloatArray,
) -> None:
    """Accumulate the gradient of E log p(choices) in (base, factors) of every item, and a bound on its curvature.

    `slope_out`, shape (n, q), holds the derivative by base, followed by those by the factors if q > 1. The bound is
    `curvature_bound` at the root of E z². `curve_out` has shape (nq, nq), or (nq, q) for a block-diagonal bound that
    holds twice the diagonal blocks, because (a - b)² <= 2a² + 2b². `offset_out`, shape (2,), holds the first and the
    negative second derivative by t, where each row's offset is t or -t.
    """
    d, q = factors.shape[1], slope_out.shape[1]
    is_full = curve_out.shape[1] > q
    delta, sigma_delta, gradient, point = np.empty(d), np.empty(d), np.empty(q), np.ones(q)
    for p in range(len(starts) - 1):
        point[1:] = mean[p, : q - 1]
        second = np.outer(point, point)
        second[1:, 1:] += covariance[p, : q - 1, : q - 1]
        for r in range(starts[p], starts[p + 1]):
            a, b = rows[r, 0], rows[r, 1]
            m, v = logit(a, b, base, factors, mean[p], covariance[p], delta, sigma_delta)
            m += offset[r]
            miss, slope, _ = logistic_expectations(m, v, mixture)
            choice_weight = weight[r] * trust[p]
            offset_out[0] += choice_weight * miss if offset[r] > 0.0 else -choice_weight * miss
            offset_out[1] += choice_weight * slope
            gradient[:] = choice_weight * miss * point
            gradient[1:] -= choice_weight * slope * sigma_delta[: q - 1]
            slope_out[a] += gradient
            slope_out[b] -= gradient
            bound = choice_weight * curvature_bound(math.sqrt(m * m + v))
            if is_full:
                add_block(curve_out, a, a, bound, second)
                add_block(curve_out, b, b, bound, second)
                add_block(curve_out, a, b, -bound, second)
                add_block(curve_out, b, a, -bound, second)
            else:
                add_block(curve_out, a, 0, 2.0 * bound, second)
                add_block(curve_out, b, 0, 2.0 * bound, second)
