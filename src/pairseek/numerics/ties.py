"""Tables of the information of an answer with three outcomes, for a Gaussian logit and a tie width.

With the width t, a person answers "first" with probability F(z) = lapse/3 + (1 - lapse) E f(e^(spread x) z - t), x
standard normal, "second" with probability F(-z), and otherwise calls a tie. The information about z = m + s u is the
entropy of the mean probabilities minus the mean entropy. It is even in m but, unlike the information of two outcomes,
not monotone: for small s it peaks near m = ±t, where an answer turns into a tie.

`pairseek.numerics.mixtures` defines the grids of k, lapse rate, s and m, and interpolates.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from scipy.special import entr, ndtr

from pairseek.core.types import FloatArray
from pairseek.numerics.constants import LOGISTIC_VARIANCE
from pairseek.numerics.jit import LOGISTIC
from pairseek.numerics.tables import (
    LOGIT_GRID,
    M0,
    M_OCTAVES,
    MIN_PROBABILITY,
    S0,
    S_OCTAVES,
    SERIES_MAX_S,
    Curve,
    grid_axis,
    hermite_spline,
    k_rule,
    link_functions,
    normal_rule,
)

Curves: TypeAlias = tuple[Curve, Curve, Curve]

# From this s on, the link is narrow relative to s.
_MIN_WIDE_S = 8.0


def outcome_probabilities(
    z: FloatArray, link: int, width: float, spread: float = 0.0, lapse: float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the probabilities of "second" and of a tie at logits z of any shape, and their derivatives."""
    factors, weights = k_rule(spread)
    logits = factors * z[..., None]
    not_first, _, not_first_slope, _, _ = link_functions(width - logits, link)
    second, _, second_slope, _, _ = link_functions(-width - logits, link)
    weights = (1.0 - lapse) * weights
    mean_second, mean_tie = second @ weights + lapse / 3.0, (not_first - second) @ weights + lapse / 3.0
    slope_weights = weights * factors
    return mean_second, mean_tie, -(second_slope @ slope_weights), -((not_first_slope - second_slope) @ slope_weights)


@lru_cache(maxsize=128)
def coarse_information(link: int, width: float, spread: float, lapse: float, strides: tuple[int, int]) -> FloatArray:
    """Return the square root of the information, in bits, at every strides[0]-th s (rows) and strides[1]-th m."""
    m, s = grid_axis(M0, M_OCTAVES)[:: strides[1]], grid_axis(S0, S_OCTAVES)[:: strides[0]]
    second, tie, slope, tie_slope = outcome_probabilities(m, link, width, spread, lapse)
    first = 1.0 - second - tie
    fisher = slope**2 / np.maximum(second, MIN_PROBABILITY) + tie_slope**2 / np.maximum(tie, MIN_PROBABILITY)
    fisher += (slope + tie_slope) ** 2 / np.maximum(first, MIN_PROBABILITY)
    curves = _curves(link, width, spread, lapse)
    floor = float(_entropy_bits(np.array([1.0 - 2.0 * lapse / 3.0, lapse / 3.0, lapse / 3.0])))
    out = np.empty((len(s), len(m)))
    for row, deviation in enumerate(s.tolist()):
        if deviation < SERIES_MAX_S * np.exp(-2.0 * spread):
            out[row] = 0.5 * deviation**2 * fisher / np.log(2)
        elif deviation < _MIN_WIDE_S:
            out[row] = _row(m, deviation, curves, spread, link)
        else:
            out[row] = _wide_row(m, deviation, curves[2], floor, (link, width, spread, lapse))
    return np.sqrt(np.maximum(out, 0.0))


def expected_outcomes(
    m: float, s: float, link: int, width: float, spread: float = 0.0, lapse: float = 0.0
) -> tuple[float, float]:
    """Return the probabilities of "first" and of a tie for one Gaussian logit, by the trapezoidal rule."""
    u = np.linspace(-8.0, 8.0, 2001)
    weights = np.exp(-0.5 * u**2) / np.exp(-0.5 * u**2).sum()
    second, tie, _, _ = outcome_probabilities(m + s * u, link, width, spread, lapse)
    return float(weights @ (1.0 - second - tie)), float(weights @ tie)


def _entropy_bits(probabilities: FloatArray) -> FloatArray:
    """Return the entropy over the first axis, in bits."""
    return np.asarray(np.sum(entr(np.maximum(probabilities, 0.0)), axis=0) / np.log(2))


def _curves(link: int, width: float, spread: float, lapse: float) -> Curves:
    """Return the probabilities of "second" and of a tie, and the entropy in bits, as functions of z >= 0."""
    second, tie, slope, tie_slope = outcome_probabilities(LOGIT_GRID, link, width, spread, lapse)
    probabilities = np.stack([1.0 - second - tie, second, tie])
    slopes = np.stack([-slope - tie_slope, slope, tie_slope])
    entropy_slope = -np.sum(slopes * np.log2(np.maximum(probabilities, MIN_PROBABILITY)), axis=0)
    return (
        hermite_spline(LOGIT_GRID, second, slope),
        hermite_spline(LOGIT_GRID, tie, tie_slope),
        hermite_spline(LOGIT_GRID, _entropy_bits(probabilities), entropy_slope),
    )


def _row(m: FloatArray, s: float, curves: Curves, spread: float, link: int) -> FloatArray:
    """Return the information at one s, by the trapezoidal rule over u."""
    u, weights = normal_rule(s, spread, link)
    z = m[:, None] + s * u
    magnitude = np.minimum(np.abs(z), LOGIT_GRID[-1])
    rare, tie = curves[0](magnitude), curves[1](magnitude)
    likely = 1.0 - rare - tie
    second, first = np.where(z > 0.0, rare, likely) @ weights, np.where(z > 0.0, likely, rare) @ weights
    return np.asarray(_entropy_bits(np.stack([first, second, tie @ weights])) - curves[2](magnitude) @ weights)


def _wide_row(
    m: FloatArray, s: float, entropy: Curve, floor: float, parameters: tuple[int, float, float, float]
) -> FloatArray:
    """Return the information at one large s: entropy integrated over z, probabilities as if the link were probit."""
    link, width, spread, lapse = parameters
    factors, weights = k_rule(spread)
    # Variance of the logistic or the normal distribution.
    variance = LOGISTIC_VARIANCE if link == LOGISTIC else 1.0
    deviation = np.sqrt(s**2 + variance / factors**2)
    above, below = (ndtr((sign * m[:, None] - width / factors) / deviation) @ weights for sign in (1.0, -1.0))
    first, second = lapse / 3.0 + (1.0 - lapse) * above, lapse / 3.0 + (1.0 - lapse) * below
    z = LOGIT_GRID[::4]
    excess = (entropy(z) - floor) * np.gradient(z)
    z, excess = z[np.abs(excess) > 1e-12], excess[np.abs(excess) > 1e-12]
    density = sum(np.exp(-0.5 * ((sign * z - m[:, None]) / s) ** 2) for sign in (1.0, -1.0))
    conditional = floor + density @ excess / (s * np.sqrt(2.0 * np.pi))
    return np.asarray(_entropy_bits(np.stack([first, second, 1.0 - first - second])) - conditional)
