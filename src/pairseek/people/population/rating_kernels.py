"""Numba kernels of the E-step and the M-step of a fit to ratings.

A rating is the level of u + ε between cut points, where u = base_i + V_i·z + s is the utility of item i for a person at
z with the shift s, and ε has the Gumbel distribution G(x) = exp(-e^-x). The difference of two Gumbel variables is
logistic, so the order of two such sums has the probabilities of a paired choice. A level between the cut points a and b
has the likelihood G(b - u) - G(a - u). Its logarithm is -e^(u - b) + h(u + δ) with h(x) = log(1 - exp(-e^x)) and
δ = log(e^-a - e^-b); both terms are concave.

The posterior of (z, s) is approximated by expectation propagation (EP): a Gaussian site in u stands for each rating.
The tilted distribution of u, the Gaussian without the site times the likelihood, is integrated by Gauss-Hermite
quadrature. The gradient of the evidence by the parameters is an expectation over the tilted distributions. A
variational bound, as used for pairs, would underestimate the variance of people whose ratings have few levels.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.jit import exp_minus, inner, kernel, primitive

# Nodes and weights of the quadrature over a standard normal.
QUADRATURE = np.stack(hermegauss(11))
QUADRATURE[1] /= QUADRATURE[1].sum()
QUADRATURE.flags.writeable = False
# Utilities are clipped here before exponentiation, so that products stay finite.
_MAX_UTILITY = 60.0
# x is clipped at the largest argument of `exp_minus`, so that products x e^-x stay small.
_MAX_EXPONENT = 36.0
# Smallest probability of a rating whose tilted moments are computed; less likely ratings keep their sites.
_MIN_PROBABILITY = 1e-13
# Weight of the new site in an update.
_DAMPING = 0.8
# Largest share of a site in the precision of its marginal.
_MAX_SITE_SHARE = 0.95


@primitive
def tilted(mean: float, deviation: float, below: float, above: float, quadrature: FloatArray, out: FloatArray) -> None:
    """Integrate the likelihood of a rating over u ~ N(mean, deviation²), and write the results to `out`.

    `below` is e^-a of the cut point under the level, or negative for the lowest level, and `above` is e^-b of the cut
    point over it, or 0 for the highest. The results are the probability of the rating; the mean and the variance of
    (u - mean)/deviation given the rating; and the expectations of e^(u - b), h' and -h'' given the rating.
    """
    total = first = second = upper_sum = slope_sum = curve_sum = 0.0
    nodes = quadrature.shape[1]
    last = quadrature[0, nodes - 1]
    # Relative to the largest e^u, the others need e^-x only for positive x, which vectorises.
    largest = math.exp(min(mean + deviation * last, _MAX_UTILITY))
    if below < 0.0:
        for i in range(nodes):
            x = quadrature[0, i]
            upper_rate = min(above * largest * exp_minus(deviation * (last - x)), _MAX_EXPONENT)
            mass = quadrature[1, i] * exp_minus(upper_rate)
            total += mass
            first += mass * x
            second += mass * x * x
            upper_sum += mass * upper_rate
    else:
        for i in range(nodes):
            x = quadrature[0, i]
            scale = largest * exp_minus(deviation * (last - x))
            upper_rate, width = min(scale * above, _MAX_EXPONENT), min(scale * (below - above), _MAX_EXPONENT)
            decay = exp_minus(width)
            slope = width * decay / (1.0 - decay + 1e-12)
            mass = quadrature[1, i] * exp_minus(upper_rate) * (1.0 - decay)
            total += mass
            first += mass * x
            second += mass * x * x
            upper_sum += mass * upper_rate
            slope_sum += mass * slope
            curve_sum += mass * slope * (width - 1.0 + slope)
    out[0] = total
    if total > _MIN_PROBABILITY:
        out[1] = first / total
        out[2] = second / total - out[1] * out[1]
        out[3], out[4], out[5] = upper_sum / total, slope_sum / total, curve_sum / total


@inner
def marginal(factors: FloatArray, mu: FloatArray, sigma: FloatArray, sigma_factors: FloatArray) -> tuple[float, float]:
    """Return the mean and variance of factors·z for z ~ N(μ, Σ); write Σ factors to `sigma_factors`."""
    d = len(mu)
    mean, variance = 0.0, 0.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += sigma[i, j] * factors[j]
        sigma_factors[i] = total
        variance += factors[i] * total
        mean += factors[i] * mu[i]
    return mean, max(variance, 1e-8)


@inner
def cavity(mean: float, variance: float, precision: float, linear: float) -> tuple[float, float]:
    """Return the mean and variance of the cavity: the marginal without the site."""
    cavity_variance = variance / (1.0 - variance * min(precision, _MAX_SITE_SHARE / variance))
    return cavity_variance * (mean / variance - linear), cavity_variance


@inner
def add_site(
    total_precision: FloatArray, total_linear: FloatArray, factors: FloatArray, precision: float, linear: float
) -> None:
    """Add a site in factors·z to natural parameters; only the lower triangle of the precision is updated."""
    for i in range(len(factors)):
        total_linear[i] += linear * factors[i]
        share = precision * factors[i]
        for j in range(i + 1):
            total_precision[i, j] += share * factors[j]


@inner
def set_moments(total_precision: FloatArray, total_linear: FloatArray, mu: FloatArray, sigma: FloatArray) -> float:
    """Convert natural parameters to moments, and return twice the log normalising factor, up to a constant."""
    d = len(total_linear)
    for i in range(d):
        for j in range(i):
            total_precision[j, i] = total_precision[i, j]
    sigma[:] = np.linalg.inv(total_precision)
    mu[:] = sigma @ total_linear
    return float(np.sum(mu * total_linear) - np.linalg.slogdet(total_precision)[1])


@inner
def sweep(
    first: int,
    last: int,
    item: IntArray,
    level: IntArray,
    weight: FloatArray,
    base: FloatArray,
    factors: FloatArray,
    ends: FloatArray,
    quadrature: FloatArray,
    sites: FloatArray,
    mu: FloatArray,
    sigma: FloatArray,
    total_precision: FloatArray,
    total_linear: FloatArray,
) -> float:
    """Update the sites of one person, add them to the natural parameters, and return twice their log evidence."""
    sigma_factors, out, total = np.empty(len(mu)), np.zeros(6), 0.0
    for r in range(first, last):
        v = factors[item[r]]
        m, variance = marginal(v, mu, sigma, sigma_factors)
        cavity_mean, cavity_variance = cavity(m, variance, sites[r, 0], sites[r, 1])
        tilted(
            base[item[r]] + cavity_mean,
            math.sqrt(cavity_variance),
            ends[level[r], 0],
            ends[level[r], 1],
            quadrature,
            out,
        )
        log_ratio = (
            math.log(cavity_variance / variance) + cavity_mean * cavity_mean / cavity_variance - m * m / variance
        )
        total += weight[r] * (2.0 * math.log(max(out[0], _MIN_PROBABILITY)) + log_ratio)
        if out[0] > _MIN_PROBABILITY:
            tilted_variance = cavity_variance * min(max(out[2], 1e-4), 1.0)
            linear = (
                cavity_mean + math.sqrt(cavity_variance) * out[1]
            ) / tilted_variance - cavity_mean / cavity_variance
            sites[r, 0] += _DAMPING * (1.0 / tilted_variance - 1.0 / cavity_variance - sites[r, 0])
            sites[r, 1] += _DAMPING * (linear - sites[r, 1])
        add_site(total_precision, total_linear, v, weight[r] * sites[r, 0], weight[r] * sites[r, 1])
    return total


@kernel
def update_rating_posteriors(
    start: int,
    stop: int,
    starts: IntArray,
    item: IntArray,
    level: IntArray,
    weight: FloatArray,
    base: FloatArray,
    factors: FloatArray,
    ends: FloatArray,
    precision: FloatArray,
    linear: FloatArray,
    quadrature: FloatArray,
    rounds: int,
    sites: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
    evidence: FloatArray,
) -> None:
    """Update the sites of each person's ratings by parallel EP, and write the moments and the log evidence.

    `precision` and `linear` are the natural parameters of each person's Gaussian prior. `sites` holds the precision and
    the linear parameter of each site, as a function of factors·z. The evidence is the value before the last update. A
    rating of weight w stands for w equal ratings.
    """
    d = factors.shape[1]
    prior_mean, prior_covariance = np.empty(d), np.empty((d, d))
    for p in range(start, stop):
        prior_normaliser = set_moments(precision[p].copy(), linear[p].copy(), prior_mean, prior_covariance)
        total_precision, total_linear = precision[p].copy(), linear[p].copy()
        for r in range(starts[p], starts[p + 1]):
            add_site(total_precision, total_linear, factors[item[r]], weight[r] * sites[r, 0], weight[r] * sites[r, 1])
        total = set_moments(total_precision, total_linear, mean[p], covariance[p])
        for _ in range(rounds):
            total_precision, total_linear = precision[p].copy(), linear[p].copy()
            total += sweep(
                starts[p],
                starts[p + 1],
                item,
                level,
                weight,
                base,
                factors,
                ends,
                quadrature,
                sites,
                mean[p],
                covariance[p],
                total_precision,
                total_linear,
            )
            evidence[p] = 0.5 * (total - prior_normaliser)
            total = set_moments(total_precision, total_linear, mean[p], covariance[p])


@kernel
def accumulate_rating_gradients(
    start: int,
    stop: int,
    starts: IntArray,
    row: IntArray,
    person: IntArray,
    level: IntArray,
    weight: FloatArray,
    trust: FloatArray,
    base: FloatArray,
    factors: FloatArray,
    ends: FloatArray,
    sites: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
    quadrature: FloatArray,
    slope_out: FloatArray,
    curve_out: FloatArray,
    fisher_out: FloatArray,
    level_out: FloatArray,
    cross_out: FloatArray,
) -> None:
    """Accumulate derivatives of the log evidence for each item; ratings are sorted by item, and `row` indexes sites.

    `slope_out`, shape (n, q), holds the derivative by base, followed by those by the first q - 1 columns of the
    factors, `curve_out`, (n, q, q), the negative second derivatives of the complete-data likelihood, and `fisher_out`,
    (n, q, q), the sum over people of the outer products of their first derivatives. For each level, `level_out`,
    (n, levels, 3), holds the sums of e^(u - b), h' and -h'', and `cross_out`, (n, q, levels, 2), the sums of the first
    and the last multiplied by E (1, z).
    """
    d, q = factors.shape[1], slope_out.shape[1]
    sigma_factors, expected_features, derivative, out = np.empty(d), np.ones(q), np.empty(q), np.zeros(6)
    for i in range(start, stop):
        for r in range(starts[i], starts[i + 1]):
            p = person[r]
            count = weight[r] * trust[p]
            m, variance = marginal(factors[i], mean[p], covariance[p], sigma_factors)
            cavity_mean, cavity_variance = cavity(m, variance, sites[row[r], 0], sites[row[r], 1])
            tilted(
                base[i] + cavity_mean, math.sqrt(cavity_variance), ends[level[r], 0], ends[level[r], 1], quadrature, out
            )
            if count == 0.0 or out[0] <= _MIN_PROBABILITY:
                continue
            expected_features[1:] = mean[p, : q - 1]
            site_precision = (1.0 / min(max(out[2], 1e-4), 1.0) - 1.0) / cavity_variance
            add_rating(
                count,
                out[3:],
                site_precision,
                expected_features,
                sigma_factors,
                derivative,
                covariance[p],
                slope_out[i],
                curve_out[i],
                fisher_out[i],
                level_out[i, level[r]],
                cross_out[i, :, level[r]],
            )


@inner
def add_rating(
    count: float,
    terms: FloatArray,
    site_precision: float,
    expected_features: FloatArray,
    sigma_factors: FloatArray,
    derivative: FloatArray,
    sigma: FloatArray,
    slope: FloatArray,
    curve: FloatArray,
    fisher: FloatArray,
    sums: FloatArray,
    cross: FloatArray,
) -> None:
    """Add the derivatives of `count` equal ratings, and write the derivatives of one of them to `derivative`.

    `site_precision` is the precision of the rating's site, and `expected_features` is E (1, z).
    """
    q = len(expected_features)
    utility_derivative, curvature = terms[1] - terms[0], count * (terms[0] + terms[2])
    derivative[0] = utility_derivative
    for a in range(1, q):
        derivative[a] = utility_derivative * expected_features[a] - site_precision * sigma_factors[a - 1]
    for a in range(q):
        slope[a] += count * derivative[a]
        cross[a, 0] += count * terms[0] * expected_features[a]
        cross[a, 1] += count * terms[2] * expected_features[a]
        for b in range(q):
            curve[a, b] += curvature * expected_features[a] * expected_features[b]
            fisher[a, b] += count * derivative[a] * derivative[b]
    for a in range(1, q):
        for b in range(1, q):
            curve[a, b] += curvature * sigma[a - 1, b - 1]
    for a in range(3):
        sums[a] += count * terms[a]


@kernel
def add_shifts(
    start: int,
    stop: int,
    chunk: int,
    place: FloatArray,
    weight: FloatArray,
    counts: FloatArray,
    normal_matrices: FloatArray,
    normal_vectors: FloatArray,
    total: FloatArray,
) -> None:
    """Accumulate the normal equations of the shift, the last component, as a quadratic function of the others.

    `place` and `weight` are each person's points and their weights. `normal_matrices`, `normal_vectors` and `total`,
    the sum of squared shifts, have one row for each piece of `chunk` people. The features are 1, z_i, and z_i z_j for
    i <= j.
    """
    d, piece = place.shape[2] - 1, start // chunk
    features = np.ones(normal_matrices.shape[1])
    matrix, vector = normal_matrices[piece], normal_vectors[piece]
    for p in range(start, stop):
        for k in range(place.shape[1]):
            point, point_weight = place[p, k], counts[p] * weight[p, k]
            column = 1 + d
            for i in range(d):
                features[1 + i] = point[i]
                for j in range(i, d):
                    features[column] = point[i] * point[j]
                    column += 1
            for i in range(len(features)):
                weighted_feature = point_weight * features[i]
                vector[i] += weighted_feature * point[d]
                for j in range(len(features)):
                    matrix[i, j] += weighted_feature * features[j]
            total[piece] += point_weight * point[d] * point[d]


@kernel
def predict_ratings(
    start: int,
    stop: int,
    person: IntArray,
    item: IntArray,
    level: IntArray,
    base: FloatArray,
    factors: FloatArray,
    ends: FloatArray,
    quadrature: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
    out: FloatArray,
) -> None:
    """Write the log predictive probability of each rating under its person's posterior."""
    sigma_factors, moments = np.empty(factors.shape[1]), np.zeros(6)
    for r in range(start, stop):
        p, i = person[r], item[r]
        m, variance = marginal(factors[i], mean[p], covariance[p], sigma_factors)
        tilted(base[i] + m, math.sqrt(variance), ends[level[r], 0], ends[level[r], 1], quadrature, moments)
        out[r] = math.log(max(moments[0], _MIN_PROBABILITY))
