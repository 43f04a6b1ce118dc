"""Two-dimensional tables of the utilities of an answer whose logit is Gaussian.

Let z = m + s u with u standard normal, and y an answer with P(y = 1) = f(z). If the posterior marginal along a pair's
normal is close to Gaussian, the utilities depend on the pair only through the mean m of the logit and its standard
deviation s = k_pq sqrt(a'Σa):

=============  =================================================================
probability    P = E f(z)
information    h_b(P) - E h_b(f(z)), in bits (equation 4 of the paper)
explained      Var(E[u | y]), the fraction of the variance of u that the answer explains
log_volume     E log Var(u | y), the expected change of the log determinant
=============  =================================================================

By Stein's lemma E[u f(z)] = s E f'(z) and E[(u² - 1) f(z)] = s² E f''(z), so the last two need only
expectations of derivatives. All are even in m, if P is the probability of the likelier outcome.

The grid follows the representation of floating-point numbers: 16 steps per doubling of m + M0 and s + S0. The leading
bits of a number select the cell and the others the position within it, so a look-up needs no logarithm. Interpolation
preserves monotonicity in both directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import LOGISTIC, kernel, primitive

Curve: TypeAlias = Callable[[FloatArray], FloatArray]

M0 = 2.0**-3
"""Offset added to m, which makes the grid even near m = 0 and geometric far from it."""
M_OCTAVES = 17
"""Number of doublings of m + M0 that the grid covers."""
S0 = 2.0**-10
"""Offset added to s, like `M0`."""
S_OCTAVES = 20
"""Number of doublings of s + S0 that the grid covers."""
S_MAX = S0 * 2.0**S_OCTAVES - S0
"""Beyond this s, f is a step on the scale of s, and only m/s matters."""
LOGIT_GRID = 1e-3 * np.sinh(np.linspace(0.0, 17.5, 4000))
"""Grid of |z| on which a mixture of links is tabulated: dense near 0, where the link is steepest."""
SERIES_MAX_S = 1 / 16
"""Largest s e^(2 spread) at which the first term of the series in s is accurate enough."""
MIN_PROBABILITY = 1e-300
"""Floor of probabilities in denominators and logarithms."""

# An octave has 2^_STEP_BITS cells.
_STEP_BITS = 4
# Low bits of a floating-point number that give the position within its cell.
_POSITION_BITS = 52 - _STEP_BITS
_POSITIONS_PER_CELL = float(2**_POSITION_BITS)
_M0_BITS = int(np.float64(M0).view(np.int64))
_S0_BITS = int(np.float64(S0).view(np.int64))
_LAST_ROW = np.int64((S_OCTAVES << _STEP_BITS) - 1)
_LAST_COLUMN = np.int64((M_OCTAVES << _STEP_BITS) - 1)
# Below this probability of the rarer outcome, its contribution to a utility underflows.
_MIN_RARE_PROBABILITY = 1e-250
# Nodes of Gauss-Hermite quadrature over log k.
_LOG_K_NODES = 15


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables, indexed by (s, m), of the functions in the module docstring."""

    probability: FloatArray
    information: FloatArray
    explained: FloatArray
    log_volume: FloatArray


@lru_cache(maxsize=2)
def tables(link: int) -> Tables:
    """Return the tables of a link, computed at first use (about 0.2 s)."""
    m, s = grid_axis(M0, M_OCTAVES), grid_axis(S0, S_OCTAVES)
    out = np.empty((4, len(s), len(m)))
    for row, deviation in enumerate(s):
        out[:, row] = utilities_at(m, float(deviation), link)
    # Branch and bound relies on exact monotonicity, so rounding errors must not break it.
    out[0] = monotone_probability(out[0])
    for index, sign in ((1, 1.0), (2, 1.0), (3, -1.0)):
        out[index] = sign * monotone_utility(sign * out[index])
    out.flags.writeable = False
    return Tables(*out)


def monotone_utility(table: FloatArray) -> FloatArray:
    """Return the smallest table above this one that increases with s (rows) and decreases with m (columns)."""
    return np.maximum.accumulate(np.maximum.accumulate(table, axis=0)[:, ::-1], axis=1)[:, ::-1]


def monotone_probability(table: FloatArray) -> FloatArray:
    """Adjust a table of probabilities so that it decreases with s, increases with m and lies between 1/2 and 1.

    The exact probability of the likelier outcome does so for every symmetric link with its steepest slope at 0.
    """
    return np.minimum.accumulate(np.maximum.accumulate(np.clip(table, 0.5, 1.0), axis=1), axis=0)


def grid_axis(origin: float, octaves: int) -> FloatArray:
    """Return the grid points of m or of s."""
    steps = 1 << _STEP_BITS
    fine = (1.0 + np.arange(steps) / steps) * 2.0 ** np.arange(octaves)[:, None]
    return np.append(fine.ravel(), 2.0**octaves) * origin - origin


def k_rule(spread: float) -> tuple[FloatArray, FloatArray]:
    """Return the nodes, as factors on k, and weights of Gauss-Hermite quadrature over log k ~ N(0, spread²)."""
    x, weights = np.polynomial.hermite_e.hermegauss(_LOG_K_NODES if spread > 0.0 else 1)
    return np.exp(spread * x), weights / weights.sum()


def normal_rule(s: float, spread: float, link: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes u and weights of the trapezoidal rule for E g(m + s u), u standard normal.

    The link in g may be a mixture of links whose log k has standard deviation ``spread``.
    """
    step = _logit_step(link) / max(s * np.exp(spread), 1.0)
    u = np.arange(-7.0, 7.0 + step / 2, step)
    weights = np.exp(-0.5 * u**2)
    return u, weights / weights.sum()


def _logit_step(link: int) -> float:
    """Return the step in z at which the trapezoidal rule resolves the link."""
    return 0.5 if link == LOGISTIC else 0.2


def utilities_at(m: FloatArray, s: float, link: int) -> FloatArray:
    """Return the (4, len(m)) values of the four functions at non-negative m and one s, by the trapezoidal rule.

    The rule converges exponentially for these integrands. For s < 1 it integrates over u; otherwise over z, where f'
    and the entropy are confined to a few units for any s, and E f = ∫ f'(z) Φ((m - z)/s) dz.
    """
    step = _logit_step(link)
    if s < 1.0:
        u = np.arange(-9.0, 9.0 + step / 2, step)
        weights = np.exp(-0.5 * u**2)
        weights /= weights.sum()
        z = m[:, None] + s * u
        above, below, slope, curvature, entropy = (values @ weights for values in link_functions(z, link))
    else:
        limit = 40.0 if link == LOGISTIC else 9.0
        z = np.arange(-limit, limit + step / 2, step)
        _, _, slopes, curvatures, entropies = link_functions(z, link)
        above = ndtr((m[:, None] - z) / s) @ slopes * step
        below = ndtr((z - m[:, None]) / s) @ slopes * step
        density = np.exp(-0.5 * ((m[:, None] - z) / s) ** 2) * (step / (s * np.sqrt(2 * np.pi)))
        slope, curvature, entropy = density @ slopes, density @ curvatures, density @ entropies
    return utilities_from(above, below, s * slope, s * s * curvature, entropy)


def link_functions(z: FloatArray, link: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return f(z), f(-z), f'(z), f''(z) and h_b(f(z)) in bits."""
    if link == LOGISTIC:
        above, below, log_above, log_below = expit(z), expit(-z), log_expit(z), log_expit(-z)
        slope = above * below
        curvature = slope * (below - above)
    else:
        above, below, log_above, log_below = ndtr(z), ndtr(-z), log_ndtr(z), log_ndtr(-z)
        slope = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        curvature = -z * slope
    entropy = -(above * log_above + below * log_below) / np.log(2)
    return above, below, slope, curvature, entropy


def utilities_from(
    above: FloatArray, below: FloatArray, first: FloatArray, second: FloatArray, entropy: FloatArray
) -> FloatArray:
    """Return the four functions from P, 1 - P, E[u f], E[(u² - 1) f] and E h_b(f)."""
    rare = np.maximum(below, _MIN_RARE_PROBABILITY)
    marginal = -(above * np.log2(np.maximum(above, _MIN_RARE_PROBABILITY)) + below * np.log2(rare))
    information = np.maximum(marginal - entropy, 0.0)
    explained = first**2 / (above * rare)
    variance_above = 1.0 + second / above - (first / above) ** 2
    variance_below = 1.0 - second / rare - (first / rare) ** 2
    log_above, log_below = np.log(np.clip(variance_above, 1e-12, None)), np.log(np.clip(variance_below, 1e-12, None))
    log_volume = above * log_above + below * log_below
    return np.stack([above, information, explained, np.minimum(log_volume, 0.0)])


def hermite_spline(x: FloatArray, y: FloatArray, slope: FloatArray) -> Curve:
    """Return the cubic Hermite spline through points with these slopes."""
    from scipy.interpolate import CubicHermiteSpline  # slow to import (0.15 s), and not every search needs it

    spline: Curve = CubicHermiteSpline(x, y, slope)
    return spline


@primitive
def interpolate(table: FloatArray, m: float, s: float) -> float:
    """Return the bilinear interpolation at non-negative (m, s); beyond the last m, the value there."""
    if s > S_MAX:
        m *= S_MAX / s
        s = S_MAX
    i: np.int64 = np.float64(s + S0).view(np.int64) - _S0_BITS
    j: np.int64 = np.float64(m + M0).view(np.int64) - _M0_BITS
    row: np.int64 = min(i >> _POSITION_BITS, _LAST_ROW)
    column: np.int64 = min(j >> _POSITION_BITS, _LAST_COLUMN)
    v = min((i - (row << _POSITION_BITS)) / _POSITIONS_PER_CELL, 1.0)
    h = min((j - (column << _POSITION_BITS)) / _POSITIONS_PER_CELL, 1.0)
    lower = table[row, column] + h * (table[row, column + 1] - table[row, column])
    upper = table[row + 1, column] + h * (table[row + 1, column + 1] - table[row + 1, column])
    return lower + v * (upper - lower)


@kernel
def look_up(start: int, stop: int, table: FloatArray, m: FloatArray, s: FloatArray, out: FloatArray) -> None:
    """Write table(|m|, s) for the rows from start to stop; NaN where either is NaN."""
    for row in range(start, stop):
        # A NaN must not become an index.
        is_valid = abs(m[row]) >= 0.0 and s[row] >= 0.0
        out[row] = interpolate(table, abs(m[row]), s[row]) if is_valid else np.nan
