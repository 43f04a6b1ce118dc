"""Bounds of the paper: the smallest error of any search, and the stopping time of EPMV.

Theorem numbers refer to "Active embedding search via noisy paired comparisons" (Canal, Massimino, Davenport and Rozell,
2019), section 3 and its supplement. Entropies and information are in bits, and *volume* is the paper's
|Σ|^(1/d), the geometric mean of the posterior variances.

The paper takes the uniform prior on [-1/2, 1/2]^d, whose entropy is 0. Here a prior may have any entropy h0,
which shifts every threshold on entropy: a search gains the information Z = h0 - h, so that "h <= -τ" becomes
"Z >= τ + h0". A wider prior needs more answers to reach the same volume, but gains more from each.

`mse_lower_bound` holds for every prior. `entropy_bounds`, `information_lower_bound` and `mean_cut_bounds` hold for
every log-concave posterior, and so for uniform and Gaussian priors unless there are lapses or k is unknown.
`stopping_time_bounds` and `stopping_order` are proved for a `UniformBox`, as in the paper, and reject other priors.

All bounds assume the logistic model, without ties and skips. The bounds on information and on stopping also hold for
the probit model with the same k: there Φ(z) is farther from 1/2 than the logistic f(z), and otherwise the proofs only
use the symmetry of f.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import entr

from pairseek.errors import InvalidParameter, Unsupported
from pairseek.model.priors import Prior, UniformBox

TWO_PI_E = 2.0 * math.pi * math.e
LN_2 = math.log(2.0)
LARGEST_C = 2.0 / 3.0
"""Upper limit of the best c: 1 - h_b(f(z)) grows at most like z², and (1 - c) c² has its maximum here."""
MEAN_CUT_DEFINED_ABOVE = math.e * LN_2
"""The kσ at which 1/e = ln 2/(kσ), about 1.884: the mean-cut proposition requires a larger kσ."""
MEAN_CUT_INFORMATIVE_ABOVE = 5.855946480538432
"""The kσ at which the mean-cut proposition's bound on information is 0; below it, the bound is negative and vacuous."""


def _checked_positive(name: str, value: float, *, allow_infinite: bool = False) -> float:
    number = float(value)
    if not number > 0 or (math.isinf(number) and not allow_infinite):
        raise InvalidParameter(f"{name} is {value!r}: give a {'' if allow_infinite else 'finite '}number above 0")
    return number


def _checked_dimensions(d: int, least: int) -> int:
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < least:
        raise InvalidParameter(f"d is {d!r}: this bound needs a whole number of dimensions, at least {least}")
    return int(d)


def _box_entropy(prior: Prior, d: int, result: str) -> float:
    if not isinstance(prior, UniformBox):
        raise Unsupported(
            f"{result} is proved only for a uniform prior, received {type(prior).__name__}: give a UniformBox, or use "
            f"mse_lower_bound, which holds for any prior"
        )
    return prior.entropy_bits(d)


def _certainty(logit: float) -> float:
    """Return 1 - h_b(f(z)) in bits for z >= 0, to full relative precision: it is z²/(8 ln 2) near 0."""
    if logit < 1.0:
        # z tanh(z/2)/2 - ln cosh(z/2), because the plain form would subtract two numbers close to 1
        return (0.5 * logit * math.tanh(0.5 * logit) - math.log1p(2.0 * math.sinh(0.25 * logit) ** 2)) / LN_2
    odds = math.exp(-logit)
    expected_logit = logit * odds / (1.0 + odds) if odds > 0.0 else 0.0
    return 1.0 - (math.log1p(odds) + expected_logit) / LN_2


def _entropy_constant(d: int) -> float:
    """Return c_d of Lemma 3.1."""
    return math.e**2 * d**2 / (4.0 * math.sqrt(2.0) * (d + 2))


def mse_lower_bound(answers: int, prior: Prior, d: int) -> float:
    """Return the smallest mean squared error of any strategy and any estimator (Theorem 3.2).

    E|W - Ŵ|² >= d 2^(2(h0 - i)/d) / (2πe) after i answers, averaged over user points drawn from the prior and
    over answers. The proof only needs a finite entropy h0 and at most one bit per answer, so the bound holds for every
    prior, every response model and every d >= 1. For a Gaussian prior with equal variances it is attained before the
    first answer.

    Parameters
    ----------
    answers
        Number of answers i, at least 0.
    prior
        Distribution of the user points.
    d
        Number of dimensions.

    Examples
    --------
    >>> round(mse_lower_bound(20, UniformBox(-1.0, 1.0), 4), 6)
    0.000915
    """
    d = _checked_dimensions(d, 1)
    if isinstance(answers, bool) or not isinstance(answers, int | np.integer) or answers < 0:
        raise InvalidParameter(f"answers is {answers!r}: give a whole number, at least 0")
    return d * math.exp2(2.0 * (prior.entropy_bits(d) - int(answers)) / d) / TWO_PI_E


def entropy_bounds(covariance: npt.ArrayLike) -> tuple[float, float]:
    """Return bounds on the entropy, in bits, of a log-concave density with this covariance (Lemma 3.1).

    (d/2) log2(2 |Σ|^(1/d) / (e² c_d)) <= h <= (d/2) log2(2πe |Σ|^(1/d)), c_d = e² d² / (4 √2 (d + 2)). A
    posterior is log-concave if k is known and there are no lapses. The upper bound holds for any density, and a
    Gaussian attains it.

    Parameters
    ----------
    covariance
        (d, d), symmetric and positive definite, d >= 2.
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise InvalidParameter(f"covariance has shape {matrix.shape}: give a (d, d) matrix with d at least 2")
    if not np.all(np.isfinite(matrix)) or not np.allclose(matrix, matrix.T):
        raise InvalidParameter(f"covariance is {matrix.tolist()}: give a symmetric matrix of finite numbers")
    if np.linalg.eigvalsh(matrix)[0] <= 0:
        raise InvalidParameter(f"covariance is {matrix.tolist()}: give a positive definite matrix")
    d = len(matrix)
    volume_bits = float(np.linalg.slogdet(matrix)[1]) / LN_2 / d
    lower = 0.5 * d * (1.0 + volume_bits - math.log2(math.e**2 * _entropy_constant(d)))
    return lower, 0.5 * d * (math.log2(TWO_PI_E) + volume_bits)


def information_lower_bound(sigma: float, k: float, c: float) -> float:
    """Return a lower bound on the information, in bits, of the answer to an equiprobable query (Proposition 3.3).

    L_{c,k}(σ) = (1 - h_b(f(c k σ / 2))) (1 - c), for any c from 0 to 1; it increases with k σ.

    Parameters
    ----------
    sigma
        sqrt(a'Σa), the standard deviation of a·w.
    k
        Noise constant k_pq of the pair; k_pq |a| if `sigma` is the standard deviation of w along a/|a|.
    c
        Constant from 0 to 1; `best_information_lower_bound` chooses the best one.
    """
    for name, value in (("sigma", sigma), ("k", k)):
        if not (math.isfinite(value) and value >= 0):
            raise InvalidParameter(f"{name} is {value!r}: give a finite number, at least 0")
    if not 0 <= c <= 1:
        raise InvalidParameter(f"c is {c!r}: give a number from 0 to 1")
    return _certainty(0.5 * c * k * sigma) * (1.0 - c)


def best_information_lower_bound(sigma: float, k: float) -> tuple[float, float]:
    """Return the maximum of L_{c,k}(σ) over c, and the c that attains it.

    c is 2/3 for small kσ, and decreases like log(kσ)/(kσ) for large kσ, where the bound approaches 1 bit.
    """
    information_lower_bound(sigma, k, LARGEST_C)  # validates both arguments
    logit = 0.5 * k * sigma
    if math.isinf(logit):
        return 1.0, 0.0
    if logit < 1e-100:  # the square would underflow: use the limit
        return information_lower_bound(sigma, k, LARGEST_C), LARGEST_C
    c = _best_c(lambda c: -math.log(_certainty(c * logit)) - math.log1p(-c), logit)
    return information_lower_bound(sigma, k, c), c


def _best_c(loss: Callable[[float], float], logit: float) -> float:
    """Return the c that minimizes a loss that depends on c through 1 - c and c times the logit.

    The search is over log c, because the best c is of the order of log(logit)/logit.
    """
    optimum = scipy.optimize.minimize_scalar(
        lambda log_c: loss(math.exp(log_c)),
        bounds=(math.log(1e-3 / (1.0 + logit)), math.log(LARGEST_C)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return math.exp(float(optimum.x))


@dataclass(frozen=True, slots=True)
class StoppingTimeBounds:
    """Bounds on the expected number of answers until the posterior volume is below a threshold.

    Attributes
    ----------
    tau_1, tau_2
        Bits of information at which the volume can be below the threshold, and at which it must be.
    lower
        max(tau_1, 0): no strategy needs fewer answers on average.
    upper
        Upper bound on the mean number of answers of EPMV; 0 if the prior is below the threshold.
    c
        Constant of `information_lower_bound` that minimizes `upper`; 0 if none is needed (no noise, or nothing to ask).
    """

    tau_1: float
    tau_2: float
    lower: float
    upper: float
    c: float


def stopping_time_bounds(volume: float, k_min: float, prior: Prior, d: int) -> StoppingTimeBounds:
    """Return bounds on E[T], T the first i with |Σ_i|^(1/d) < volume (Theorem 3.4).

    τ_1 <= E[T] <= τ_2 + (τ_2 + 1)/l(τ_2) - (1/l(τ_2)) ∫_0^τ_2 l(x) dx. The lower bound holds for any strategy, the
    upper bound for EPMV with free choice of the plane (a `Space`); both average over the prior. The theorem holds for
    every c in (0, 1); this function uses the c with the lowest upper bound.

    Parameters
    ----------
    volume
        The paper's ε, in squared units of the coordinates.
    k_min
        Smallest k_pq |a| of any query: k itself for normalized noise. May be infinite.
    prior
        A `UniformBox`, possibly with different sides.
    d
        Number of dimensions, at least 2.

    Notes
    -----
    For a box of entropy h0, the proof applies to Z_i = h0 - h_i: Z_0 = 0, and Z_i >= 0 because the uniform density
    maximizes the entropy on a box. By Lemma 3.1, volume < ε is possible once Z_i >= τ_1 and certain once
    Z_i >= τ_2, with τ_1 = h0 - (d/2) log2(2πe ε) and τ_2 = h0 + (d/2) log2(e² c_d / (2ε)). The largest
    eigenvalue of Σ_i is at least 2^(2 h_i/d) / (2πe), so an answer at Z_i = x gives at least
    l(x) = L_{c,k_min}(2^((h0 - x)/d) / sqrt(2πe)) bits. The rest is as in the supplement. Stretching space by s
    adds d log2 s to h0; with ε s² and k_min/s, the bounds do not change.

    The upper bound is given as published. Its proof assumes an expected overshoot of at most 1, E[Z_T] <= τ_2 + 1, as
    if T - 1 were a stopping time; the supplement's Lemma A.2 only guarantees γ(d) = 8d + (d/2) log2(2πe d) + 1 instead.

    It is a worst-case bound, not a forecast: at the noise level of the paper's experiments it exceeds a million
    answers, and it only drops to about a hundred when k_min is near 1000.

    Examples
    --------
    >>> box = UniformBox(-1.0, 1.0)
    >>> [round(stopping_time_bounds(0.01, k, box, 4).upper) for k in (1.56, 1000.0)]
    [34682265, 101]
    """
    d = _checked_dimensions(d, 2)
    volume = _checked_positive("volume", volume)
    k_min = _checked_positive("k_min", k_min, allow_infinite=True)
    entropy = _box_entropy(prior, d, "the bound on the stopping time")
    tau_1 = entropy - 0.5 * d * math.log2(TWO_PI_E * volume)
    tau_2 = entropy + 0.5 * d * math.log2(math.e**2 * _entropy_constant(d) / (2.0 * volume))
    if math.exp2(2.0 * entropy / d) / 12.0 < volume:
        upper, c = 0.0, 0.0
    else:
        # Half of k_min times the smallest standard deviation at Z = τ_2, which does not depend on the prior.
        logit = 0.5 * k_min * math.sqrt(volume / (math.pi * math.e**3 * _entropy_constant(d)))
        upper, c = _epmv_upper(tau_2, logit, d)
    return StoppingTimeBounds(tau_1, tau_2, max(tau_1, 0.0), upper, c)


def _epmv_upper(tau: float, logit: float, d: int) -> tuple[float, float]:
    """Return the upper bound of Theorem 3.4 and its best c; l(x) = (1 - c) certainty(c logit 2^((τ - x)/d))."""
    if math.isinf(logit):
        return tau + 1.0, 0.0

    def upper(c: float) -> float:
        final_certainty = _certainty(c * logit)
        if final_certainty == 0.0:
            return math.inf
        area, _ = scipy.integrate.quad(
            lambda x: _certainty(c * logit * math.exp2((tau - x) / d)), 0.0, tau, epsabs=0.0, epsrel=1e-10
        )
        return tau + ((tau + 1.0) / (1.0 - c) - float(area)) / final_certainty

    if logit < 1e-100:  # 1/l overflows; c is 2/3 to double precision
        return upper(LARGEST_C), LARGEST_C
    c = _best_c(lambda c: math.log(upper(c)), logit)
    return upper(c), c


@dataclass(frozen=True, slots=True)
class StoppingOrder:
    """Two terms whose sum is the order of growth of EPMV's expected stopping time, and a bound with explicit constants.

    Attributes
    ----------
    information
        d log2(1/ε): the cost for any strategy, since an answer gives at most one bit.
    noise
        d² log2(1/ε) / (ε k_min²): the additional cost of unreliable answers.
    balanced_k
        The k_min at which both terms are equal, sqrt(d/ε). Above it, more reliable answers help little.
    upper
        Closed-form bound on E[T], looser than the bound of `stopping_time_bounds`.
    c
        Constant in (0, 2/3] that minimizes `upper`.
    """

    information: float
    noise: float
    balanced_k: float
    upper: float
    c: float


def stopping_order(volume: float, k_min: float, prior: Prior, d: int) -> StoppingOrder:
    """Return the growth rates of the expected stopping time of EPMV (Theorem 3.5 and Corollary 3.1).

    E[T] = O(d log(1/ε) + d² log(1/ε) / (ε k_min²)), where no strategy is better than Ω(d log(1/ε)). With
    reliable answers (k_min well above sqrt(d/ε)), the second term vanishes and EPMV is optimal up to a constant factor;
    without noise this holds for every volume (the corollary). With unreliable answers the number grows like 1/ε, and
    halving k_min quadruples it.

    The terms are orders of growth: use them for ratios between settings, not as counts. `upper` is a count,
    (τ_2 + 1)(32πe³ c_d/ε + c² k_min²) / ((1 - c) c² k_min²), the supplement's last step before the O, with the
    minimizing c, the root of k_min² c³ = 32πe³ c_d/ε (2 - 3c).

    Parameters
    ----------
    volume
        As in `stopping_time_bounds`. The terms are in units of the prior: ε is volume / 2^(2 h0/d).
    k_min
        As in `stopping_time_bounds`, multiplied by 2^(h0/d), the side of the box.
    prior
        As in `stopping_time_bounds`.
    d
        As in `stopping_time_bounds`.
    """
    d = _checked_dimensions(d, 2)
    volume = _checked_positive("volume", volume)
    k_min = _checked_positive("k_min", k_min, allow_infinite=True)
    entropy = _box_entropy(prior, d, "the order of the stopping time")
    side = math.exp2(entropy / d)
    relative = volume / side**2
    if relative >= 1.0:
        raise InvalidParameter(
            f"volume is {volume:g}, but the order needs one below the square of the prior's side ({side:g}): give less "
            f"than the prior's own volume, {side**2 / 12:g}"
        )
    information = d * math.log2(1.0 / relative)
    noise = information * d / relative / (k_min * side) / (k_min * side)
    tau_2 = entropy + 0.5 * d * math.log2(math.e**2 * _entropy_constant(d) / (2.0 * volume))
    root = k_min * math.sqrt(volume / (32.0 * math.pi * math.e**3 * _entropy_constant(d)))
    if math.isinf(root):
        c, excess = 0.0, 0.0
    else:
        # Solves the cubic root² c³ + 3c - 2 = 0 by sinh(3t) = 4 sinh³(t) + 3 sinh(t).
        c = 2.0 * math.sinh(math.asinh(root) / 3.0) / root
        excess = 1.0 / (root * c) / (root * c)
    upper = (tau_2 + 1.0) * (1.0 + excess) / (1.0 - c)
    return StoppingOrder(information, noise, math.sqrt(d / relative) / side, upper, c)


@dataclass(frozen=True, slots=True)
class MeanCutBounds:
    """Bounds for a query whose plane contains the posterior mean.

    Attributes
    ----------
    deviation
        Largest difference between 1/2 and the probability of either answer; below 1/2.
    information
        Lower bound on the information of the answer, in bits; negative, and therefore vacuous, for kσ below
        `MEAN_CUT_INFORMATIVE_ABOVE`.
    """

    deviation: float
    information: float


def mean_cut_bounds(k_sigma: float) -> MeanCutBounds:
    """Return bounds on the answer to a mean-cut query, which MCMV approximates (Proposition 3.6).

    |P(Y) - 1/2| <= (e - 2)/(2e) + ln 2/(kσ) and I >= h_b(1/e - ln 2/(kσ)) - π² log2(e)/(3kσ). For large kσ they
    approach 0.132 and 0.949 bits.

    Parameters
    ----------
    k_sigma
        k_pq sqrt(a'Σa), above e ln 2 = 1.884, where 1/e - ln 2/(kσ) is a probability. Smaller values are an error: the
        bound on the probability would be vacuous, and the bound on the information undefined. From there up to 5.856,
        the bound on the probability is informative, but the bound on the information is negative.
    """
    k_sigma = _checked_positive("k_sigma", k_sigma, allow_infinite=True)
    if k_sigma <= MEAN_CUT_DEFINED_ABOVE:
        raise InvalidParameter(
            f"k_sigma is {k_sigma:g}: the mean-cut bounds hold only above e ln 2 = "
            f"{MEAN_CUT_DEFINED_ABOVE:.4g}; take a more reliable or wider query"
        )
    least_probability = 1.0 / math.e - LN_2 / k_sigma
    # Near the end of the range the difference may round to 0 or below, where h_b is 0 anyway.
    probability = max(least_probability, 0.0)
    entropy = float(entr(probability) + entr(1.0 - probability)) / LN_2
    return MeanCutBounds(0.5 - least_probability, entropy - math.pi**2 / (3.0 * LN_2 * k_sigma))
