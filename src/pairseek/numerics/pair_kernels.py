"""Kernels over candidate pairs: their geometry under a belief, and expectations over samples."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.jit import LOGISTIC, exp_minus, kernel, primitive

# Codes of the noise kinds; `pairseek.model.noise` describes them.
CONSTANT = 0
NORMALIZED = 1
DECAYING = 2
PlaneArrays: TypeAlias = tuple[FloatArray, FloatArray]
"""Slopes (m, d) and offsets (m,) of candidates."""
MixtureArrays: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""Bases (S,), parts (Q, S) and ratios (Q,) of the link of each sample, base + Σ parts_q f(ratio_q z)."""
# Squared distance between two projections, relative to their squared norms, below which their difference loses too many
# digits.
_MIN_RELATIVE_SQUARE = 1e-4


@primitive
def pair_constant(length: float, k: float, noise: int) -> float:
    """Return k_pq for |a| = length > 0, by K1, K2 or K3 of the paper; NaN for an unknown noise kind."""
    if noise == CONSTANT:
        return k
    if noise == NORMALIZED:
        return k / length
    if noise == DECAYING:
        return k * math.exp(-length)
    return math.nan


@primitive
def steepest_length(low: float, high: float, noise: int) -> float:
    """Return the |a| between low and high that maximizes k_pq |a|."""
    return min(max(low, 1.0), high) if noise == DECAYING else high


@kernel
def write_projections(
    start: int, stop: int, points: FloatArray, mean: FloatArray, root: FloatArray, out: FloatArray
) -> None:
    """Write the projections 2 L'(x - μ) of points, for Σ = LL' and L = root; two projections are sqrt(a'Σa) apart.

    Subtracting the mean preserves the precision of items far from zero.
    """
    d = points.shape[1]
    for row in range(start, stop):
        out[row, :] = 0.0
        for h in range(d):
            x = 2.0 * (points[row, h] - mean[h])
            line = root[h]
            for c in range(d):
                out[row, c] += x * line[c]


@primitive
def projected_variance(p: FloatArray, q: FloatArray, root: FloatArray) -> float:
    """Return a'Σa = |2 L'(p - q)|², L = root, from p - q itself, which is precise for nearby points."""
    d = len(p)
    variance = 0.0
    for c in range(d):
        total = 0.0
        for h in range(d):
            total += root[h, c] * (p[h] - q[h])
        variance += total * total
    return 4.0 * variance


@kernel
def pair_geometry(
    start: int,
    stop: int,
    first: IntArray,
    second: IntArray,
    points: FloatArray,
    projections: FloatArray,
    belief: tuple[FloatArray, FloatArray],
    model: tuple[float, int],
    out: FloatArray,
) -> None:
    """Write rows a·μ - b, |a|, k_pq and a'Σa of pairs; ``belief`` is (mean, root of Σ), ``model`` (k, noise).

    The form a·μ - b = (p - q)·((μ - p) + (μ - q)) avoids the cancellation in |p|² - |q|². a'Σa is the squared distance
    between two projections, which have errors of at most (d + 1) ε times their norm. So sqrt(a'Σa) has a relative error
    of about 1.6e-14 (d + 1) if it is at least a hundredth of the norms; if it is smaller, it is computed from p - q.
    """
    mean, root = belief
    k, noise = model
    d = points.shape[1]
    for row in range(start, stop):
        p, q = points[first[row]], points[second[row]]
        y, v = projections[first[row]], projections[second[row]]
        margin = 0.0
        square = 0.0
        variance = 0.0
        norms = 0.0
        for h in range(d):
            difference = p[h] - q[h]
            margin += difference * ((mean[h] - p[h]) + (mean[h] - q[h]))
            square += difference * difference
            variance += (y[h] - v[h]) * (y[h] - v[h])
            norms += y[h] * y[h] + v[h] * v[h]
        if variance < _MIN_RELATIVE_SQUARE * norms:
            variance = projected_variance(p, q, root)
        length = 2.0 * math.sqrt(square)
        out[0, row] = margin
        out[1, row] = length
        out[2, row] = pair_constant(length, k, noise) if length > 0.0 or noise == CONSTANT else 0.0
        out[3, row] = variance


@primitive
def _logits(slope: FloatArray, offset: float, columns: FloatArray, z: FloatArray) -> None:
    """Write z = columns' slope + offset, four coordinates at a time."""
    d = columns.shape[0]
    z[:] = offset
    i = 0
    while i + 4 <= d:
        a, b, c, e = columns[i], columns[i + 1], columns[i + 2], columns[i + 3]
        p, q, r, t = slope[i], slope[i + 1], slope[i + 2], slope[i + 3]
        for s in range(len(z)):
            z[s] += p * a[s] + q * b[s] + r * c[s] + t * e[s]
        i += 4
    while i < d:
        a, p = columns[i], slope[i]
        for s in range(len(z)):
            z[s] += p * a[s]
        i += 1


@primitive
def _logistic_sums(z: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return Σ w f(z) and Σ w h_b(f(z)) in nats, for weights that sum to 1.

    With u = e^-|z|, the rarer outcome has probability u/(1 + u), and h_b = log(1 + u) + |z| u/(1 + u). The logarithm is
    2 atanh(y) with y = u/(2 + u) <= 1/3, from its series to 1e-9; both fractions share one division.
    """
    probability = 0.5
    entropy = 0.0
    for s in range(len(z)):
        # Beyond 36, exp_minus returns about 2e-16; multiplying that by an unlimited |z| would be wrong.
        size = min(abs(z[s]), 36.0)
        u = exp_minus(size)
        inverse = 1.0 / ((1.0 + u) * (2.0 + u))
        rare = u * (2.0 + u) * inverse
        y = u * (1.0 + u) * inverse
        q = y * y
        series = 1 / 9 + q * (1 / 11 + q * (1 / 13 + q * (1 / 15 + q / 17)))
        log1p = 2.0 * y * (1.0 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * series))))
        entropy += weights[s] * (log1p + size * rare)
        probability += weights[s] * ((0.5 - rare) if z[s] > 0.0 else (rare - 0.5))
    return probability, entropy


@primitive
def _probit_sums(z: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return Σ w Φ(z) and Σ w h_b(Φ(z)) in nats."""
    probability = 0.0
    entropy = 0.0
    for s in range(len(z)):
        f = 0.5 * math.erfc(-z[s] / math.sqrt(2.0))
        g = 0.5 * math.erfc(z[s] / math.sqrt(2.0))
        probability += weights[s] * f
        if f > 0.0 and g > 0.0:
            entropy -= weights[s] * (f * math.log(f) + g * math.log(g))
    return probability, entropy


@kernel
def expected_answer(
    start: int,
    stop: int,
    slopes: FloatArray,
    offsets: FloatArray,
    columns: FloatArray,
    weights: FloatArray,
    link: int,
    out: FloatArray,
) -> None:
    """Write rows E f(z) and E h_b(f(z)) (in nats) over weighted samples, for each candidate.

    ``columns`` is (d, S), the transposed samples, so that the inner loops run over contiguous memory. No array of size
    samples times candidates is allocated.
    """
    z = np.empty(columns.shape[1])
    for row in range(start, stop):
        _logits(slopes[row], offsets[row], columns, z)
        out[0, row], out[1, row] = _logistic_sums(z, weights) if link == LOGISTIC else _probit_sums(z, weights)


@kernel
def answer_moments(
    start: int,
    stop: int,
    slopes: FloatArray,
    offsets: FloatArray,
    columns: FloatArray,
    weights: FloatArray,
    link: int,
    out: FloatArray,
) -> None:
    """Write unnormalized moments of the samples after the answer "first": Σ w f, Σ w f x, Σ w f x x'.

    ``out`` is (m, 1 + d + d²).
    """
    f = np.empty(columns.shape[1])
    for row in range(start, stop):
        _logits(slopes[row], offsets[row], columns, f)
        for s in range(len(f)):
            f[s] = weights[s] * _link_value(f[s], link)
        _write_moments(f, columns, out[row])


@primitive
def _link_value(y: float, link: int) -> float:
    """Return f(y)."""
    if link == LOGISTIC:
        u = exp_minus(abs(y))
        return (1.0 if y > 0.0 else u) / (1.0 + u)
    return 0.5 * math.erfc(-y * math.sqrt(0.5))


@kernel
def expected_answer_mixed(
    start: int,
    stop: int,
    planes: PlaneArrays,
    columns: FloatArray,
    weights: FloatArray,
    mixture: MixtureArrays,
    link: int,
    out: FloatArray,
) -> None:
    """Compute `expected_answer` with a separate link for each sample: base + Σ parts_q f(ratio_q z).

    ``planes`` is (slopes (m, d), offsets (m,)); ``mixture`` is (bases (S,), parts (Q, S), ratios (Q,)).
    """
    slopes, offsets = planes
    bases, parts, ratios = mixture
    n = columns.shape[1]
    z = np.empty(n)
    probabilities = np.empty(n)
    for row in range(start, stop):
        _logits(slopes[row], offsets[row], columns, z)
        probabilities[:] = bases
        for q in range(len(ratios)):
            ratio, part = ratios[q], parts[q]
            for s in range(n):
                probabilities[s] += part[s] * _link_value(ratio * z[s], link)
        probability = 0.0
        entropy = 0.0
        for s in range(n):
            p = min(max(probabilities[s], 1e-300), 1.0 - 1e-16)
            probability += weights[s] * p
            entropy -= weights[s] * (p * math.log(p) + (1.0 - p) * math.log1p(-p))
        out[0, row], out[1, row] = probability, entropy


@kernel
def expected_answer_with_ties(
    start: int,
    stop: int,
    planes: PlaneArrays,
    columns: FloatArray,
    weights: FloatArray,
    mixture: MixtureArrays,
    width: float,
    link: int,
    out: FloatArray,
) -> None:
    """Write rows E P(first), E P(second) and the expected entropy of the three outcomes, in nats.

    Takes the arguments of `expected_answer_mixed`: P(first) = base + Σ parts_q f(ratio_q z - width).
    """
    slopes, offsets = planes
    bases, parts, ratios = mixture
    n = columns.shape[1]
    z = np.empty(n)
    for row in range(start, stop):
        _logits(slopes[row], offsets[row], columns, z)
        first = 0.0
        second = 0.0
        entropy = 0.0
        for s in range(n):
            p, q = bases[s], bases[s]
            for node in range(len(ratios)):
                p += parts[node, s] * _link_value(ratios[node] * z[s] - width, link)
                q += parts[node, s] * _link_value(-ratios[node] * z[s] - width, link)
            tie = 1.0 - p - q
            first += weights[s] * p
            second += weights[s] * q
            for probability in (p, q, tie):
                if probability > 0.0:
                    entropy -= weights[s] * probability * math.log(probability)
        out[0, row], out[1, row], out[2, row] = first, second, entropy


@kernel
def answer_moments_mixed(
    start: int,
    stop: int,
    planes: PlaneArrays,
    columns: FloatArray,
    weights: FloatArray,
    parameters: tuple[FloatArray, FloatArray],
    link: int,
    out: FloatArray,
) -> None:
    """Compute `answer_moments` with a separate k and lapse rate for each sample.

    ``parameters`` is (ratios of k to the typical k (S,), lapse rates (S,)).
    """
    slopes, offsets = planes
    ratios, lapses = parameters
    f = np.empty(columns.shape[1])
    for row in range(start, stop):
        _logits(slopes[row], offsets[row], columns, f)
        for s in range(len(f)):
            p = 0.5 * lapses[s] + (1.0 - lapses[s]) * _link_value(ratios[s] * f[s], link)
            f[s] = weights[s] * p
        _write_moments(f, columns, out[row])


@primitive
def _write_moments(f: FloatArray, columns: FloatArray, out: FloatArray) -> None:
    """Write Σ f, Σ f x, Σ f x x'."""
    d = len(columns)
    total = 0.0
    for s in range(len(f)):
        total += f[s]
    out[0] = total
    for i in range(d):
        a = columns[i]
        total = 0.0
        for s in range(len(f)):
            total += f[s] * a[s]
        out[1 + i] = total
        for h in range(i, d):
            b = columns[h]
            total = 0.0
            for s in range(len(f)):
                total += f[s] * a[s] * b[s]
            out[1 + d + i * d + h] = total
            out[1 + d + h * d + i] = total
