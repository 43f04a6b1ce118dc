"""Tables of the information of an answer with three outcomes, for a Gaussian logit and a tie width.

A person who is offered a tie answers "first" with probability F(z) = lapse/3 + (1 - lapse) E f(e^(spread x) z - t), x
standard normal, "second" with probability F(-z), and otherwise calls a tie; t is the width. The information about
z = m + s u is the entropy of the mean probabilities minus the mean entropy. It is even in m but, unlike the information
of two outcomes, not monotone: for small s it peaks near m = ±t, where an answer turns into a tie.

The grids of k, lapse rate, s and m are those of `pairseek.numerics.mixtures`, and so is the interpolation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from scipy.special import entr, ndtr

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import LOGISTIC
from pairseek.numerics.tables import (
    LOGIT_GRID,
    M0,
    M_OCTAVES,
    S0,
    S_OCTAVES,
    Curve,
    axis,
    hermite_spline,
    link_functions,
    mixed_rule,
)

Curves: TypeAlias = tuple[Curve, Curve, Curve]

# Below _S_LOW e^(-2 spread) the first term of a series is accurate enough; from _S_HIGH on, the link is narrow relative
# to s.
_S_LOW, _S_HIGH = 1 / 16, 8.0
_NODES = 15
_MIN_PROBABILITY = 1e-300


def outcomes(
    z: FloatArray, link: int, width: float, spread: float = 0.0, lapse: float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the probabilities of "second" and of a tie at logits z of any shape, and their derivatives."""
    scale, weights = _factors(spread)
    steps = scale * z[..., None]
    above, _, slope_above, _, _ = link_functions(width - steps, link)
    below, _, slope_below, _, _ = link_functions(-width - steps, link)
    rest = (1.0 - lapse) * weights
    second, tie = below @ rest + lapse / 3.0, (above - below) @ rest + lapse / 3.0
    return second, tie, -(slope_below @ (rest * scale)), -((slope_above - slope_below) @ (rest * scale))


@lru_cache(maxsize=128)
def coarse_information(link: int, width: float, spread: float, lapse: float, steps: tuple[int, int]) -> FloatArray:
    """Return the square root of the information, in bits, at every steps[0]-th s (rows) and steps[1]-th m."""
    m, s = axis(M0, M_OCTAVES)[:: steps[1]], axis(S0, S_OCTAVES)[:: steps[0]]
    second, tie, slope, tie_slope = outcomes(m, link, width, spread, lapse)
    first = 1.0 - second - tie
    fisher = slope**2 / np.maximum(second, _MIN_PROBABILITY) + tie_slope**2 / np.maximum(tie, _MIN_PROBABILITY)
    fisher += (slope + tie_slope) ** 2 / np.maximum(first, _MIN_PROBABILITY)
    curves = _curves(link, width, spread, lapse)
    floor = float(_bits(np.array([1.0 - 2.0 * lapse / 3.0, lapse / 3.0, lapse / 3.0])))
    out = np.empty((len(s), len(m)))
    for row, deviation in enumerate(s.tolist()):
        if deviation < _S_LOW * np.exp(-2.0 * spread):
            out[row] = 0.5 * deviation**2 * fisher / np.log(2)
        elif deviation < _S_HIGH:
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
    second, tie, _, _ = outcomes(m + s * u, link, width, spread, lapse)
    return float(weights @ (1.0 - second - tie)), float(weights @ tie)


def _factors(spread: float) -> tuple[FloatArray, FloatArray]:
    x, weights = np.polynomial.hermite_e.hermegauss(_NODES if spread > 0.0 else 1)
    return np.exp(spread * x), weights / weights.sum()


def _bits(chances: FloatArray) -> FloatArray:
    """Return the entropy over the first axis, in bits."""
    return np.asarray(np.sum(entr(np.maximum(chances, 0.0)), axis=0) / np.log(2))


def _curves(link: int, width: float, spread: float, lapse: float) -> Curves:
    """Return the probabilities of "second" and of a tie, and the entropy in bits, as functions of z >= 0."""
    second, tie, slope, tie_slope = outcomes(LOGIT_GRID, link, width, spread, lapse)
    chances = np.stack([1.0 - second - tie, second, tie])
    slopes = np.stack([-slope - tie_slope, slope, tie_slope])
    bend = -np.sum(slopes * np.log2(np.maximum(chances, _MIN_PROBABILITY)), axis=0)
    return (
        hermite_spline(LOGIT_GRID, second, slope),
        hermite_spline(LOGIT_GRID, tie, tie_slope),
        hermite_spline(LOGIT_GRID, _bits(chances), bend),
    )


def _row(m: FloatArray, s: float, curves: Curves, spread: float, link: int) -> FloatArray:
    """Return the information at one s, by the trapezoidal rule over u."""
    u, weights = mixed_rule(s, spread, link)
    z = m[:, None] + s * u
    away = np.minimum(np.abs(z), LOGIT_GRID[-1])
    rare, tie = curves[0](away), curves[1](away)
    likely = 1.0 - rare - tie
    second, first = np.where(z > 0.0, rare, likely) @ weights, np.where(z > 0.0, likely, rare) @ weights
    return np.asarray(_bits(np.stack([first, second, tie @ weights])) - curves[2](away) @ weights)


def _wide_row(
    m: FloatArray, s: float, entropy: Curve, floor: float, model: tuple[int, float, float, float]
) -> FloatArray:
    """Return the information at one large s: entropy integrated over z, probabilities as if the link were probit."""
    link, width, spread, lapse = model
    scale, weights = _factors(spread)
    # Variance of the logistic or the normal distribution.
    variance = np.pi**2 / 3.0 if link == LOGISTIC else 1.0
    total = np.sqrt(s**2 + variance / scale**2)
    above, below = (ndtr((sign * m[:, None] - width / scale) / total) @ weights for sign in (1.0, -1.0))
    first, second = lapse / 3.0 + (1.0 - lapse) * above, lapse / 3.0 + (1.0 - lapse) * below
    z = LOGIT_GRID[::4]
    excess = (entropy(z) - floor) * np.gradient(z)
    z, excess = z[np.abs(excess) > 1e-12], excess[np.abs(excess) > 1e-12]
    density = sum(np.exp(-0.5 * ((sign * z - m[:, None]) / s) ** 2) for sign in (1.0, -1.0))
    conditional = floor + density @ excess / (s * np.sqrt(2.0 * np.pi))
    return np.asarray(_bits(np.stack([first, second, 1.0 - first - second])) - conditional)
